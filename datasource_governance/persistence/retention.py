"""Retention plans, what they may destroy and what they destroyed, in Postgres.

Source: ports.retention, which says what each method promises.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Select, TextClause, and_, bindparam, literal, select, text, tuple_

from datasource_governance.domain.actor import ActorId
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.disposition import Application, DisposedTarget
from datasource_governance.domain.materialization import Disposition, Materialization
from datasource_governance.domain.policy_version import PolicyKind, PolicyVersion
from datasource_governance.domain.retention import Candidate, RetentionClass, TargetKind
from datasource_governance.domain.retention_plan import (
    PlannedTarget,
    PlanReference,
    RetentionPlan,
    StoredPlan,
)
from datasource_governance.domain.target import Target
from datasource_governance.persistence import candidates, mapping, tables
from datasource_governance.persistence.disposing import dispose
from datasource_governance.persistence.locks import Place
from datasource_governance.persistence.rows import Row, Rows

_DATASOURCE, _POLICY, _DISPOSITION = tables.datasource, tables.policy_version, tables.disposition
_PLAN = tables.retention_plan
_PURGING: Select[Any] = (
    select(tables.materialization)
    .join(
        _DISPOSITION,
        and_(
            _DISPOSITION.c.tenant == tables.materialization.c.tenant,
            _DISPOSITION.c.kind == TargetKind.MATERIALIZATION,
            _DISPOSITION.c.subject == tables.materialization.c.id,
        ),
    )
    .where(_DISPOSITION.c.tenant == bindparam("tenant"), _DISPOSITION.c.plan == bindparam("plan"))
    .where(tables.materialization.c.disposition == Disposition.PURGING)
    .order_by(tables.materialization.c.id)
)
_USES: Final = text("""
SELECT (SELECT count(*) FROM governance.materialization m
        WHERE m.tenant = :tenant AND governance.locator(m.artifact) = :locator
            AND m.artifact IS NOT NULL AND m.disposition = 'retained')
    + (SELECT count(*) FROM governance.stage s
        WHERE s.tenant = :tenant AND governance.locator(s.artifact) = :locator
            AND s.artifact IS NOT NULL AND s.state IN ('ready', 'awaiting_approval')) AS uses
""")
_PURGES: Final = text("""
SELECT coalesce(bool_or(m.disposition = 'purging'), false) AS purging,
    count(*) FILTER (WHERE m.disposition = 'purged') AS purged
FROM governance.materialization m
WHERE m.tenant = :tenant AND governance.locator(m.artifact) = :locator AND m.artifact IS NOT NULL
""")


class PostgresRetention:
    """See ports.retention.Retention."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def lock(self) -> None:
        """See ports.retention.Retention."""
        self._rows.locks.retention()

    def governing(self, datasource: str | None) -> Sequence[tuple[Target, PolicyVersion]]:
        """See ports.retention.Retention."""
        return self._with_policies(self._rows.all(self._governed(datasource)))

    def governing_for_update(
        self, datasource: str | None
    ) -> Sequence[tuple[Target, PolicyVersion]]:
        """See ports.retention.Retention."""
        self._rows.locks.hold_authority()
        governed = self._governed(datasource)
        names = [row["id"] for row in self._rows.all(governed.with_only_columns(_DATASOURCE.c.id))]
        for name in names:
            self._rows.locks.take(Place.DATASOURCE, name)
        # Whichever came meanwhile is not locked, and so not among them.
        named = governed.where(_DATASOURCE.c.id.in_(names))
        return self._with_policies(self._rows.all(named.with_for_update()))

    def _governed(self, datasource: str | None) -> Select[Any]:
        named = {} if datasource is None else {"id": datasource}
        governed = self._rows.of(_DATASOURCE, **named).order_by(_DATASOURCE.c.id)
        return governed.where(_DATASOURCE.c.retention_policy_hash.is_not(None))

    def _with_policies(self, governed: Sequence[Row]) -> Sequence[tuple[Target, PolicyVersion]]:
        query = self._rows.of(_POLICY, kind=str(PolicyKind.RETENTION))
        hashes = {row["retention_policy_hash"] for row in governed}
        kept = self._rows.all(query.where(_POLICY.c.hash.in_(sorted(hashes))))
        versions = {(row["datasource"], row["hash"]): row for row in kept}
        found = [
            (mapping.target(row), versions.get((row["id"], row["retention_policy_hash"])))
            for row in governed
        ]
        return [
            (target, mapping.policy_version(self._rows.known(version, _policy_of(target))))
            for target, version in found
        ]

    def candidates(
        self, datasource: str, retention_class: RetentionClass, created_until: datetime
    ) -> Sequence[Candidate]:
        """See ports.retention.Retention."""
        asked = {"tenant": self._rows.tenant, "datasource": datasource, "until": created_until}
        found = self._rows.connection.run(candidates.DUE[retention_class], asked)
        return [candidates.candidate(row, retention_class) for row in found]

    def candidate(self, subject: str) -> Candidate | None:
        """See ports.retention.Retention."""
        row = self._rows.find(tables.stage, id=subject)
        row = row or self._rows.find(tables.materialization, id=subject)
        if row is None:
            return None
        asked = {
            "tenant": self._rows.tenant,
            "datasource": row["datasource"],
            "until": row["created_at"],
            "id": subject,
        }
        for retention_class, query in candidates.ONE.items():
            for found in self._rows.connection.run(query, asked):
                return candidates.candidate(found, retention_class)
        return None

    def add_plan(self, plan: RetentionPlan, planned_by: ActorId, now: datetime) -> None:
        """See ports.retention.Retention."""
        row = {
            "hash": plan.hash,
            "datasource": plan.datasource,
            "as_of": plan.as_of,
            "body": plan.body,
            "planned_by": planned_by,
            "created_at": now,
        }
        self._rows.insert(tables.retention_plan, row)

    def plan(self, plan_hash: str) -> StoredPlan | None:
        """See ports.retention.Retention."""
        row = self._rows.find(tables.retention_plan, hash=plan_hash)
        return mapping.stored_plan(row) if row else None

    def plan_hashes(self, beginning: str, limit: int) -> Sequence[Sha256]:
        """See ports.retention.Retention."""
        named = self._rows.of(_PLAN).with_only_columns(_PLAN.c.hash).order_by(_PLAN.c.hash)
        query = named.where(_PLAN.c.hash.startswith(beginning, autoescape=True)).limit(limit)
        return [Sha256(row["hash"]) for row in self._rows.all(query)]

    def plans(self, limit: int) -> Sequence[StoredPlan]:
        """See ports.retention.Retention."""
        query = self._rows.of(_PLAN).order_by(_PLAN.c.created_at.desc(), _PLAN.c.hash).limit(limit)
        return [mapping.stored_plan(row) for row in self._rows.all(query)]

    def page(self, before: PlanReference | None, limit: int) -> Sequence[PlanReference]:
        """See ports.retention.Retention."""
        created_at, name = _PLAN.c.created_at, _PLAN.c.hash
        query = self._rows.of(_PLAN).with_only_columns(name.label("id"), created_at)
        if before is not None:
            place = tuple_(literal(before.created_at), literal(before.id))
            query = query.where(tuple_(created_at, name) < place)
        ordered = query.order_by(created_at.desc(), name.desc()).limit(limit)
        return [PlanReference(**row) for row in self._rows.all(ordered)]

    def known(self, hashes: Collection[str]) -> Collection[str]:
        """See ports.retention.Retention."""
        named = self._rows.of(_PLAN).where(_PLAN.c.hash.in_(sorted(hashes)))
        return {row["hash"] for row in self._rows.all(named.with_only_columns(_PLAN.c.hash))}

    def application(self, plan_hash: str) -> Application | None:
        """See ports.retention.Retention."""
        row = self._rows.find(tables.retention_application, plan=plan_hash)
        return mapping.application(row) if row else None

    def add_application(self, application: Application) -> None:
        """See ports.retention.Retention."""
        self._rows.insert(tables.retention_application, mapping.flat_row(application))

    def dispose(
        self, targets: Sequence[PlannedTarget], plan_hash: Sha256, now: datetime
    ) -> Sequence[DisposedTarget]:
        """See ports.retention.Retention."""
        return dispose(self._rows, targets, plan_hash, now)

    def dispositions(self, plan_hash: str) -> Sequence[DisposedTarget]:
        """See ports.retention.Retention."""
        table = _DISPOSITION
        query = self._rows.of(table, plan=plan_hash)
        rows = self._rows.all(query.order_by(table.c.datasource, table.c.kind, table.c.subject))
        return [mapping.disposed_target(row) for row in rows]

    def disposition_of(self, subject: str) -> DisposedTarget | None:
        """See ports.retention.Retention."""
        for kind in TargetKind:
            row = self._rows.find(_DISPOSITION, kind=kind, subject=subject)
            if row is not None:
                return mapping.disposed_target(row)
        return None

    def purging(self, plan_hash: str) -> Sequence[Materialization]:
        """See ports.retention.Retention."""
        named = {"tenant": self._rows.tenant, "plan": plan_hash}
        return [mapping.materialization(row) for row in self._rows.all(_PURGING, named)]

    def mark_purged(self, materialization: Materialization) -> None:
        """See ports.retention.Retention."""
        purged = replace(materialization, disposition=Disposition.PURGED)
        row = mapping.partitioned_row(purged)
        self._rows.change(tables.materialization, row, disposition=Disposition.PURGING)

    def uses_of_object(self, locator: str) -> int:
        """See ports.retention.Retention."""
        return int(self._about_object(_USES, locator)["uses"])

    def purges_of_object(self, locator: str) -> tuple[bool, int]:
        """See ports.retention.Retention."""
        found = self._about_object(_PURGES, locator)
        return bool(found["purging"]), int(found["purged"])

    def _about_object(self, query: TextClause, locator: str) -> Row:
        (found,) = self._rows.connection.run(
            query, {"tenant": self._rows.tenant, "locator": locator}
        )
        return found


def _policy_of(target: Target) -> str:
    return f"retention policy in force for datasource {target.datasource!r}"
