"""A Postgres server of a benchmark's own, migrated, with settings for an application on it."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from datasource_governance.composition import Settings
from datasource_governance.persistence.connections import Connections
from datasource_governance.persistence.embedded import EmbeddedPostgres
from datasource_governance.persistence.provisioning import provision
from datasource_governance.persistence.upgrade import upgrade


@dataclass(frozen=True, slots=True)
class Served:
    """`url` is administrative; `settings.state` is a folder that ends with the server."""

    url: str
    connections: Connections
    settings: Settings


@contextmanager
def served() -> Iterator[Served]:
    """Run a server that waits for the disk."""
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o711)  # the server may run as another user
        server = opened.enter_context(EmbeddedPostgres.start(folder / "postgres"))
        connections = provision(server.url)
        upgrade(server.url)
        settings = Settings(
            database_url=connections.governance_url,
            tenant="default",
            state=folder,
            keys=folder / "keys",
            datasources=folder / "datasources",
            actor=None,
            dagster_url="http://127.0.0.1:1",
            administrative_url=None,
        )
        yield Served(server.url, connections, settings)
