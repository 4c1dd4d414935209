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
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.persistence.connections import (
    DAGSTER_DATABASE,
    GOVERNANCE_DATABASE,
)
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
    governance_database: Annotated[
        str, typer.Option(help="Database of the governance tables.")
    ] = GOVERNANCE_DATABASE,
    dagster_database: Annotated[
        str, typer.Option(help="Database of Dagster's own storage.")
    ] = DAGSTER_DATABASE,
    json: JsonOption = False,
) -> int:
    """Bring the server at DATABASE_URL up to date. Repeating it changes nothing.

    Writes the connections of the application and of Dagster to a file of mode 0600, and names the
    role that auditors are given.
    """
    settings = read_settings()
    if settings.administrative_url is None:
        raise InvalidArgumentError(
            "DATABASE_URL is not set; it is the administrative address of a PostgreSQL 15 or newer"
        )
    if (administrator is None) != (public_key is None):
        raise InvalidArgumentError("--administrator and --public-key go together")
    from datasource_governance.persistence.preparation import prepare
    from datasource_governance.persistence.provisioning import reader_role

    key = read_public_key(public_key) if public_key is not None else None
    connections = settings.state / CONNECTIONS_FILE
    prepare(
        settings.administrative_url,
        connections,
        governance=governance_database,
        dagster=dagster_database,
    )
    founded = None
    if administrator is not None and key is not None:
        founded = found(read_settings(), administrator, key)
    reader = reader_role(governance_database)
    if json:
        print_json(
            {
                "connections": str(connections),
                "administrator_created": founded,
                "reader_role": reader,
            }
        )
    else:
        text = (
            f"up to date; connections are in {connections}\n"
            f"a login that may verify evidence and write nothing: GRANT {reader} TO auditor"
        )
        console().print(text, markup=False)
    return 0


def found(settings: Settings, administrator: str, public_key: bytes) -> bool:
    """Create the tenant's first administrator; tell whether it was now."""
    application = Application(settings)
    try:
        return found_tenant(application.work(), administrator, public_key)
    finally:
        application.close()
