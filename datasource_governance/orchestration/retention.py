"""What Dagster does about retention: it plans on a schedule, and applies only for a person.

The plan is an asset, `governance/retention_plan`, each plan a materialization of it. Applying is a
job that no sensor and no schedule launches, and an asset of nothing.

Source: SPEC sections 12 and 15 ("retention plan").
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

from datasource_governance.composition import Application
from datasource_governance.domain.actor import SYSTEM
from datasource_governance.domain.datasource import Datasource
from datasource_governance.domain.disposition import Applied
from datasource_governance.domain.launch import (
    RETENTION_APPLY_JOB,
    RETENTION_PLAN_ASSET,
    RETENTION_PLAN_JOB,
)
from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.orchestration.assets import GOVERNANCE
from datasource_governance.orchestration.coordinator import launch_of
from datasource_governance.orchestration.metadata import counted
from datasource_governance.orchestration.plan_metadata import applied_metadata, plan_metadata
from datasource_governance.orchestration.refusals import business_refusals
from datasource_governance.services.retention import (
    ApplyRequest,
    PlanRequest,
    apply_retention,
    plan_retention,
)

if TYPE_CHECKING:
    # The type of what `define_asset_job` returns; Dagster exports no name for it.
    from dagster._core.definitions.unresolved_asset_job_definition import (  # noqa: TID251
        UnresolvedAssetJobDefinition,
    )

EVERY_MORNING = "0 5 * * *"
RETENTION_PLAN = dg.AssetKey(RETENTION_PLAN_ASSET.split("/"))
APPLY_OP = "apply_plan"
"""The one op of the job that applies a plan; a job and an op may not share a name."""
# Plain types: the fields of a `dg.Config` take `{"env": NAME}`.
APPLY_CONFIG = {
    "plan_hash": dg.Field(str, description="Hash of the plan that was reviewed, all of it."),
    "targets": dg.Field(
        [str],
        is_required=False,
        description="Ids of stages and materializations; without it, all that nothing blocks.",
    ),
}


@dg.asset(
    key=RETENTION_PLAN,
    group_name="governance",
    description="What policy makes due, and what keeps it. Nothing is destroyed by planning; an "
    f"administrator launches `{RETENTION_APPLY_JOB}` with the hash of a plan that was reviewed.",
    required_resource_keys={GOVERNANCE},
)
def _retention_plan(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
    application: Application = context.resources.governance
    with business_refusals():
        request = PlanRequest(actor=SYSTEM, launch=launch_of(context.run))
        plan = plan_retention(application.work(), request)
    return dg.MaterializeResult(
        metadata=plan_metadata(plan), data_version=dg.DataVersion(plan.hash)
    )


@dg.op(
    name=APPLY_OP,
    config_schema=APPLY_CONFIG,
    required_resource_keys={GOVERNANCE},
    tags={"dagster/max_retries": "0"},
    description="Destroys targets of an unchanged plan, for the administrator who launched it.",
)
def _apply(context: dg.OpExecutionContext) -> None:
    application: Application = context.resources.governance
    config: Mapping[str, Any] = context.op_config
    request = ApplyRequest(
        plan=config["plan_hash"],
        targets=config.get("targets"),
        launch=launch_of(context.run),
    )
    with business_refusals():
        applied = apply_retention(application.work(), application.artifacts(), request)
        destroyed = counted(len(applied.targets), "target")
        context.log.info("destroyed %s of plan %s", destroyed, request.plan)
        context.add_output_metadata(applied_metadata(applied))
        _check_finished(applied)


def _check_finished(applied: Applied) -> None:
    """Tell of objects that their store did not delete.

    Raises:
        ServiceUnavailableError: code `purge_unfinished`, naming all of them.
    """
    if applied.unfinished:
        told = "; ".join(f"{one}: {why}" for one, why in applied.unfinished)
        raise ServiceUnavailableError(
            f"the plan is applied, but objects of artifacts are still there: {told}; launch it "
            "again to delete them",
            code="purge_unfinished",
        )


@dg.job(
    name=RETENTION_APPLY_JOB,
    executor_def=dg.in_process_executor,
    description="Destroys what an unchanged retention plan says. Only a person launches it.",
)
def apply_retention_plan() -> None:
    """Apply one plan."""
    _apply()


def retention_definitions(
    declarations: Sequence[Datasource], *, cron: str = EVERY_MORNING
) -> dg.Definitions:
    """Return the plan with its job and schedule, and the job that applies one.

    The schedule runs where any declared datasource has a retention policy.
    """
    job = _plan_job()
    due = any(declaration.retention_policy for declaration in declarations)
    running, stopped = dg.DefaultScheduleStatus.RUNNING, dg.DefaultScheduleStatus.STOPPED
    schedule = dg.ScheduleDefinition(
        name=RETENTION_PLAN_JOB,
        job=job,
        cron_schedule=cron,
        execution_timezone="UTC",
        default_status=running if due else stopped,
        description="Makes a retention plan every morning. It destroys nothing.",
    )
    return dg.Definitions(
        assets=[_retention_plan], jobs=[job, apply_retention_plan], schedules=[schedule]
    )


def _plan_job() -> "UnresolvedAssetJobDefinition":
    return dg.define_asset_job(
        RETENTION_PLAN_JOB,
        selection=dg.AssetSelection.assets(RETENTION_PLAN),
        description="Lists what policy makes due, with everything that keeps it.",
    )
