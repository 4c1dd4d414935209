"""The checkpoint schedule: runs where a place is configured, and writes what verification takes."""

from dataclasses import replace

import dagster as dg
import pytest

from datasource_governance.composition import Application, read_settings
from datasource_governance.domain.actor import Role
from datasource_governance.domain.checkpoint import KeptCheckpoints
from datasource_governance.orchestration.registry import governed_definitions
from datasource_governance_tests.orchestration.governed import code_of, declaration

NAME = "evidence_checkpoint"


def application_with(place: str | None) -> Application:
    return Application(replace(read_settings({}), checkpoints=place))


def run(application: Application, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    job = governed_definitions([declaration()], application).resolve_job_def(NAME)
    return job.execute_in_process(instance=instance, raise_on_error=False)


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.mark.parametrize(("place", "status"), [(None, "STOPPED"), ("kept", "RUNNING")])
def test_it_runs_by_itself_where_a_place_is_configured(place, status):
    defs = governed_definitions([], application_with(place))

    schedule = defs.resolve_schedule_def(NAME)

    dg.Definitions.validate_loadable(defs)
    assert schedule.default_status.value == status
    assert schedule.cron_schedule == "*/15 * * * *"


def test_a_tick_asks_for_one_run_of_its_job(instance):
    schedule = governed_definitions([], application_with("kept")).resolve_schedule_def(NAME)

    with dg.build_schedule_context(instance=instance) as context:
        (request,) = schedule.evaluate_tick(context).run_requests

    assert schedule.job_name == NAME
    assert request.run_config == {}


@pytest.mark.postgres
@pytest.mark.slow
def test_each_run_keeps_one_checkpoint(world, instance, tmp_path):
    world.admit("checkpointer", Role.VIEWER)
    settings = replace(world.application.settings, checkpoints=str(tmp_path / "kept"))
    application = Application(settings)

    for _ in range(2):
        assert run(application, instance).success

    kept = KeptCheckpoints(files=application.checkpoint_files().read())
    verification = application.verify_evidence(kept=kept)
    application.close()
    assert verification.holds
    assert (verification.checkpoints, verification.recorded) == (2, 2)


@pytest.mark.postgres
@pytest.mark.slow
def test_a_run_without_authority_fails_with_the_reason_and_keeps_nothing(world, instance, tmp_path):
    world.admit("checkpointer")
    settings = replace(world.application.settings, checkpoints=str(tmp_path / "kept"))
    application = Application(settings)

    failed = run(application, instance)

    application.close()
    assert code_of(failed) == "not_authorised"
    assert not (tmp_path / "kept").exists()
