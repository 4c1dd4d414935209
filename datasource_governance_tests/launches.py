"""Launches of runs, as they would be attested."""

from dataclasses import replace

from datasource_governance.domain.launch import RETENTION_APPLY_JOB, RunLaunch, run_config_hash
from datasource_governance.orchestration.jobs import promotion_run_config, stage_run_config


def stage_launch(datasource: str = "orders", run_id: str = "run-1", **changes) -> RunLaunch:
    """Return a launch of the stage job, as from its launchpad."""
    return replace(
        RunLaunch(
            run_id=run_id,
            job=f"stage_{datasource}",
            assets=(),
            config_hash=run_config_hash(stage_run_config(datasource, "delivery.csv", "")),
        ),
        **changes,
    )


def promotion_launch(
    stage: str, datasource: str = "orders", run_id: str = "run-2", **changes
) -> RunLaunch:
    """Return a launch of the promotion job of a stage."""
    return replace(
        RunLaunch(
            run_id=run_id,
            job=f"promote_{datasource}",
            assets=(),
            config_hash=run_config_hash(promotion_run_config(datasource, stage)),
        ),
        **changes,
    )


def publication_launch(datasource: str = "orders", run_id: str = "run-3", **changes) -> RunLaunch:
    """Return a launch of the job that publishes an output."""
    return replace(
        RunLaunch(
            run_id=run_id,
            job=f"publish_{datasource}",
            assets=(),
            config_hash=run_config_hash({}),
        ),
        **changes,
    )


def retention_launch(run_id: str = "run-4", **changes) -> RunLaunch:
    """Return a launch of the job that applies a retention plan."""
    return replace(
        RunLaunch(
            run_id=run_id,
            job=RETENTION_APPLY_JOB,
            assets=(),
            config_hash=run_config_hash({}),
        ),
        **changes,
    )
