"""`webserver`: the Dagster UI behind sign-in and roles; `webserver account`: who may sign in.

Source: SPEC section 16.
"""

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from datasource_governance.cli.founding import webserver_directory
from datasource_governance.cli.output import JsonOption, console, print_json
from datasource_governance.cli.session import application
from datasource_governance.composition import Application, read_settings
from datasource_governance.domain.actor import canonical_principal
from datasource_governance.domain.attestation import KeyKind
from datasource_governance.domain.canonical import Sha256
from datasource_governance.errors import InvalidArgumentError, NotFoundError

app = typer.Typer(
    help="The Dagster UI behind sign-in, roles and an allow-list.", invoke_without_command=True
)
ConfigurationOption = Annotated[
    Path | None,
    typer.Option("--config", envvar="GOVERNANCE_WEB_CONFIG", help="TOML file of settings."),
]


@app.callback()
def webserver(
    context: typer.Context,
    workspace: Annotated[
        Path, typer.Option("--workspace", "-w", help="Workspace file of the code locations.")
    ] = Path("workspace.yaml"),
    config: ConfigurationOption = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.", min=1, max=65535)] = None,
) -> int:
    """Serve the Dagster UI to those who signed in, with what their roles allow; Ctrl-C stops it."""
    if context.invoked_subcommand is not None:
        return 0
    from datasource_governance.web.audit import LOGGER
    from datasource_governance.web.decisions import decision_pages
    from datasource_governance.web.gateway import GATEWAY, Gateway
    from datasource_governance.web.server import serve
    from datasource_governance.web.settings import read_web_settings

    session = application()
    settings = read_web_settings(
        config, webserver_directory(session.settings), host=host, port=port
    )
    if not workspace.is_file():
        raise NotFoundError(f"{workspace} does not exist; name the workspace file: --workspace")
    logger = logging.getLogger(LOGGER)
    logger.setLevel(logging.INFO)
    logger.addHandler(logging.StreamHandler())
    address = settings.public_url or f"http://{settings.host}:{settings.port}"
    console().print(f"Dagster UI, signed in: {address}", markup=False)
    gateway = Gateway(settings.directory, session.settings.tenant)
    if not _may_attest(session, gateway.key):
        console().print(
            "Nobody can decide or launch here yet: the webserver's key is not registered. As an "
            f"administrator run: datasource-governance key register {GATEWAY} --kind gateway "
            f"--public-key {gateway.public_key_file}",
            markup=False,
            soft_wrap=True,
        )
    pages = decision_pages(session, gateway)
    serve(workspace, settings, session, gateway=gateway, pages=pages)
    return 0


def _may_attest(session: Application, key_id: Sha256) -> bool:
    """Tell whether a key is registered to sign for those whom a webserver authenticated."""
    with session.work() as work:
        key = work.authority.key(key_id)
    return key is not None and key.kind is KeyKind.GATEWAY and key.revoked_at is None


@app.command()
def account(
    name: Annotated[str, typer.Argument(help="What the person types to sign in.")],
    actor: Annotated[
        str | None, typer.Option(help="The registered actor it stands for; default: NAME.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="End the account instead.")] = False,
    config: ConfigurationOption = None,
    json: JsonOption = False,
) -> int:
    """Make a local account, or give it a new password; the running webserver notices.

    The password is asked for, or read as one line from the standard input.
    """
    from datasource_governance.web.accounts import make_account, read_accounts, write_accounts
    from datasource_governance.web.settings import read_web_settings

    path = read_web_settings(config, webserver_directory(read_settings())).accounts_file
    accounts = read_accounts(path)
    if remove:
        removed = accounts.pop(canonical_principal(name), None)
        if removed is None:
            raise NotFoundError(f"there is no account {name!r}")
        answer: dict[str, object] = {"account": removed.name, "removed": True}
    else:
        made = make_account(name, actor or name, _password())
        accounts[made.name] = made
        answer = {"account": made.name, "actor": made.actor, "file": str(path)}
    write_accounts(path, accounts)
    if json:
        print_json(answer)
    else:
        console().print(", ".join(f"{key}: {value}" for key, value in answer.items()), markup=False)
    return 0


def _password() -> str:
    if sys.stdin.isatty():
        asked: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
        return asked
    line = sys.stdin.readline().rstrip("\r\n")
    if not line:
        raise InvalidArgumentError("no password came on the standard input")
    return line
