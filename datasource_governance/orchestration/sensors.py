"""The approval-quorum sensor: it does the waiting, the promotion transaction does the deciding.

It asks for state, not for news: every tick looks for open stages that need nobody any more. It
keeps no cursor, so nobody can move one; a failed run is tried again under a new key, later each
time.

Source: SPEC section 15; facts on sensors and run keys.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import dagster as dg

from datasource_governance.composition import Application
from datasource_governance.errors import GovernanceError
from datasource_governance.orchestration.assets import GOVERNANCE
from datasource_governance.orchestration.jobs import (
    promotion_job_name,
    promotion_run_config,
)
from datasource_governance.services.promotion import promotable_stages

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import (  # noqa: TID251 - as in jobs.py
        UnresolvedAssetJobDefinition,
    )

STAGE_TAG = "datasource_governance/stage"
INTERVAL_SECONDS = 5
_FIRST_PAUSE_SECONDS = 10
_LONGEST_PAUSE_SECONDS = 600


def approval_quorum_sensor(
    jobs: "Mapping[str, UnresolvedAssetJobDefinition]",
) -> dg.SensorDefinition:
    """Return the sensor that launches the promotion of every stage whose quorum holds.

    `jobs` are the promotion jobs by datasource.
    """

    @dg.sensor(
        name="approval_quorum",
        jobs=list(jobs.values()),
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        required_resource_keys={GOVERNANCE},
        description="Promotes what a quorum approved. Promotion checks everything again.",
    )
    def approval_quorum(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        application: Application = context.resources.governance
        try:
            requests = [
                request
                for datasource in jobs
                for stage in promotable_stages(application.work(), datasource)
                if (request := _request(context.instance, datasource, stage.id)) is not None
            ]
        except GovernanceError as error:
            return dg.SensorResult(skip_reason=dg.SkipReason(str(error)))
        if not requests:
            return dg.SensorResult(skip_reason=dg.SkipReason("no stage has a quorum that holds"))
        return dg.SensorResult(run_requests=requests)

    return approval_quorum


def _request(instance: dg.DagsterInstance, datasource: str, stage_id: str) -> dg.RunRequest | None:
    """Return a request unless a run is under way or the last one failed just now."""
    job = promotion_job_name(datasource)
    records = instance.get_run_records(
        dg.RunsFilter(job_name=job, tags={STAGE_TAG: stage_id}), limit=100
    )
    if any(not record.dagster_run.is_finished for record in records):
        return None
    attempt = len(records)
    ended = max((record.end_time or 0.0 for record in records), default=0.0)
    pause = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2 ** max(0, attempt - 1))
    # Dagster's own clock on both sides: it only spaces the attempts out and decides nothing.
    if attempt and datetime.now(UTC).timestamp() - ended < pause:  # noqa: TID251
        return None
    return dg.RunRequest(
        run_key=f"promote:{stage_id}:{attempt}",
        job_name=job,
        run_config=promotion_run_config(datasource, stage_id),
        tags={STAGE_TAG: stage_id},
    )
