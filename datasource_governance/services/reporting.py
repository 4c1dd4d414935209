"""The report on contracts: how far each promise was kept, where it goes, what is broken now.

Source: SPEC section 14.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from datasource_governance.domain.compliance import Compliance, Day
from datasource_governance.domain.contract_check import Violation
from datasource_governance.ports import UnitOfWork
from datasource_governance.ports.contracts import Watch

FORMAT = "datasource_governance/contract_report/v1"
DEFAULT_DAYS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """One kind of check of one contract: how it stands, how far it was kept, what is open."""

    watch: Watch
    compliance: Compliance
    violation: Violation | None

    def document(self) -> dict[str, object]:
        """Return the JSON form."""
        watch, kept, broken = self.watch, self.compliance, self.violation
        return {
            "datasource": watch.datasource,
            "contract": watch.contract,
            "kind": str(watch.kind),
            "last_status": None if watch.last_status is None else str(watch.last_status),
            "last_at": watch.last_at.isoformat() if watch.last_at else None,
            "checks": kept.checks,
            "passed": kept.passed,
            "failed": sum(day.failed for day in kept.days),
            "errors": sum(day.errors for day in kept.days),
            "compliance_percent": kept.percent,
            "trend": str(kept.trend),
            "points_per_day": kept.slope,
            "daily": [_day(day) for day in kept.days],
            "violation": broken
            and {
                "id": broken.id,
                "severity": str(broken.severity),
                "message": broken.message,
                "since": broken.opened_at.isoformat(),
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The promises that are watched, broken ones first, over the last `days` days."""

    at: datetime
    days: int
    promises: tuple[Promise, ...]

    def document(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "format": FORMAT,
            "at": self.at.isoformat(),
            "days": self.days,
            "promises": [promise.document() for promise in self.promises],
        }


def report_contracts(
    work: UnitOfWork, *, days: int = DEFAULT_DAYS, datasources: Collection[str] | None = None
) -> Report:
    """Return the report on contracts, of all datasources or of these.

    It costs as much as there are checks in these days, however many there were before.
    """
    with work:
        now = work.now()
        watches = work.contracts.watches()
        daily = work.contracts.daily((now - timedelta(days=days - 1)).date())
        open_now = {one.id: one for one in work.contracts.open_violations()}
    promises = [
        Promise(
            watch=watch,
            compliance=Compliance(
                days=tuple(daily.get((watch.datasource, watch.contract, watch.kind), ()))
            ),
            violation=open_now.get(watch.violation or ""),
        )
        for watch in watches
        if datasources is None or watch.datasource in datasources
    ]
    ordered = sorted(promises, key=_badness)
    return Report(at=now, days=days, promises=tuple(ordered))


def _day(day: Day) -> dict[str, object]:
    return {
        "day": day.day.isoformat(),
        "passed": day.passed,
        "failed": day.failed,
        "errors": day.errors,
    }


def _badness(promise: Promise) -> int:
    """Return a place in the report; promises that are as bad keep their order."""
    return -promise.violation.severity.rank - 1 if promise.violation else 0
