"""The two assets of a datasource: `<datasource>/stage` and `<datasource>/current`.

Translate the run's configuration in, call one service, translate its answer out. Assets hand over
ids; no frame passes through Dagster's I/O.

Source: SPEC section 15.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from datasource_governance.composition import Application
from datasource_governance.domain.datasource import Datasource
from datasource_governance.domain.launch import RunLaunch
from datasource_governance.domain.materialization import provenance_of
from datasource_governance.orchestration.check_names import EVIDENCE
from datasource_governance.orchestration.checks import check_results, check_specs, evidence_result
from datasource_governance.orchestration.coordinator import launch_of
from datasource_governance.orchestration.metadata import (
    decision_pages,
    materialization_metadata,
    policy_metadata,
    stage_metadata,
    unmodified_metadata,
)
from datasource_governance.orchestration.refusals import business_refusals
from datasource_governance.services.promotion import PromotionRequest, promote_stage
from datasource_governance.services.refresh import Refreshed, RefreshRequest, refresh_stage
from datasource_governance.services.staging import StageRequest, create_stage

GOVERNANCE = "governance"
"""The resource that holds the `Application`."""
IO_MANAGER = "governed_io_manager"
_NO_RETRY = {"dagster/max_retries": "0"}


# Plain strings: the fields of a `dg.Config` take `{"env": NAME}`, which would read a secret of the
# worker into a run that everybody sees.
_ATTESTATION = dg.Field(
    str,
    default_value="",
    description="Id of a stored attestation that proves who creates the stage. Without one it is "
    "whoever signed in to launch the run; with neither, nobody can decide about the stage where "
    "duties are separated.",
)
STAGE_CONFIG = {
    "delivery": dg.Field(str, description="Name of a file in the delivery folder; never a path."),
    "attestation": _ATTESTATION,
}
REFRESH_CONFIG = {
    "force": dg.Field(
        bool,
        default_value=False,
        description="Read and stage the origin even if it says what it said before.",
    ),
    "attestation": _ATTESTATION,
}
PROMOTION_CONFIG = {"stage_id": dg.Field(str, description="Id of an approved stage.")}


@dataclass(frozen=True, slots=True)
class DatasourceAssets:
    """What Dagster shows of one datasource."""

    stage: dg.AssetsDefinition
    current: dg.AssetsDefinition
    evidence: dg.AssetChecksDefinition


def stage_key(datasource: str) -> dg.AssetKey:
    """Return the asset key of a datasource's stages."""
    return dg.AssetKey([datasource, "stage"])


def current_key(datasource: str) -> dg.AssetKey:
    """Return the asset key of what is in force; readers depend on this one only."""
    return dg.AssetKey([datasource, "current"])


def datasource_assets(
    declaration: Datasource, webserver: str, producers: Sequence[dg.AssetKey] = ()
) -> DatasourceAssets:
    """Return the assets and the evidence check of a declared datasource.

    `webserver` is the address of the governed webserver, to which links lead. `producers` are the
    assets that publish to the datasource.
    """
    return DatasourceAssets(
        stage=_stage_asset(declaration, webserver),
        current=_current_asset(declaration, producers),
        evidence=_evidence_check(declaration),
    )


def _stage_asset(declaration: Datasource, webserver: str) -> dg.AssetsDefinition:
    key = stage_key(declaration.id)
    declared = declaration.quality_policy
    bring = _deliver if declaration.origin is None else _refresh

    @dg.multi_asset(
        name=f"{declaration.id}__stage",
        specs=[
            dg.AssetSpec(
                key,
                skippable=True,
                group_name=declaration.id,
                description="Candidate deliveries: each materialization is one stage, validated "
                "and kept, whether it passed or not.",
                metadata={**policy_metadata(declaration), **decision_pages(webserver)},
                owners=declaration.owners,
                kinds=set(declaration.kinds),
                tags=dict(declaration.tags),
            )
        ],
        check_specs=check_specs(declaration, key),
        can_subset=True,
        config_schema=STAGE_CONFIG if declaration.origin is None else REFRESH_CONFIG,
        required_resource_keys={GOVERNANCE},
        op_tags=_NO_RETRY,
    )
    def stage(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        application: Application = context.resources.governance
        config: Mapping[str, Any] = context.op_execution_context.op_config
        with business_refusals():
            brought = bring(application, declaration, config, launch_of(context.run))
        found = brought.stage
        if brought.not_modified:
            context.log.info("not modified: stage %s has it already", found.id)
            context.log_event(dg.AssetObservation(key, metadata=unmodified_metadata(found)))
            return
        context.log.info("stage %s is %s", found.id, found.state)
        yield dg.MaterializeResult(
            asset_key=key,
            metadata=stage_metadata(found, application.settings.tenant, declared, webserver),
            data_version=dg.DataVersion(found.id),
            check_results=list(check_results(found, key, declared)),
        )

    return stage


def _deliver(
    application: Application,
    declaration: Datasource,
    config: Mapping[str, Any],
    launch: RunLaunch | None,
) -> Refreshed:
    payload, sha256 = application.read_delivery(declaration, config["delivery"])
    request = StageRequest(
        datasource=declaration.id,
        delivery=config["delivery"],
        file_sha256=sha256,
        attestation_id=config["attestation"] or None,
        launch=launch,
    )
    staged = create_stage(application.work(), application.evaluator(), payload, request)
    return Refreshed(stage=staged.stage)


def _refresh(
    application: Application,
    declaration: Datasource,
    config: Mapping[str, Any],
    launch: RunLaunch | None,
) -> Refreshed:
    request = RefreshRequest(
        datasource=declaration.id,
        origin=application.origin(declaration),
        attestation_id=config["attestation"] or None,
        launch=launch,
        force=config["force"],
    )
    return refresh_stage(application.work(), application.evaluator(), request)


def _current_asset(
    declaration: Datasource, producers: Sequence[dg.AssetKey]
) -> dg.AssetsDefinition:
    key = current_key(declaration.id)

    @dg.asset(
        key=key,
        deps=[stage_key(declaration.id), *producers],
        group_name=declaration.id,
        description=declaration.description or "What is in force: the last promoted stage.",
        metadata=policy_metadata(declaration),
        owners=declaration.owners,
        kinds=set(declaration.kinds),
        tags=dict(declaration.tags),
        io_manager_key=IO_MANAGER,
        config_schema=PROMOTION_CONFIG,
        required_resource_keys={GOVERNANCE},
        op_tags=_NO_RETRY,
    )
    def current(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        application: Application = context.resources.governance
        stage_id: str = context.op_execution_context.op_config["stage_id"]
        with business_refusals():
            request = PromotionRequest(stage=stage_id, launch=launch_of(context.run))
            promotion = promote_stage(application.work(), application.artifacts(), request)
        materialization = promotion.materialization
        context.log.info("materialization %s is current", materialization.id)
        return dg.MaterializeResult(
            asset_key=key,
            metadata=materialization_metadata(materialization, provenance_of(materialization)),
            data_version=dg.DataVersion(materialization.id),
        )

    return current


def _evidence_check(declaration: Datasource) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        name=EVIDENCE,
        asset=current_key(declaration.id),
        description="Verifies every chain and every governed row of the tenant in Postgres.",
        required_resource_keys={GOVERNANCE},
    )
    def evidence(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        application: Application = context.resources.governance
        with business_refusals():
            verification = application.verify_evidence()
        return evidence_result(verification)

    return evidence
