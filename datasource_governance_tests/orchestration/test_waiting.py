"""Expiry, supersession and stuck promotions: the newest observation of a topic is always true."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from datasource_governance.composition import Application
from datasource_governance.domain.stage import StageState
from datasource_governance.orchestration import metadata
from datasource_governance.orchestration.assets import stage_key
from datasource_governance.orchestration.jobs import promotion_run_config
from datasource_governance.orchestration.sensors import STAGE_TAG
from datasource_governance.orchestration.waiting import EXPIRY, STUCK, STUCK_AFTER, SUPERSESSION
from datasource_governance.services.recording import record
from datasource_governance_tests.orchestration.governed import declaration, target
from datasource_governance_tests.orchestration.ticking import (
    Daemon,
    instance_on,
    listed,
    observations,
    tick_twice_at_once,
)
from datasource_governance_tests.world import ONE_ROW_AT_LEAST

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
FOUR_HOURS = {"version": "v1", "required": True, "required_approvals": 2, "expires_after_hours": 4}
OTHER_RULES = {**ONE_ROW_AT_LEAST, "version": "v2"}
DECLARED = declaration(ONE_ROW_AT_LEAST, FOUR_HOURS)
KEY = stage_key("orders")
MIDDAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SENSORS = (EXPIRY, SUPERSESSION, STUCK)
REASON = "zq-reason-7713"


@pytest.fixture
def waiting(world, dagster_database):
    """The world with a stage that waits for two approvals, its clock at midday, and a daemon."""
    world.declare(ONE_ROW_AT_LEAST, FOUR_HOURS)
    world.set_clock(MIDDAY)
    with instance_on(dagster_database) as instance:
        yield world, world.stage(), Daemon(world.application, DECLARED, instance)


def shown(daemon, topic):
    return observations(daemon.instance, KEY, topic)


def approve(world, stage, *numbers):
    for number in numbers:
        world.decide(f"approver-{number}", stage, REASON)


def make_current(world, materialization):
    """Make an earlier materialization current again, with evidence, as no service does yet."""
    with world.application.work() as work:
        present = work.datasources.get_for_update("orders")
        work.datasources.change(
            replace(present, current=materialization), revision=present.revision
        )
        record(work, "orders", "datasource.restored", subject="orders", facts={}, at=work.now())
        work.commit()


@pytest.mark.parametrize("name", SENSORS)
def test_while_nothing_stands_out_nothing_is_shown(waiting, name):
    world, stage, daemon = waiting
    approve(world, stage, 1)

    daemon.tick(name)

    assert shown(daemon, name) == []


def test_in_the_last_quarter_of_its_life_an_approval_is_shown_to_expire_soon(waiting):
    world, stage, daemon = waiting
    approve(world, stage, 1)
    world.set_clock(MIDDAY + 3 * HOUR - timedelta(microseconds=1))
    daemon.tick(EXPIRY)
    before = shown(daemon, EXPIRY)

    world.set_clock(MIDDAY + 3 * HOUR)
    daemon.tick(EXPIRY)

    assert before == []
    assert listed(shown(daemon, EXPIRY)[0]) == [
        {
            "stage": stage.id,
            "approvals missing": "1",
            "expired": "",
            "expiring soon": "approver-1",
            "next expiry": "2026-03-01 16:00:00+00:00",
        }
    ]


def expiring_events(world):
    query = "SELECT count(*) FROM governance.outbox WHERE type = 'datasource.stage.expiring'"
    return world.query(query)[0][0]


def test_people_are_told_of_an_approval_that_expires_soon_once_whoever_ticks(waiting):
    world, stage, daemon = waiting
    approve(world, stage, 1)
    daemon.tick(EXPIRY)
    before = expiring_events(world)

    world.set_clock(MIDDAY + 3 * HOUR)
    for _ in range(2):
        daemon.tick(EXPIRY)
        Daemon(world.application, DECLARED, daemon.instance).tick(EXPIRY)
    tick_twice_at_once(world, daemon, DECLARED, EXPIRY)

    assert (before, expiring_events(world)) == (0, 1)
    assert world.verification().holds


def test_what_was_told_is_remembered_and_not_looked_for_at_each_tick(waiting, monkeypatch):
    world, stage, daemon = waiting
    approve(world, stage, 1)
    world.set_clock(MIDDAY + 3 * HOUR)
    daemon.tick(EXPIRY)
    monkeypatch.setattr(
        "datasource_governance.orchestration.waiting.tell_of_expiring", lambda *_: 1 / 0
    )

    daemon.tick(EXPIRY)


def test_an_approval_renewed_between_two_ticks_is_told_of_anew(waiting):
    world, stage, daemon = waiting
    approve(world, stage, 1)
    world.set_clock(MIDDAY + 3 * HOUR)
    daemon.tick(EXPIRY)
    world.set_clock(MIDDAY + 4 * HOUR)
    approve(world, stage, 1)

    world.set_clock(MIDDAY + 7 * HOUR)
    daemon.tick(EXPIRY)

    assert expiring_events(world) == 2


def test_at_the_instant_of_expiry_it_is_shown_as_expired_and_what_is_missing(waiting):
    world, stage, daemon = waiting
    approve(world, stage, 1)
    daemon.tick(EXPIRY)

    world.set_clock(MIDDAY + 4 * HOUR)
    daemon.tick(EXPIRY)

    (found,) = listed(shown(daemon, EXPIRY)[0])
    assert (found["expired"], found["approvals missing"]) == ("approver-1", "2")


def test_a_renewed_approval_takes_back_what_was_shown(waiting):
    world, stage, daemon = waiting
    approve(world, stage, 1)
    world.set_clock(MIDDAY + 4 * HOUR)
    daemon.tick(EXPIRY)

    approve(world, stage, 1)
    daemon.tick(EXPIRY)

    newest, older = shown(daemon, EXPIRY)
    assert (listed(newest), len(listed(older))) == ([], 1)


def test_no_reason_is_shown(waiting):
    world, stage, daemon = waiting
    approve(world, stage, 1)
    world.set_clock(MIDDAY + 4 * HOUR)

    daemon.tick(EXPIRY)

    assert REASON not in repr(shown(daemon, EXPIRY))


def test_while_a_policy_differs_the_stage_is_shown_as_outdated_and_stays_open(waiting):
    world, stage, daemon = waiting
    world.declare(OTHER_RULES, FOUR_HOURS)
    daemon.tick(SUPERSESSION)
    world.declare(ONE_ROW_AT_LEAST, FOUR_HOURS)
    daemon.tick(SUPERSESSION)
    world.declare(OTHER_RULES, FOUR_HOURS)
    daemon.tick(SUPERSESSION)

    outdated = [{"stage": stage.id, "state": "outdated", "changed": "quality policy"}]
    assert [listed(one) for one in shown(daemon, SUPERSESSION)] == [outdated, [], outdated]
    assert world.present(stage).state is StageState.AWAITING_APPROVAL


def test_a_stage_whose_base_is_no_longer_current_is_superseded_through_the_service(waiting):
    world, first, daemon = waiting
    approve(world, first, 1, 2)
    earlier = world.promote(first).materialization.id
    second = world.stage()
    approve(world, second, 1, 2)
    world.promote(second)
    third = world.stage()
    make_current(world, earlier)

    daemon.tick(SUPERSESSION)
    rows = world.count_rows()
    daemon.tick(SUPERSESSION)

    assert world.present(third).state is StageState.SUPERSEDED
    assert listed(shown(daemon, SUPERSESSION)[0]) == [
        {"stage": third.id, "state": "superseded", "changed": "base materialization"}
    ]
    assert world.count_rows() == rows
    assert world.verification().holds


def test_stages_that_a_promotion_superseded_are_shown(waiting):
    world, first, daemon = waiting
    second = world.stage()
    approve(world, first, 1, 2)
    world.promote(first)

    daemon.tick(SUPERSESSION)

    (found,) = listed(shown(daemon, SUPERSESSION)[0])
    assert (found["stage"], found["state"]) == (second.id, "superseded")


def test_a_decision_about_something_else_under_its_id_is_shown_as_a_changed_subject(waiting):
    world, stage, daemon = waiting
    approve(world, stage, 1)
    world.tamper("decision", f"UPDATE governance.decision SET stage_fingerprint = '{'0' * 64}'")

    daemon.tick(SUPERSESSION)

    assert [one["changed"] for one in listed(shown(daemon, SUPERSESSION)[0])] == ["subject"]


def test_a_stage_that_is_complete_for_ten_minutes_is_shown_as_stuck_with_its_run(waiting):
    world, stage, daemon = waiting
    approve(world, stage, 1, 2)
    run = daemon.instance.create_run_for_job(
        daemon.defs.resolve_job_def("promote_orders"),
        run_config=promotion_run_config("orders", stage.id),
        tags={STAGE_TAG: stage.id},
        status=dg.DagsterRunStatus.FAILURE,
    )
    world.set_clock(MIDDAY + STUCK_AFTER - timedelta(microseconds=1))
    daemon.tick(STUCK)
    before = shown(daemon, STUCK)

    world.set_clock(MIDDAY + STUCK_AFTER)
    daemon.tick(STUCK)

    (found,) = shown(daemon, STUCK)
    assert before == []
    assert found.description.startswith("FAILED")
    assert listed(found)[0]["newest run"] == f"{run.run_id}: FAILURE"
    assert found.metadata[metadata.STUCK_RUN].value == run.run_id


def test_a_deleted_run_leaves_a_stuck_stage_without_a_link(waiting):
    world, stage, daemon = waiting
    approve(world, stage, 1, 2)
    world.set_clock(MIDDAY + STUCK_AFTER)
    run = daemon.instance.create_run_for_job(
        daemon.defs.resolve_job_def("promote_orders"),
        run_config=promotion_run_config("orders", stage.id),
        tags={STAGE_TAG: stage.id},
    )
    daemon.tick(STUCK)

    daemon.instance.delete_run(run.run_id)
    daemon.tick(STUCK)

    newest, _ = shown(daemon, STUCK)
    assert listed(newest)[0]["newest run"] == "none"
    assert metadata.STUCK_RUN not in newest.metadata


def test_a_promotion_takes_back_that_it_was_stuck(waiting):
    world, stage, daemon = waiting
    approve(world, stage, 1, 2)
    world.set_clock(MIDDAY + STUCK_AFTER)
    daemon.tick(STUCK)

    world.promote(stage)
    daemon.tick(STUCK)

    assert [len(listed(one)) for one in shown(daemon, STUCK)] == [0, 1]


@pytest.fixture
def outdated(waiting):
    """A stage that each of the sensors has something to show of."""
    world, stage, daemon = waiting
    lapsed = world.stage()
    approve(world, lapsed, 1)
    world.set_clock(MIDDAY + 4 * HOUR)
    approve(world, stage, 1, 2)
    world.set_clock(MIDDAY + 4 * HOUR + STUCK_AFTER)
    return world, daemon


@pytest.mark.parametrize("name", [EXPIRY, STUCK])
def test_a_second_tick_and_one_that_remembers_nothing_show_nothing_new(outdated, name):
    world, daemon = outdated

    for _ in range(2):
        daemon.tick(name)
        Daemon(world.application, DECLARED, daemon.instance).tick(name)

    assert len(shown(daemon, name)) == 1


@pytest.mark.parametrize("name", [EXPIRY, STUCK])
def test_what_was_wiped_is_shown_again_once(outdated, name):
    _, daemon = outdated
    daemon.tick(name)

    daemon.instance.wipe_assets([KEY])
    daemon.tick(name)
    daemon.tick(name)

    assert len(shown(daemon, name)) == 1


@pytest.mark.parametrize("name", [EXPIRY, STUCK])
def test_a_forged_observation_is_corrected(outdated, name):
    _, daemon = outdated
    daemon.tick(name)
    forged = {metadata.TOPIC: name, metadata.WAITING: "nothing waits"}
    daemon.instance.report_runless_asset_event(dg.AssetObservation(KEY, metadata=forged))

    daemon.tick(name)

    assert len(listed(shown(daemon, name)[0])) == 1


@pytest.mark.parametrize("name", [EXPIRY, STUCK])
def test_two_ticks_at_once_show_it_once(outdated, name):
    world, daemon = outdated
    tick_twice_at_once(world, daemon, DECLARED, name)

    assert len(shown(daemon, name)) == 1


@pytest.mark.parametrize("name", SENSORS)
def test_without_postgres_a_tick_is_skipped_with_a_reason(waiting, name):
    world, _, daemon = waiting
    url = "postgresql+psycopg://nobody@127.0.0.1:1/nowhere"
    away = Application(replace(world.application.settings, database_url=url))

    assert "127.0.0.1:1" in Daemon(away, DECLARED, daemon.instance).tick(name).skip_message


@pytest.mark.parametrize("name", SENSORS)
def test_what_is_declared_and_not_applied_is_passed_over(world, dagster_database, name):
    with instance_on(dagster_database) as instance:
        daemon = Daemon(world.application, DECLARED, instance)

        assert daemon.tick(name).skip_message == "0 observations reported"


def test_no_tick_of_theirs_decides_anything(outdated):
    world, daemon = outdated
    before = world.count_rows(), target(world)

    for name in SENSORS:
        daemon.tick(name)

    assert (world.count_rows(), target(world)) == before
