"""The job that reads an origin into a stage, run by Dagster in this process."""

import dagster as dg
import pytest

from datasource_governance.domain.launch import RunLaunch, run_config_hash
from datasource_governance.domain.stage import StageState
from datasource_governance.orchestration.jobs import refresh_run_config
from datasource_governance_tests.orchestration.governed import (
    POLICY,
    checks_of,
    code_of,
    declaration,
    definitions,
    stages,
)
from datasource_governance_tests.world import TWO_APPROVALS

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
JOB = "refresh_stage_orders"
BAIT = "zq-canary-7731"
GOOD = "id,amount,note\n1,10,a\n2,20,b\n"
OTHER = "id,amount,note\n1,10,a\n2,20,b\n3,30,c\n"


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def cached(world, tmp_path):
    """The world with `orders` declared, which is re-read from a file; approval is required."""
    world.declare(POLICY, TWO_APPROVALS, kind="cached")
    says(tmp_path, GOOD)
    return world


def says(tmp_path, text):
    (tmp_path / "rows.csv").write_text(text)


def job_of(world, tmp_path):
    origin = {"address": {"url": f"file://{tmp_path / 'rows.csv'}"}}
    declared = declaration(approval=TWO_APPROVALS, kind="cached", source={"origin": origin})
    return definitions(world, declared).resolve_job_def(JOB)


def run_job(world, tmp_path, instance, *, force=False, **options):
    return job_of(world, tmp_path).execute_in_process(
        run_config=refresh_run_config("orders", "", force=force),
        instance=instance,
        raise_on_error=False,
        **options,
    )


def test_a_datasource_with_an_origin_has_a_job_that_refreshes_and_none_that_stages(
    cached, tmp_path
):
    job = job_of(cached, tmp_path)
    config = job.nodes[0].definition.config_schema.as_field().config_type.fields

    assert config.keys() == {"attestation", "force"}


def test_what_an_origin_says_is_one_stage_and_its_checks(cached, tmp_path, instance):
    run = run_job(cached, tmp_path, instance)

    (stage,) = stages(cached)
    (event,) = run.get_asset_materialization_events()
    assert run.success
    assert stage.state is StageState.AWAITING_APPROVAL
    assert (stage.delivery, stage.creator) == ("rows.csv", "unattested")
    assert event.materialization.tags["dagster/data_version"] == stage.id
    assert all(check.passed for check in checks_of(run).values())


def test_an_origin_that_was_not_modified_is_told_of_and_nothing_is_materialized(
    cached, tmp_path, instance
):
    run_job(cached, tmp_path, instance)
    (stage,) = stages(cached)

    again = run_job(cached, tmp_path, instance)

    (event,) = again.get_asset_observation_events()
    seen = event.asset_observation_data.asset_observation.metadata
    assert again.success
    assert stages(cached) == [stage]
    assert again.get_asset_materialization_events() == []
    assert seen["datasource_governance/stage_id"].value == stage.id
    assert seen["datasource_governance/not_modified"].value


@pytest.mark.parametrize(("text", "force"), [(OTHER, False), (GOOD, True)])
def test_an_origin_that_changed_or_is_forced_makes_another_stage(
    cached, tmp_path, instance, text, force
):
    run_job(cached, tmp_path, instance)
    says(tmp_path, text)

    again = run_job(cached, tmp_path, instance, force=force)

    assert len(again.get_asset_materialization_events()) == 1
    assert len(stages(cached)) == 2


def test_an_origin_that_cannot_be_read_fails_the_run_and_writes_nothing(cached, tmp_path, instance):
    says(tmp_path, f"id,amount,note\n{BAIT}\n")
    before = cached.count_rows()

    run = run_job(cached, tmp_path, instance)

    assert not run.success
    assert code_of(run) == "unreadable_source"
    assert cached.count_rows() == before
    assert BAIT not in repr(instance.all_logs(run.run_id))


def test_whoever_is_attested_to_have_launched_it_is_the_creator(cached, tmp_path, instance):
    config = refresh_run_config("orders", "", force=False)
    launch = RunLaunch(
        run_id="5b0f0a63-9d0a-4b0e-a5e0-0d8f0e4f3a10",
        job=JOB,
        assets=(),
        config_hash=run_config_hash(config),
    )
    cached.launch(cached.gateway(tmp_path / "webserver"), "creator", launch)

    run_job(cached, tmp_path, instance, run_id=launch.run_id)

    (stage,) = stages(cached)
    assert stage.creator == "creator"
