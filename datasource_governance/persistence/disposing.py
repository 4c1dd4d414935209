"""Destroy what a plan names: the only place that lets a payload go.

Whoever calls has locked the datasource. To delete, the transaction becomes a role that may do
nothing but call `governance.purge_payloads`, which looks itself for what is current and held.

Source: ports.retention, `dispose`; SPEC sections 12, 13 and 17.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Table, TextClause, text

from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.disposition import DisposedTarget
from datasource_governance.domain.retention import TargetKind
from datasource_governance.domain.retention_plan import PlannedTarget
from datasource_governance.errors import GuardError
from datasource_governance.persistence import mapping, tables
from datasource_governance.persistence.rows import Row, Rows


@dataclass(frozen=True, slots=True)
class _Disposing:
    """How one kind of targets ends; `end` gives back each with its state before and after."""

    table: Table
    payload: Table
    end: TextClause


_BY_KIND: Final[Mapping[TargetKind, _Disposing]] = {
    TargetKind.STAGE: _Disposing(
        tables.stage,
        tables.stage_payload,
        text("""
UPDATE governance.stage s SET state = 'deleted'
FROM (SELECT b.id, b.state FROM governance.stage b
    WHERE b.tenant = :tenant AND b.datasource = :datasource AND b.id = ANY (:ids)
        AND b.state <> 'deleted') before
WHERE s.tenant = :tenant AND s.id = before.id
RETURNING s.id, s.state, before.state AS state_before, s.artifact IS NULL AS is_inline
"""),
    ),
    TargetKind.MATERIALIZATION: _Disposing(
        tables.materialization,
        tables.materialization_payload,
        text("""
UPDATE governance.materialization m
SET disposition = CASE WHEN m.artifact IS NULL THEN 'purged' ELSE 'purging' END
WHERE m.tenant = :tenant AND m.datasource = :datasource AND m.id = ANY (:ids)
    AND m.disposition = 'retained'
RETURNING m.id, m.disposition, 'retained' AS state_before, m.artifact IS NULL AS is_inline
"""),
    ),
}
_INSERT: Final = text("""
INSERT INTO governance.disposition
    (tenant, kind, subject, plan, datasource, retention_class, action, state_before, disposed_at)
SELECT :tenant, :kind, t.subject, :plan, :datasource, t.retention_class, :action, t.state_before,
    :disposed_at
FROM unnest(CAST(:subjects AS text[]), CAST(:classes AS text[]), CAST(:states AS text[]))
    AS t (subject, retention_class, state_before)
""")
_BECOME: Final = text("SELECT set_config('role', governance.retention_role(), true)")
_PURGE: Final = text("SELECT governance.purge_payloads(:kind, :subjects) AS purged")
_STEP_BACK: Final = text("SELECT set_config('role', 'none', true)")


def dispose(
    rows: Rows, targets: Sequence[PlannedTarget], plan_hash: Sha256, now: datetime
) -> Sequence[DisposedTarget]:
    """See ports.retention.Retention."""
    disposed: dict[tuple[TargetKind, str], DisposedTarget] = {}
    for kind in TargetKind:
        of_kind = [target for target in targets if target.kind is kind]
        if of_kind:
            ended = _end(rows, kind, of_kind)
            for target in of_kind:
                disposed[kind, target.id] = _disposed(target, ended[target.id], plan_hash, now)
            _record(rows, kind, [disposed[kind, target.id] for target in of_kind])
            _purge(rows, kind, [name for name, row in ended.items() if row["is_inline"]])
    return [disposed[target.kind, target.id] for target in targets]


def _end(rows: Rows, kind: TargetKind, targets: Sequence[PlannedTarget]) -> Mapping[str, Row]:
    """Write the last state of targets, and return each with the one before."""
    disposing = _BY_KIND[kind]
    asked = {
        "tenant": rows.tenant,
        "datasource": targets[0].datasource,
        "ids": [target.id for target in targets],
    }
    ended: dict[str, Row] = {row["id"]: row for row in rows.connection.run(disposing.end, asked)}
    missing = sorted({target.id for target in targets} - ended.keys())
    if missing:
        raise GuardError(
            f"what was to be destroyed is not there any more: {', '.join(missing)}; nothing was "
            "destroyed",
            code="conflict",
        )
    for row in ended.values():
        rows.note_change(disposing.table, row)
    return ended


def _disposed(
    target: PlannedTarget, ended: Row, plan_hash: Sha256, now: datetime
) -> DisposedTarget:
    return DisposedTarget(
        plan=plan_hash,
        kind=target.kind,
        subject=target.id,
        datasource=target.datasource,
        retention_class=target.retention_class,
        action=target.action,
        state_before=ended["state_before"],
        disposed_at=now,
    )


def _record(rows: Rows, kind: TargetKind, disposed: Sequence[DisposedTarget]) -> None:
    """Write dispositions, which alone let payloads go."""
    first = disposed[0]
    written = {
        "tenant": rows.tenant,
        "kind": kind,
        "plan": first.plan,
        "datasource": first.datasource,
        "action": first.action,
        "disposed_at": first.disposed_at,
        "subjects": [one.subject for one in disposed],
        "classes": [str(one.retention_class) for one in disposed],
        "states": [one.state_before for one in disposed],
    }
    rows.connection.later(_INSERT, written)
    for one in disposed:
        rows.note(tables.disposition, mapping.flat_row(one))


def _purge(rows: Rows, kind: TargetKind, subjects: Sequence[str]) -> None:
    if not subjects:
        return
    rows.connection.later(_BECOME, {})
    rows.connection.later(_PURGE, {"kind": kind, "subjects": list(subjects)})
    rows.connection.later(_STEP_BACK, {})
    for subject in subjects:
        rows.note_purge(_BY_KIND[kind].payload, subject)
