"""The four checks of a contract. Each reads live data and says what it found, never a value.

Source: SPEC section 14; facts on the contract monitor, 6.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from datasource_governance.domain.contract import CheckKind, Contract
from datasource_governance.domain.contract_check import FieldChange, Finding
from datasource_governance.domain.quality_expectation import expectations
from datasource_governance.domain.rule_outcome import RuleOutcome, Status
from datasource_governance.domain.schema import DataType, TableSchema
from datasource_governance.errors import GovernanceError
from datasource_governance.monitoring.live import LiveData
from datasource_governance.quality.platform import Platform

Check = Callable[[Contract, LiveData, Platform, int], Finding]
"""A check of a contract on live data by a platform's provider, in so many seconds."""


def run_check(
    kind: CheckKind, contract: Contract, live: LiveData, platform: Platform
) -> tuple[Finding, float]:
    """Run one check; return what it found, and how many seconds it took.

    Whatever keeps it from looking is found, too: it is `error`, with the code of the refusal. So is
    what took longer than the contract allows, whatever it says at last.
    """
    allowed = contract.rhythms[kind].timeout_seconds
    begun = time.monotonic()
    try:
        finding = _CHECKS[kind](contract, live, platform, allowed)
    except GovernanceError as error:
        finding = Finding(status=Status.ERROR, problem=error.code)
    seconds = time.monotonic() - begun
    if seconds > allowed and finding.status is not Status.ERROR:
        finding = Finding(status=Status.ERROR, problem="timed_out")
    return finding, seconds


def _freshness(contract: Contract, live: LiveData, _platform: Platform, _seconds: int) -> Finding:
    levels = contract.service_levels
    if levels.freshness is None:
        return Finding(status=Status.PASSED)
    return Finding(status=Status.PASSED, used=live.used(levels, levels.freshness))


def _drift(contract: Contract, live: LiveData, _platform: Platform, _seconds: int) -> Finding:
    return Finding(status=Status.PASSED, changes=schema_changes(contract.schema, live.schema()))


def schema_changes(promised: TableSchema, found: TableSchema) -> tuple[FieldChange, ...]:
    """Return how fields that were found differ from those promised, the promised ones first.

    A field that promises no type may have any.
    """
    by_name = {field.name: field for field in found.fields}
    changes = []
    for field in promised.fields:
        live = by_name.pop(field.name, None)
        if live is None:
            changes.append(FieldChange(field=field.name, change="removed"))
        elif field.type is not DataType.UNKNOWN and not live.type.meets(field.type):
            changes.append(FieldChange(field=field.name, change="type"))
        elif live.nullable and not field.nullable:
            changes.append(FieldChange(field=field.name, change="nulls"))
    return (*changes, *(FieldChange(field=name, change="added") for name in by_name))


def _quality(contract: Contract, live: LiveData, platform: Platform, seconds: int) -> Finding:
    if contract.quality_policy is None:
        return Finding(status=Status.PASSED)
    rows = live.rows()
    result = platform.plugin_for(seconds).execute_checks(
        rows, expectations(contract.quality_policy)
    )
    return scored(result.checks, platform, getattr(rows, "num_rows", None))


def scored(checks: tuple[RuleOutcome, ...], platform: Platform, row_count: int | None) -> Finding:
    """Return the finding of outcomes: their score, and `error` where a rule was not evaluated."""
    score = platform.score(checks)
    plain = tuple(replace(check, rows=None) for check in checks)
    if any(check.status is Status.ERROR for check in checks) or score.value is None:
        return Finding(
            status=Status.ERROR,
            score=score.value,
            row_count=row_count,
            rules=plain,
            problem="rules_not_evaluated",
        )
    return Finding(status=Status.PASSED, score=score.value, row_count=row_count, rules=plain)


def _availability(
    _contract: Contract, live: LiveData, _platform: Platform, _seconds: int
) -> Finding:
    absence = live.absence()
    status = Status.PASSED if absence is None else Status.FAILED
    return Finding(status=status, problem=absence)


_CHECKS: Final[Mapping[CheckKind, Check]] = MappingProxyType(
    {
        CheckKind.FRESHNESS: _freshness,
        CheckKind.SCHEMA_DRIFT: _drift,
        CheckKind.QUALITY: _quality,
        CheckKind.AVAILABILITY: _availability,
    }
)
