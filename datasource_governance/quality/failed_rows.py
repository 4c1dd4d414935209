"""The rows that violate a rule, as one SELECT: what is counted, whichever framework runs it.

A constant is selected for each such row, so that no cell can get out, however a framework samples
or logs what it is given.

Source: SPEC sections 2.1 and 14; facts on the quality plugin, 8.6, 8.8 and 8.9.
"""

from typing import TYPE_CHECKING

from datasource_governance.domain.quality_expectation import ContentRule
from datasource_governance.domain.rules import (
    NotNullRule,
    RangeRule,
    ReferentialRule,
    RowCountRule,
    UniqueRule,
)
from datasource_governance.quality.literals import column_reference, number_literal, relation_name
from datasource_governance.quality.sql_columns import ALWAYS, NEVER, SqlColumn, sql_column

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["affected", "failed_rows", "relation_name"]

_MOST_ROWS = (1 << 63) - 1
"""More than any table has: a count is of 64 bits."""


def failed_rows(rule: ContentRule, columns: "pa.Schema", dialect: str, relation: str) -> str | None:
    """Return a query that has one row for each row that violates the rule; see `SqlTarget`.

    For `row_count` it has one row where the count is out of bounds. None where the database does
    not compare as the native evaluator does: whether lists are unique.

    Args:
        rule: One whose fields are all among the columns.
        columns: All columns of the relation, with the Arrow types that they are read as.
        dialect: `postgresql` or `duckdb`.
        relation: What follows FROM, as `relation_name` spells it.
    """
    if isinstance(rule, RowCountRule):
        return _selected(f"(SELECT count(*) AS n FROM {relation}) AS counted", _miscounted(rule))  # noqa: S608 - the caller's relation
    alias = _alias(columns)
    found = [
        sql_column(column_reference(name, dialect, alias), columns.field(name).type, dialect)
        for name in rule.fields
    ]
    relation = f"{relation} AS {alias}"
    if isinstance(rule, UniqueRule):
        return _repeated(rule, found, relation)
    return _selected(relation, _violated(rule, found))


def affected(rule: ContentRule, columns: "pa.Schema", dialect: str, relation: str) -> str | None:
    """Return a query for the number of such rows; see `failed_rows`."""
    query = failed_rows(rule, columns, dialect, relation)
    return query and f"SELECT count(*) AS affected FROM ({query}) AS failed_rows"  # noqa: S608 - written here


def _selected(relation: str, condition: str) -> str:
    return f"SELECT 1 AS failed FROM {relation} WHERE {condition}"  # noqa: S608 - of escaped parts


def _miscounted(rule: RowCountRule) -> str:
    if rule.minimum is not None and rule.minimum > _MOST_ROWS:
        return ALWAYS
    sides = [] if rule.minimum is None else [f"n < {number_literal(rule.minimum, 'int8')}"]
    if rule.maximum is not None and rule.maximum < _MOST_ROWS:
        sides.append(f"n > {number_literal(rule.maximum, 'int8')}")
    return " OR ".join(sides) or NEVER


def _violated(rule: NotNullRule | RangeRule | ReferentialRule, columns: list[SqlColumn]) -> str:
    if isinstance(rule, NotNullRule):
        return " OR ".join(column.is_null for column in columns)
    (column,) = columns
    if isinstance(rule, RangeRule):
        wrong = column.outside(rule)
    else:
        wrong = f"NOT ({column.listed(rule.allowed_values)})"
    of_null = NEVER if rule.allow_null else ALWAYS
    return f"CASE WHEN {column.is_null} THEN {of_null} ELSE {wrong} END"


def _repeated(rule: UniqueRule, columns: list[SqlColumn], relation: str) -> str | None:
    keys = [column.key for column in columns if column.key is not None]
    if len(keys) < len(columns):
        return None
    counted = f"SELECT count(*) OVER (PARTITION BY {', '.join(keys)}) AS n FROM {relation}"  # noqa: S608 - of escaped parts
    if rule.ignore_nulls:
        counted += f" WHERE NOT ({' OR '.join(column.is_null for column in columns)})"
    return _selected(f"({counted}) AS counted", "n > 1")


def _alias(columns: "pa.Schema") -> str:
    """Return a name that no column has, in whatever case: DuckDB takes a row by it."""
    taken = {name.lower() for name in columns.names}
    alias = "r"
    while alias in taken:
        alias += "_"
    return alias
