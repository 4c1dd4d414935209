"""Rows of DuckDB in the typed form, through its own Arrow interface.

SQLAlchemy's reflection does not know DuckDB's catalogue, so keys are looked up in it directly.

Source: SPEC section 3, "no value ever passes through a lossy type"; DuckDB, "Data Types".
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, text
from sqlalchemy.exc import NoSuchTableError

from datasource_governance.errors import Problem
from datasource_governance.sources.limits import Limits, check, column_problems, size_problems
from datasource_governance.sources.objects import integer_column
from datasource_governance.sources.refusal import refused
from datasource_governance.sources.selection import (
    RESULT,
    Selection,
    unsupported_type,
    unsupported_values,
)
from datasource_governance.sources.typed import Column, check_names, table_of

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS = 100_000
_MICROSECONDS_PER_DAY = 86_400_000_000
_SCALARS: Final = frozenset(
    {"boolean", "tinyint", "smallint", "integer", "bigint"}
    | {"utinyint", "usmallint", "uinteger", "ubigint"}
    | {"float", "double", "decimal", "varchar", "enum", "uuid", "blob", "null", "date", "time"}
    | {"timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone"}
)
_LISTS: Final = frozenset({"list", "array"})
_WIDE_INTEGER = "hugeint"
"""Arrow gets it as a decimal, which it is not; sums of integers are of this type."""


class DuckDb:
    """Reads through duckdb-engine."""

    options: Mapping[str, Any] = MappingProxyType({})

    def primary_key(
        self, connection: Connection, table: str, schema: str | None
    ) -> tuple[str, ...]:
        """Return the columns of the primary key, in its order. DuckDB ignores the case of names.

        Raises:
            NoSuchTableError: there is no such table or view.
        """
        found = connection.execute(
            text(
                "SELECT k.constraint_column_names FROM information_schema.tables t"
                " LEFT JOIN duckdb_constraints() k ON k.constraint_type = 'PRIMARY KEY'"
                " AND k.database_name = t.table_catalog AND k.schema_name = t.table_schema"
                " AND k.table_name = t.table_name"
                " WHERE t.table_catalog = current_database()"
                " AND lower(t.table_schema) = lower(coalesce(:schema, current_schema()))"
                " AND lower(t.table_name) = lower(:table)"
            ),
            {"table": table, "schema": schema},
        ).all()
        if not found:
            raise NoSuchTableError(table)
        return tuple(found[0][0] or ())

    def read(self, connection: Connection, selection: Selection, limits: Limits) -> "pa.Table":
        """Return the rows of one statement.

        Raises:
            UnreadableSourceError: as `read_sql`.
        """
        driver: Any = connection.connection.driver_connection
        for statement in selection:
            if len(driver.extract_statements(statement)) != 1:
                raise refused(RESULT, "unreadable", "a SQL source is one statement")
        # In a subquery DuckDB renames what is repeated: the names are those before it is ordered.
        check_names(driver.sql(selection.statement).columns, what=RESULT)
        relation = driver.sql(selection.ordered)
        names, types = relation.columns, relation.types
        check(RESULT, [*column_problems(len(names), limits), *_unsupported(names, types)])
        table = _fetched(relation, limits)
        check(RESULT, _unsupported_values(table))
        columns = [
            _column(column, kind.id) for column, kind in zip(table.columns, types, strict=True)
        ]
        return table_of(names, columns)


def _unsupported(names: list[str], types: list[Any]) -> list[Problem]:
    return [
        unsupported_type(name, str(kind))
        for name, kind in zip(names, types, strict=True)
        if kind.id != _WIDE_INTEGER and not _is_read(kind)
    ]


def _is_read(kind: Any) -> bool:  # noqa: ANN401 - a type of DuckDB's own
    if kind.id in _LISTS:
        return _is_read(kind.children[0][1])
    return kind.id in _SCALARS


def _fetched(relation: Any, limits: Limits) -> "pa.Table":  # noqa: ANN401 - a relation of DuckDB's own
    import pyarrow as pa

    reader = relation.to_arrow_reader(_BATCH_ROWS)
    batches = []
    size = 0
    for batch in reader:
        size += batch.nbytes
        check(RESULT, size_problems(size, limits))
        batches.append(batch)
    return pa.Table.from_batches(batches, schema=reader.schema)


def _unsupported_values(table: "pa.Table") -> list[Problem]:
    counts = {
        name: sum(_beyond(chunk) for chunk in column.chunks)
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return [unsupported_values(name, count) for name, count in counts.items() if count]


def _beyond(array: "pa.Array") -> int:
    """Count infinite dates and datetimes, kept as the outermost integers, and times of 24:00."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_nested(kind):
        return _beyond(array.flatten())
    if not pa.types.is_temporal(kind):
        return 0
    integers = array.view(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    outermost = 2 ** (kind.bit_width - 1) - 1
    most = _MICROSECONDS_PER_DAY if pa.types.is_time(kind) else outermost
    return int(pc.sum(pc.greater_equal(pc.abs(integers), most), min_count=0).as_py())


def _column(column: "pa.ChunkedArray", kind: str) -> Column:
    import pyarrow as pa

    if kind == _WIDE_INTEGER:
        integers = [None if cell is None else int(cell) for cell in column.to_pylist()]
        known = [one for one in integers if one is not None] or [0]
        return integer_column(integers, min(known), max(known))
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        # The session's zone is no part of the content.
        return Column(column.cast(pa.timestamp(column.type.unit, "UTC")))
    return Column(column)
