"""The contract monitor in Dagster: a sensor that asks if checks are due, a job that runs them.

Rhythms are kept in Postgres, not by Dagster: the sensor only sees to it that somebody runs what is
due. Toggled, late or run twice, it misses and doubles nothing.

Source: SPEC sections 14 and 15.
"""

from datetime import UTC, datetime, timedelta

import dagster as dg

from datasource_governance.composition import Application
from datasource_governance.domain.launch import CONTRACT_MONITOR_JOB
from datasource_governance.errors import GovernanceError
from datasource_governance.orchestration.assets import GOVERNANCE
from datasource_governance.orchestration.contract_checks import show_check
from datasource_governance.orchestration.metadata import counted
from datasource_governance.orchestration.refusals import business_refusals
from datasource_governance.orchestration.sensors import skipped
from datasource_governance.services.watching import is_due

CONTRACT_MONITOR = "contract_monitor"
INTERVAL_SECONDS = 30
MAXIMUM_RUNS = 4
"""So many runs are at it at once, where slow checks keep others waiting."""
PATIENCE = timedelta(minutes=2)
"""How long a run is left alone with what is due before another one helps."""
_TAKEN_FOR_DEAD = timedelta(hours=1)


@dg.op(
    name="run_due_checks",
    required_resource_keys={GOVERNANCE},
    tags={"dagster/max_retries": "0"},
    description="Runs the checks of contracts that are due, and keeps what they find.",
)
def _run_due(context: dg.OpExecutionContext) -> None:
    from datasource_governance.monitoring.monitor import Monitor

    application: Application = context.resources.governance
    monitor, count = Monitor(application=application, run_id=context.run_id), 0
    with business_refusals():
        for check in monitor.run_due():
            show_check(context.instance, application, check)
            count += 1
            context.log.info(
                "%s of contract %s: %s", check.kind, check.contract, check.severity or "it holds"
            )
    context.log.info("ran %s", counted(count, "check"))


@dg.job(
    name=CONTRACT_MONITOR_JOB,
    executor_def=dg.in_process_executor,
    description="Runs the checks of contracts that are due: the sensor launches it.",
)
def contract_monitor_job() -> None:
    """Run what is due."""
    _run_due()


@dg.sensor(
    name=CONTRACT_MONITOR,
    job_name=CONTRACT_MONITOR_JOB,
    minimum_interval_seconds=INTERVAL_SECONDS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    required_resource_keys={GOVERNANCE},
    description="Sees to it that somebody runs the checks of contracts that are due.",
)
def contract_monitor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
    """Launch a run where checks are due and nobody, or nobody fast enough, is at them."""
    application: Application = context.resources.governance
    try:
        if not is_due(application.work()):
            return skipped("no check is due")
    except GovernanceError as error:
        return skipped(str(error))
    # Dagster's own clock: it only spaces runs out and decides nothing.
    now = datetime.now(UTC)  # noqa: TID251
    records = context.instance.get_run_records(
        dg.RunsFilter(
            job_name=CONTRACT_MONITOR_JOB,
            statuses=[
                dg.DagsterRunStatus.QUEUED,
                dg.DagsterRunStatus.NOT_STARTED,
                dg.DagsterRunStatus.STARTING,
                dg.DagsterRunStatus.STARTED,
            ],
            created_after=now - _TAKEN_FOR_DEAD,
        ),
        limit=MAXIMUM_RUNS,
    )
    if len(records) >= MAXIMUM_RUNS or any(
        now - record.create_timestamp.replace(tzinfo=UTC) < PATIENCE for record in records
    ):
        return skipped("a run is at the checks that are due")
    return dg.SensorResult(run_requests=[dg.RunRequest()])
