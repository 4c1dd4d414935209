"""`actor grant | withdraw | offboard | list`.

Source: SPEC sections 16 and 17.
"""

from typing import Annotated

import typer
from rich.table import Table

from datasource_governance.cli.key import revoke_signed
from datasource_governance.cli.output import (
    ActorOption,
    JsonOption,
    console,
    instant,
    print_json,
)
from datasource_governance.cli.session import application, signer
from datasource_governance.cli.signatures import (
    SHORT,
    attestation_ids,
    author_cells,
    author_of,
)
from datasource_governance.composition import Application
from datasource_governance.domain.actor import Grant, Role, canonical_principal, person
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.subjects import grant_subject, withdrawal_subject
from datasource_governance.errors import InvalidArgumentError, NotFoundError
from datasource_governance.services.authority import GrantRequest, grant_role, withdraw_grant
from datasource_governance.signing import Signer

app = typer.Typer(help="Who may do what.", no_args_is_help=True)


@app.command()
def grant(
    name: Annotated[str, typer.Argument(help="Whom to give authority.")],
    role: Annotated[Role, typer.Argument(help="The role.")],
    datasource: Annotated[str | None, typer.Option(help="Default: all datasources.")] = None,
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """Give authority, as an administrator."""
    session = application()
    given = grant_signed(session, signer(session, actor), name, role, datasource)
    if json:
        print_json(_document(given))
    else:
        where = given.datasource or "all datasources"
        console().print(f"{given.actor} is {given.role} on {where}", markup=False)
    return 0


def grant_signed(
    session: Application, author: Signer, name: str, role: Role, datasource: str | None = None
) -> Grant:
    """Sign and submit a grant."""
    actor = canonical_principal(name)
    attestation = author.attest(Action.ACTOR_GRANT, grant_subject(actor, role, datasource))
    request = GrantRequest(actor=actor, role=role, datasource=datasource, attestation=attestation)
    return grant_role(session.work(), request)


@app.command()
def withdraw(
    grant_id: Annotated[str, typer.Argument(help="Id of the grant, or its first 12 characters.")],
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """Take authority back, as an administrator."""
    session = application()
    author = signer(session, actor)
    with session.work() as work:
        found = [one.id for one in work.authority.grants() if one.id.startswith(grant_id)]
    if len(found) != 1:
        raise NotFoundError(f"{len(found)} grants begin with {grant_id!r}; list them: actor list")
    _withdraw_signed(session, author, found[0])
    if json:
        print_json({"grant": found[0], "withdrawn": True})
    else:
        console().print(f"grant {found[0]} is withdrawn", markup=False)
    return 0


def _withdraw_signed(session: Application, author: Signer, grant_id: str) -> None:
    attestation = author.attest(Action.ACTOR_WITHDRAW, withdrawal_subject(grant_id))
    withdraw_grant(session.work(), grant_id, attestation)


@app.command()
def offboard(
    name: Annotated[str, typer.Argument(help="Who leaves.")],
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """Revoke every key and withdraw every grant of somebody, as another administrator.

    Decisions that were made before stay on record and no longer count. Running it again ends what
    was left over or given since.
    """
    session = application()
    author, leaver = signer(session, actor), person(name)
    if author.actor == leaver:
        raise InvalidArgumentError("somebody else must sign this: --actor NAME")
    with session.work() as work:
        if work.authority.actor(leaver) is None:
            raise NotFoundError(f"there is no actor {leaver!r}; list them: actor list")
        keys = [key.id for key in work.authority.keys(leaver) if key.revoked_at is None]
        grants = [given.id for given in work.authority.grants(leaver)]
    for key in keys:
        revoke_signed(session, author, key)
    for grant_id in grants:
        _withdraw_signed(session, author, grant_id)
    if json:
        print_json({"actor": leaver, "keys": keys, "grants": grants})
    else:
        text = f"{leaver}: {len(keys)} keys are revoked, {len(grants)} grants are withdrawn"
        console().print(text, markup=False)
    return 0


@app.command("list")
def list_actors(json: JsonOption = False) -> int:
    """List actors, the grants in force, and who gave them with which key."""
    with application().work() as work:
        actors, grants = work.authority.actors(), work.authority.grants()
        signed = work.authority.attestations(attestation_ids(grants))
    if json:
        print_json(
            {
                "actors": [{"id": one.id, "name": one.display_name} for one in actors],
                "grants": [_document(one) | author_of(one, signed) for one in grants],
            }
        )
        return 0
    table = Table("actor", "role", "datasource", "since (UTC)", "given by", "with key", "grant")
    for actor in actors:
        held = [one for one in grants if one.actor == actor.id]
        for one in held:
            table.add_row(actor.id, *_cells(one), *author_cells(one, signed), one.id[:SHORT])
        if not held:
            table.add_row(actor.id, "none")
    console().print(table)
    return 0


def _cells(given: Grant) -> tuple[str, str, str]:
    return given.role, given.datasource or "all", instant(given.granted_at)


def _document(given: Grant) -> dict[str, object]:
    return {
        "grant": given.id,
        "actor": given.actor,
        "role": str(given.role),
        "datasource": given.datasource,
        "granted_at": given.granted_at.isoformat(),
    }
