"""Everything a server needs before the application and Dagster can use it, in one step.

Source: SPEC sections 16 (`db upgrade`, `dev`) and 17.
"""

from pathlib import Path

from datasource_governance.persistence.connections import (
    DAGSTER_DATABASE,
    GOVERNANCE_DATABASE,
    Connections,
    read_connections,
    write_connections,
)
from datasource_governance.persistence.provisioning import provision
from datasource_governance.persistence.upgrade import upgrade


def prepare(
    admin_url: str,
    file: Path,
    *,
    governance: str = GOVERNANCE_DATABASE,
    dagster: str = DAGSTER_DATABASE,
) -> Connections:
    """Provision databases and roles, migrate, and write the connections file. Idempotent.

    Passwords in the file are kept while they work.

    Raises:
        InvalidArgumentError, ServiceUnavailableError: as `provision` and `upgrade` say.
    """
    previous = read_connections(file) if file.exists() else None
    connections = provision(admin_url, governance=governance, dagster=dagster, previous=previous)
    upgrade(admin_url, governance)
    write_connections(file, connections)
    return connections
