"""`key create | register | revoke | list`.

Source: SPEC sections 7, 16 and 17.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from datasource_governance.cli.output import ActorOption, JsonOption, console, print_json
from datasource_governance.cli.session import application, signer
from datasource_governance.composition import Application
from datasource_governance.domain.actor import person
from datasource_governance.domain.attestation import Action, ActorKey, KeyKind
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.subjects import key_subject, revocation_subject
from datasource_governance.errors import NotFoundError
from datasource_governance.services.authority import KeyRegistration, register_key, revoke_key
from datasource_governance.signing import Signer, create_key, public_path, read_public_key

app = typer.Typer(help="Keys with which actors sign what they do.", no_args_is_help=True)


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
        console().print(f"key {key.id[:12]} attests for {key.actor}", markup=False)
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
        found = [one.id for one in work.authority.keys(None) if one.id.startswith(key)]
    if len(found) != 1:
        raise NotFoundError(f"{len(found)} keys begin with {key!r}; list them: key list")
    key_id: Sha256 = found[0]
    attestation = author.attest(Action.KEY_REVOKE, revocation_subject(key_id))
    revoke_key(session.work(), key_id, attestation)
    if json:
        print_json({"key": key_id, "revoked": True})
    else:
        console().print(f"key {key_id[:12]} is revoked", markup=False)
    return 0


@app.command("list")
def list_keys(json: JsonOption = False) -> int:
    """List registered keys."""
    with application().work() as work:
        keys = work.authority.keys(None)
    if json:
        print_json(
            [
                {
                    "key": key.id,
                    "actor": key.actor,
                    "kind": str(key.kind),
                    "revoked": key.revoked_at is not None,
                }
                for key in keys
            ]
        )
        return 0
    table = Table("key", "actor", "kind", "revoked")
    for key in keys:
        table.add_row(key.id[:12], key.actor, key.kind, "yes" if key.revoked_at else "")
    console().print(table)
    return 0
