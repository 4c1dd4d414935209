"""The jobs that a person finds in the launchpad: stage, refresh, promote, publish.

Source: SPEC section 15.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import dagster as dg

from datasource_governance.domain.launch import (
    promotion_job_name,
    publication_job_name,
    refresh_job_name,
    stage_job_name,
)
from datasource_governance.orchestration.assets import current_key, stage_key
from datasource_governance.orchestration.check_names import EVIDENCE

if TYPE_CHECKING:
    # The type of what `define_asset_job` returns; Dagster exports no name for it.
    from dagster._core.definitions.unresolved_asset_job_definition import (  # noqa: TID251
        UnresolvedAssetJobDefinition,
    )


def stage_job(datasource: str) -> "UnresolvedAssetJobDefinition":
    """Return the job that stages one delivery of a datasource."""
    return dg.define_asset_job(
        stage_job_name(datasource),
        selection=dg.AssetSelection.assets(stage_key(datasource)),
        description=f"Validate one delivery of `{datasource}` and keep it as a stage.",
    )


def refresh_job(datasource: str) -> "UnresolvedAssetJobDefinition":
    """Return the job that reads the origin of a datasource into a stage."""
    return dg.define_asset_job(
        refresh_job_name(datasource),
        selection=dg.AssetSelection.assets(stage_key(datasource)),
        description=f"Read the origin of `{datasource}` and keep what it says as a stage.",
    )


def promotion_job(datasource: str) -> "UnresolvedAssetJobDefinition":
    """Return the job that makes an approved stage current and verifies the evidence.

    The checks of contracts are left to the monitor, for which they are due then.
    """
    current = current_key(datasource)
    evidence = dg.AssetCheckKey(current, EVIDENCE)
    return dg.define_asset_job(
        promotion_job_name(datasource),
        selection=dg.AssetSelection.assets(current).without_checks()
        | dg.AssetSelection.checks(evidence),
        description=f"Make an approved stage of `{datasource}` the current materialization.",
    )


def publication_job(
    datasource: str, producers: Sequence[dg.AssetsDefinition]
) -> "UnresolvedAssetJobDefinition":
    """Return the job that runs the assets that publish to a datasource.

    Whoever launches it through the governed webserver is behind what it publishes.
    """
    return dg.define_asset_job(
        publication_job_name(datasource),
        selection=dg.AssetSelection.assets(*producers),
        description=f"Run what publishes to `{datasource}`; the output passes the gate first.",
    )


def stage_run_config(datasource: str, delivery: str, attestation_id: str) -> dict[str, object]:
    """Return the run configuration of the stage job."""
    config = {"delivery": delivery, "attestation": attestation_id}
    return {"ops": {f"{datasource}__stage": {"config": config}}}


def refresh_run_config(datasource: str, attestation_id: str, *, force: bool) -> dict[str, object]:
    """Return the run configuration of the job that reads an origin."""
    config = {"attestation": attestation_id, "force": force}
    return {"ops": {f"{datasource}__stage": {"config": config}}}


def promotion_run_config(datasource: str, stage_id: str) -> dict[str, object]:
    """Return the run configuration of the promotion job."""
    return {"ops": {f"{datasource}__current": {"config": {"stage_id": stage_id}}}}
