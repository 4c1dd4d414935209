"""The approval-quorum sensor: it does the waiting, the promotion transaction does the deciding.

It asks for state, not for news: every tick looks for open stages that need nobody any more. It
keeps no cursor, so nobody can move one; a failed run is tried again under a new key, later each
time.

Source: SPEC section 15; facts on sensors and run keys; threat T-05.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING

import dagster as dg

from datasource_governance.composition import Application
from datasource_governance.domain.evidence import datasource_chain
from datasource_governance.domain.launch import promotion_job_name
from datasource_governance.errors import GovernanceError
from datasource_governance.orchestration.assets import GOVERNANCE
from datasource_governance.orchestration.jobs import promotion_run_config
from datasource_governance.services.waiting import Overview, WaitingStages

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import (  # noqa: TID251 - as in jobs.py
        UnresolvedAssetJobDefinition,
    )

Promotions = Mapping[str, "UnresolvedAssetJobDefinition"]
"""The promotion jobs by datasource."""
STAGE_TAG = "datasource_governance/stage"
INTERVAL_SECONDS = 5
_FIRST_PAUSE_SECONDS = 10
_LONGEST_PAUSE_SECONDS = 600
_SECRET_DIGITS = 16


class Watch:
    """The memory of what waits that the sensors of a code location share.

    A code server evaluates sensors in threads, so it is looked at by one of them at a time.
    """

    def __init__(self) -> None:
        self._stages = WaitingStages()
        self._turn = Lock()

    def overview(self, application: Application) -> Overview:
        """Return what stands out now.

        Raises:
            GovernanceError: when Postgres cannot be asked.
        """
        with self._turn:
            return self._stages.overview(application.work())


def approval_quorum_sensor(jobs: Promotions, watch: Watch) -> dg.SensorDefinition:
    """Return the sensor that launches the promotion of every stage whose quorum holds."""

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
            overview = watch.overview(application)
            requests = [
                request
                for datasource in jobs
                for standing in overview.standings.get(datasource, ())
                if standing.complete_since is not None
                if (request := _request(context.instance, application, datasource, standing.stage))
            ]
        except GovernanceError as error:
            return skipped(str(error))
        if not requests:
            return skipped(_not_applied(jobs, overview) or "no stage has a quorum that holds")
        return dg.SensorResult(run_requests=requests)

    return approval_quorum


def skipped(why: str) -> dg.SensorResult:
    """Return the result of a tick that had nothing to do."""
    return dg.SensorResult(skip_reason=dg.SkipReason(why))


def _not_applied(declared: Collection[str], overview: Overview) -> str | None:
    """Say which declared datasources the database does not know, if any."""
    unknown = [repr(name) for name in declared if name not in overview.standings]
    return f"not applied yet: {', '.join(unknown)}; run: datasource apply" if unknown else None


def _request(
    instance: dg.DagsterInstance, application: Application, datasource: str, stage_id: str
) -> dg.RunRequest | None:
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
    secret = _secret(application, datasource, stage_id)
    if secret is None:
        return None
    return dg.RunRequest(
        run_key=f"promote:{stage_id}:{attempt}:{secret}",
        job_name=job,
        run_config=promotion_run_config(datasource, stage_id),
        tags={STAGE_TAG: stage_id},
    )


def _secret(application: Application, datasource: str, stage_id: str) -> str | None:
    """Return what makes a run key one that only who reads the evidence can foresee.

    Dagster never launches a key that a run has already, and anybody can give a run any tag. Without
    evidence about the stage there is none, and nothing that promotion would not refuse.
    """
    with application.work() as work:
        entries = work.evidence.segment(datasource_chain(datasource), stage_id)
    return entries[-1].entry_hash[:_SECRET_DIGITS] if entries else None
