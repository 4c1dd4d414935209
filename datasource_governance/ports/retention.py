"""What services need of retention: policies in force, what may be due, plans, and destruction.

Source: SPEC section 12.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from datasource_governance.domain.actor import ActorId
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.disposition import Application, DisposedTarget
from datasource_governance.domain.materialization import Materialization
from datasource_governance.domain.policy_version import PolicyVersion
from datasource_governance.domain.retention import Candidate, RetentionClass
from datasource_governance.domain.retention_plan import (
    PlannedTarget,
    PlanReference,
    RetentionPlan,
    StoredPlan,
)
from datasource_governance.domain.target import Target


class Retention(Protocol):
    """Plans, applications of plans, and what they destroyed."""

    def lock(self) -> None:
        """Wait until nobody else of the tenant stores or applies a plan; the first lock of all."""
        ...

    def governing(self, datasource: str | None) -> Sequence[tuple[Target, PolicyVersion]]:
        """Return each datasource (None: all) that has a retention policy, with the one in force.

        Ordered by id; a policy that is not enabled counts.
        """
        ...

    def governing_for_update(
        self, datasource: str | None
    ) -> Sequence[tuple[Target, PolicyVersion]]:
        """Return the same with all these datasources locked, in order of id."""
        ...

    def candidates(
        self, datasource: str, retention_class: RetentionClass, created_until: datetime
    ) -> Sequence[Candidate]:
        """Return what of a class was created at or before an instant and is still there.

        Those are stages that are not deleted and materializations that are retained. Blockers of
        one kind are one, with all their ids.
        """
        ...

    def candidate(self, subject: str) -> Candidate | None:
        """Return a stage or materialization that is still there, however old; None if it is not."""
        ...

    def add_plan(self, plan: RetentionPlan, planned_by: ActorId, now: datetime) -> None:
        """Store a plan."""
        ...

    def plan(self, plan_hash: str) -> StoredPlan | None:
        """Return the stored plan with a hash, if there is one."""
        ...

    def plan_hashes(self, beginning: str, limit: int) -> Sequence[Sha256]:
        """Return up to `limit` hashes of stored plans that begin with a text, in order."""
        ...

    def plans(self, limit: int) -> Sequence[StoredPlan]:
        """Return up to `limit` stored plans, newest first."""
        ...

    def page(self, before: PlanReference | None, limit: int) -> Sequence[PlanReference]:
        """Return references to the next older plans than `before`, or to the newest."""
        ...

    def known(self, hashes: Collection[str]) -> Collection[str]:
        """Return which of these hashes are those of stored plans."""
        ...

    def application(self, plan_hash: str) -> Application | None:
        """Return how a plan was applied, if it was."""
        ...

    def add_application(self, application: Application) -> None:
        """Store that a plan was applied."""
        ...

    def dispose(
        self, targets: Sequence[PlannedTarget], plan_hash: Sha256, now: datetime
    ) -> Sequence[DisposedTarget]:
        """Destroy targets of one datasource, which is locked; return what was done, in order.

        Stages become `deleted`, materializations `purged`, or `purging` while an artifact store
        has their object. Inline payloads are gone when the transaction commits.

        Raises:
            GuardError: code `conflict` when one is not there any more, is current or is held; the
                database looks itself, whoever asks.
        """
        ...

    def dispositions(self, plan_hash: str) -> Sequence[DisposedTarget]:
        """Return what a plan destroyed, ordered by datasource, kind and subject."""
        ...

    def disposition_of(self, subject: str) -> DisposedTarget | None:
        """Return under which plan a stage or materialization was destroyed, if it was."""
        ...

    def purging(self, plan_hash: str) -> Sequence[Materialization]:
        """Return what a plan destroyed of which the object is not known to be gone."""
        ...

    def mark_purged(self, materialization: Materialization) -> None:
        """Move one from `purging` to `purged`: its object is gone, or others still refer to it."""
        ...

    def uses_of_object(self, locator: str) -> int:
        """Return how many retained materializations and open stages refer to an object."""
        ...

    def purges_of_object(self, locator: str) -> tuple[bool, int]:
        """Return whether an object is being purged now, and how many times it was purged."""
        ...
