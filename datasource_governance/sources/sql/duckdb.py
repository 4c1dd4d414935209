"""Rows of DuckDB in the typed form, through its own Arrow interface.

SQLAlchemy's reflection does not know DuckDB's catalogue, so keys are looked up in it directly.

Source: SPEC section 3, "no value ever passes through a lossy type"; DuckDB, "Data Types".
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, text

from datasource_governance.errors import Problem
from datasource_governance.sources.limits import Limits, check, column_problems
from datasource_governance.sources.objects import integer_column
from datasource_governance.sources.refusal import refused
from datasource_governance.sources.sql.batches import Extent, Fetched
from datasource_governance.sources.sql.selection import RESULT, Selection, unsupported_type
from datasource_governance.sources.typed import Column, check_names

if TYPE_CHECKING:
    import pyarrow as pa

_VECTOR_ROWS = 2048
"""DuckDB's own unit, which it never divides."""
_WIDE_ROW_BYTES = 4096
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
            UnreadableSourceError: kind `not_found`; there is no such table or view.
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
            raise refused(table, "not_found", "no such table or view")
        return tuple(found[0][0] or ())

    def result(
        self, connection: Connection, selection: Selection, limits: Limits
    ) -> "DuckDbResult":
        """Return what a selection gives, which must be of one statement.

        Raises:
            UnreadableSourceError: as `read_sql`.
        """
        driver: Any = connection.connection.driver_connection
        for statement in (selection.statement, selection.ordered):
            if len(driver.extract_statements(statement)) != 1:
                raise refused(RESULT, "unreadable", "a SQL source is one statement")
        # In a subquery DuckDB renames what is repeated: the names are those before it is ordered.
        check_names(driver.sql(selection.statement).columns, what=RESULT)
        relation = driver.sql(f"{selection.ordered} LIMIT 0")
        names, types = relation.columns, relation.types
        check(RESULT, [*column_problems(len(names), limits), *_unsupported(names, types)])
        integers = frozenset(
            name for name, kind in zip(names, types, strict=True) if kind.id == _WIDE_INTEGER
        )
        return DuckDbResult(connection, selection, relation.to_arrow_table(), integers)


@dataclass(frozen=True, slots=True)
class DuckDbResult:
    """Implements `Result`; DuckDB keeps one run open at a time. `integers` are the wide ones."""

    connection: Connection
    selection: Selection
    empty: "pa.Table"
    integers: frozenset[str]

    @property
    def surveyed(self) -> Sequence[str]:
        """The columns of wide integers, dates and times, also in lists."""
        return [
            field.name
            for field in self.empty.schema
            if field.name in self.integers or _is_temporal(field.type)
        ]

    def fetched(self, names: Sequence[str] | None, batch_bytes: int) -> Iterator[Fetched]:
        """Fetch as many rows at a time as fill a batch if they are wide."""
        import pyarrow as pa

        statement = self.selection.ordered if names is None else self.selection.of(names)
        surveyed = self.surveyed
        driver: Any = self.connection.connection.driver_connection
        count = max(_VECTOR_ROWS, batch_bytes // _WIDE_ROW_BYTES)
        with closing(driver.sql(statement).to_arrow_reader(count)) as reader:
            for batch in reader:
                rows = pa.Table.from_batches([batch])
                yield Fetched(
                    rows, {name: self._extent(name, rows.column(name)) for name in surveyed}
                )

    def _extent(self, name: str, column: "pa.ChunkedArray") -> Extent:
        if name not in self.integers:
            return Extent(unsupported=sum(map(_beyond, column.chunks)))
        integers = [int(cell) for cell in column.drop_null().to_pylist()]
        return Extent(lowest=min(integers, default=0), highest=max(integers, default=0))

    def finished(self, rows: "pa.Table", extents: Mapping[str, Extent]) -> list[Column]:
        """Return wide integers in the type that holds them all, and all else as it is."""
        return [
            _integers(column, extents.get(name, Extent()))
            if name in self.integers
            else Column(column.cast(_in_utc(column.type)))
            for name, column in zip(rows.column_names, rows.columns, strict=True)
        ]


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


def _is_temporal(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    return _is_temporal(kind.value_type) if pa.types.is_nested(kind) else pa.types.is_temporal(kind)


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


def _integers(column: "pa.ChunkedArray", extent: Extent) -> Column:
    integers = [None if cell is None else int(cell) for cell in column.to_pylist()]
    return integer_column(integers, extent.lowest, extent.highest)


def _in_utc(kind: "pa.DataType") -> "pa.DataType":
    """Leave out the zone of the session, which is no part of the content."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        member = kind.value_field.with_type(_in_utc(kind.value_type))
        return pa.list_(member, kind.list_size if pa.types.is_fixed_size_list(kind) else -1)
    return kind
