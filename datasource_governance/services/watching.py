"""Claim checks that are due, and keep what they found: the check, its violations, events, evidence.

What a check finds is judged here, under the locks under which it is kept, so that two that end at
the same time count each other.

Source: SPEC section 14; facts on the contract monitor, 10.6.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from datasource_governance.domain.contract import CheckKind, Contract, ContractEnforcement
from datasource_governance.domain.contract_check import (
    ContractCheck,
    Finding,
    Trigger,
    Violation,
)
from datasource_governance.domain.contract_judgement import (
    WINDOW,
    History,
    Judgement,
    judge,
    next_planned,
)
from datasource_governance.domain.event import CHECKED, RESOLVED, VIOLATED, event
from datasource_governance.domain.evidence import monitor_chain
from datasource_governance.ports import UnitOfWork
from datasource_governance.ports.contracts import Claim, Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one run of a check found, and where.

    `claim` is what it was claimed by, None for one beside the rhythm. `dataset` is what was read,
    as OpenLineage names it.
    """

    datasource: str
    contract: Contract
    kind: CheckKind
    trigger: Trigger
    claim: Claim | None
    dataset: tuple[str, str]
    materialization: str | None
    run_id: str | None
    finding: Finding
    seconds: float


def claim_due(work: UnitOfWork, limit: int = 1) -> Sequence[Claim]:
    """Claim checks that are due, the longest due first.

    Nobody else gets one of them until it has taken longer than it may: then whoever claimed it is
    taken for dead, and what is given back late is thrown away.
    """
    with work:
        claims = work.contracts.claim(work.new_id(), work.now(), limit)
        work.commit()
    return claims


def is_due(work: UnitOfWork) -> bool:
    """Tell whether there is anything to claim."""
    with work:
        return work.contracts.is_due(work.now())


def pass_over(work: UnitOfWork, claim: Claim) -> None:
    """Give a claim back unrun: there is nothing yet that it could look at."""
    with work:
        work.contracts.give_back(claim, _next(claim, work.now()))
        work.commit()


def keep_observation(work: UnitOfWork, observed: Observation) -> ContractCheck | None:
    """Judge what was found and keep it, with everything that follows, in one transaction.

    Return None, and keep nothing, where the claim is somebody else's by now, or the contract in
    force is another one: then its check is due at once.
    """
    datasource, kind, claim = observed.datasource, observed.kind, observed.claim
    with work:
        work.datasources.get_for_update(datasource)
        watch = work.contracts.lock(datasource, observed.contract.id, kind)
        if claim is not None and (watch is None or watch.claim != claim.id):
            return None
        if watch is None or watch.contract_hash != observed.contract.hash:
            if claim is not None:
                work.contracts.give_back(claim, None)
                work.commit()
            return None
        now = work.now()
        check = _kept(work, observed, watch, now)
        if claim is not None:
            work.contracts.give_back(claim, _next(claim, now))
        work.commit()
    return check


def _kept(work: UnitOfWork, observed: Observation, watch: Watch, now: datetime) -> ContractCheck:
    judgement = judge(
        observed.kind, observed.finding, observed.contract, _history(work, watch, now)
    )
    check = _check(work.new_id(), observed, judgement, now)
    before = work.contracts.violation(watch.violation) if watch.violation else None
    after = _violation(work.new_id(), observed, check, before)
    check = replace(check, violation=after.id if after else None)
    work.contracts.add(check)
    is_other = (before and before.id) != (after and after.id)
    if before is not None and is_other:
        work.contracts.resolve(before.id, check.id, now)
    if after is not None and is_other:
        work.contracts.add_violation(after)
    _record(work, check, before if is_other else None, after if is_other else None)
    return check


def _history(work: UnitOfWork, watch: Watch, now: datetime) -> History:
    since = now - WINDOW
    outcomes = work.contracts.outcomes_since(watch.datasource, watch.contract, watch.kind, since)
    return History(
        breaches=outcomes.breaches,
        passed=outcomes.passed,
        checks=outcomes.checks,
        consecutive_failures=watch.consecutive_failures,
    )


def _check(
    check_id: str, observed: Observation, judgement: Judgement, now: datetime
) -> ContractCheck:
    contract, claim = observed.contract, observed.claim
    return ContractCheck(
        id=check_id,
        datasource=observed.datasource,
        contract=contract.id,
        contract_version=contract.version,
        contract_hash=contract.hash,
        kind=observed.kind,
        trigger=observed.trigger,
        planned_for=claim.planned_for if claim else None,
        started_at=now - timedelta(seconds=observed.seconds),
        finished_at=now,
        dataset=observed.dataset,
        materialization=observed.materialization,
        run_id=observed.run_id,
        finding=judgement.finding,
        severity=judgement.severity,
        message=judgement.message,
        violation=None,
    )


def _violation(
    violation_id: str, observed: Observation, check: ContractCheck, before: Violation | None
) -> Violation | None:
    """Return the violation that is open after a check: the same, another, or none.

    One of another severity is another violation, so that what gets worse is told again.
    """
    if check.severity is None:
        return None
    told = (check.severity, observed.contract.enforcement)
    if before is not None and (before.severity, before.enforcement) == told:
        return before
    return Violation(
        id=violation_id,
        datasource=check.datasource,
        contract=check.contract,
        kind=check.kind,
        severity=check.severity,
        enforcement=observed.contract.enforcement,
        message=check.message,
        opened_by=check.id,
        opened_at=check.finished_at,
    )


def _record(
    work: UnitOfWork, check: ContractCheck, ended: Violation | None, begun: Violation | None
) -> None:
    """Write the events, and append the evidence. Comes last in a transaction."""
    facts = check.document()
    _tell(work, CHECKED, check, facts)
    if begun is not None and begun.enforcement is not ContractEnforcement.WARN:
        _tell(work, VIOLATED, check, _violation_facts(check, begun))
    elif begun is None and ended and ended.enforcement is not ContractEnforcement.WARN:
        _tell(work, RESOLVED, check, _violation_facts(check, ended))
    changes = {
        "violated": begun.id if begun else None,
        "resolved": ended.id if ended else None,
    }
    work.evidence.append(
        monitor_chain(check.datasource),
        kind=CHECKED,
        subject=check.id,
        facts={
            "contract": check.contract,
            "contract_hash": check.contract_hash,
            "kind": str(check.kind),
            "status": str(check.status),
            **changes,
        },
        at=check.finished_at,
    )


def _tell(work: UnitOfWork, kind: str, check: ContractCheck, facts: Mapping[str, object]) -> None:
    told = event(
        work.new_id(), kind, datasource=check.datasource, facts=facts, now=check.finished_at
    )
    work.outbox.add(told)


def _violation_facts(check: ContractCheck, violation: Violation) -> dict[str, object]:
    return {
        "violation": violation.id,
        "contract": check.contract,
        "contract_version": check.contract_version,
        "kind": str(violation.kind),
        "severity": str(violation.severity),
        "message": check.message,
        "check": check.id,
        "enforcement": str(violation.enforcement),
        "opened_at": violation.opened_at.isoformat(),
    }


def _next(claim: Claim, now: datetime) -> datetime | None:
    if claim.planned_for is None:
        return None
    return next_planned(claim.planned_for, claim.interval, now)
