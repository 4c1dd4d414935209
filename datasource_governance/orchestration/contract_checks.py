"""Contracts in Dagster: a check on `<datasource>/current` for each promise, and how it is shown.

Source: SPEC sections 14 and 15.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import dagster as dg

from datasource_governance.composition import Application
from datasource_governance.domain.contract import (
    CheckKind,
    Contract,
    ContractEnforcement,
    ContractStatus,
)
from datasource_governance.domain.contract_check import ContractCheck, ViolationSeverity
from datasource_governance.domain.datasource import Datasource
from datasource_governance.orchestration import metadata
from datasource_governance.orchestration.assets import GOVERNANCE, current_key
from datasource_governance.orchestration.check_names import contract_check_name
from datasource_governance.orchestration.checks import evaluation_of
from datasource_governance.orchestration.refusals import business_refusals
from datasource_governance.services.contracts import contract_in_force

MONTH = timedelta(days=30)
"""What the share of checks that passed looks back upon."""
_WHAT = {
    CheckKind.FRESHNESS: "It is not older than promised.",
    CheckKind.SCHEMA_DRIFT: "Its fields are the promised ones.",
    CheckKind.QUALITY: "Its score is the promised one, by the rules of the contract.",
    CheckKind.AVAILABILITY: "It can be read as often as promised.",
}


def contract_checks(declaration: Datasource) -> list[dg.AssetChecksDefinition]:
    """Return the checks of a datasource's contracts: none for a datasource without."""
    promised = {
        contract_check_name(contract.id, kind): (contract, kind)
        for contract in declaration.contracts
        for kind in contract.kinds
    }
    if not promised:
        return []
    key = current_key(declaration.id)

    @dg.multi_asset_check(
        name=f"{declaration.id}__current_contracts",
        specs=[_spec(name, *promise, key) for name, promise in promised.items()],
        can_subset=True,
        required_resource_keys={GOVERNANCE},
    )
    def contracts(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        from datasource_governance.monitoring.monitor import Monitor

        application: Application = context.resources.governance
        monitor = Monitor(application=application, run_id=context.run.run_id)
        for selected in sorted(context.selected_asset_check_keys, key=lambda one: one.name):
            contract, kind = promised[selected.name]
            with business_refusals():
                check = monitor.check(declaration.id, contract.id, kind)
            yield contract_result(check, key, contract.enforcement)

    return [contracts]


def _spec(name: str, contract: Contract, kind: CheckKind, key: dg.AssetKey) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(
        name,
        asset=key,
        blocking=contract.enforcement is ContractEnforcement.BLOCK,
        description=f"Contract `{contract.id}` {contract.version}: {_WHAT[kind]}{_ends(contract)}",
        metadata={metadata.CONTRACT: f"{contract.id} {contract.version}"},
    )


def _ends(contract: Contract) -> str:
    """Say until when a contract holds, of one that says so."""
    ends = {"supported": contract.end_of_support, "kept": contract.end_of_life}
    told = [f"{what} until {day.isoformat()}" for what, day in ends.items() if day is not None]
    if not told:
        return ""
    deprecated = "Deprecated; " if contract.status is ContractStatus.DEPRECATED else "It is "
    return f" {deprecated}{', '.join(told)}."


def contract_result(
    check: ContractCheck, key: dg.AssetKey, enforcement: ContractEnforcement
) -> dg.AssetCheckResult:
    """Return a check as Dagster shows it; an error only where it is a breach that is told."""
    severity, finding = check.severity, check.finding
    is_error = check.is_broken and enforcement is not ContractEnforcement.WARN
    numbers: dict[str, Any] = {
        metadata.USED: finding.used,
        metadata.SCORE: finding.score,
        metadata.SECONDS: round(check.seconds, 3),
    }
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=contract_check_name(check.contract, check.kind),
        passed=severity in (None, ViolationSeverity.INFO),
        severity=dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN,
        description=check.message,
        metadata={
            metadata.CONTRACT: f"{check.contract} {check.contract_version}",
            metadata.STATUS: str(check.status),
            metadata.SEVERITY: str(severity or "none"),
            **{name: number for name, number in numbers.items() if number is not None},
            **_tables(check),
            **({metadata.VIOLATION: check.violation} if check.violation else {}),
        },
    )


def _tables(check: ContractCheck) -> metadata.Metadata:
    found: dict[str, dg.MetadataValue[Any]] = {}
    if check.kind is CheckKind.SCHEMA_DRIFT:
        changes: list[dict[str, str | None]] = [
            {"field": one.field, "change": one.change} for one in check.finding.changes
        ]
        found[metadata.SCHEMA_DIFF] = metadata.listed(changes, "field", "change")
    if check.finding.rules:
        found[metadata.RULES] = metadata.listed(
            [
                {
                    "rule": rule.id,
                    "status": str(rule.status),
                    "affected": "" if rule.affected is None else str(rule.affected),
                    "severity": str(rule.severity),
                    "type": rule.type,
                    "fields": ", ".join(rule.fields),
                }
                for rule in check.finding.rules
            ],
            *("rule", "status", "affected", "severity", "type", "fields"),
        )
    return found


def show_check(
    instance: dg.DagsterInstance, application: Application, check: ContractCheck
) -> None:
    """Report a check that ran beside any selection, with the share of a month that held."""
    key = current_key(check.datasource)
    with application.work() as work:
        contract = contract_in_force(work, check.datasource, check.contract_hash)
        outcomes = work.contracts.outcomes_since(
            check.datasource, check.contract, check.kind, check.finished_at - MONTH
        )
    result = contract_result(check, key, contract.enforcement)
    beside: dict[str, Any] = {
        metadata.COMPLIANCE: round(100 * outcomes.passed / max(outcomes.checks, 1), 2),
        **({metadata.RUN: dg.MetadataValue.dagster_run(check.run_id)} if check.run_id else {}),
    }
    shown = result._replace(metadata={**result.metadata, **beside})
    instance.report_runless_asset_event(evaluation_of(shown, key))
