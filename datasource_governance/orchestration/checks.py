"""Policies to asset check specs, stored validations and verifications to asset check results.

Source: SPEC section 15 ("stage", "publication").
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import dagster as dg

from datasource_governance.domain.appraisal import stored_score
from datasource_governance.domain.canonical import Json
from datasource_governance.domain.datasource import Datasource
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.domain.schema_diff import Classification
from datasource_governance.domain.stage import Stage
from datasource_governance.orchestration import metadata
from datasource_governance.orchestration.check_names import QUALITY_POLICY, SCHEMA_CLASSIFICATION
from datasource_governance.orchestration.rule_checks import (
    rule_check_results,
    rule_check_specs,
    rules_result,
)

if TYPE_CHECKING:
    from datasource_governance.persistence.verification import Verification


def check_specs(declaration: Datasource, key: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    """Return the specs of the declared rules and the two fixed ones."""
    return policy_check_specs(declaration.quality_policy, key)


def policy_check_specs(
    declared: QualityPolicy | None,
    key: dg.AssetKey,
    partitions_def: dg.PartitionsDefinition[Any] | None = None,
) -> list[dg.AssetCheckSpec]:
    """Return the specs of a policy's rules and the two fixed ones, for each partition if any."""
    fixed = [
        dg.AssetCheckSpec(
            QUALITY_POLICY,
            asset=key,
            blocking=True,
            description="All rules of the policy in force, also those not declared here.",
            partitions_def=partitions_def,
        ),
        dg.AssetCheckSpec(
            SCHEMA_CLASSIFICATION,
            asset=key,
            blocking=True,
            description="The schema, compared with the current materialization's.",
            partitions_def=partitions_def,
        ),
    ]
    rules = declared.rules if declared else ()
    return rule_check_specs(rules, key, partitions_def) + fixed


def check_results(
    stage: Stage, key: dg.AssetKey, declared: QualityPolicy | None
) -> Iterator[dg.AssetCheckResult]:
    """Yield the results of the declared rules and of the fixed checks of a stage."""
    yield from validation_results(metadata.validation_of(stage), key, declared)


def validation_results(
    validation: Mapping[str, Json], key: dg.AssetKey, declared: QualityPolicy | None
) -> Iterator[dg.AssetCheckResult]:
    """Yield the results of the declared rules and of the fixed checks from a stored validation.

    Rules that are not declared, because the database holds another policy, appear in the aggregate
    check only.
    """
    rules = metadata.rules_of(validation)
    policy_hash, score = metadata.policy_hash_of(validation), stored_score(validation)
    yield from rule_check_results(rules, declared.rules if declared else (), key)
    yield rules_result(
        rules,
        QUALITY_POLICY,
        key,
        conclusion=f"; outcome: {validation['outcome']}",
        beside={
            metadata.OUTCOME: str(validation["outcome"]),
            **metadata.score_metadata(validation),
            metadata.POLICY_DRIFT: metadata.policy_drift(policy_hash, declared),
            f"{metadata.NAMESPACE}/quality_policy_hash": policy_hash,
        },
        blocked=score is not None and score.is_blocking,
    )
    yield _schema_result(validation["schema_diff"], key)


def _schema_result(diff: Json, key: dg.AssetKey) -> dg.AssetCheckResult:
    classification = str(diff["classification"]) if isinstance(diff, dict) else "first"
    is_breaking = classification == Classification.BREAKING
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=SCHEMA_CLASSIFICATION,
        passed=classification not in (Classification.BREAKING, Classification.WARNING),
        severity=dg.AssetCheckSeverity.ERROR if is_breaking else dg.AssetCheckSeverity.WARN,
        description=f"classification: {classification}",
        metadata={
            metadata.CLASSIFICATION: classification,
            metadata.SCHEMA_DIFF: metadata.change_table(diff),
        },
    )


def evaluation_of(
    result: dg.AssetCheckResult,
    key: dg.AssetKey,
    *,
    blocking: bool | None = None,
    partition: str | None = None,
) -> dg.AssetCheckEvaluation:
    """Return a result about an asset as Dagster keeps it, without any materialization."""
    return dg.AssetCheckEvaluation(
        asset_key=key,
        check_name=str(result.check_name),
        passed=result.passed,
        metadata=result.metadata,
        severity=result.severity,
        description=result.description,
        blocking=blocking,
        partition=partition,
    )


def evidence_result(verification: "Verification") -> dg.AssetCheckResult:
    """Return the result of verifying the tenant's evidence; every break is listed."""
    counts = {metadata.ENTRIES: verification.entries, metadata.ROWS: verification.rows}
    if verification.holds:
        return dg.AssetCheckResult(passed=True, description="The evidence holds.", metadata=counts)
    places = metadata.counted(len(verification.breaks), "place")
    return dg.AssetCheckResult(
        passed=False,
        description=f"The evidence is broken in {places}.",
        metadata={**counts, metadata.BREAKS: metadata.break_table(verification.breaks)},
    )
