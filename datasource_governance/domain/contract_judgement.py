"""What a finding means for a contract: its severity, its words, and what becomes of violations.

Pure: what a check found and what happened before go in, a judgement comes out.

Source: SPEC section 14; facts on the contract monitor, 6.1 and 10.6.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import floor
from typing import Final

from datasource_governance.domain.contract import CheckKind, Contract
from datasource_governance.domain.contract_check import Finding, ViolationSeverity
from datasource_governance.domain.rule_outcome import Status
from datasource_governance.domain.rules import Severity

WINDOW: Final = timedelta(hours=24)
"""What repetition and availability look back upon."""
BREACHES_UNTIL_CRITICAL: Final = 3
"""So many breaches of one kind in the window, the present one included, are critical."""
_USED: Final = (
    (100, ViolationSeverity.ERROR),
    (90, ViolationSeverity.WARNING),
    (80, ViolationSeverity.INFO),
)
CHANGES: Final = {
    "removed": ViolationSeverity.CRITICAL,
    "type": ViolationSeverity.ERROR,
    "nulls": ViolationSeverity.WARNING,
    "added": ViolationSeverity.WARNING,
}
"""How bad a change of a field is, by its kind."""
_FAILURES: Final = ((5, ViolationSeverity.CRITICAL), (3, ViolationSeverity.ERROR))
_NEARLY: Final = 0.9
_HALF: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What happened before a check: of its contract and kind, without the check itself.

    `breaches`, `passed` and `checks` are of the last 24 hours; `consecutive_failures` are the
    checks just before it that did not pass.
    """

    breaches: int = 0
    passed: int = 0
    checks: int = 0
    consecutive_failures: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a finding means. `severity` is None where the contract holds.

    The finding is `failed` exactly where the severity is a breach, unless it could not be
    evaluated, which is `error`.
    """

    finding: Finding
    severity: ViolationSeverity | None
    message: str


def used_percent(age: timedelta, allowed: timedelta) -> int:
    """Return the whole percent of a service level that an age uses, rounded down; 0 at least."""
    return max(0, floor(100 * age / allowed))


def judge(kind: CheckKind, finding: Finding, contract: Contract, history: History) -> Judgement:
    """Return the severity of a finding, and say it in counts and names.

    A check that could not be evaluated is a breach, and never passes. Freshness counts by the share
    of the service level that is used: from 80 percent `info`, from 90 `warning`, from 100 `error`.
    Schema drift counts by the worst change. Quality counts by the score: below what is promised
    `warning`, below nine tenths of it `error`, below half of it `critical`; a rule of severity
    `error` that does not hold is `error` at least. Availability counts by how often in a row the
    data was not there, and by the share of the last 24 hours. The third breach of a kind in 24
    hours is `critical`; of availability only those in a row count.
    """
    severity, message = _severity(kind, finding, contract, history)
    is_repeated = history.breaches + 1 >= BREACHES_UNTIL_CRITICAL
    if severity is ViolationSeverity.ERROR and is_repeated and kind is not CheckKind.AVAILABILITY:
        severity = ViolationSeverity.CRITICAL
        message = f"{message}; {history.breaches + 1} breaches in 24 hours"
    status = finding.status
    if status is not Status.ERROR:
        is_breach = severity is not None and severity.is_breach
        status = Status.FAILED if is_breach or _is_absent(kind, finding) else Status.PASSED
    return Judgement(finding=replace(finding, status=status), severity=severity, message=message)


def _severity(
    kind: CheckKind, finding: Finding, contract: Contract, history: History
) -> tuple[ViolationSeverity | None, str]:
    if kind is CheckKind.AVAILABILITY:
        return _availability(finding, contract, history)
    if finding.status is Status.ERROR:
        return ViolationSeverity.ERROR, f"could not be evaluated: {finding.problem}"
    if kind is CheckKind.FRESHNESS:
        return _freshness(finding)
    if kind is CheckKind.SCHEMA_DRIFT:
        return _drift(finding)
    return _quality(finding, contract)


def _freshness(finding: Finding) -> tuple[ViolationSeverity | None, str]:
    used = finding.used or 0
    severity = next((severity for share, severity in _USED if used >= share), None)
    return severity, f"{used} percent of the promised freshness is used"


def _drift(finding: Finding) -> tuple[ViolationSeverity | None, str]:
    if not finding.changes:
        return None, "the schema is the promised one"
    worst = max((CHANGES[change.change] for change in finding.changes), key=lambda one: one.rank)
    counts = {
        kind: [one.field for one in finding.changes if one.change == kind] for kind in CHANGES
    }
    told = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in counts.items() if names)
    return worst, f"the schema differs from the promised one: {told}"


def _quality(finding: Finding, contract: Contract) -> tuple[ViolationSeverity | None, str]:
    """Return the severity of a score, which an `error` rule that does not hold makes a breach."""
    promised, score = contract.service_levels.quality, finding.score
    if score is None:
        return ViolationSeverity.ERROR, "there is no score: rules were not evaluated"
    failed = [rule for rule in finding.rules if rule.status is not Status.PASSED]
    broken = [rule for rule in failed if rule.severity is Severity.ERROR]
    message = (
        f"the score is {score:.2f} and {promised:g} is promised; "
        f"{len(failed)} of {len(finding.rules)} rules do not hold"
    )
    if score < promised * _HALF:
        return ViolationSeverity.CRITICAL, message
    if score < promised * _NEARLY or broken:
        return ViolationSeverity.ERROR, message
    if score < promised:
        return ViolationSeverity.WARNING, message
    return None, message


def _availability(
    finding: Finding, contract: Contract, history: History
) -> tuple[ViolationSeverity | None, str]:
    is_there = not _is_absent(CheckKind.AVAILABILITY, finding)
    checks, passed = history.checks + 1, history.passed + is_there
    share, promised = 100 * passed / checks, contract.service_levels.availability
    told = f"{share:.2f} percent of {checks} checks in 24 hours found the data"
    if not is_there:
        failures = history.consecutive_failures + 1
        severity = next((one for least, one in _FAILURES if failures >= least), None)
        why = f" ({finding.problem})" if finding.problem else ""
        message = f"the data was not there {failures} times in a row{why}; {told}"
        return severity or ViolationSeverity.WARNING, message
    if share < promised:
        return ViolationSeverity.WARNING, f"{told}, and {promised:g} is promised"
    return None, told


def _is_absent(kind: CheckKind, finding: Finding) -> bool:
    return kind is CheckKind.AVAILABILITY and finding.status is not Status.PASSED


def next_planned(planned_for: datetime, interval: timedelta, now: datetime) -> datetime:
    """Return the next instant of a rhythm after now; what was missed meanwhile is not caught up.

    It is a whole number of intervals after the planned instant, so that a rhythm does not drift.
    """
    passed = max(0, (now - planned_for) // interval)
    return planned_for + (passed + 1) * interval
