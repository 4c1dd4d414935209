"""The reconciler: Dagster shows what Postgres holds again, and nothing it shows counts for more."""

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from datasource_governance.orchestration import metadata, reconciliation
from datasource_governance.orchestration.assets import current_key, stage_key
from datasource_governance.orchestration.governed_asset import governed_asset
from datasource_governance.orchestration.plan_metadata import plan_metadata
from datasource_governance.orchestration.reconciliation import GRACE, RECONCILIATION, UNBACKED
from datasource_governance.orchestration.retention import RETENTION_PLAN
from datasource_governance_tests.orchestration.governed import (
    BLOCKED,
    GOOD,
    POLICY,
    declaration,
    deliver,
    promotion_run,
    stage_run,
    stages,
    target,
)
from datasource_governance_tests.orchestration.publishing import GOOD as OUTPUT
from datasource_governance_tests.orchestration.publishing import declare
from datasource_governance_tests.orchestration.publishing import run as publish_run
from datasource_governance_tests.orchestration.ticking import (
    Daemon,
    instance_on,
    listed,
    materializations,
    observations,
    tick_twice_at_once,
    versions,
)
from datasource_governance_tests.retiring import plan_now

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
DECLARED = declaration()
STAGE, CURRENT = stage_key("orders"), current_key("orders")
MIDDAY = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def daemon(world, dagster_database):
    """A daemon over a declared datasource, at midday."""
    world.declare(POLICY, promote="automatic")
    world.set_clock(MIDDAY)
    with instance_on(dagster_database) as instance:
        yield Daemon(world.application, DECLARED, instance)


def promoted(world, daemon, seconds=0):
    """Stage and promote a delivery by runs, some seconds after midday; return the stage's id."""
    world.set_clock(MIDDAY + timedelta(seconds=seconds))
    assert stage_run(world, deliver(world, GOOD), daemon.instance).success
    (newest, *_) = stages(world)
    assert promotion_run(world, newest.id, daemon.instance).success
    return newest.id


def later(world):
    world.set_clock(MIDDAY + GRACE + timedelta(seconds=1))


def shown(daemon):
    """Return everything that is shown of both assets, newest first."""
    return {
        key.to_user_string(): (
            versions(daemon.instance, key),
            [
                one.tags.get("dagster/data_version")
                for record in daemon.instance.fetch_observations(key, limit=200).records
                if (one := record.event_log_entry.asset_observation)
            ],
        )
        for key in (STAGE, CURRENT)
    }


def unbacked(daemon, key):
    return [len(listed(one)) for one in observations(daemon.instance, key, UNBACKED)]


def test_what_runs_reported_is_left_alone(world, daemon):
    promoted(world, daemon)
    later(world)
    before = shown(daemon)

    daemon.tick(RECONCILIATION)

    assert shown(daemon) == before


def test_a_stage_made_without_dagster_is_reported_with_its_checks(world, daemon):
    deliver(world, GOOD)
    stage = world.stage()
    later(world)

    daemon.tick(RECONCILIATION)

    (found,) = materializations(daemon.instance, STAGE)
    assert found.tags["dagster/data_version"] == stage.id
    assert found.metadata[metadata.STAGE_ID].value == stage.id
    check = dg.AssetCheckKey(STAGE, "quality_policy")
    (record,) = daemon.instance.event_log_storage.get_asset_check_execution_history(check, limit=9)
    assert record.status.value == "FAILED"  # `amount` is not in that delivery


def test_it_is_not_reported_before_its_run_had_time_to(world, daemon):
    world.stage()
    world.set_clock(MIDDAY + GRACE - timedelta(microseconds=1))

    daemon.tick(RECONCILIATION)

    assert versions(daemon.instance, STAGE) == []


def test_wiped_assets_are_reported_again_once(world, daemon):
    stage = promoted(world, daemon)
    later(world)
    original = materializations(daemon.instance, CURRENT)[0]
    daemon.instance.wipe_assets([STAGE, CURRENT])

    for _ in range(2):
        daemon.tick(RECONCILIATION)
        Daemon(world.application, DECLARED, daemon.instance).tick(RECONCILIATION)

    assert versions(daemon.instance, STAGE) == [stage]
    (again,) = materializations(daemon.instance, CURRENT)
    assert (again.metadata, again.tags["dagster/data_version"]) == (
        original.metadata,
        target(world).current,
    )


def test_what_a_deleted_run_had_reported_is_reported_again(world, daemon):
    promoted(world, daemon)
    later(world)
    for run in daemon.instance.get_runs():
        daemon.instance.delete_run(run.run_id)
    assert versions(daemon.instance, CURRENT) == []

    daemon.tick(RECONCILIATION)

    assert versions(daemon.instance, CURRENT) == [target(world).current]


def test_what_was_lost_below_newer_events_is_observed_and_does_not_come_to_lie_on_top(
    world, daemon
):
    first = promoted(world, daemon)
    (run,) = daemon.instance.get_runs(dg.RunsFilter(job_name="stage_orders"))
    second = promoted(world, daemon, seconds=1)
    later(world)
    daemon.instance.delete_run(run.run_id)

    for _ in range(4):
        daemon.tick(RECONCILIATION)

    assert shown(daemon)["orders/stage"] == ([second], [first])


def test_the_round_passes_through_every_page(world, daemon, monkeypatch):
    monkeypatch.setattr(reconciliation, "PAGE", 2)
    made = [world.stage().id for _ in range(5)]
    later(world)

    for _ in range(6):
        daemon.tick(RECONCILIATION)

    (top,), below = shown(daemon)["orders/stage"]
    assert sorted([top, *below]) == sorted(made)


@pytest.mark.parametrize("tags", [{}, {"dagster/data_version": "no such row"}])
@pytest.mark.parametrize("key", [STAGE, CURRENT])
def test_a_forged_materialization_is_named_and_the_true_one_put_on_top(world, daemon, key, tags):
    promoted(world, daemon)
    later(world)
    (true,) = versions(daemon.instance, key)
    forged = dg.AssetMaterialization(key, metadata={"bait": "zq-bait-1"}, tags=tags)
    daemon.instance.report_runless_asset_event(forged)

    for _ in range(2):
        daemon.tick(RECONCILIATION)

    assert versions(daemon.instance, key) == [true, tags.get("dagster/data_version"), true]
    assert unbacked(daemon, key) == [1]
    assert "zq-bait-1" not in repr(observations(daemon.instance, key, UNBACKED))


def test_a_forgery_under_a_true_id_does_not_stay_on_top(world, daemon):
    promoted(world, daemon)
    later(world)
    current = target(world).current
    forged = {metadata.APPROVED_BY: "alice, bob"}
    daemon.instance.report_runless_asset_event(
        dg.AssetMaterialization(CURRENT, metadata=forged, tags={"dagster/data_version": current})
    )

    daemon.tick(RECONCILIATION)

    newest = materializations(daemon.instance, CURRENT)[0]
    assert newest.metadata[metadata.APPROVED_BY].value == "not required"


def test_a_forged_materialization_of_what_was_never_staged_backs_nothing(world, daemon):
    before = world.count_rows()
    daemon.instance.report_runless_asset_event(dg.AssetMaterialization(CURRENT))

    daemon.tick(RECONCILIATION)

    assert unbacked(daemon, CURRENT) == [1]
    assert (target(world).current, world.count_rows()) == (None, before)


def test_two_ticks_at_once_report_what_is_lost_once(world, daemon):
    promoted(world, daemon)
    later(world)
    daemon.instance.wipe_assets([STAGE, CURRENT])
    tick_twice_at_once(world, daemon, DECLARED, RECONCILIATION)

    assert [len(versions(daemon.instance, key)) for key in (STAGE, CURRENT)] == [1, 1]


def test_a_blocked_stage_is_reported_as_blocked(world, daemon):
    stage_run(world, deliver(world, BLOCKED), daemon.instance)
    later(world)
    daemon.instance.wipe_assets([STAGE])

    daemon.tick(RECONCILIATION)

    (found,) = materializations(daemon.instance, STAGE)
    assert found.metadata[metadata.STATE].value == "failed"


def test_what_is_declared_and_not_applied_does_not_keep_others_waiting(world, dagster_database):
    with instance_on(dagster_database) as instance:
        tick = Daemon(world.application, DECLARED, instance).tick(RECONCILIATION)

    assert tick.skip_message == "0 observations reported"


def test_it_decides_nothing(world, daemon):
    promoted(world, daemon)
    later(world)
    daemon.instance.wipe_assets([STAGE, CURRENT])
    before = world.count_rows()

    daemon.tick(RECONCILIATION)

    assert world.count_rows() == before
    assert world.verification().holds


WAREHOUSES = dg.StaticPartitionsDefinition(["north", "south"])


@pytest.fixture
def publishing(world, dagster_database):
    """A daemon over a datasource to which a governed asset publishes, and what runs that asset."""
    world.set_clock(MIDDAY)
    declared = declare(world)
    with instance_on(dagster_database) as instance:

        def producer(partitions_def=None):
            @governed_asset(datasource=declared, partitions_def=partitions_def)
            def extract():
                return OUTPUT

            def run_asset(**options):
                return publish_run(world, extract, instance, declared, **options)

            return Daemon(world.application, declared, instance, [extract]), run_asset

        yield producer


EXTRACT = dg.AssetKey("extract")


def checked(daemon, partition=None) -> set[str]:
    """Return the checks of the governed asset that have a result, for a partition if one is."""
    names = (check.name for check in daemon.defs.resolve_asset_graph().asset_check_keys)
    return {
        name
        for name in names
        for one in daemon.instance.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(EXTRACT, name), limit=9
        )
        if one.event and one.partition == partition
    }


def test_what_a_governed_asset_published_is_shown_again_with_its_checks(world, publishing):
    daemon, run_asset = publishing()
    assert run_asset().success
    later(world)
    (original,) = materializations(daemon.instance, EXTRACT)
    daemon.instance.wipe_assets([EXTRACT, CURRENT])

    for _ in range(2):
        daemon.tick(RECONCILIATION)

    (again,) = materializations(daemon.instance, EXTRACT)
    assert (again.metadata, again.tags["dagster/data_version"]) == (
        original.metadata,
        target(world).current,
    )
    assert versions(daemon.instance, CURRENT) == [target(world).current]
    assert checked(daemon) == {
        "id_unique",
        "amount",
        "note_",
        "quality_policy",
        "schema_classification",
    }


def test_what_another_producer_published_is_not_shown_on_the_asset(world, publishing):
    daemon, _ = publishing()
    other = world.publish(OUTPUT)
    later(world)

    for _ in range(4):
        daemon.tick(RECONCILIATION)

    assert versions(daemon.instance, EXTRACT) == []
    assert daemon.instance.fetch_observations(EXTRACT, limit=9).records == []
    assert versions(daemon.instance, CURRENT) == [other.materialization.id]


def test_the_newest_of_each_partition_is_shown_again_as_of_that_partition(world, publishing):
    daemon, run_asset = publishing(WAREHOUSES)
    for key in ("north", "south", "south"):
        assert run_asset(partition_key=key).success
    later(world)
    daemon.instance.wipe_assets([EXTRACT])

    for _ in range(4):
        daemon.tick(RECONCILIATION)

    current = {}
    with world.application.work() as work:
        for key in ("north", "south"):
            current[key] = work.datasources.get("orders", key).current
    shown_again = materializations(daemon.instance, EXTRACT)
    assert {one.partition: one.tags["dagster/data_version"] for one in shown_again} == current
    assert len(shown_again) == 2
    assert checked(daemon, "north") == checked(daemon, "south") != set()
    assert versions(daemon.instance, CURRENT) == []
    assert daemon.instance.fetch_observations(CURRENT, limit=9).records == []


PLAN_MADE = MIDDAY - GRACE


def plans(world):
    """Return the hashes of the plans that are kept, newest first."""
    with world.application.work() as work:
        return [plan.id for plan in work.retention.page(None, 9)]


def test_a_plan_whose_materialization_was_lost_is_reported_again_once(world, daemon):
    """As if the process had been killed between keeping the plan and reporting it."""
    plan = plan_now(world, at=PLAN_MADE)
    world.set_clock(MIDDAY)

    for _ in range(2):
        daemon.tick(RECONCILIATION)
        Daemon(world.application, DECLARED, daemon.instance).tick(RECONCILIATION)

    (found,) = materializations(daemon.instance, RETENTION_PLAN)
    assert found.tags["dagster/data_version"] == plan.hash
    assert found == dg.AssetMaterialization(
        RETENTION_PLAN, metadata=plan_metadata(plan), tags=found.tags
    )
    assert plans(world) == [plan.hash]


def test_a_plan_is_not_reported_before_its_run_had_time_to(world, daemon):
    plan_now(world, at=PLAN_MADE + timedelta(microseconds=1))
    world.set_clock(MIDDAY)

    daemon.tick(RECONCILIATION)

    assert versions(daemon.instance, RETENTION_PLAN) == []


def test_an_older_plan_that_was_lost_does_not_come_to_lie_on_top(world, daemon):
    older = plan_now(world, at=PLAN_MADE - timedelta(seconds=1))
    newer = plan_now(world, at=PLAN_MADE)
    world.set_clock(MIDDAY)

    for _ in range(6):  # all assets of the round
        daemon.tick(RECONCILIATION)

    assert versions(daemon.instance, RETENTION_PLAN) == [newer.hash]
    (observed,) = daemon.instance.fetch_observations(RETENTION_PLAN, limit=9).records
    assert observed.event_log_entry.asset_observation.tags["dagster/data_version"] == older.hash


def test_a_plan_that_was_never_kept_is_named_and_the_true_one_put_on_top(world, daemon):
    plan = plan_now(world, at=PLAN_MADE)
    forged = dg.AssetMaterialization(RETENTION_PLAN, tags={"dagster/data_version": "f" * 64})
    world.set_clock(MIDDAY)
    daemon.instance.report_runless_asset_event(forged)

    daemon.tick(RECONCILIATION)

    assert versions(daemon.instance, RETENTION_PLAN) == [plan.hash, "f" * 64]
    assert unbacked(daemon, RETENTION_PLAN) == [1]
