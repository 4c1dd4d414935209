"""Contracts that are watched, in Postgres.

A watch is one row for each contract and kind. Whoever runs a check claims its row for a while and
commits, so that nothing is locked meanwhile; a claim of somebody who died lapses. Checks and
violations are governed rows that evidence commits to, watches are not.

Source: ports.contracts, which says what each method promises.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, TextClause, case, select, text, update
from sqlalchemy.dialects import postgresql

from datasource_governance.domain.compliance import Day
from datasource_governance.domain.contract import CheckKind
from datasource_governance.domain.contract_check import (
    ContractCheck,
    Violation,
    ViolationSeverity,
)
from datasource_governance.persistence import contract_rows, tables
from datasource_governance.persistence.rows import Row, Rows
from datasource_governance.ports.contracts import (
    DURATION_BUCKETS,
    Claim,
    Outcomes,
    Watch,
)

_WATCH, _CHECK = tables.contract_watch, tables.contract_check
_VIOLATION, _RESOLUTION = tables.contract_violation, tables.violation_resolution
_FREE = "(claimed_until IS NULL OR claimed_until <= :now)"
_CLAIM: Final = """
WITH due AS (
    SELECT datasource, contract, kind FROM governance.contract_watch
    WHERE tenant = :tenant AND {due} AND {free}
    ORDER BY {order} LIMIT :limit FOR UPDATE SKIP LOCKED)
UPDATE governance.contract_watch w SET claim = :claim,
    claimed_until = CAST(:now AS timestamptz) + make_interval(secs => w.timeout_seconds + 60)
FROM due
WHERE w.tenant = :tenant AND w.datasource = due.datasource AND w.contract = due.contract
    AND w.kind = due.kind
RETURNING w.datasource, w.contract, w.kind, w.contract_hash, w.interval_seconds, w.current,
    CASE WHEN w.next_due <= :now THEN w.next_due END AS planned_for
"""
# Two statements, because what is due for either reason is found by an index of its own.
_CLAIM_CURRENT: Final = text(
    _CLAIM.format(
        due="current IS NOT NULL AND next_due IS NOT NULL", free=_FREE, order="datasource"
    )
)
_CLAIM_DUE: Final = text(_CLAIM.format(due="next_due <= :now", free=_FREE, order="next_due"))
_IS_DUE: Final = text(f"""
SELECT EXISTS (SELECT 1 FROM governance.contract_watch
        WHERE tenant = :tenant AND next_due <= :now AND {_FREE})
    OR EXISTS (SELECT 1 FROM governance.contract_watch
        WHERE tenant = :tenant AND current IS NOT NULL AND next_due IS NOT NULL AND {_FREE})
    AS is_due
""")  # noqa: S608 - constants of this module
_GIVE_BACK: Final = text("""
UPDATE governance.contract_watch SET claim = NULL, claimed_until = NULL,
    next_due = CASE WHEN next_due IS NULL THEN NULL ELSE coalesce(:next_due, next_due) END,
    current = CASE WHEN current = :materialization THEN NULL ELSE current END
WHERE tenant = :tenant AND datasource = :datasource AND contract = :contract AND kind = :kind
    AND claim = :claim
""")
_COUNT: Final = text("""
UPDATE governance.contract_watch SET checks = checks + 1,
    failures = failures + CASE WHEN :status = 'failed' THEN 1 ELSE 0 END,
    errors = errors + CASE WHEN :status = 'error' THEN 1 ELSE 0 END,
    seconds = seconds + :seconds, durations[:bucket] = durations[:bucket] + 1,
    consecutive_failures = CASE WHEN :status = 'passed' THEN 0 ELSE consecutive_failures + 1 END,
    last_status = :status, last_severity = :severity, last_at = :at, last_used = :used,
    last_score = :score
WHERE tenant = :tenant AND datasource = :datasource AND contract = :contract AND kind = :kind
""")
_OUTCOMES: Final = text("""
SELECT count(*) AS checks, count(*) FILTER (WHERE status = 'passed') AS passed,
    count(*) FILTER (WHERE severity IN ('error', 'critical')) AS breaches
FROM governance.contract_check
WHERE tenant = :tenant AND datasource = :datasource AND contract = :contract AND kind = :kind
    AND finished_at > :since
""")
_DAILY: Final = text("""
SELECT datasource, contract, kind, (finished_at AT TIME ZONE 'UTC')::date AS day,
    count(*) FILTER (WHERE status = 'passed') AS passed,
    count(*) FILTER (WHERE status = 'failed') AS failed,
    count(*) FILTER (WHERE status = 'error') AS errors
FROM governance.contract_check
WHERE tenant = :tenant AND finished_at >= CAST(:since AS timestamp) AT TIME ZONE 'UTC'
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
""")
_VIOLATION_COUNTS: Final = text("""
SELECT datasource, contract, kind, severity, count(*) AS violations
FROM governance.contract_violation WHERE tenant = :tenant
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
""")


class PostgresContracts:
    """See ports.contracts.Contracts."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def watch(self, datasource: str, watches: Collection[Watch], now: datetime) -> Sequence[str]:
        """See ports.contracts.Contracts."""
        for one in watches:
            self._watch(one, now)
        kept = {(one.contract, one.kind) for one in watches}
        gone = [one for one in self.watches(datasource) if (one.contract, one.kind) not in kept]
        for one in gone:
            named = self._rows.mine(_WATCH, **_key(datasource, one.contract, one.kind))
            ended = update(_WATCH).where(named).values(next_due=None, current=None)
            self._rows.connection.execute(ended)
        return [one.violation for one in gone if one.violation is not None]

    def _watch(self, watch: Watch, now: datetime) -> None:
        seconds = round(watch.interval.total_seconds())
        told = {
            "contract_hash": watch.contract_hash,
            "interval_seconds": seconds,
            "timeout_seconds": watch.timeout_seconds,
        }
        goes_on = (
            (_WATCH.c.contract_hash == watch.contract_hash)
            & (_WATCH.c.interval_seconds == seconds)
            & _WATCH.c.next_due.is_not(None)
        )
        # Only what a new row needs: counts begin at their defaults.
        new = postgresql.insert(_WATCH).values(
            tenant=self._rows.tenant,
            **_key(watch.datasource, watch.contract, watch.kind),
            **told,
            next_due=now,
        )
        due = postgresql.insert(_WATCH).excluded.next_due
        self._rows.connection.execute(
            new.on_conflict_do_update(
                index_elements=_WATCH.primary_key,
                set_={**told, "next_due": case((goes_on, _WATCH.c.next_due), else_=due)},
            )
        )

    def is_due(self, now: datetime) -> bool:
        """See ports.contracts.Contracts."""
        (found,) = self._run(_IS_DUE, now=now)
        return bool(found["is_due"])

    def claim(self, claim: str, now: datetime, limit: int) -> Sequence[Claim]:
        """See ports.contracts.Contracts."""
        asked = {"claim": claim, "now": now}
        found = [*self._run(_CLAIM_CURRENT, **asked, limit=limit)]
        if len(found) < limit:
            found += self._run(_CLAIM_DUE, **asked, limit=limit - len(found))
        return [contract_rows.claim(claim, row) for row in found]

    def give_back(self, claim: Claim, next_due: datetime | None) -> None:
        """See ports.contracts.Contracts."""
        self._later(
            _GIVE_BACK,
            **_key(claim.datasource, claim.contract, claim.kind),
            claim=claim.id,
            next_due=next_due,
            materialization=claim.materialization,
        )

    def lock(self, datasource: str, contract: str, kind: CheckKind) -> Watch | None:
        """See ports.contracts.Contracts."""
        row = self._rows.find_and_lock(_WATCH, **_key(datasource, contract, kind))
        return None if row is None else contract_rows.watch(row)

    def watches(self, datasource: str | None = None) -> Sequence[Watch]:
        """See ports.contracts.Contracts."""
        named = {} if datasource is None else {"datasource": datasource}
        query = self._rows.of(_WATCH, **named).where(_WATCH.c.next_due.is_not(None))
        ordered = query.order_by(_WATCH.c.datasource, _WATCH.c.contract, _WATCH.c.kind)
        return [contract_rows.watch(row) for row in self._rows.all(ordered)]

    def add(self, check: ContractCheck) -> None:
        """See ports.contracts.Contracts."""
        self._rows.insert(_CHECK, contract_rows.check_row(check))
        bucket = sum(check.seconds > bound for bound in DURATION_BUCKETS) + 1
        self._later(
            _COUNT,
            **_key(check.datasource, check.contract, check.kind),
            status=str(check.status),
            severity=check.severity and str(check.severity),
            seconds=check.seconds,
            bucket=bucket,
            at=check.finished_at,
            used=check.finding.used,
            score=check.finding.score,
        )

    def add_violation(self, violation: Violation) -> None:
        """See ports.contracts.Contracts."""
        columns = [column.name for column in _VIOLATION.c if column.name != "tenant"]
        row = {name: getattr(violation, name) for name in columns}
        texts = ("kind", "severity", "enforcement")
        self._rows.insert(_VIOLATION, row | {name: str(row[name]) for name in texts})
        key = _key(violation.datasource, violation.contract, violation.kind)
        self._point(self._rows.mine(_WATCH, **key), violation.id)

    def resolve(self, violation: str, check: str | None, now: datetime) -> None:
        """See ports.contracts.Contracts."""
        ended = {"violation": violation, "resolved_by": check, "resolved_at": now}
        self._rows.insert(_RESOLUTION, ended)
        self._point(self._rows.mine(_WATCH, violation=violation), None)

    def _point(self, where: ColumnElement[bool], violation: str | None) -> None:
        self._rows.connection.execute(update(_WATCH).where(where).values(violation=violation))

    def violation(self, violation: str) -> Violation:
        """See ports.contracts.Contracts."""
        query = self._violations().where(_VIOLATION.c.id == violation)
        return contract_rows.violation(self._rows.one(query, f"violation {violation!r}"))

    def open_violations(self, datasource: str | None = None) -> Sequence[Violation]:
        """See ports.contracts.Contracts."""
        named = {} if datasource is None else {"datasource": datasource}
        pointed = select(_WATCH.c.violation).where(self._rows.mine(_WATCH, **named))
        ids = pointed.where(_WATCH.c.violation.is_not(None))
        return self._newest(self._violations().where(_VIOLATION.c.id.in_(ids)))

    def violations(self, datasource: str | None = None, limit: int = 1000) -> Sequence[Violation]:
        """See ports.contracts.Contracts."""
        query = self._violations()
        if datasource is not None:
            query = query.where(_VIOLATION.c.datasource == datasource)
        return self._newest(query.limit(limit))

    def _newest(self, query: Select[Any]) -> Sequence[Violation]:
        newest = query.order_by(_VIOLATION.c.opened_at.desc(), _VIOLATION.c.id)
        return [contract_rows.violation(row) for row in self._rows.all(newest)]

    def _violations(self) -> Select[Any]:
        joined = _VIOLATION.outerjoin(
            _RESOLUTION,
            (_RESOLUTION.c.tenant == _VIOLATION.c.tenant)
            & (_RESOLUTION.c.violation == _VIOLATION.c.id),
        )
        ended = (_RESOLUTION.c.resolved_by, _RESOLUTION.c.resolved_at)
        return select(_VIOLATION, *ended).select_from(joined).where(self._rows.mine(_VIOLATION))

    def violation_counts(self) -> Sequence[tuple[str, str, CheckKind, ViolationSeverity, int]]:
        """See ports.contracts.Contracts."""
        return [
            (
                row["datasource"],
                row["contract"],
                CheckKind(row["kind"]),
                ViolationSeverity(row["severity"]),
                row["violations"],
            )
            for row in self._run(_VIOLATION_COUNTS)
        ]

    def outcomes_since(
        self, datasource: str, contract: str, kind: CheckKind, since: datetime
    ) -> Outcomes:
        """See ports.contracts.Contracts."""
        (row,) = self._run(_OUTCOMES, **_key(datasource, contract, kind), since=since)
        return Outcomes(**row)

    def daily(self, since: date) -> Mapping[tuple[str, str, CheckKind], Sequence[Day]]:
        """See ports.contracts.Contracts."""
        found = defaultdict(list)
        for row in self._run(_DAILY, since=since):
            counts = {name: row[name] for name in ("day", "passed", "failed", "errors")}
            found[row["datasource"], row["contract"], CheckKind(row["kind"])].append(Day(**counts))
        return found

    def newest(self, datasource: str, contract: str, limit: int) -> Sequence[ContractCheck]:
        """See ports.contracts.Contracts."""
        query = self._rows.of(_CHECK, datasource=datasource, contract=contract)
        ordered = query.order_by(_CHECK.c.finished_at.desc(), _CHECK.c.id).limit(limit)
        return [contract_rows.stored_check(row) for row in self._rows.all(ordered)]

    def _run(self, statement: TextClause, **parameters: object) -> Sequence[Row]:
        return self._rows.connection.run(statement, {"tenant": self._rows.tenant, **parameters})

    def _later(self, statement: TextClause, **parameters: object) -> None:
        self._rows.connection.later(statement, {"tenant": self._rows.tenant, **parameters})


def _key(datasource: str, contract: str, kind: CheckKind) -> dict[str, object]:
    return {"datasource": datasource, "contract": contract, "kind": str(kind)}
