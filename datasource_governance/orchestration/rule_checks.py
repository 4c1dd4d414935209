"""Checks of the declared rules: one each while they are few, one per rule type when they are many.

Dagster takes longer to record a check result than a rule takes to evaluate: three events a check,
and connections of their own for each event.

Source: SPEC section 15 ("stage"); facts on performance, section 10.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg

from datasource_governance.domain.canonical import Json
from datasource_governance.domain.quality_policy import Rule, Severity
from datasource_governance.domain.validation import Status
from datasource_governance.orchestration import metadata
from datasource_governance.orchestration.check_names import check_names, rule_type_check_name

RULES_WITH_A_CHECK_EACH = 50
"""The most declared rules of a datasource that each have a check; more report per rule type."""


def rule_check_specs(
    rules: Sequence[Rule],
    key: dg.AssetKey,
    partitions_def: dg.PartitionsDefinition[Any] | None = None,
) -> list[dg.AssetCheckSpec]:
    """Return the specs of declared rules, in policy order; those of error rules are blocking.

    Up to 50 rules have one check each. More have one check per rule type and severity that occurs.
    """
    if len(rules) <= RULES_WITH_A_CHECK_EACH:
        names = check_names([rule.id for rule in rules])
        return [_rule_spec(rule, names[rule.id], key, partitions_def) for rule in rules]
    return [_type_spec(alike, name, key, partitions_def) for name, alike in _by_type(rules).items()]


def rule_check_results(
    found: Sequence[dict[str, Json]], rules: Sequence[Rule], key: dg.AssetKey
) -> Iterator[dg.AssetCheckResult]:
    """Yield the results of declared rules from what a stored validation found.

    Where the policy in force is not the declared one, rules that are only in force have no result
    here, and a check none of whose rules is in force has none either.
    """
    in_force = {str(rule["id"]): rule for rule in found}
    if len(rules) <= RULES_WITH_A_CHECK_EACH:
        for rule_id, name in check_names([rule.id for rule in rules]).items():
            if rule_id in in_force:
                yield _rule_result(in_force[rule_id], name, key)
        return
    for name, alike in _by_type(rules).items():
        together = [in_force[rule.id] for rule in alike if rule.id in in_force]
        if together:
            yield rules_result(together, name, key)


def rules_result(
    rules: Sequence[dict[str, Json]],
    name: str,
    key: dg.AssetKey,
    *,
    conclusion: str = "",
    beside: metadata.Metadata | None = None,
    blocked: bool = False,
) -> dg.AssetCheckResult:
    """Return one result for many stored rules: it passes when all of them passed.

    It is an error when an error rule did not pass, or they are `blocked` together; else a warning.
    The complete table of its rules is in the metadata, `beside` it what else a check says.
    """
    failed = [rule for rule in rules if rule["status"] != Status.PASSED]
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=name,
        passed=not failed and not blocked,
        severity=dg.AssetCheckSeverity.ERROR if blocked else _severity(failed),
        description=f"{len(rules) - len(failed)} of {len(rules)} rules passed{conclusion}",
        metadata={
            metadata.RULES: metadata.rule_table(rules),
            metadata.FAILED_RULES: len(failed),
            **(beside or {}),
        },
    )


def _by_type(rules: Sequence[Rule]) -> dict[str, list[Rule]]:
    """Return the rules that share a check, by its name."""
    found: dict[str, list[Rule]] = {}
    for rule in rules:
        found.setdefault(rule_type_check_name(rule.type, rule.severity), []).append(rule)
    return found


def _rule_spec(
    rule: Rule, name: str, key: dg.AssetKey, partitions_def: dg.PartitionsDefinition[Any] | None
) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(
        name,
        asset=key,
        blocking=rule.severity is Severity.ERROR,
        description=f"Rule `{rule.id}` ({rule.type}) of the quality policy.",
        metadata={metadata.RULE_ID: rule.id},
        partitions_def=partitions_def,
    )


def _type_spec(
    alike: Sequence[Rule],
    name: str,
    key: dg.AssetKey,
    partitions_def: dg.PartitionsDefinition[Any] | None,
) -> dg.AssetCheckSpec:
    rule_type, severity = alike[0].type, alike[0].severity
    return dg.AssetCheckSpec(
        name,
        asset=key,
        blocking=severity is Severity.ERROR,
        description=f"{metadata.counted(len(alike), f'`{rule_type}` rule')} of severity "
        f"`{severity}` of the quality policy.",
        partitions_def=partitions_def,
    )


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
        severity=_severity([rule]),
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
    rows = f" in {metadata.counted(affected, 'row')}" if isinstance(affected, int) else ""
    return f"The rule does not hold: `{rule['reason']}`{rows}."


def _row_numbers(rule: dict[str, Json]) -> str:
    """Return the recorded one-based row numbers; nothing where rows have no order."""
    if rule["rows"] is None:
        return ""
    return metadata.names(rule["rows"]) + (", …" if rule["truncated"] else "")


def _severity(rules: Sequence[dict[str, Json]]) -> dg.AssetCheckSeverity:
    errors = any(rule["severity"] == Severity.ERROR for rule in rules)
    return dg.AssetCheckSeverity.ERROR if errors else dg.AssetCheckSeverity.WARN
