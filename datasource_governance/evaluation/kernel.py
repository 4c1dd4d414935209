"""One rule over typed columns: how many rows violate it, and the first of them.

A rule becomes one bit per row; counting the bits and finding the first 25 costs the same whether
one row fails or all do. Field names are only ever compared: columns are taken by position.

Source: SPEC sections 2.1 and 5; acceptance decisions without a switch.
"""

import functools
from typing import TYPE_CHECKING

from datasource_governance.domain.quality_policy import (
    FieldRule,
    NotNullRule,
    RangeRule,
    ReferentialRule,
    RequiredFieldsRule,
    RowCountRule,
    Rule,
    UniqueRule,
)
from datasource_governance.domain.validation import (
    MAXIMUM_ROWS_LISTED,
    Reason,
    RuleOutcome,
    Status,
)
from datasource_governance.evaluation.bounds import outside
from datasource_governance.evaluation.columns import Column, FrameColumns
from datasource_governance.evaluation.detect import logical_type
from datasource_governance.evaluation.membership import listed
from datasource_governance.evaluation.uniqueness import duplicated

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 1 << 16


def evaluate_rule(rule: Rule, columns: FrameColumns) -> RuleOutcome:
    """Return what one rule finds.

    A rule about an absent field fails and names every absent field. Over zero rows rules about rows
    pass with 0. No value makes a rule raise.
    """
    missing = tuple(name for name in rule.fields if name not in columns)
    if missing:
        return _outcome(rule, Reason.MISSING_FIELD, fields=missing)
    if isinstance(rule, RowCountRule):
        return _outcome(rule, None if _counts(rule, columns.row_count) else Reason.ROW_COUNT)
    if isinstance(rule, RequiredFieldsRule):
        return _outcome(rule, None)
    parts = [columns[name] for name in rule.fields]
    if isinstance(rule, FieldRule):
        return _evaluate_field(rule, parts)
    if isinstance(rule, UniqueRule):
        return _evaluate_unique(rule, parts, columns.row_count)
    mask, reason = _violations(rule, parts)
    return _about_rows(rule, reason, mask)


def not_evaluated(rule: Rule) -> RuleOutcome:
    """Return the outcome of a rule that could not be evaluated; it never counts as passed."""
    return RuleOutcome(
        id=rule.id,
        type=rule.type,
        severity=rule.severity,
        status=Status.ERROR,
        fields=rule.fields,
        reason=Reason.NOT_EVALUATED,
    )


def _counts(rule: RowCountRule, rows: int) -> bool:
    enough = rule.minimum is None or rows >= rule.minimum
    return enough and (rule.maximum is None or rows <= rule.maximum)


def _evaluate_field(rule: FieldRule, parts: list[Column]) -> RuleOutcome:
    (column,) = parts
    if rule.data_type is not None and not logical_type(column.field).meets(rule.data_type):
        return _outcome(rule, Reason.TYPE_MISMATCH)
    if rule.nullable is not False:
        return _outcome(rule, None)
    return _about_rows(rule, Reason.NULLABILITY, column.nulls())


def _evaluate_unique(rule: UniqueRule, parts: list[Column], row_count: int) -> RuleOutcome:
    places = duplicated(parts, row_count, ignore_nulls=rule.ignore_nulls)
    listed_rows = tuple(int(place) + 1 for place in places[:MAXIMUM_ROWS_LISTED])
    reason = Reason.DUPLICATE if len(places) else None
    return _outcome(rule, reason, affected=len(places), rows=listed_rows)


def _violations(
    rule: NotNullRule | RangeRule | ReferentialRule, parts: list[Column]
) -> tuple["pa.Array | pa.ChunkedArray", Reason]:
    import pyarrow.compute as pc

    if isinstance(rule, NotNullRule):
        return _any_null(parts), Reason.NULL
    (column,) = parts
    if isinstance(rule, RangeRule):
        mask, reason = outside(column, rule), Reason.OUT_OF_RANGE
    else:
        mask, reason = pc.invert(listed(column, rule.allowed_values)), Reason.NOT_ALLOWED
    if column.has_nulls:
        mask = pc.if_else(column.nulls(), not rule.allow_null, mask)
    return mask, reason


def _any_null(parts: list[Column]) -> "pa.Array | pa.ChunkedArray":
    """Return true where any of the fields is null; a row counts once."""
    import pyarrow.compute as pc

    return functools.reduce(pc.or_, (column.nulls() for column in parts))


def _about_rows(rule: Rule, reason: Reason, mask: "pa.Array | pa.ChunkedArray") -> RuleOutcome:
    import pyarrow.compute as pc

    affected = pc.sum(mask).as_py() or 0
    rows: list[int] = []
    start = 0
    while len(rows) < min(affected, MAXIMUM_ROWS_LISTED):
        found = pc.indices_nonzero(mask.slice(start, _BLOCK))
        wanted = MAXIMUM_ROWS_LISTED - len(rows)
        rows += [start + place + 1 for place in found.slice(0, wanted).to_pylist()]
        start += _BLOCK
    return _outcome(rule, reason if affected else None, affected=affected, rows=tuple(rows))


def _outcome(
    rule: Rule,
    reason: Reason | None,
    *,
    fields: tuple[str, ...] | None = None,
    affected: int | None = None,
    rows: tuple[int, ...] | None = None,
) -> RuleOutcome:
    return RuleOutcome(
        id=rule.id,
        type=rule.type,
        severity=rule.severity,
        status=Status.PASSED if reason is None else Status.FAILED,
        fields=rule.fields if fields is None else fields,
        affected=affected,
        rows=rows,
        reason=reason,
    )
