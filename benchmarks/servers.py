"""A Postgres server of a benchmark's own, migrated, and what is governed on it."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from datasource_governance.cli.founding import signer_of
from datasource_governance.composition import Application, Settings
from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.canonical import Json, canonical_bytes
from datasource_governance.domain.datasource import Datasource, parse_datasource
from datasource_governance.domain.subjects import apply_subject, grant_subject
from datasource_governance.persistence.connections import Connections
from datasource_governance.persistence.embedded import EmbeddedPostgres
from datasource_governance.persistence.provisioning import provision
from datasource_governance.persistence.upgrade import upgrade
from datasource_governance.services.authority import GrantRequest, found_tenant, grant_role
from datasource_governance.services.declaring import apply_datasource


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
        yield migrated(server.url, folder)


def migrated(url: str, folder: Path) -> Served:
    """Migrate a server that runs, and keep in a folder what is kept beside it."""
    connections = provision(url)
    upgrade(url)
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
    return Served(url, connections, settings)


def published(name: str, policy: Json) -> Datasource:
    """Return a datasource of kind `published`, whose artifacts are evaluated by their evidence."""
    document = {"id": name, "kind": "published", "governance": {"quality_policy": policy}}
    return parse_datasource(canonical_bytes(document), lambda name: Path(name).read_bytes())


def found_publishing(server: Served, datasources: Iterable[Datasource]) -> None:
    """Found the tenant, declare datasources, and let `system` publish to them."""
    with closing(Application(server.settings)) as application:
        administrator = signer_of(application, "admin")
        found_tenant(application.work(), "admin", administrator.public_key)
        subject = grant_subject(SYSTEM, Role.PRODUCER, None)
        producer = GrantRequest(
            actor=SYSTEM,
            role=Role.PRODUCER,
            datasource=None,
            attestation=administrator.attest(Action.ACTOR_GRANT, subject),
        )
        grant_role(application.work(), producer)
        for one in datasources:
            applied = administrator.attest(Action.DATASOURCE_APPLY, apply_subject(one))
            apply_datasource(application.work(), one, applied)
