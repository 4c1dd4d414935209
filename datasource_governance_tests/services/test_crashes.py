"""`kill -9` after every statement and commit of every transition, in a process of its own.

Dying before a statement is dying after the one before it: 0 is before the first.
"""

import hashlib
import multiprocessing
import os
import signal
from dataclasses import dataclass

import pyarrow as pa
import pytest

from datasource_governance.composition import Application, Settings
from datasource_governance.domain.approval import Verdict, subject_of
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.subjects import promotion_subject
from datasource_governance.errors import GuardError
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.persistence.connection import Connection
from datasource_governance.services.approval import AttestedDecision, decide_stage
from datasource_governance.services.promotion import PromotionRequest, promote_stage
from datasource_governance.services.staging import StageRequest, create_stage

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

ONE_APPROVAL = {"version": "v1", "required": True}
ROWS = pa.table({"id": [1, 2]})
SHA256 = Sha256(hashlib.sha256(TypedPayload(ROWS).encoded()).hexdigest())
LEAST_EVENTS, MOST_EVENTS = 15, 100

# A process that forks others must have one thread: so a fresh one is prepared, not this.
forks = multiprocessing.get_context("forkserver")
forks.set_forkserver_preload(["__main__", "pandera.polars", "psycopg", __name__])


@dataclass(frozen=True)
class Creation:
    """A delivery becomes a stage."""

    request: StageRequest

    @classmethod
    def prepare(cls, world):
        return cls(
            StageRequest(
                datasource=world.datasource,
                delivery="delivery.csv",
                file_sha256=SHA256,
                attestation_id=world.attest_delivery("creator", SHA256),
            )
        )

    def run(self, application):
        payload = TypedPayload(ROWS)
        staged = create_stage(application.work(), application.evaluator(), payload, self.request)
        return staged.stage.id

    def found(self, work):
        stage = work.stages.attested_by(self.request.attestation_id)
        return [stage.id] if stage else []


@dataclass(frozen=True)
class Deciding:
    """An approver decides about a stage."""

    request: AttestedDecision

    @classmethod
    def prepare(cls, world, verdict=Verdict.APPROVE):
        stage = world.stage()
        return cls(
            AttestedDecision(
                verdict=verdict,
                reason="checked",
                subject=subject_of(stage, "default"),
                attestation=world.decision_attestation("approver-1", stage, "checked", verdict),
            )
        )

    def run(self, application):
        try:
            return decide_stage(application.work(), self.request).id
        except GuardError as refusal:
            # What a retry after a lost answer is told: it was counted.
            if refusal.code != "attestation_used":
                raise
            with application.work() as work:
                (decided,) = self.found(work)
            return decided

    def found(self, work):
        return [decision.id for decision in work.decisions.about(self.request.subject.stage)]


@dataclass(frozen=True)
class Promoting:
    """An approved stage becomes current."""

    request: PromotionRequest

    @classmethod
    def prepare(cls, world):
        stage = world.stage()
        world.decide("approver-1", stage)
        attestation = world.signer("operator").attest(
            Action.STAGE_PROMOTE, promotion_subject(subject_of(stage, "default"))
        )
        return cls(PromotionRequest(stage=stage.id, attestation=attestation))

    def run(self, application):
        return promote_stage(application.work(), self.request).materialization.id

    def found(self, work):
        materialization = work.materializations.of_stage(self.request.stage)
        return [materialization.id] if materialization else []


class Fuse:
    """Ends the process when a number of events have happened."""

    def __init__(self, events):
        self.left = events

    def burn(self):
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1

    def attach(self):
        """Count the statements and commits of every connection from now on."""
        self.burn()
        for name in ("execute", "commit"):
            setattr(Connection, name, self._counted(getattr(Connection, name)))

    def _counted(self, method):
        def counted(connection, *arguments):
            found = method(connection, *arguments)
            self.burn()
            return found

        return counted


def run_and_die(settings: Settings, transition, events):
    Fuse(events).attach()
    application = Application(settings)
    transition.run(application)
    application.close()


def difference(before, after):
    return {name: after[name] - before[name] for name in after if after[name] != before[name]}


def written(world, transition):
    """Return how many rows of each table an undisturbed transition writes."""
    before = world.count_rows()
    transition.run(world.application)
    return difference(before, world.count_rows())


def die_after(world, transition, events):
    """Run in another process and return how that ended: 0, or minus a signal."""
    process = forks.Process(
        target=run_and_die, args=(world.application.settings, transition, events)
    )
    process.start()
    process.join(60)
    code = process.exitcode
    process.close()
    return code


@pytest.mark.parametrize("kind", [Creation, Deciding, Promoting])
def test_a_killed_transition_happened_whole_or_not_at_all_and_a_retry_completes_it(world, kind):
    world.declare(approval=ONE_APPROVAL)
    whole = written(world, kind.prepare(world))
    seen = []

    for events in range(MOST_EVENTS):
        transition = kind.prepare(world)
        before = world.count_rows()
        code = die_after(world, transition, events)
        seen.append((code, difference(before, world.count_rows())))
        with world.application.work() as work:
            survived = transition.found(work)
        assert world.verification().holds
        completed = transition.run(world.application)
        assert survived in ([], [completed])
        assert difference(before, world.count_rows()) == whole
        if code == 0:
            break

    *killed, (last_code, last_rows) = seen
    assert len(killed) > LEAST_EVENTS
    assert (last_code, last_rows) == (0, whole)
    assert {code for code, _ in killed} == {-signal.SIGKILL}
    # Killed after the commit it happened; killed anywhere before, nothing did.
    assert [rows for _, rows in killed] == [{}] * (len(killed) - 1) + [whole]
    assert world.verification().holds
