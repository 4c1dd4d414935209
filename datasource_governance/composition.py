"""Settings from the environment, and the adapters that services are run with.

The environment is read here and nowhere else. Nothing connects before it is used, and nothing heavy
is imported before it is needed.

Source: SPEC sections 15 (loading never connects), 16 and 17.
"""

import hashlib
import os
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.datasource import Datasource
from datasource_governance.errors import InvalidArgumentError, NotFoundError
from datasource_governance.ports import Evaluator, Payload, UnitOfWork
from datasource_governance.ports.artifacts import ArtifactBackend, ArtifactEvaluator
from datasource_governance.ports.outbox import Receiver

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from datasource_governance.domain.checkpoint import KeptCheckpoints
    from datasource_governance.origins import DeclaredOrigin
    from datasource_governance.outputs import Outlet
    from datasource_governance.persistence.checkpoint_files import CheckpointFiles
    from datasource_governance.persistence.verification import Verification
    from datasource_governance.quality.platform import Platform
    from datasource_governance.services.publishing import PublicationRequest, Published

DEFAULT_STATE = ".governance"
CHECKPOINT_ACTOR = "checkpointer"
CONNECTIONS_FILE = "connections.env"
CODE_LOCATION = "datasource_governance.definitions"
_TENANT = re.compile(r"[a-z][a-z0-9_]{0,62}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the environment says.

    `GOVERNANCE_DATABASE_URL` (application role), `GOVERNANCE_TENANT` (default `default`),
    `GOVERNANCE_STATE` (directory of `dev` and `demo`, default `.governance`), `GOVERNANCE_KEYS`
    (directory of private keys, default `<state>/keys`), `GOVERNANCE_DATASOURCES` (directory of
    declarations, default the packaged demo), `GOVERNANCE_ACTOR` (whose key the command line uses),
    `GOVERNANCE_DAGSTER_URL` (where `stage create` launches runs), `DATABASE_URL` (administrative),
    `GOVERNANCE_CHECKPOINTS` (directory or fsspec address in which checkpoints are kept, out of
    reach of who owns the database), `GOVERNANCE_CHECKPOINT_ACTOR` (whose key signs them, default
    `checkpointer`), `GOVERNANCE_RECEIVERS` (TOML file that says who is told of events),
    `GOVERNANCE_ARTIFACTS` (directory or fsspec address of artifacts, default `<state>/artifacts`),
    `GOVERNANCE_PLATFORM` (platform manifest, JSON or YAML; without one rules are native).
    """

    database_url: str | None
    tenant: str
    state: Path
    keys: Path
    datasources: Path
    actor: str | None
    dagster_url: str
    administrative_url: str | None
    checkpoints: str | None = None
    checkpoint_actor: str = CHECKPOINT_ACTOR
    receivers: Path | None = None
    artifacts: str | None = None
    platform: Path | None = None


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings of this process; the connections file fills what is not exported.

    Raises:
        InvalidArgumentError: when GOVERNANCE_TENANT has another form than an id.
    """
    state = Path(environment.get("GOVERNANCE_STATE", DEFAULT_STATE))
    demo = Path(__file__).parent / "demo" / "datasources"
    return Settings(
        database_url=environment.get("GOVERNANCE_DATABASE_URL")
        or _written(state / CONNECTIONS_FILE),
        tenant=_checked_tenant(environment.get("GOVERNANCE_TENANT", "default")),
        state=state,
        keys=Path(environment.get("GOVERNANCE_KEYS", state / "keys")),
        datasources=Path(environment.get("GOVERNANCE_DATASOURCES", demo)),
        actor=environment.get("GOVERNANCE_ACTOR"),
        dagster_url=environment.get("GOVERNANCE_DAGSTER_URL", "http://127.0.0.1:3000"),
        administrative_url=environment.get("DATABASE_URL"),
        checkpoints=environment.get("GOVERNANCE_CHECKPOINTS"),
        checkpoint_actor=environment.get("GOVERNANCE_CHECKPOINT_ACTOR", CHECKPOINT_ACTOR),
        receivers=Path(named) if (named := environment.get("GOVERNANCE_RECEIVERS")) else None,
        artifacts=environment.get("GOVERNANCE_ARTIFACTS"),
        platform=Path(manifest) if (manifest := environment.get("GOVERNANCE_PLATFORM")) else None,
    )


def _checked_tenant(tenant: str) -> str:
    if not _TENANT.fullmatch(tenant):
        raise InvalidArgumentError(
            f"GOVERNANCE_TENANT is {tenant!r}; expected 1-63 of a-z 0-9 _, first a letter"
        )
    return tenant


def _written(path: Path) -> str | None:
    """Return the application's URL that `db upgrade` or `dev` wrote, if they did."""
    from datasource_governance.persistence.connections import read_connections

    try:
        return read_connections(path).governance_url
    except NotFoundError:
        return None


class Application:
    """The adapters of one process and tenant. One engine, opened when first used."""

    def __init__(self, settings: Settings, new_id: Callable[[], str] | None = None) -> None:
        self.settings = settings
        self._new_id = new_id or _new_id

    @cached_property
    def engine(self) -> "Engine":
        """The engine of the application role.

        Raises:
            InvalidArgumentError: when GOVERNANCE_DATABASE_URL is not set or is not usable.
        """
        from datasource_governance.persistence.connection import governance_engine

        if self.settings.database_url is None:
            raise InvalidArgumentError(
                "GOVERNANCE_DATABASE_URL is not set; start `datasource-governance dev`, or run "
                "`datasource-governance db upgrade`, which writes it to "
                f"{self.settings.state / CONNECTIONS_FILE}"
            )
        return governance_engine(self.settings.database_url)

    def close(self) -> None:
        """Give back every connection; using the application again opens new ones."""
        if "engine" in self.__dict__:
            self.engine.dispose()

    def work(self) -> UnitOfWork:
        """Return a unit of work; enter it to begin a transaction."""
        from datasource_governance.persistence.unit_of_work import PostgresUnitOfWork

        return PostgresUnitOfWork(self.engine, self.settings.tenant, self._new_id)

    @cached_property
    def platform(self) -> "Platform":
        """The platform manifest, and the quality provider that it chooses."""
        from datasource_governance.quality.platform import Platform

        return Platform(self.settings.platform)

    def evaluator(self) -> Evaluator:
        """Return the evaluator; importing it brings in the engines."""
        return self.platform.evaluator()

    def artifacts(self) -> ArtifactBackend:
        """Return where artifacts are kept: below the state unless another place is configured."""
        from datasource_governance.artifacts.local import LocalArtifacts
        from datasource_governance.artifacts.remote import RemoteArtifacts

        state, tenant = self.settings.state, self.settings.tenant
        place = self.settings.artifacts or str(state / "artifacts")
        protocol, separator, path = place.partition("://")
        if separator and protocol != "file":
            return RemoteArtifacts(place, tenant, state / "uploads")
        return LocalArtifacts(Path(path if separator else place), tenant)

    def artifact_evaluator(self) -> ArtifactEvaluator:
        """Return what looks into artifacts; importing it brings in the engines."""
        return self.platform.artifact_evaluator()

    def publish(self, data: object, request: "PublicationRequest") -> "Published":
        """Publish data of any class: inline if it is small, else as an artifact.

        Raises:
            GovernanceError: as `Outlet.publish`.
        """
        return self.outlet().publish(data, request)

    def outlet(self) -> "Outlet":
        """Return where outputs go; its `store` lets a producer write an artifact by itself."""
        from datasource_governance.outputs import Outlet

        return Outlet(
            tenant=self.settings.tenant,
            work=self.work,
            evaluator=self.evaluator(),
            artifacts=self.artifacts(),
            artifact_evaluator=self.artifact_evaluator(),
        )

    def verify_evidence(
        self,
        progress: Callable[[int], None] | None = None,
        kept: "KeptCheckpoints | None" = None,
    ) -> "Verification":
        """Verify all evidence of the tenant, against checkpoints that were kept, if any are given.

        `progress` is told of entries read.
        """
        from datasource_governance.persistence.verification import verify_evidence

        return verify_evidence(self.engine, self.settings.tenant, progress, kept)

    def checkpoint_files(self, place: str | None = None) -> "CheckpointFiles":
        """Return the checkpoints at a place, or at the configured one.

        Raises:
            InvalidArgumentError: when no place is given and none is configured.
        """
        from datasource_governance.persistence.checkpoint_files import CheckpointFiles

        place = place or self.settings.checkpoints
        if place is None:
            raise InvalidArgumentError(
                "say where checkpoints are kept: --to PLACE, or export GOVERNANCE_CHECKPOINTS; "
                "it must be out of reach of who owns the database"
            )
        return CheckpointFiles(place)

    def receivers(self) -> Sequence[Receiver]:
        """Return who is told of events; nobody where no settings file is named.

        The file and the secrets it names are read each time, so a change needs no restart.

        Raises:
            InvalidPolicyError: with everything that is wrong with the file.
            InvalidArgumentError: when it cannot be read.
        """
        from datasource_governance.receivers.settings import read_receivers

        if self.settings.receivers is None:
            return ()
        return read_receivers(self.settings.receivers, self.settings.dagster_url, self.work)

    def delivery_folder(self, declaration: Datasource) -> Path:
        """Return the folder of a datasource's deliveries; a relative one is below the state.

        Raises:
            InvalidArgumentError: when the declaration names no folder.
        """
        if declaration.folder is None:
            raise InvalidArgumentError(
                f"datasource {declaration.id!r} declares no delivery folder: source.folder"
            )
        return self.settings.state / declaration.folder

    def origin(self, declaration: Datasource) -> "DeclaredOrigin":
        """Return what a datasource is re-read from; nothing is read before it is asked.

        Raises:
            InvalidArgumentError: when the declaration names no origin.
        """
        from datasource_governance.origins import DeclaredOrigin

        if declaration.origin is None:
            raise InvalidArgumentError(
                f"datasource {declaration.id!r} declares nothing to read again: source.origin"
            )
        return DeclaredOrigin(
            origin=declaration.origin, csv=declaration.csv, environment=os.environ
        )

    def read_delivery(self, declaration: Datasource, delivery: str) -> tuple[Payload, Sha256]:
        """Read one file of the delivery folder; return its payload and its SHA-256.

        Raises:
            InvalidArgumentError: when `delivery` is not the plain name of a file.
            NotFoundError: when there is no such file; links are not followed.
            UnreadableSourceError: when the file is refused.
        """
        from datasource_governance.evaluation.payload import TypedPayload
        from datasource_governance.sources.child import Content
        from datasource_governance.sources.files import read_content
        from datasource_governance.sources.limits import DEFAULT_LIMITS, read_bounded

        path = self.delivery_folder(declaration) / checked_name(delivery)
        if path.is_symlink() or not path.is_file():
            raise NotFoundError(f"there is no delivery {delivery!r} of {declaration.id!r}")
        # Hashed and decoded are the same bytes, whatever happens to the file meanwhile.
        name, stored = read_bounded(path, DEFAULT_LIMITS)
        sha256 = Sha256(hashlib.sha256(stored).hexdigest())
        return TypedPayload(
            read_content(Content(name=name, stored=stored, csv=declaration.csv))
        ), sha256


_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")


def checked_name(delivery: str) -> str:
    """Return a delivery's name if it is one plain name inside a folder.

    Raises:
        InvalidArgumentError: for a path, a hidden name or anything longer than 200 characters.
    """
    if not _NAME.fullmatch(delivery):
        raise InvalidArgumentError(
            "a delivery is named by a file name of 1-200 of A-Z a-z 0-9 . _ -, never by a path"
        )
    return delivery


def _new_id() -> str:
    return str(uuid.uuid4())  # noqa: TID251 - the one place where ids are made
