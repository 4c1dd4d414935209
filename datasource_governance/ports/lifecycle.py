"""What services need of governed records and of whoever evaluates, as Protocols.

A unit of work is one transaction: nothing is visible before `commit`, and everything that was
written must have been told to the evidence chain before it. Methods that load raise
`NotFoundError` for ids that the tenant does not have.

Source: DESIGN section 5, "Dependency direction"; SPEC sections 6-8, 13.
"""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol, Self

from datasource_governance.domain.approval import Decision
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.materialization import Materialization
from datasource_governance.domain.policy_version import PolicyKind, PolicySource, PolicyVersion
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.domain.quality_provider import ProviderBinding
from datasource_governance.domain.schema import TableSchema
from datasource_governance.domain.stage import Stage, StageState
from datasource_governance.domain.target import Governance, Target
from datasource_governance.domain.validation import Validation
from datasource_governance.ports.authority import Authority
from datasource_governance.ports.contracts import Contracts
from datasource_governance.ports.evidence import Evidence
from datasource_governance.ports.holds import Holds
from datasource_governance.ports.outbox import Deliveries, Outbox
from datasource_governance.ports.publications import Publications
from datasource_governance.ports.retention import Retention


class Payload(Protocol):
    """One typed table on its way through a service, which cannot look into it."""

    def encoded(self) -> bytes:
        """Return the stored form: one Arrow IPC stream, zstd, typed as SPEC section 3 says."""
        ...


class Evaluator(Protocol):
    """Validates a payload; the only thing that looks inside one."""

    @property
    def provider(self) -> ProviderBinding | None:
        """Who evaluates the rules about rows; None for natively, without a platform manifest."""
        ...

    def validate(
        self, policy: QualityPolicy, payload: Payload, previous: TableSchema | None
    ) -> Validation:
        """Return the validation; raise nothing that holds a value."""
        ...

    def fingerprint(self, payload: Payload) -> Sha256:
        """Return the fingerprint that a validation of the payload would have, and no more."""
        ...


class Datasources(Protocol):
    """Datasources and the policies in force."""

    def get(self, datasource: str, partition: str = "") -> Target:
        """Return the datasource as it stands, in one partition if one is named."""
        ...

    def governance(self, datasource: str, partition: str) -> Governance:
        """Return it as it stands in a partition, or in none, with the policies in force."""
        ...

    def get_for_update(self, datasource: str, partition: str = "") -> Target:
        """Return it locked until the transaction ends; the first lock but a publication's key.

        All partitions are locked with it.
        """
        ...

    def find(self, datasource: str) -> Target | None:
        """Return it locked, or None."""
        ...

    def list(self) -> Sequence[Target]:
        """Return all datasources, ordered by id."""
        ...

    def add(self, target: Target) -> None:
        """Store a new datasource."""
        ...

    def change(self, target: Target, *, revision: int) -> None:
        """Store policies in force, settings, current materialization and revision.

        Only if the revision is still `revision`; else GuardError, code `conflict`.
        """
        ...

    def move(self, target: Target, materialization: str) -> Target:
        """Make a materialization current in the target's partition; return the target with it.

        Only if the revision is still the target's; else GuardError, code `conflict`.
        """
        ...

    def policy(
        self,
        datasource: str,
        kind: PolicyKind,
        policy_hash: Sha256,
        source: PolicySource = PolicySource.INHERITED,
    ) -> PolicyVersion:
        """Return the policy version with that hash, declared or supplied with an output."""
        ...

    def policies(self, datasource: str) -> Sequence[PolicyVersion]:
        """Return every version ever recorded, oldest first."""
        ...

    def add_policy(self, version: PolicyVersion) -> None:
        """Store a policy version unless this hash of its source is already there."""
        ...


class Stages(Protocol):
    """Stages and their payloads."""

    def get(self, stage: str) -> Stage:
        """Return the stage."""
        ...

    def get_for_update(self, stage: str) -> Stage:
        """Return it locked until the transaction ends; the datasource is locked before."""
        ...

    def attested_by(self, attestation_id: str, datasource: str) -> Stage | None:
        """Return the stage of a datasource that was created under an attestation, if any."""
        ...

    def last_read(self, datasource: str, origin: Sha256) -> Stage | None:
        """Return the newest stage that a refresh made of this origin, if there is one."""
        ...

    def version_read(self, stage: str) -> str | None:
        """Return what the origin of a stage calls the version that was read, if it said."""
        ...

    def of_publication(self, publication: str) -> Stage | None:
        """Return the stage that a publication waits in, if it does or did."""
        ...

    def list(
        self,
        datasource: str | None,
        states: Collection[StageState],
        partition: str | None = None,
    ) -> Sequence[Stage]:
        """Return stages in any of the states (none given: all), newest first.

        With a partition only those for it; those for none have the empty one.
        """
        ...

    def unsettled(self, datasource: str) -> Sequence[Stage]:
        """Return the open stages that may stand out; the others wait for a first decision.

        Those that have a decision, or are ready, or are bound to something else than the datasource
        now is.
        """
        ...

    def awaiting_approval(
        self, datasources: Collection[str], *, before: Stage | None, limit: int
    ) -> Sequence[Stage]:
        """Return up to `limit` stages that await approval, of any of these datasources.

        Newest first, from the next older one than `before` on.
        """
        ...

    def page(self, datasource: str, *, before: Stage | None, limit: int) -> Sequence[Stage]:
        """Return up to `limit` stages, newest first, from the next older one than `before` on."""
        ...

    def known(self, datasource: str, stages: Collection[str]) -> Collection[str]:
        """Return which of these ids are stages of a datasource."""
        ...

    def add(self, stage: Stage, payload: bytes | None, version: str | None = None) -> None:
        """Store a stage with its payload, and the version that its origin was read in.

        Of an artifact only the stage has the reference.
        """
        ...

    def change_state(self, stage: Stage, state: StageState) -> None:
        """Move a stage from the state that it was read in to another one.

        Raises:
            GuardError: code `conflict` when it is in another state by now; nothing was written.
        """
        ...

    def payload_sha256(self, stage: str) -> Sha256:
        """Return the digest of the payload bytes as they are stored now."""
        ...


class Decisions(Protocol):
    """Decisions about stages."""

    def about(self, stage: str) -> Sequence[Decision]:
        """Return every decision about a stage, oldest first."""
        ...

    def about_any(self, stages: Collection[str]) -> Sequence[Decision]:
        """Return every decision about any of these stages, oldest first."""
        ...

    def about_open(self, datasource: str) -> Sequence[Decision]:
        """Return every decision about the open stages of a datasource, oldest first."""
        ...

    def add(self, decision: Decision) -> None:
        """Store a decision."""
        ...


class Materializations(Protocol):
    """Immutable revisions and their payloads."""

    def get(self, materialization: str) -> Materialization:
        """Return the materialization."""
        ...

    def schema(self, materialization: str) -> TableSchema:
        """Return its schema, without loading the rest."""
        ...

    def of_stage(self, stage: str) -> Materialization | None:
        """Return what a stage became, if it was promoted."""
        ...

    def of_publication(self, publication: str) -> Materialization:
        """Return what a publication became at once; current or not."""
        ...

    def page(
        self, datasource: str, *, before: Materialization | None, limit: int
    ) -> Sequence[Materialization]:
        """Return up to `limit` revisions, newest first, from the next older than `before` on.

        What never became current is no revision.
        """
        ...

    def known(self, datasource: str, materializations: Collection[str]) -> Collection[str]:
        """Return which of these ids are materializations of a datasource."""
        ...

    def artifacts(self) -> Collection[str]:
        """Return the locator of every artifact that a materialization of the tenant refers to."""
        ...

    def add(self, materialization: Materialization) -> None:
        """Store a materialization with a copy of its stage's payload.

        Of an artifact only the materialization has the reference.
        """
        ...

    def payload_size(self, materialization: str) -> int:
        """Return how many bytes the stored payload has, without loading it."""
        ...

    def payload(self, materialization: str) -> bytes:
        """Return the stored payload."""
        ...


class UnitOfWork(Protocol):
    """One transaction of one tenant."""

    @property
    def tenant(self) -> str:
        """Whose rows these are."""
        ...

    @property
    def datasources(self) -> Datasources:
        """Datasources and policies in force."""
        ...

    @property
    def stages(self) -> Stages:
        """Stages and their payloads."""
        ...

    @property
    def decisions(self) -> Decisions:
        """Decisions about stages."""
        ...

    @property
    def materializations(self) -> Materializations:
        """Immutable revisions."""
        ...

    @property
    def publications(self) -> Publications:
        """Outputs of producers."""
        ...

    @property
    def retention(self) -> Retention:
        """Retention plans and what they destroyed."""
        ...

    @property
    def holds(self) -> Holds:
        """Legal holds and frozen evidence."""
        ...

    @property
    def contracts(self) -> Contracts:
        """Contracts that are watched, their checks and violations."""
        ...

    @property
    def authority(self) -> Authority:
        """Actors, keys, grants and attestations."""
        ...

    @property
    def outbox(self) -> Outbox:
        """Events for other systems."""
        ...

    @property
    def deliveries(self) -> Deliveries:
        """How far receivers got with them."""
        ...

    @property
    def evidence(self) -> Evidence:
        """The hash chains."""
        ...

    def __enter__(self) -> Self:
        """Begin."""
        ...

    def __exit__(self, *failure: object) -> None:
        """Roll back unless committed."""
        ...

    def snapshot(self) -> AbstractContextManager[Self]:
        """Begin a transaction that only reads, and sees everything as of one instant."""
        ...

    def commit(self) -> None:
        """Make everything durable; refuse if something written was not told to evidence."""
        ...

    def take_turn(self, name: str) -> bool:
        """Tell whether nobody else of the tenant is at something; held until the transaction ends.

        It does not wait. For work that is harmless when done twice and better done once.
        """
        ...

    def now(self) -> datetime:
        """Return the database's clock; read it after locks are held."""
        ...

    def new_id(self) -> str:
        """Return an id that nothing else has."""
        ...
