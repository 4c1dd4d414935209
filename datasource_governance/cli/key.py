"""`key create | register | revoke | show | list`.

Source: SPEC sections 7, 16 and 17.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

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
from datasource_governance.domain.actor import person
from datasource_governance.domain.attestation import Action, ActorKey, KeyKind
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.subjects import key_subject, revocation_subject
from datasource_governance.errors import NotFoundError
from datasource_governance.ports import UnitOfWork
from datasource_governance.services.authority import KeyRegistration, register_key, revoke_key
from datasource_governance.signing import Signer, create_key, public_path, read_public_key

app = typer.Typer(help="Keys with which actors sign what they do.", no_args_is_help=True)
_ABOUT = (
    *("stage", "run_id", "file_sha256", "registered_key", "revoked_key", "grant"),
    *("actor", "datasource"),
)
"""What of a subject says in one word what a statement is about: the first that it has."""


@app.command()
def create(
    owner: Annotated[str, typer.Argument(help="Whose key: the actor's name.")],
    json: JsonOption = False,
) -> int:
    """Create a key pair on this machine; the private one never leaves it."""
    directory = application().settings.keys
    private = create_key(directory, owner)
    public = public_path(directory, owner)
    if json:
        print_json({"actor": person(owner), "private": str(private), "public": str(public)})
    else:
        console().print(f"private key (keep it): {private}\npublic key: {public}", markup=False)
    return 0


@app.command()
def register(
    owner: Annotated[str, typer.Argument(help="Whose key it is; the actor is made if new.")],
    public_key: Annotated[
        Path | None, typer.Option(help="PEM file; default: the one made here.")
    ] = None,
    kind: Annotated[KeyKind, typer.Option(help="Whom the key attests for.")] = KeyKind.ACTOR,
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """Let a key attest for an actor, as an administrator."""
    session = application()
    path = public_key or public_path(session.settings.keys, owner)
    key = register_public_key(session, signer(session, actor), owner, path, kind)
    if json:
        print_json({"actor": key.actor, "key": key.id, "kind": str(key.kind)})
    else:
        whom = key.actor if key.kind is KeyKind.ACTOR else "whoever signs in to the webserver"
        console().print(f"key {key.id[:SHORT]} attests for {whom}", markup=False)
    return 0


def register_public_key(
    session: Application,
    author: Signer,
    owner: str,
    path: Path,
    kind: KeyKind = KeyKind.ACTOR,
) -> ActorKey:
    """Sign and submit the registration of a public key."""
    public_key = read_public_key(path)
    subject = key_subject(person(owner), kind, public_key, owner)
    request = KeyRegistration(
        actor=person(owner),
        display_name=owner,
        kind=kind,
        public_key=public_key,
        attestation=author.attest(Action.KEY_REGISTER, subject),
    )
    return register_key(session.work(), request)


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(help="Id of the key, or its first 12 digits.")],
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """End a key, as an administrator."""
    session = application()
    author = signer(session, actor)
    with session.work() as work:
        ended = _one_key(work, key)
    revoke_signed(session, author, ended)
    if json:
        print_json({"key": ended, "revoked": True})
    else:
        console().print(f"key {ended[:SHORT]} is revoked", markup=False)
    return 0


def revoke_signed(session: Application, author: Signer, key: Sha256) -> None:
    """Sign and submit the end of a key."""
    attestation = author.attest(Action.KEY_REVOKE, revocation_subject(key))
    revoke_key(session.work(), key, attestation)


@app.command()
def show(
    key: Annotated[str, typer.Argument(help="Id of the key, or its first 12 digits.")],
    json: JsonOption = False,
) -> int:
    """List everything that a key attested, newest first: what to look at when it was stolen."""
    session = application()
    with session.work() as work:
        shown = _one_key(work, key)
        attested = work.authority.attested_with(shown)
    if json:
        print_json(
            {
                "key": shown,
                "attested": [
                    {
                        "attestation": one.id,
                        "at": at.isoformat(),
                        "actor": one.claims.actor,
                        "action": str(one.claims.action),
                        "subject": one.claims.subject,
                    }
                    for at, one in attested
                ],
            }
        )
        return 0
    table = Table("at (UTC)", "actor", "action", "about")
    for at, one in attested:
        about = next(
            (str(one.claims.subject[name]) for name in _ABOUT if name in one.claims.subject), ""
        )
        table.add_row(instant(at), one.claims.actor, one.claims.action, escape(about))
    console().print(table)
    return 0


def _one_key(work: UnitOfWork, digits: str) -> Sha256:
    found = [one.id for one in work.authority.keys(None) if one.id.startswith(digits)]
    if len(found) != 1:
        raise NotFoundError(f"{len(found)} keys begin with {digits!r}; list them: key list")
    return found[0]


@app.command("list")
def list_keys(json: JsonOption = False) -> int:
    """List registered keys, and who registered them with which key."""
    with application().work() as work:
        keys = work.authority.keys(None)
        signed = work.authority.attestations(attestation_ids(keys))
    if json:
        print_json([_document(key) | author_of(key, signed) for key in keys])
        return 0
    table = Table(
        "key", "actor", "kind", "since (UTC)", "registered by", "with key", "revoked (UTC)"
    )
    for key in keys:
        revoked = instant(key.revoked_at) if key.revoked_at else ""
        table.add_row(
            key.id[:SHORT],
            key.actor,
            key.kind,
            instant(key.created_at),
            *author_cells(key, signed),
            revoked,
        )
    console().print(table)
    return 0


def _document(key: ActorKey) -> dict[str, object]:
    return {
        "key": key.id,
        "actor": key.actor,
        "kind": str(key.kind),
        "registered_at": key.created_at.isoformat(),
        "revoked": key.revoked_at is not None,
        "revoked_at": key.revoked_at.isoformat() if key.revoked_at else None,
    }
