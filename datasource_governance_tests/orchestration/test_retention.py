"""Plans are made by a schedule and shown; only a person who launched the run applies one."""

import uuid

import dagster as dg
import pytest

from datasource_governance.domain.actor import SYSTEM
from datasource_governance.domain.launch import (
    RETENTION_APPLY_JOB,
    RETENTION_PLAN_JOB,
    run_config_hash,
)
from datasource_governance.domain.stage import StageState
from datasource_governance.orchestration import plan_metadata
from datasource_governance.orchestration.metadata import NEXT_STEP, POLICIES, ROWS
from datasource_governance.orchestration.reconciliation import RECONCILIATION
from datasource_governance.orchestration.registry import governed_definitions
from datasource_governance.orchestration.retention import APPLY_OP, RETENTION_PLAN
from datasource_governance_tests.contents import contents
from datasource_governance_tests.launches import retention_launch
from datasource_governance_tests.orchestration.governed import (
    POLICY,
    code_of,
    declaration,
    failure_of,
)
from datasource_governance_tests.orchestration.ticking import Daemon
from datasource_governance_tests.retiring import (
    KEEPER,
    THIRTY_DAYS,
    admit_keeper,
    declare_kept,
    hold,
    stage_at,
)

SCHEDULES = ("evidence_checkpoint", "retention_plan")
TICKS = 1000


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def overdue(own_corner, shared_world):
    """A datasource with one stage that was due years ago, in a world with who may apply."""
    declare_kept(own_corner)
    stage_at(own_corner)
    own_corner.release_clock()
    return own_corner


@pytest.fixture(scope="module")
def shared_world_with_keeper(shared_world):
    admit_keeper(shared_world)


@pytest.fixture(autouse=True)
def keeper(request):
    """Let the keeper be known wherever there is a world."""
    if "overdue" in request.fixturenames:
        request.getfixturevalue("shared_world_with_keeper")


def defined(world):
    return governed_definitions([declared()], world.application)


def declared(retention=THIRTY_DAYS):
    governance = {"quality_policy": POLICY}
    kept = {} if retention is None else {"retention_policy": retention}
    return declaration(governance={**governance, **kept})


def run_of(world, name, instance, **arguments):
    job = defined(world).resolve_job_def(name)
    return job.execute_in_process(instance=instance, raise_on_error=False, **arguments)


def plan_run(world, instance, run_id=None):
    return run_of(world, RETENTION_PLAN_JOB, instance, run_id=run_id)


def planner_of(world, run):
    """Return who made the plan of a run, as it is kept."""
    with world.application.work() as work:
        return work.retention.plan(planned(run)[plan_metadata.PLAN]).planned_by


def config_of(plan, **targets):
    return {"ops": {APPLY_OP: {"config": {"plan_hash": plan, **targets}}}}


def apply_run(world, instance, config, run_id=None):
    return run_of(world, RETENTION_APPLY_JOB, instance, run_config=config, run_id=run_id)


def launched(world, directory, config, actor=KEEPER, **changes):
    """Return the id of a run that an actor is attested to launch."""
    facts = {"run_id": unique_run(), "config_hash": run_config_hash(config), **changes}
    return world.launch(world.gateway(directory), actor, retention_launch(**facts)).run_id


def unique_run():
    return str(uuid.uuid4())


def planned(run):
    assert run.success
    (event,) = run.get_asset_materialization_events()
    assert event.asset_key == RETENTION_PLAN
    return {
        key: [record.data for record in one.records] if hasattr(one, "records") else one.value
        for key, one in event.materialization.metadata.items()
    }


def targets_in(shown, world):
    """Return the targets of a world's datasource in the table of a plan."""
    return [one for one in shown[plan_metadata.TARGETS] if one["datasource"] == world.datasource]


@pytest.mark.parametrize(
    ("retention", "status"), [(None, "STOPPED"), (THIRTY_DAYS, "RUNNING"), ({}, "RUNNING")]
)
def test_the_schedule_runs_where_a_retention_policy_is_declared(retention, status):
    defs = governed_definitions([declared(retention)])

    schedule = defs.resolve_schedule_def("retention_plan")

    assert schedule.default_status.value == status
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 5 * * *", "UTC")


def test_no_sensor_and_no_schedule_can_launch_what_applies():
    defs = governed_definitions([declared()])

    launches = {target.job_name for one in defs.sensors for target in one.targets}
    launches |= {defs.resolve_schedule_def(name).job_name for name in SCHEDULES}

    assert {one.name for one in defs.schedules} == set(SCHEDULES)
    assert RETENTION_APPLY_JOB in {job.name for job in defs.resolve_all_job_defs()}
    assert RETENTION_APPLY_JOB not in launches
    assert "retention_plan" in launches


def test_what_applies_is_no_asset_so_nothing_that_runs_assets_can_run_it():
    defs = governed_definitions([declared()])

    graph = defs.resolve_asset_graph()

    assert RETENTION_APPLY_JOB not in {key.path[-1] for key in graph.get_all_asset_keys()}


@pytest.mark.postgres
@pytest.mark.slow
def test_a_plan_is_shown_with_what_is_due(overdue, instance):
    shown = planned(plan_run(overdue, instance))

    (target,) = targets_in(shown, overdue)
    assert (target["what"], target["class"], target["action"]) == ("stage", "stage", "delete")
    assert target["kept by"] == ""
    assert shown[plan_metadata.DUE] >= 1
    assert min(shown[ROWS], shown[plan_metadata.BYTES]) >= 1
    assert shown[plan_metadata.PLAN][:12] in shown[NEXT_STEP]
    assert overdue.datasource in {one["datasource"] for one in shown[POLICIES]}


@pytest.mark.postgres
@pytest.mark.slow
def test_what_keeps_a_target_is_shown_with_its_reason(overdue, instance):
    placed = hold(overdue)

    shown = planned(plan_run(overdue, instance))

    (target,) = targets_in(shown, overdue)
    assert target["kept by"] == "legal_hold"
    assert shown[plan_metadata.BLOCKED] >= 1
    (blocker,) = [one for one in shown[plan_metadata.BLOCKERS] if one["id"] == target["id"]]
    assert placed.id in blocker["why"]


@pytest.mark.postgres
@pytest.mark.slow
def test_a_plan_is_of_the_operator_who_is_proved_to_have_launched_its_run(
    overdue, instance, tmp_path
):
    run_id = launched(overdue, tmp_path, {}, actor="operator", job=RETENTION_PLAN_JOB)

    by_operator = plan_run(overdue, instance, run_id)
    by_nobody = plan_run(overdue, instance)

    assert planner_of(overdue, by_operator) == "operator"
    assert planner_of(overdue, by_nobody) == SYSTEM


@pytest.mark.postgres
@pytest.mark.slow
def test_whoever_is_proved_to_have_launched_another_run_does_not_make_the_plan(
    overdue, instance, tmp_path
):
    run_id = launched(overdue, tmp_path, {}, actor="operator", job=RETENTION_APPLY_JOB)

    assert planner_of(overdue, plan_run(overdue, instance, run_id)) == SYSTEM


@pytest.mark.postgres
@pytest.mark.slow
def test_a_plan_of_somebody_who_may_make_none_is_refused(overdue, instance, tmp_path):
    run_id = launched(overdue, tmp_path, {}, actor="approver-1", job=RETENTION_PLAN_JOB)
    before = contents(overdue)

    assert code_of(plan_run(overdue, instance, run_id)) == "not_authorised"
    assert contents(overdue) == before


@pytest.mark.postgres
@pytest.mark.slow
def test_the_administrator_who_launched_the_run_applies_the_plan(overdue, instance, tmp_path):
    shown = planned(plan_run(overdue, instance))
    (target,) = targets_in(shown, overdue)
    config = config_of(shown[plan_metadata.PLAN], targets=[target["id"]])
    run_id = launched(overdue, tmp_path, config)

    applied = apply_run(overdue, instance, config, run_id)

    assert applied.success
    with overdue.application.work() as work:
        application = work.retention.application(shown[plan_metadata.PLAN])
        assert (application.actor, application.run_id) == (KEEPER, run_id)
        assert work.stages.get(target["id"]).state is StageState.DELETED
    again = apply_run(overdue, instance, config)
    assert code_of(again) == "already_applied"


@pytest.mark.postgres
@pytest.mark.slow
def test_a_run_that_nobody_is_proved_to_have_launched_destroys_nothing(overdue, instance):
    shown = planned(plan_run(overdue, instance))
    before = contents(overdue)

    refused = apply_run(overdue, instance, config_of(shown[plan_metadata.PLAN]))

    assert code_of(refused) == "not_authorised"
    assert contents(overdue) == before


@pytest.mark.postgres
@pytest.mark.slow
def test_a_stale_plan_is_refused_with_what_changed(overdue, instance, tmp_path):
    shown = planned(plan_run(overdue, instance))
    hold(overdue)
    config = config_of(shown[plan_metadata.PLAN])
    run_id = launched(overdue, tmp_path, config)
    before = contents(overdue)

    refused = apply_run(overdue, instance, config, run_id)

    assert code_of(refused) == "plan_outdated"
    assert "make and review a new one" in failure_of(refused).user_failure_data.description
    assert contents(overdue) == before


@pytest.mark.postgres
@pytest.mark.slow
def test_a_thousand_ticks_of_every_sensor_and_schedule_destroy_nothing(overdue, instance):
    """All tick over overdue data, in turns; what they ask to launch is never run here.

    The reconciler, which reads Dagster's own events all the time, ticks in every tenth turn.
    """
    daemon = Daemon(overdue.application, declared(), instance)
    before = destroyed(overdue)

    with daemon.all_ticks() as ticks:
        others = {name: tick for name, tick in ticks.items() if name != RECONCILIATION}
        for turn in range(TICKS):
            for name, tick in (others if turn % 10 else ticks).items():
                assert {request.job_name or name for request in tick()} <= set(SCHEDULES)

    assert {RECONCILIATION, *SCHEDULES} < ticks.keys()
    assert destroyed(overdue) == before


def destroyed(world):
    tables = ("stage_payload", "materialization_payload", "disposition", "stage")
    return {name: digest for name, digest in contents(world).items() if name in tables}
