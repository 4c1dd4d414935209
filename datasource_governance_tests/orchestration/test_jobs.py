"""The jobs of the launchpad: what they run, take, and refuse before a run starts."""

import dagster as dg
import pytest

from datasource_governance.composition import Application, read_settings
from datasource_governance.orchestration.assets import current_key, stage_key
from datasource_governance.orchestration.jobs import promotion_run_config, stage_run_config
from datasource_governance.orchestration.registry import governed_definitions
from datasource_governance_tests.orchestration.governed import declaration


@pytest.fixture(scope="module")
def loaded():
    return governed_definitions([declaration()], Application(read_settings({})))


def stage_config(**config):
    return {"ops": {"orders__stage": {"config": config}}}


def promotion_config(**config):
    return {"ops": {"orders__current": {"config": config}}}


def test_the_stage_job_materializes_stages_only(loaded):
    job = loaded.resolve_job_def("stage_orders")

    assert job.asset_layer.executable_asset_keys == {stage_key("orders")}


def test_the_promotion_job_materializes_current_and_verifies_the_evidence(loaded):
    job = loaded.resolve_job_def("promote_orders")

    assert job.asset_layer.executable_asset_keys == {current_key("orders")}
    assert job.asset_layer.asset_graph.asset_check_keys >= {
        dg.AssetCheckKey(current_key("orders"), "evidence")
    }


def test_what_the_command_line_and_the_sensor_send_is_valid(loaded):
    stage, promotion = map(loaded.resolve_job_def, ("stage_orders", "promote_orders"))

    assert dg.validate_run_config(stage, stage_run_config("orders", "a.csv", "0" * 64))
    assert dg.validate_run_config(promotion, promotion_run_config("orders", "stage-1"))


def test_an_attestation_may_be_left_out(loaded):
    job = loaded.resolve_job_def("stage_orders")

    config = dg.validate_run_config(job, stage_config(delivery="a.csv"))

    assert config["ops"]["orders__stage"]["config"] == {"delivery": "a.csv", "attestation": ""}


@pytest.mark.parametrize(
    ("job", "config"),
    [
        ("stage_orders", stage_config()),
        ("stage_orders", stage_config(delivery=7)),
        ("stage_orders", stage_config(delivery="a.csv", approved=True)),
        ("stage_orders", stage_config(delivery={"env": "HOME"})),
        ("stage_orders", stage_config(delivery="a.csv", attestation={"env": "HOME"})),
        ("promote_orders", promotion_config()),
        ("promote_orders", promotion_config(stage_id={"env": "HOME"})),
        ("promote_orders", promotion_config(stage_id="s", approved_by=["alice", "bob"])),
    ],
)
def test_anything_else_is_refused_before_a_run_starts(loaded, job, config):
    with pytest.raises(dg.DagsterInvalidConfigError):
        dg.validate_run_config(loaded.resolve_job_def(job), config)
