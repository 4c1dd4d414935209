"""`db upgrade`: databases, roles, tables, and the first administrator.

Source: SPEC sections 16 and 17.
"""

from pathlib import Path
from typing import Annotated

import typer

from datasource_governance.cli.output import JsonOption, console, print_json
from datasource_governance.composition import (
    CONNECTIONS_FILE,
    Application,
    Settings,
    read_settings,
)
from datasource_governance.errors import InvalidArgumentError, NotFoundError
from datasource_governance.services.authority import found_tenant
from datasource_governance.signing import read_public_key

app = typer.Typer(help="The databases.", no_args_is_help=True)


@app.callback()
def database() -> None:
    """Keep `upgrade` a command of its own."""


@app.command()
def upgrade(
    administrator: Annotated[
        str | None, typer.Option(help="Name of the tenant's first administrator.")
    ] = None,
    public_key: Annotated[Path | None, typer.Option(help="The administrator's PEM file.")] = None,
    json: JsonOption = False,
) -> int:
    """Bring the server at DATABASE_URL up to date. Repeating it changes nothing.

    Writes the connections of the application and of Dagster to a file of mode 0600.
    """
    settings = read_settings()
    if settings.administrative_url is None:
        raise InvalidArgumentError(
            "DATABASE_URL is not set; it is the administrative address of a PostgreSQL 15 or newer"
        )
    if (administrator is None) != (public_key is None):
        raise InvalidArgumentError("--administrator and --public-key go together")
    connections = settings.state / CONNECTIONS_FILE
    prepare(settings, settings.administrative_url)
    founded = None
    if administrator is not None and public_key is not None:
        founded = found(read_settings(), administrator, public_key)
    if json:
        print_json({"connections": str(connections), "administrator_created": founded})
    else:
        console().print(f"up to date; connections are in {connections}", markup=False)
    return 0


def prepare(settings: Settings, administrative_url: str) -> None:
    """Provision databases and roles, migrate, and write the connections file."""
    from datasource_governance.persistence.connections import read_connections, write_connections
    from datasource_governance.persistence.provisioning import provision
    from datasource_governance.persistence.upgrade import upgrade as migrate

    path = settings.state / CONNECTIONS_FILE
    try:
        previous = read_connections(path)
    except NotFoundError:
        previous = None
    connections = provision(administrative_url, previous=previous)
    migrate(administrative_url)
    write_connections(path, connections)


def found(settings: Settings, administrator: str, public_key: Path) -> bool:
    """Create the tenant's first administrator; tell whether it was now."""
    application = Application(settings)
    try:
        return found_tenant(application.work(), administrator, read_public_key(public_key))
    finally:
        application.close()
