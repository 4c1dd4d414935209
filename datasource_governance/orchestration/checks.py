"""Policy rules to asset check specs, stored validations to asset check results.

Source: SPEC section 15 ("stage").
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import dagster as dg

from datasource_governance.domain.canonical import Json, load_canonical
from datasource_governance.domain.datasource import Datasource
from datasource_governance.domain.quality_policy import QualityPolicy, Severity
from datasource_governance.domain.schema_diff import Classification
from datasource_governance.domain.stage import Stage
from datasource_governance.domain.validation import Outcome, Status
from datasource_governance.orchestration import metadata
from datasource_governance.orchestration.check_names import (
    QUALITY_POLICY,
    SCHEMA_CLASSIFICATION,
    check_names,
)

if TYPE_CHECKING:
    from datasource_governance.persistence.verification import Verification


def check_specs(declaration: Datasource, key: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    """Return one spec per declared rule and the two fixed ones; error rules are blocking."""
    rules = declaration.quality_policy.rules if declaration.quality_policy else ()
    names = check_names([rule.id for rule in rules])
    per_rule = [
        dg.AssetCheckSpec(
            names[rule.id],
            asset=key,
            blocking=rule.severity is Severity.ERROR,
            description=f"Rule `{rule.id}` ({rule.type}) of the quality policy.",
            metadata={metadata.RULE_ID: rule.id},
        )
        for rule in rules
    ]
    fixed = [
        dg.AssetCheckSpec(
            QUALITY_POLICY,
            asset=key,
            blocking=True,
            description="All rules of the policy in force, also those not declared here.",
        ),
        dg.AssetCheckSpec(
            SCHEMA_CLASSIFICATION,
            asset=key,
            blocking=True,
            description="The schema, compared with the current materialization's.",
        ),
    ]
    return per_rule + fixed


def check_results(
    stage: Stage, key: dg.AssetKey, declared: QualityPolicy | None
) -> Iterator[dg.AssetCheckResult]:
    """Yield the results of the declared rules and of the fixed checks from a stored validation.

    Rules that are not declared, because the database holds another policy, appear in the aggregate
    check only.
    """
    validation = load_canonical(stage.validation)
    if not isinstance(validation, dict) or not isinstance(validation["rules"], list):
        raise TypeError("a stored validation is a JSON object with rules")
    names = check_names([rule.id for rule in declared.rules] if declared else [])
    for rule in validation["rules"]:
        if isinstance(rule, dict) and rule["id"] in names:
            yield _rule_result(rule, names[str(rule["id"])], key)
    yield _policy_result(stage, validation, key, drift=metadata.policy_drift(stage, declared))
    yield _schema_result(validation["schema_diff"], key)


def _rule_result(rule: dict[str, Json], name: str, key: dg.AssetKey) -> dg.AssetCheckResult:
    found: dict[str, str | int] = {
        metadata.RULE_ID: str(rule["id"]),
        metadata.STATUS: str(rule["status"]),
        metadata.FIELDS: metadata.names(rule["fields"]),
    }
    if rule["reason"] is not None:
        found[metadata.REASON] = str(rule["reason"])
    affected = rule["affected"]
    if isinstance(affected, int):
        found[metadata.AFFECTED_ROWS] = affected
        found[metadata.ROW_NUMBERS] = _row_numbers(rule)
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=name,
        passed=rule["status"] == Status.PASSED,
        severity=_severity(warning=rule["severity"] == Severity.WARNING),
        description=_finding(rule),
        metadata=found,
    )


def _finding(rule: dict[str, Json]) -> str:
    """Say in a sentence what a rule found."""
    if rule["status"] == Status.ERROR:
        return "The rule could not be evaluated, which never counts as passed."
    if rule["status"] == Status.PASSED:
        return "The rule holds."
    affected = rule["affected"]
    rows = f" in {_count(affected, 'row')}" if isinstance(affected, int) else ""
    return f"The rule does not hold: `{rule['reason']}`{rows}."


def _row_numbers(rule: dict[str, Json]) -> str:
    """Return the recorded one-based row numbers; nothing where rows have no order."""
    if rule["rows"] is None:
        return ""
    return metadata.names(rule["rows"]) + (", …" if rule["truncated"] else "")


def _policy_result(
    stage: Stage, validation: dict[str, Json], key: dg.AssetKey, *, drift: bool
) -> dg.AssetCheckResult:
    rules = [rule for rule in _rules(validation) if rule["status"] != Status.PASSED]
    errors = [rule for rule in rules if rule["severity"] == Severity.ERROR]
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=QUALITY_POLICY,
        passed=not rules,
        severity=_severity(warning=not errors),
        description=_summary(stage.outcome, len(rules), len(_rules(validation))),
        metadata={
            metadata.RULES: metadata.rule_table(_rules(validation)),
            metadata.OUTCOME: str(stage.outcome),
            metadata.FAILED_RULES: len(rules),
            metadata.POLICY_DRIFT: drift,
            f"{metadata.NAMESPACE}/quality_policy_hash": stage.quality_policy_hash,
        },
    )


def _rules(validation: dict[str, Json]) -> list[dict[str, Json]]:
    rules = validation["rules"]
    return [rule for rule in rules if isinstance(rule, dict)] if isinstance(rules, list) else []


def _summary(outcome: Outcome, failed: int, total: int) -> str:
    return f"{total - failed} of {total} rules passed; outcome: {outcome}"


def _schema_result(diff: Json, key: dg.AssetKey) -> dg.AssetCheckResult:
    classification = str(diff["classification"]) if isinstance(diff, dict) else "first"
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=SCHEMA_CLASSIFICATION,
        passed=classification not in (Classification.BREAKING, Classification.WARNING),
        severity=_severity(warning=classification != Classification.BREAKING),
        description=f"classification: {classification}",
        metadata={
            metadata.CLASSIFICATION: classification,
            metadata.SCHEMA_DIFF: metadata.change_table(diff),
        },
    )


def evidence_result(verification: "Verification") -> dg.AssetCheckResult:
    """Return the result of verifying the tenant's evidence; every break is listed."""
    counts = {metadata.ENTRIES: verification.entries, metadata.ROWS: verification.rows}
    if verification.holds:
        return dg.AssetCheckResult(passed=True, description="The evidence holds.", metadata=counts)
    return dg.AssetCheckResult(
        passed=False,
        description=f"The evidence is broken in {_count(len(verification.breaks), 'place')}.",
        metadata={**counts, metadata.BREAKS: metadata.break_table(verification.breaks)},
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _severity(*, warning: bool) -> dg.AssetCheckSeverity:
    return dg.AssetCheckSeverity.WARN if warning else dg.AssetCheckSeverity.ERROR
