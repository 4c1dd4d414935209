"""What stands out is found by state: what is remembered never differs from what is read anew."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.domain.approval import Verdict
from datasource_governance.domain.stage import StageState
from datasource_governance.errors import NotFoundError
from datasource_governance.services import waiting
from datasource_governance.services.recording import record
from datasource_governance.services.waiting import WaitingStages, supersede_stage
from datasource_governance_tests.world import ONE_ROW_AT_LEAST, TWO_APPROVALS

pytestmark = pytest.mark.postgres
FOUR_HOURS = {**TWO_APPROVALS, "expires_after_hours": 4}
OTHER_RULES = {**ONE_ROW_AT_LEAST, "version": "v2"}
MIDDAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Watched:
    """A memory beside ones that have none, and how many statements it takes."""

    def __init__(self, world):
        self.world = world
        self.memory = WaitingStages()

    def look(self):
        """Return what stands out, the same with and without a memory."""
        found = self.memory.overview(self.world.application.work()).standings
        anew = WaitingStages().overview(self.world.application.work()).standings
        assert by_stage(found) == by_stage(anew)
        return {one.stage: one for one in found.get(self.world.datasource, ())}


def by_stage(standings):
    return {
        name: {one.stage: replace(one, until=None) for one in found}
        for name, found in standings.items()
    }


@pytest.fixture
def watched(world):
    world.declare(approval=FOUR_HOURS)
    world.set_clock(MIDDAY)
    return Watched(world)


def test_without_anything_nothing_stands_out(world):
    assert WaitingStages().overview(world.application.work()).standings == {}


def test_a_life_is_followed_step_by_step(watched):
    world = watched.world
    assert watched.look() == {}
    stage, other = world.stage(), world.stage()
    assert watched.look() == {}
    world.decide("approver-1", stage)
    assert watched.look() == {}
    world.set_clock(MIDDAY + 3 * HOUR)
    assert watched.look()[stage.id].expiring == ("approver-1",)
    world.set_clock(MIDDAY + 4 * HOUR)
    assert watched.look()[stage.id].lapsed == ("approver-1",)
    world.decide("approver-1", stage)
    assert watched.look() == {}
    world.decide("approver-2", stage)
    assert watched.look()[stage.id].complete_since == MIDDAY + 4 * HOUR
    world.promote(stage)
    assert watched.look() == {}
    assert world.present(other).state is StageState.SUPERSEDED


def test_a_rejection_ends_what_stood_out(watched):
    world = watched.world
    stage = world.stage()
    world.decide("approver-1", stage)
    world.set_clock(MIDDAY + 4 * HOUR)
    assert stage.id in watched.look()

    world.decide("approver-2", stage, verdict=Verdict.REJECT)

    assert watched.look() == {}


def test_what_waits_for_a_partition_is_held_against_what_is_current_there(world):
    world.declare(approval={**TWO_APPROVALS, "separation_of_duties": False}, kind="published")
    world.grant(SYSTEM, Role.PRODUCER)
    watched = Watched(world)

    def published(key, partition):
        waiting_in = world.publish(key=key, partition=partition).stage
        with world.application.work() as work:
            stage = work.stages.get(waiting_in)
        for approver in ("approver-1", "approver-2"):
            world.decide(approver, stage)
        return stage

    world.promote(published("k1", "north"))
    second, other = published("k2", "north"), published("k3", "south")

    found = watched.look()
    assert {name: one.changed for name, one in found.items()} == {second.id: (), other.id: ()}
    assert all(one.complete_since for one in found.values())

    world.promote(second)

    assert set(watched.look()) == {other.id}


def test_a_policy_change_is_noticed_and_so_is_its_end(watched):
    world = watched.world
    stage = world.stage()
    watched.look()
    world.declare(OTHER_RULES, FOUR_HOURS)
    changed = watched.look()[stage.id].changed
    world.declare(approval=FOUR_HOURS)

    assert changed == ("quality policy",)
    assert watched.look() == {}


def test_a_withdrawn_authority_is_noticed_and_so_is_a_new_one(watched):
    world = watched.world
    stage = world.stage()
    world.decide("approver-1", stage)
    world.decide("approver-2", stage)
    assert watched.look()[stage.id].complete_since
    with world.application.work() as work:
        (grant,) = work.authority.grants("approver-2")

    world.withdraw(grant.id)
    assert watched.look() == {}

    world.grant("approver-2", Role.APPROVER)
    assert watched.look()[stage.id].complete_since


def test_more_news_than_is_followed_is_read_anew(watched, monkeypatch):
    monkeypatch.setattr(waiting, "_ENTRIES_FOLLOWED", 1)
    watched.look()
    stages = [watched.world.stage() for _ in range(2)]

    for stage in stages:
        watched.world.decide("approver-1", stage)
        watched.world.decide("approver-2", stage)

    assert set(watched.look()) == {stage.id for stage in stages}


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE governance.evidence_head SET sequence = sequence - 1",
        "UPDATE governance.evidence_head SET entry_hash = repeat('0', 64)",
    ],
)
def test_a_chain_that_does_not_continue_is_read_anew(watched, tampering):
    world = watched.world
    stage = world.stage()
    world.decide("approver-1", stage)
    watched.look()
    world.set_clock(MIDDAY + 4 * HOUR)

    world.tamper("evidence_head", tampering)

    assert watched.look()[stage.id].lapsed == ("approver-1",)


def test_news_that_could_not_be_read_is_not_lost(watched, monkeypatch):
    world = watched.world
    stage = world.stage()
    watched.look()
    for number in (1, 2):
        world.decide(f"approver-{number}", stage)
    with monkeypatch.context() as broken:
        broken.setattr(waiting, "standing", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            watched.memory.overview(world.application.work())

    assert watched.look()[stage.id].complete_since


def test_stages_of_other_datasources_are_kept_apart(watched):
    world = watched.world
    stage = world.stage()
    elsewhere = replace(world, datasource="users")
    elsewhere.declare(promote="automatic")
    other = elsewhere.stage()
    world.decide("approver-1", stage)
    world.decide("approver-2", stage)

    found = watched.memory.overview(world.application.work()).standings

    assert {name: [one.stage for one in some] for name, some in found.items()} == {
        "orders": [stage.id],
        "users": [other.id],
    }


def restore(world, materialization):
    """Make an earlier materialization current again, with evidence, as no service does yet."""
    with world.application.work() as work:
        present = work.datasources.get_for_update("orders")
        changed = replace(present, current=materialization)
        work.datasources.change(changed, revision=present.revision)
        record(work, "orders", "datasource.restored", subject="orders", facts={}, at=work.now())
        work.commit()


@pytest.fixture
def moved(watched):
    """An open stage whose base another materialization has taken the place of."""
    world = watched.world
    world.declare()
    earlier = world.promote(world.stage()).materialization.id
    world.promote(world.stage())
    stage = world.stage()
    watched.look()
    restore(world, earlier)
    return watched, stage


def test_a_stage_that_lost_its_base_is_superseded_once_with_evidence(moved):
    watched, stage = moved
    assert watched.look()[stage.id].lost_its_base

    superseded = [supersede_stage(watched.world.application.work(), stage.id) for _ in range(2)]

    assert superseded == [True, False]
    assert watched.world.present(stage).state is StageState.SUPERSEDED
    assert watched.look() == {}
    assert watched.world.verification().holds


def test_a_stage_whose_base_is_current_is_left_as_it_is(watched):
    stage = watched.world.stage()
    before = watched.world.count_rows()

    assert not supersede_stage(watched.world.application.work(), stage.id)
    assert watched.world.present(stage) == stage
    assert watched.world.count_rows() == before


def test_a_promoted_stage_is_not_superseded(moved):
    watched, _ = moved
    with watched.world.application.work() as work:
        promoted = work.stages.list("orders", {StageState.PROMOTED})

    for stage in promoted:
        assert not supersede_stage(watched.world.application.work(), stage.id)


def test_a_stage_that_is_not_there_is_not_superseded(watched):
    with pytest.raises(NotFoundError):
        supersede_stage(watched.world.application.work(), "no such stage")
