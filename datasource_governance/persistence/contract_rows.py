"""Rows of contracts to values and back.

Source: ports.contracts.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from datasource_governance.domain.canonical import canonical_bytes, load_object
from datasource_governance.domain.contract import CheckKind, ContractEnforcement
from datasource_governance.domain.contract_check import (
    ContractCheck,
    FieldChange,
    Finding,
    Trigger,
    Violation,
    ViolationSeverity,
)
from datasource_governance.domain.rule_outcome import RuleOutcome, Status
from datasource_governance.domain.rules import Severity
from datasource_governance.persistence.rows import Row
from datasource_governance.ports.contracts import Claim, Watch


def check_row(check: ContractCheck) -> dict[str, object]:
    """Return the columns of `contract_check`; the body has all of it."""
    return {
        "id": check.id,
        "datasource": check.datasource,
        "contract": check.contract,
        "kind": str(check.kind),
        "planned_for": check.planned_for,
        "started_at": check.started_at,
        "finished_at": check.finished_at,
        "status": str(check.status),
        "severity": None if check.severity is None else str(check.severity),
        "body": canonical_bytes(check.document()),
    }


def stored_check(row: Row) -> ContractCheck:
    """Return the check of a row."""
    body: dict[str, Any] = load_object(row["body"])
    severity = row["severity"]
    return ContractCheck(
        id=row["id"],
        datasource=row["datasource"],
        contract=row["contract"],
        contract_version=body["contract_version"],
        contract_hash=body["contract_hash"],
        kind=CheckKind(row["kind"]),
        trigger=Trigger(body["trigger"]),
        planned_for=row["planned_for"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        dataset=(body["dataset"]["namespace"], body["dataset"]["name"]),
        materialization=body["materialization"],
        run_id=body["run_id"],
        finding=_finding(body),
        severity=severity and ViolationSeverity(severity),
        message=body["message"],
        violation=body["violation"],
    )


def _finding(body: Mapping[str, Any]) -> Finding:
    return Finding(
        status=Status(body["status"]),
        used=body["used_percent"],
        score=body["score"],
        row_count=body["row_count"],
        rules=tuple(
            RuleOutcome(
                id=rule["id"],
                type=rule["type"],
                severity=Severity(rule["severity"]),
                status=Status(rule["status"]),
                fields=tuple(rule["fields"]),
                affected=rule["affected"],
            )
            for rule in body["rules"]
        ),
        changes=tuple(FieldChange(**change) for change in body["changes"]),
        problem=body["problem"],
    )


def claim(claim_id: str, row: Row) -> Claim:
    """Return what was claimed of a row."""
    return Claim(
        id=claim_id,
        datasource=row["datasource"],
        contract=row["contract"],
        contract_hash=row["contract_hash"],
        kind=CheckKind(row["kind"]),
        interval=timedelta(seconds=row["interval_seconds"]),
        planned_for=row["planned_for"],
        materialization=row["current"],
    )


def watch(row: Row) -> Watch:
    """Return the watch of a row."""
    left_out = ("tenant", "interval_seconds", "current", "claimed_until")
    status, severity = row["last_status"], row["last_severity"]
    given: dict[str, Any] = {name: one for name, one in row.items() if name not in left_out}
    given |= {
        "kind": CheckKind(row["kind"]),
        "interval": timedelta(seconds=row["interval_seconds"]),
        "durations": tuple(row["durations"]),
        "last_status": status and Status(status),
        "last_severity": severity and ViolationSeverity(severity),
    }
    return Watch(**given)


def violation(row: Row) -> Violation:
    """Return the violation of a row joined with its resolution."""
    told: dict[str, Any] = {name: one for name, one in row.items() if name != "tenant"}
    told |= {
        "kind": CheckKind(row["kind"]),
        "severity": ViolationSeverity(row["severity"]),
        "enforcement": ContractEnforcement(row["enforcement"]),
    }
    return Violation(**told)
