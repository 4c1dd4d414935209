"""`actor grant | withdraw | list`.

Source: SPEC sections 16 and 17.
"""

from typing import Annotated

import typer
from rich.table import Table

from datasource_governance.cli.output import ActorOption, JsonOption, console, print_json
from datasource_governance.cli.session import application, signer
from datasource_governance.composition import Application
from datasource_governance.domain.actor import Grant, Role, canonical_principal
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.subjects import grant_subject, withdrawal_subject
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
    grant_id: Annotated[str, typer.Argument(help="Id of the grant: actor list.")],
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """Take authority back, as an administrator."""
    session = application()
    author = signer(session, actor)
    attestation = author.attest(Action.ACTOR_WITHDRAW, withdrawal_subject(grant_id))
    withdraw_grant(session.work(), grant_id, attestation)
    if json:
        print_json({"grant": grant_id, "withdrawn": True})
    else:
        console().print(f"grant {grant_id} is withdrawn", markup=False)
    return 0


@app.command("list")
def list_actors(json: JsonOption = False) -> int:
    """List actors and the grants in force."""
    with application().work() as work:
        actors, grants = work.authority.actors(), work.authority.grants()
    if json:
        print_json(
            {
                "actors": [{"id": one.id, "name": one.display_name} for one in actors],
                "grants": [_document(one) for one in grants],
            }
        )
        return 0
    table = Table("actor", "role", "datasource", "grant")
    for one in grants:
        table.add_row(one.actor, one.role, one.datasource or "all", one.id)
    console().print(table)
    return 0


def _document(given: Grant) -> dict[str, object]:
    return {
        "grant": given.id,
        "actor": given.actor,
        "role": str(given.role),
        "datasource": given.datasource,
    }
