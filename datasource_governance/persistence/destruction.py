"""Hold everything that was destroyed against the plan that somebody signed to apply.

The chains show what is gone; this shows that it was due, in a plan, and chosen by whoever applied
it: whoever rewrites a whole chain cannot sign that.

Source: SPEC sections 12 and 13.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from datasource_governance.domain.evidence import Break, BreakKind, Committed, Key, Place, RowState
from datasource_governance.domain.retention import TargetKind
from datasource_governance.domain.retention_plan import PlannedTarget, targets_hash
from datasource_governance.errors import GuardError
from datasource_governance.persistence import mapping, tables
from datasource_governance.persistence.rows import Row, Rows, row_key

_KINDS = {
    tables.stage_payload.name: TargetKind.STAGE,
    tables.materialization_payload.name: TargetKind.MATERIALIZATION,
}


def find_unplanned(rows: Rows) -> Iterator[Break]:
    """Yield dispositions that no plan allows, or that whoever applied it did not choose."""
    by_plan = defaultdict[str, list[Row]](list)
    for row in rows.all(rows.of(tables.disposition)):
        by_plan[row["plan"]].append(row)
    applied = {row["plan"]: row for row in rows.all(rows.of(tables.retention_application))}
    for plan, disposed in by_plan.items():
        chosen = _is_chosen(disposed, applied.get(plan))
        planned = _planned(rows, plan) if chosen else {}
        for row in disposed:
            if not _is_planned(row, planned.get((row["kind"], row["subject"]))):
                yield Break(
                    kind=BreakKind.UNSIGNED_ROW,
                    table=tables.disposition.name,
                    key=row_key(tables.disposition, row),
                    message="nobody applied a plan to it",
                )


def _is_chosen(disposed: list[Row], application: Row | None) -> bool:
    """Whether whoever applied a plan named exactly these."""
    if application is None:
        return False
    return bool(targets_hash(row["subject"] for row in disposed) == application["targets"])


def _planned(rows: Rows, plan: str) -> Mapping[tuple[str, str], PlannedTarget]:
    """Return the targets of a plan; of one that was spoiled, none."""
    row = rows.find(tables.retention_plan, hash=plan)
    try:
        targets = mapping.stored_plan(row).plan.targets if row else ()
    except GuardError:
        targets = ()
    return {(str(target.kind), target.id): target for target in targets}


def _is_planned(row: Row, target: PlannedTarget | None) -> bool:
    if target is None or target.is_blocked:
        return False
    said = (row["datasource"], row["retention_class"], row["action"])
    return said == (target.datasource, target.retention_class, target.action)


def find_unaccounted(committed: Committed, present: Mapping[Place, RowState]) -> Iterator[Break]:
    """Yield payloads that evidence says were purged, and that no disposition names."""
    for (table, key), said in committed.items():
        if said is None and (tables.disposition.name, _disposition_of(table, key)) not in present:
            yield Break(
                kind=BreakKind.MISSING_ROW,
                table=table,
                key=key,
                message="it was purged under no plan",
            )


def _disposition_of(table: str, key: Key) -> Key:
    """Return the key of the disposition that lets a payload go: tenant, kind and subject."""
    return (*key[:1], str(_KINDS[table]), *key[1:])
