"""Whoever meets a plan that is being applied, two hundred times; then the same without a lock.

Nothing makes an older revision current again but the promotion of a stage with its content, or an
output that refers to its artifact: these are the "restore" that an application is raced against.

Each test has a control, which takes a lock from one side and has to see what may never happen.
"""

import random
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest

from datasource_governance.domain.actor import SYSTEM
from datasource_governance.domain.artifact import ArtifactReference
from datasource_governance.domain.disposition import AlreadyAppliedError, Applied
from datasource_governance.domain.evidence import datasource_chain
from datasource_governance.domain.hold import Hold, HoldScope
from datasource_governance.domain.retention_plan import RetentionPlan
from datasource_governance.domain.stage import StageState
from datasource_governance.errors import GuardError
from datasource_governance.persistence.holds import PostgresHolds
from datasource_governance.persistence.locks import Locks
from datasource_governance.persistence.publications import PostgresPublications
from datasource_governance.persistence.repositories import PostgresMaterializations
from datasource_governance.persistence.retention import PostgresRetention
from datasource_governance.services.outputs import ArtifactOutput
from datasource_governance.services.publishing import Published
from datasource_governance.services.reading import read_current
from datasource_governance.services.retention import PlanRequest, plan_retention
from datasource_governance_tests.postgres import unique_name
from datasource_governance_tests.retiring import (
    LONG_AGO,
    NOW,
    admit_keeper,
    apply_plan,
    declare_kept,
    hold,
    release,
)
from datasource_governance_tests.services.rivals import (
    Act,
    Pause,
    Rivals,
    TableClock,
    table_clock,
    without_row_locks,
)
from datasource_governance_tests.world import TWO_ROWS, World

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.usefixtures("no_deadlock")]

ROUNDS = 200
LATEST_START_SECONDS = 0.006


@dataclass(frozen=True)
class Arena:
    """A datasource in which things are made long ago and raced for now."""

    world: World
    rivals: Rivals
    clock: TableClock
    chance: random.Random

    def race(self, *acts: Act) -> list:
        """Let both act from nearly one instant on."""
        return self.rivals.at_once(*(self._delayed(act) for act in acts))

    def _delayed(self, act: Act) -> Act:
        seconds = self.chance.uniform(0, LATEST_START_SECONDS)

        def acted(own):
            time.sleep(seconds)
            return act(own)

        return acted

    def long_ago(self, make):
        """Return what is made, so that it is due now."""
        self.clock.move(LONG_AGO)
        made = make(self.world)
        self.clock.move(NOW)
        return made

    def plan(self) -> RetentionPlan:
        request = PlanRequest(actor="operator", datasource=self.world.datasource)
        return plan_retention(self.world.application.work(), request)

    def is_destroyed(self, subject: str) -> bool:
        with self.world.application.work() as work:
            return work.retention.disposition_of(subject) is not None

    def is_held(self, subject: str) -> bool:
        with self.world.application.work() as work:
            found = work.holds.list(self.world.datasource, active=True)
        return subject in {one.subject for one in found}


@contextmanager
def arena_in(world: World, rivals: Rivals, **declared) -> Iterator[Arena]:
    admit_keeper(world)
    declare_kept(world, **declared)
    with table_clock(world, NOW) as clock:
        yield Arena(world, rivals, clock, random.Random(0))


@pytest.fixture
def staged(world, rivals):
    with arena_in(world, rivals) as arena:
        yield arena


@pytest.fixture
def published(world, rivals):
    with arena_in(world, rivals, kind="published", artifact_evaluation="here") as arena:
        yield arena


def applying(plan: RetentionPlan, targets: Collection[str] | None = None) -> Act:
    return lambda own: apply_plan(own, plan, targets)


def without_lock_of_application(monkeypatch):
    """Let a plan be applied without locking the datasource."""
    monkeypatch.setattr(PostgresRetention, "governing_for_update", PostgresRetention.governing)


# --- A hold against an application ----------------------------------------------------------------


def new_stage(arena: Arena):
    return arena.long_ago(lambda world: world.stage(None))


def holding(stage) -> Act:
    return lambda own: hold(own, stage.id, HoldScope.STAGE)


def test_what_is_held_is_not_destroyed_and_what_is_destroyed_is_not_held(staged):
    seen, stage = Counter(), new_stage(staged)

    for _ in range(ROUNDS):
        held, applied = staged.race(holding(stage), applying(staged.plan()))

        is_held, is_destroyed = staged.is_held(stage.id), staged.is_destroyed(stage.id)
        assert (is_held, is_destroyed) == (isinstance(held, Hold), isinstance(applied, Applied))
        if is_held:
            assert applied == "plan_outdated"
            release(staged.world, held.id)
        else:
            assert held == "already_disposed"
            stage = new_stage(staged)
        seen[is_held] += 1

    assert set(seen) == {True, False}
    assert staged.world.verification().holds


def test_a_hold_without_the_lock_is_placed_on_what_is_destroyed_meanwhile(staged, monkeypatch):
    stage = new_stage(staged)
    plan = staged.plan()
    without_row_locks(monkeypatch)
    pause = Pause(monkeypatch, PostgresHolds, "place")

    staged.rivals.at_once(holding(stage), pause.meanwhile(applying(plan)))

    assert staged.is_held(stage.id)
    assert staged.is_destroyed(stage.id)


# --- A release against an application -------------------------------------------------------------


def told_of_application_and(arena: Arena, plan: RetentionPlan, subject: str) -> list[int]:
    """Return where evidence tells of an application, and last of something else."""
    chain = datasource_chain(arena.world.datasource)
    with arena.world.application.work() as work:
        return [work.evidence.segment(chain, one)[-1].sequence for one in (plan.hash, subject)]


def test_a_plan_is_not_applied_behind_the_release_that_outdates_it(staged):
    seen, held, stage = Counter(), new_stage(staged), new_stage(staged)

    for _ in range(ROUNDS):
        placed = hold(staged.world, held.id, HoldScope.STAGE)
        plan = staged.plan()
        released, applied = staged.race(
            lambda own, placed=placed: release(own, placed.id), applying(plan)
        )

        assert released.released is not None
        if isinstance(applied, Applied):
            assert [one.subject for one in applied.targets] == [stage.id]
            first, second = told_of_application_and(staged, plan, placed.id)
            assert first < second
            stage = new_stage(staged)
        else:
            assert applied == "plan_outdated"
            assert not staged.is_destroyed(stage.id)
        seen[isinstance(applied, Applied)] += 1

    assert not staged.is_destroyed(held.id)
    assert set(seen) == {True, False}
    assert staged.world.verification().holds


def test_a_plan_without_the_lock_is_applied_behind_the_release_that_outdates_it(
    staged, monkeypatch
):
    held, _stage = new_stage(staged), new_stage(staged)
    placed = hold(staged.world, held.id, HoldScope.STAGE)
    plan = staged.plan()
    without_lock_of_application(monkeypatch)
    pause = Pause(monkeypatch, PostgresRetention, "dispose")

    staged.rivals.at_once(applying(plan), pause.meanwhile(lambda own: release(own, placed.id)))

    first, second = told_of_application_and(staged, plan, placed.id)
    assert first > second


# --- A promotion against an application -----------------------------------------------------------


def promoting(stage) -> Act:
    return lambda own: own.promote(stage)


def read_now(arena: Arena):
    """Return what is current, as whoever reads it gets it, with its payload verified."""
    work = arena.world.application.work()
    return read_current(work, arena.world.datasource, SYSTEM).materialization


def test_a_stage_that_is_due_is_promoted_with_its_payload_or_destroyed_before(staged):
    seen = Counter()

    for _ in range(ROUNDS):
        stage = new_stage(staged)
        promoted, applied = staged.race(promoting(stage), applying(staged.plan()))

        # The stage of what was promoted is as due as before, and destroyed in either case.
        assert [one.subject for one in applied.targets] == [stage.id]
        state = applied.targets[0].state_before
        if state == StageState.PROMOTED:
            assert read_now(staged) == promoted.materialization
        else:
            assert (state, promoted) == (StageState.READY, "stage_blocked")
        seen[state] += 1

    assert set(seen) == {StageState.PROMOTED, StageState.READY}
    assert staged.world.verification().holds


def test_a_promotion_without_the_lock_does_not_find_the_state_that_it_read(staged, monkeypatch):
    stage = new_stage(staged)
    plan = staged.plan()
    without_row_locks(monkeypatch)
    pause = Pause(monkeypatch, PostgresMaterializations, "add")

    promoted, applied = staged.rivals.at_once(promoting(stage), pause.meanwhile(applying(plan)))

    assert promoted == "conflict"
    assert [one.subject for one in applied.targets] == [stage.id]
    assert staged.world.verification().holds


# --- A publication against an application ---------------------------------------------------------


def publishing(data, key: str) -> Act:
    return lambda own: own.publish(data, key)


def published_long_ago(arena: Arena, data):
    return arena.long_ago(lambda world: world.publish(data, unique_name("old"))).materialization


def test_a_plan_is_not_applied_behind_the_publication_that_outdates_it(published):
    seen = Counter()
    published_long_ago(published, TWO_ROWS)

    for number in range(ROUNDS):
        published_long_ago(published, TWO_ROWS)
        plan = published.plan()
        made, applied = published.race(publishing(TWO_ROWS, f"k{number}"), applying(plan))

        assert read_now(published) == made.materialization
        if isinstance(applied, Applied):
            first, second = told_of_application_and(published, plan, made.publication.id)
            assert first < second
        else:
            assert applied == "plan_outdated"
        seen[isinstance(applied, Applied)] += 1

    assert set(seen) == {True, False}
    assert published.world.verification().holds


def test_a_plan_without_the_lock_is_applied_behind_the_publication_that_outdates_it(
    published, monkeypatch
):
    published_long_ago(published, TWO_ROWS), published_long_ago(published, TWO_ROWS)
    plan = published.plan()
    without_lock_of_application(monkeypatch)
    pause = Pause(monkeypatch, PostgresRetention, "dispose")

    _, made = published.rivals.at_once(applying(plan), pause.meanwhile(publishing(TWO_ROWS, "new")))

    first, second = told_of_application_and(published, plan, made.publication.id)
    assert first > second


# --- A publication of the very artifact whose object is being deleted -----------------------------


def make_due(arena: Arena, reference: ArtifactReference) -> None:
    """Publish an artifact so long ago that it is due, and something newer after it."""
    published_long_ago(arena, reference)
    arena.world.publish(TWO_ROWS, unique_name("newer"))


def new_artifact(arena: Arena, number: int) -> tuple[ArtifactReference, bytes]:
    """Store an artifact with content of its own; return the reference and its bytes."""
    reference = arena.world.store_artifact(pa.table({"id": [number]}))
    with arena.world.application.artifacts().open("orders", reference) as file:
        return reference, file.read()


def store_again(arena: Arena, content: bytes) -> None:
    with arena.world.application.artifacts().begin("orders") as upload:
        upload.file.write(content)
        upload.finish()


def is_kept(arena: Arena, reference: ArtifactReference) -> bool:
    with suppress(GuardError), arena.world.application.artifacts().open("orders", reference):
        return True
    return False


@pytest.fixture
def examined_once(monkeypatch):
    """Let an artifact be examined once, so that whoever publishes it again is as fast as others."""
    examine, examined = ArtifactOutput.examine, {}

    def examine_once(self, *judged, **how):
        if self.locator not in examined:
            examined[self.locator] = examine(self, *judged, **how)
        return replace(examined[self.locator], version=self._version())

    monkeypatch.setattr(ArtifactOutput, "examine", examine_once)


@pytest.mark.usefixtures("examined_once")
def test_an_artifact_that_is_published_while_it_is_purged_is_there(published):
    seen, (reference, content) = Counter(), new_artifact(published, 0)

    for number in range(ROUNDS):
        make_due(published, reference)
        made, applied = published.race(
            publishing(reference, f"k{number}"), applying(published.plan())
        )

        assert applied.unfinished == ()
        if isinstance(made, Published):
            assert read_now(published) == made.materialization
        else:
            assert made in {"artifact_purging", "artifact_missing"}
        assert is_kept(published, reference) is isinstance(made, Published)
        seen[isinstance(made, Published)] += 1
        if isinstance(made, Published):
            reference, content = new_artifact(published, number + 1)
        else:
            store_again(published, content)

    assert set(seen) == {True, False}
    assert published.world.verification().holds


def test_an_artifact_that_is_published_without_the_lock_may_be_gone(published, monkeypatch):
    reference, _ = new_artifact(published, 0)
    make_due(published, reference)
    plan = published.plan()
    without_row_locks(monkeypatch)
    pause = Pause(monkeypatch, PostgresPublications, "add")

    made, _ = published.rivals.at_once(
        publishing(reference, "new"), pause.meanwhile(applying(plan))
    )

    assert read_now(published) == made.materialization
    assert not is_kept(published, reference)


# --- Two applications of one plan -----------------------------------------------------------------


def test_of_two_who_apply_one_plan_one_does_and_the_other_gets_that(staged):
    for _ in range(ROUNDS):
        stage = new_stage(staged)
        apply = applying_or_first(staged.plan())
        found = staged.race(apply, apply)

        assert sorted(is_first for is_first, _ in found) == [False, True]
        (_, one), (_, other) = found
        assert one == other
        assert [target.subject for target in one.targets] == [stage.id]

    assert staged.world.count_rows()["retention_application"] == ROUNDS
    assert staged.world.verification().holds


def applying_or_first(plan: RetentionPlan) -> Act:
    """Return what applies a plan and gives what came of it, and whether it was the first time."""

    def apply(own):
        try:
            return True, apply_plan(own, plan)
        except AlreadyAppliedError as refusal:
            return False, refusal.first

    return apply


def test_without_the_lock_the_second_who_applies_does_not_get_what_the_first_did(
    staged, monkeypatch
):
    new_stage(staged)
    apply = applying_or_first(staged.plan())
    monkeypatch.setattr(Locks, "retention", lambda _self: None)
    pause = Pause(monkeypatch, PostgresRetention, "governing_for_update")

    assert staged.rivals.at_once(apply, pause.meanwhile(apply))[0] == "plan_outdated"
