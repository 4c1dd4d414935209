"""`kill -9` at every step of an application: all of it happened or nothing; a repetition ends it.

What a store refuses to delete is left for a repetition in the same way: see test_retention.py.
"""

import signal
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest

from datasource_governance.domain.artifact import ArtifactReference
from datasource_governance.domain.disposition import AlreadyAppliedError
from datasource_governance.domain.materialization import Disposition
from datasource_governance.services.retention import (
    ApplyRequest,
    PlanRequest,
    apply_retention,
    plan_retention,
)
from datasource_governance_tests.contents import contents
from datasource_governance_tests.retiring import (
    NOW,
    admit_keeper,
    apply_attestation,
    declare_kept,
    publish_at,
    stage_at,
)
from datasource_governance_tests.services.dying import die_after

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

# Behind the locks; behind the recheck; behind the first, second and last target, of a datasource
# each, and behind what is told of it; before the commit and behind it; around each object.
STEPS: dict[str, tuple[str, ...]] = {
    "datasource_governance.persistence.retention:PostgresRetention": (
        *("governing_for_update", "dispose", "add_application", "mark_purged"),
    ),
    "datasource_governance.services.retention": ("admit",),
    "datasource_governance.persistence.chains:PostgresEvidence": ("append",),
    "datasource_governance.persistence.connection:Connection": ("commit",),
    "datasource_governance.artifacts.local:LocalArtifacts": ("delete",),
}
STEPS_TO_THE_COMMIT = 11  # locks, recheck, 3 x (target, evidence), application, evidence, commit
STEPS_FROM_THEN_ON = 4  # object, `purged`, evidence, commit
KILLED = -signal.SIGKILL


@dataclass(frozen=True)
class Applying:
    """A plan over three datasources is applied, of which one has an artifact."""

    request: ApplyRequest
    purged: str
    reference: ArtifactReference

    @classmethod
    def prepare(cls, world):
        admit_keeper(world)
        for name in ("customers", "orders"):
            staged = replace(world, datasource=name)
            declare_kept(staged)
            stage_at(staged)
        published = replace(world, datasource="sensors")
        declare_kept(published, kind="published", artifact_evaluation="here")
        reference = published.store_artifact(pa.table({"id": [7]}))
        purged = publish_at(published, data=reference)
        publish_at(published)
        world.set_clock(NOW)
        plan = plan_retention(world.application.work(), PlanRequest(actor="operator"))
        request = ApplyRequest(plan=plan.hash, attestation=apply_attestation(world, plan.hash))
        return cls(request, purged.id, reference)

    def run(self, application):
        """Apply it; return what came of it, the first time."""
        try:
            return apply_retention(application.work(), application.artifacts(), self.request)
        except AlreadyAppliedError as refusal:
            return refusal.first

    def state(self, world):
        """Return whether the plan is applied, to how many, and what became of the artifact."""
        with world.application.work() as work:
            return (
                work.retention.application(self.request.plan) is not None,
                len(work.retention.dispositions(self.request.plan)),
                work.materializations.get(self.purged).disposition,
                self.is_kept(world),
            )

    def is_kept(self, world):
        kept = world.application.artifacts().kept()
        return self.reference.locator in {one.locator for one in kept}


def test_a_killed_application_destroyed_all_or_nothing_and_a_repetition_ends_it(world):
    applying = Applying.prepare(world)
    before = contents(world)

    for steps in range(STEPS_TO_THE_COMMIT):
        assert die_after(world, applying, steps, STEPS) == KILLED
        assert contents(world) == before, steps
    assert applying.state(world) == (False, 0, Disposition.RETAINED, True)
    assert die_after(world, applying, STEPS_TO_THE_COMMIT, STEPS) == KILLED

    assert applying.state(world) == (True, 3, Disposition.PURGING, True)
    assert world.verification().holds
    committed = contents(world)
    for steps in range(STEPS_FROM_THEN_ON):
        assert die_after(world, applying, steps, STEPS) == KILLED
        assert contents(world) == committed, steps
        assert applying.is_kept(world) is (steps == 0)
    assert die_after(world, applying, STEPS_FROM_THEN_ON, STEPS) == KILLED

    assert applying.state(world) == (True, 3, Disposition.PURGED, False)
    assert world.verification().holds
    after = contents(world)
    found = applying.run(world.application)
    assert (len(found.targets), found.unfinished) == (3, ())
    assert contents(world) == after
