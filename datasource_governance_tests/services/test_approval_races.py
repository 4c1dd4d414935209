"""Two at once, fifty times; then the same without row locks, where it has to go wrong."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from datasource_governance.domain.evidence import datasource_chain
from datasource_governance.domain.stage import StageState
from datasource_governance.persistence.repositories import (
    PostgresDecisions,
    PostgresMaterializations,
)
from datasource_governance.services.approval import quorum_of
from datasource_governance_tests.services.rivals import (
    PATIENCE_SECONDS,
    Pause,
    table_clock,
    without_row_locks,
)
from datasource_governance_tests.world import ONE_ROW_AT_LEAST

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.usefixtures("no_deadlock")]

ROUNDS = 50
# Nobody has to be proven to have made a stage, which takes half of the time of a round.
ONE = {"version": "v1", "required": True, "separation_of_duties": False}
TWO = {**ONE, "required_approvals": 2}
ONE_HOUR = {**ONE, "expires_after_hours": 1}
POLICIES = (TWO, {**TWO, "version": "v2"})
MIDDAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


# --- Two approvers at once ------------------------------------------------------------------------


def two_approve(world, rivals, first="approver-1", second="approver-2"):
    """Return the decisions that were recorded, and the refusals, when two approve one stage."""
    stage = world.stage(None)
    answers = rivals.at_once(
        lambda own: own.decide(first, stage), lambda own: own.decide(second, stage)
    )
    with world.application.work() as work:
        return quorum_of(work, stage), [one for one in answers if isinstance(one, str)]


def test_two_approvers_at_once_are_both_counted(world, rivals):
    world.declare(approval=TWO)

    for _ in range(ROUNDS):
        quorum, refusals = two_approve(world, rivals)
        assert (quorum.met, refusals) == (True, [])

    assert world.verification().holds


def test_two_approvers_at_once_who_are_one_person_are_counted_once(world, rivals):
    world.declare(approval=TWO)

    for _ in range(ROUNDS // 2):
        quorum, refusals = two_approve(world, rivals, "approver-1", "approver-1")
        assert (quorum.missing, refusals) == (1, ["already_approved"])
        assert quorum.not_counted == ()


def test_two_approvers_at_once_without_locks_lose_an_approval(world, rivals, monkeypatch):
    world.declare(approval=TWO)
    without_row_locks(monkeypatch)
    both_recorded = threading.Barrier(2)
    add = PostgresDecisions.add

    def add_together(self, decision):
        add(self, decision)
        both_recorded.wait(PATIENCE_SECONDS)

    monkeypatch.setattr(PostgresDecisions, "add", add_together)

    assert any(two_approve(world, rivals)[1] == ["conflict"] for _ in range(ROUNDS))


def test_two_approvers_at_once_without_locks_may_be_one_person(world, rivals, monkeypatch):
    world.declare(approval=TWO)
    stage = world.stage(None)
    without_row_locks(monkeypatch)
    pause = Pause(monkeypatch, PostgresDecisions, "add")

    rivals.at_once(
        lambda own: own.decide("approver-1", stage),
        pause.meanwhile(lambda own: own.decide("approver-1", stage)),
    )

    with world.application.work() as work:
        assert len(work.decisions.about(stage.id)) == 2
        assert not quorum_of(work, stage).met  # the count is a second wall


# --- A decision against a policy change -----------------------------------------------------------


def decided_after_the_change(world, stage, answer):
    """Tell whether a decision was recorded behind a policy change that it knew nothing of."""
    if isinstance(answer, str):
        assert answer == "stage_outdated"
        return False
    with world.application.work() as work:
        entries = work.evidence.since(datasource_chain(world.datasource), 0, 10_000)
    decided = max(one.sequence for one in entries if one.subject == stage.id)
    changed = max(one.sequence for one in entries if one.kind == "governance.applied")
    return decided > changed


def test_a_decision_against_a_policy_change_comes_before_it_or_is_refused(world, rivals):
    world.declare(approval=POLICIES[0])

    for number in range(1, ROUNDS + 1):
        stage, policy = world.stage(None), POLICIES[number % 2]
        answer, applied = rivals.at_once(
            lambda own, stage=stage: own.decide("approver-1", stage),
            lambda own, policy=policy: own.declare(ONE_ROW_AT_LEAST, policy),
        )
        assert applied.changed
        assert not decided_after_the_change(world, stage, answer)

    assert world.verification().holds


def test_a_decision_against_a_policy_change_without_locks_comes_behind_it(
    world, rivals, monkeypatch
):
    world.declare(approval=POLICIES[0])
    stage = world.stage(None)
    without_row_locks(monkeypatch)
    pause = Pause(monkeypatch, PostgresDecisions, "add")

    answer, _ = rivals.at_once(
        lambda own: own.decide("approver-1", stage),
        pause.meanwhile(lambda own: own.declare(ONE_ROW_AT_LEAST, POLICIES[1])),
    )

    assert decided_after_the_change(world, stage, answer)


# --- Promotion against promotion ------------------------------------------------------------------


def current(world):
    with world.application.work() as work:
        target = work.datasources.get(world.datasource)
        return work.materializations.get(target.current), target.revision


def test_promotion_against_promotion_of_another_stage_makes_one_current(world, rivals):
    world.declare()

    for number in range(1, ROUNDS + 1):
        stages = [world.stage(None), world.stage(None)]
        answers = rivals.at_once(*(lambda own, stage=stage: own.promote(stage) for stage in stages))
        (made,) = [one for one in answers if not isinstance(one, str)]
        assert "stage_outdated" in answers
        assert current(world) == (made.materialization, number)
        states = sorted(world.present(stage).state for stage in stages)
        assert states == [StageState.PROMOTED, StageState.SUPERSEDED]

    assert world.verification().holds


def test_promotion_against_promotion_of_the_same_stage_makes_one_materialization(world, rivals):
    world.declare(approval=ONE)

    for number in range(1, ROUNDS + 1):
        stage = world.stage(None)
        world.decide("approver-1", stage)
        answers = rivals.at_once(
            lambda own, stage=stage: own.promote(stage, "operator"),
            lambda own, stage=stage: own.promote(stage, None),
        )
        assert sorted(one.created for one in answers) == [False, True]
        assert {one.materialization for one in answers} == {current(world)[0]}
        assert current(world)[1] == number

    assert world.verification().holds


@pytest.mark.parametrize("is_the_same", [True, False])
def test_promotion_against_promotion_without_locks_fails_late(
    world, rivals, monkeypatch, is_the_same
):
    world.declare()
    first = world.stage(None)
    second = first if is_the_same else world.stage(None)
    without_row_locks(monkeypatch)
    pause = Pause(monkeypatch, PostgresMaterializations, "add")

    answer, _ = rivals.at_once(
        lambda own: own.promote(first), pause.meanwhile(lambda own: own.promote(second))
    )

    # Only a constraint stands in the way, and it cannot say what is wrong.
    assert answer == "conflict"


# --- Promotion against expiry ---------------------------------------------------------------------


def approved_at(world, clock, instant):
    clock.move(instant)
    stage = world.stage(None)
    world.decide("approver-1", stage)
    return stage


def expire(own, clock, stage, instant):
    """Let the approval expire, under the datasource's lock; tell whether it was too late to."""
    with own.application.work() as work:
        work.datasources.get_for_update(own.datasource)
        clock.move(instant)
        return work.materializations.of_stage(stage.id) is not None


def test_promotion_against_expiry_never_comes_behind_it(world, rivals):
    world.declare(approval=ONE_HOUR)
    seen = set()

    with table_clock(world, MIDDAY) as clock:
        for number in range(2 * ROUNDS):  # both have to come first once
            begin = MIDDAY + number * HOUR
            stage = approved_at(world, clock, begin)
            promoted, was_promoted = rivals.at_once(
                lambda own, stage=stage: own.promote(stage, None),
                lambda own, stage=stage, end=begin + HOUR: expire(own, clock, stage, end),
            )
            assert (promoted == "quorum_not_met") is not was_promoted
            if was_promoted:
                assert promoted.materialization.created_at == begin
            seen.add(was_promoted)

        assert world.verification().holds
    assert seen == {True, False}


def test_promotion_against_expiry_without_locks_comes_behind_it(world, rivals, monkeypatch):
    world.declare(approval=ONE_HOUR)
    without_row_locks(monkeypatch)
    pause = Pause(monkeypatch, PostgresMaterializations, "add")

    with table_clock(world, MIDDAY) as clock:
        stage = approved_at(world, clock, MIDDAY)
        promoted, was_promoted = rivals.at_once(
            lambda own: own.promote(stage, None),
            pause.meanwhile(lambda own: expire(own, clock, stage, MIDDAY + HOUR)),
        )

    assert not was_promoted
    assert promoted.created


def test_promotion_against_expiry_looks_at_the_clock_when_it_has_waited(world, rivals):
    """Whoever waits for the lock until the approval expired comes too late."""
    world.declare(approval=ONE_HOUR)
    waiting = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )

    def hold(own, clock, stage):
        with own.application.work() as work:
            work.datasources.get_for_update(own.datasource)
            held.set()
            while world.query(waiting) == [(0,)]:
                pass
            clock.move(MIDDAY + HOUR)

    def promote_behind(own, stage):
        assert held.wait(PATIENCE_SECONDS)
        return own.promote(stage, None)

    with table_clock(world, MIDDAY) as clock:
        stage, held = approved_at(world, clock, MIDDAY), threading.Event()
        _, promoted = rivals.at_once(
            lambda own: hold(own, clock, stage), lambda own: promote_behind(own, stage)
        )

    assert promoted == "quorum_not_met"
