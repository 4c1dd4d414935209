"""A code location over a registry: it loads without a server, and its events decide nothing."""

import subprocess
import sys
from dataclasses import replace

import dagster as dg
import pytest

from datasource_governance.composition import Application, read_settings
from datasource_governance.domain.stage import StageState
from datasource_governance.errors import GuardError
from datasource_governance.orchestration.assets import current_key, stage_key
from datasource_governance.orchestration.registry import governed_definitions
from datasource_governance_tests.orchestration.governed import (
    code_of,
    declaration,
    promotion_run,
    target,
)
from datasource_governance_tests.world import ONE_ROW_AT_LEAST, TWO_APPROVALS

NOWHERE = Application(
    replace(read_settings({}), database_url="postgresql+psycopg://nobody@127.0.0.1:1/nowhere")
)
HARD = {"version": "v1", "rules": [{"id": "r", "type": "row_count", "minimum": 100}]}
LOADED = """
import sys
import datasource_governance.definitions
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def test_a_datasource_has_two_assets_two_jobs_and_the_sensors_are_there_once_for_all():
    orders = declaration()
    defs = governed_definitions([orders, replace(orders, id="users")], NOWHERE)

    dg.Definitions.validate_loadable(defs)
    assert {key.to_user_string() for key in defs.resolve_all_asset_keys()} == {
        "orders/stage",
        "orders/current",
        "users/stage",
        "users/current",
        "governance/retention_plan",
    }
    assert {job.name for job in defs.resolve_all_job_defs()} >= {
        "stage_orders",
        "promote_orders",
        "stage_users",
        "promote_users",
        "retention_plan",
        "apply_retention_plan",
    }
    assert {sensor.name: sensor.default_status.value for sensor in defs.sensors} == dict.fromkeys(
        (
            "approval_quorum",
            "approval_expiry",
            "stage_supersession",
            "stuck_promotion",
            "reconciliation",
            "outbox_delivery",
        ),
        "RUNNING",
    )


def test_current_depends_on_stage_and_both_form_a_group():
    graph = governed_definitions([declaration()], NOWHERE).resolve_asset_graph()

    assert graph.get(current_key("orders")).parent_keys == {stage_key("orders")}
    assert graph.get(stage_key("orders")).group_name == "orders"


def test_an_empty_registry_loads():
    dg.Definitions.validate_loadable(governed_definitions([], NOWHERE))


def test_a_legal_policy_never_stops_a_code_location_from_loading():
    ids = ["quality-policy", "evidence", "a-b", "a.b", "größe", "x" * 128, " ", "/"]
    rules = [{"id": one, "type": "row_count", "minimum": 1} for one in ids]

    defs = governed_definitions([declaration({"version": "v1", "rules": rules})], NOWHERE)

    dg.Definitions.validate_loadable(defs)
    checks = defs.resolve_asset_graph().asset_check_keys
    assert len(checks) == len(ids) + 3


@pytest.mark.slow
def test_loading_imports_no_engine():
    loaded = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    ).stdout.split()

    assert "dagster" in loaded
    assert not {"pandas", "polars", "pyarrow", "pandera", "psycopg", "matplotlib"} & set(loaded)


@pytest.mark.postgres
@pytest.mark.slow
def test_forged_events_do_not_promote_a_stage_that_waits(world, instance):
    world.declare(ONE_ROW_AT_LEAST, TWO_APPROVALS)
    stage = world.stage()
    before = world.count_rows()
    for event in (
        dg.AssetMaterialization(
            current_key("orders"),
            metadata={"datasource_governance/stage_id": stage.id},
            tags={"dagster/data_version": stage.id},
        ),
        dg.AssetCheckEvaluation(stage_key("orders"), "quality_policy", passed=True),
        dg.AssetMaterialization(
            stage_key("orders"), metadata={"datasource_governance/approved_by": "alice, bob"}
        ),
    ):
        instance.report_runless_asset_event(event)

    run = promotion_run(
        world, stage.id, instance, declared=declaration(ONE_ROW_AT_LEAST, TWO_APPROVALS)
    )

    assert code_of(run) == "quorum_not_met"
    assert target(world).current is None
    assert world.count_rows() == before


@pytest.mark.postgres
@pytest.mark.slow
def test_forged_passes_do_not_unblock_a_stage(world, instance):
    world.declare(HARD)
    stage = world.stage()
    for name in ("r", "quality_policy", "schema_classification"):
        instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(stage_key("orders"), name, passed=True)
        )

    run = promotion_run(world, stage.id, instance, declared=declaration(HARD))

    assert code_of(run) == "stage_blocked"
    assert world.present(stage).state is StageState.FAILED
    with pytest.raises(GuardError):
        world.promote(stage)


@pytest.mark.postgres
@pytest.mark.slow
def test_wiping_every_event_takes_nothing_out_of_force(world, instance):
    world.declare(ONE_ROW_AT_LEAST)
    stage = world.stage()
    world.promote(stage)
    first = promotion_run(world, stage.id, instance, declared=declaration(ONE_ROW_AT_LEAST))

    instance.wipe_assets([current_key("orders"), stage_key("orders")])
    again = promotion_run(world, stage.id, instance, declared=declaration(ONE_ROW_AT_LEAST))

    assert first.success
    assert again.success
    assert target(world).revision == 1
    assert world.verification().holds
