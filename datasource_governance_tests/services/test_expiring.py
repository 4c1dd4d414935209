"""People are told of each approval that expires soon: once, whoever asks and however often."""

from datetime import UTC, datetime, timedelta

import pytest

from datasource_governance.domain.canonical import load_canonical
from datasource_governance.errors import NotFoundError
from datasource_governance.services.expiring import tell_of_expiring
from datasource_governance.services.waiting import WaitingStages
from datasource_governance_tests.world import ONE_ROW_AT_LEAST, TWO_APPROVALS

pytestmark = pytest.mark.postgres
FOUR_HOURS = {**TWO_APPROVALS, "expires_after_hours": 4}
MIDDAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
SOON = MIDDAY + timedelta(hours=3)
REASON = "zq-reason-4471"


@pytest.fixture
def waiting(world):
    """A stage with one approval of two, decided at midday, for four hours."""
    world.declare(approval=FOUR_HOURS)
    world.set_clock(MIDDAY)
    stage = world.stage()
    world.decide("approver-1", stage, REASON)
    return world, stage


def tell(world, stage):
    return tell_of_expiring(world.application.work(), stage.id)


def told(world):
    query = "SELECT body FROM governance.outbox WHERE type = 'datasource.stage.expiring'"
    found = [load_canonical(bytes(body)) for (body,) in world.query(f"{query} ORDER BY number")]
    return [one["facts"] for one in found]


def test_before_the_last_quarter_nothing_is_told(waiting):
    world, stage = waiting
    world.set_clock(SOON - timedelta(microseconds=1))

    assert tell(world, stage) == 0
    assert told(world) == []


def test_in_the_last_quarter_it_is_told_once_with_evidence(waiting):
    world, stage = waiting
    world.set_clock(SOON)

    assert [tell(world, stage) for _ in range(3)] == [1, 0, 0]
    (facts,) = told(world)
    assert facts == {
        "stage": stage.id,
        "stage_fingerprint": stage.fingerprint("default"),
        "decision": facts["decision"],
        "actor": "approver-1",
        "expires_at": "2026-03-01T16:00:00+00:00",
        "approvals": 1,
        "required": 2,
    }
    assert world.verification().holds


def test_each_approval_is_told_of_at_its_own_time(waiting):
    world, stage = waiting
    world.set_clock(MIDDAY + timedelta(hours=1))
    world.decide("approver-2", stage)
    world.set_clock(SOON)
    tell(world, stage)

    world.set_clock(SOON + timedelta(hours=1))
    tell(world, stage)

    assert [(facts["actor"], facts["approvals"]) for facts in told(world)] == [
        ("approver-1", 2),
        ("approver-2", 1),
    ]


def test_several_at_once_are_told_in_one_transaction(waiting):
    world, stage = waiting
    world.decide("approver-2", stage)
    world.set_clock(SOON)

    assert tell(world, stage) == 2
    assert [facts["actor"] for facts in told(world)] == ["approver-1", "approver-2"]
    assert world.verification().holds


def test_a_renewed_approval_is_told_of_anew(waiting):
    world, stage = waiting
    world.set_clock(SOON)
    tell(world, stage)
    world.set_clock(MIDDAY + timedelta(hours=4))
    world.decide("approver-1", stage)

    world.set_clock(SOON + timedelta(hours=4))

    assert tell(world, stage) == 1


def test_of_a_stage_that_is_closed_or_outdated_nothing_is_told(waiting):
    world, stage = waiting
    world.decide("approver-2", stage)
    world.set_clock(SOON)
    world.declare({**ONE_ROW_AT_LEAST, "version": "other"}, FOUR_HOURS)
    while_outdated = tell(world, stage)
    world.declare(approval=FOUR_HOURS)

    world.promote(stage)

    assert (while_outdated, tell(world, stage)) == (0, 0)


def test_a_stage_that_needs_no_approval_has_nothing_that_expires(world):
    world.declare()

    assert tell(world, world.stage()) == 0


def test_an_unknown_stage_is_not_found(world):
    with pytest.raises(NotFoundError):
        tell_of_expiring(world.application.work(), "no such stage")


def test_telling_is_no_news_to_what_is_remembered_of_waiting_stages(waiting):
    world, stage = waiting
    memory = WaitingStages()
    world.set_clock(SOON)
    before = memory.overview(world.application.work())

    tell(world, stage)

    assert memory.overview(world.application.work()).standings == before.standings


def test_no_reason_is_told(waiting):
    world, stage = waiting
    world.set_clock(SOON)
    tell(world, stage)

    assert REASON not in repr(told(world))
