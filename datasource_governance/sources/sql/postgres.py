"""Rows of Postgres in the typed form, from server-side cursors in the binary format.

Source: SPEC section 3, "no value ever passes through a lossy type".
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from psycopg import Column as Described
from psycopg import ServerCursor
from psycopg.types.json import set_json_loads
from psycopg.types.numeric import Int4BinaryLoader, Int8BinaryLoader
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import NoSuchTableError

from datasource_governance.errors import Problem
from datasource_governance.sources.limits import Limits, check, column_problems
from datasource_governance.sources.refusal import refused
from datasource_governance.sources.sql.batches import Extent, Fetched
from datasource_governance.sources.sql.postgres_columns import (
    Reading,
    list_of,
    numeric,
    readings_by_type,
)
from datasource_governance.sources.sql.selection import RESULT, Selection, unsupported_type
from datasource_governance.sources.typed import Column, check_names

if TYPE_CHECKING:
    import pyarrow as pa

_CURSOR = "datasource_governance"
_cursor_numbers = itertools.count(1)
# Wide rows are found out before many of them are asked for.
_FIRST_ROWS = 16
_GROWTH = 8
_MOST_ROWS = 10_000
_LOADED_AS_INTEGER: Mapping[str, Any] = {
    "date": Int4BinaryLoader,
    "time": Int8BinaryLoader,
    "timestamp": Int8BinaryLoader,
    "timestamptz": Int8BinaryLoader,
}


class Postgres:
    """Reads through psycopg."""

    # One snapshot, and a transaction, which a server-side cursor needs.
    options: Mapping[str, Any] = MappingProxyType(
        {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    )

    def primary_key(
        self, connection: Connection, table: str, schema: str | None
    ) -> tuple[str, ...]:
        """Return the columns of the primary key, in its order.

        Raises:
            UnreadableSourceError: kind `not_found`; there is no such table or view.
        """
        with suppress(NoSuchTableError):
            key = inspect(connection).get_pk_constraint(table, schema)
            return tuple(key["constrained_columns"])
        raise refused(table, "not_found", "no such table or view")

    def result(
        self, connection: Connection, selection: Selection, limits: Limits
    ) -> "PostgresResult":
        """Return what a selection gives; the database takes one statement, and only one that reads.

        Raises:
            UnreadableSourceError: as `read_sql`.
        """
        # Else a scan may begin where another one is, and rows without an order come in a new one.
        connection.exec_driver_sql("SET LOCAL synchronize_seqscans TO off")
        with _cursor(connection) as cursor:
            cursor.execute(selection.ordered.encode())
            described = cursor.description or []
            names = [column.name for column in described]
            check_names(names, what=RESULT)
            check(RESULT, column_problems(len(names), limits))
            readings = _readings(connection, cursor, described)
        return PostgresResult(connection, selection, dict(zip(names, readings, strict=True)))


@dataclass(frozen=True, slots=True)
class PostgresResult:
    """Implements `Result`, with a cursor of its own for each run."""

    connection: Connection
    selection: Selection
    readings: Mapping[str, Reading]

    @property
    def empty(self) -> "pa.Table":
        """Every column, as stored, and no row."""
        import pyarrow as pa

        stored = [(name, reading.stored) for name, reading in self.readings.items()]
        return pa.schema(stored).empty_table()

    @property
    def surveyed(self) -> Sequence[str]:
        """The columns whose readings say so."""
        return [name for name, reading in self.readings.items() if reading.survey]

    def fetched(self, names: Sequence[str] | None, batch_bytes: int) -> Iterator[Fetched]:
        """Fetch as many rows at a time as would fill a batch, but not too many."""
        statement = self.selection.ordered if names is None else self.selection.of(names)
        readings = {name: self.readings[name] for name in names or self.readings}
        with _cursor(self.connection) as cursor:
            cursor.execute(statement.encode())
            count = _FIRST_ROWS
            while rows := cursor.fetchmany(count):
                stored = _stored(readings, rows)
                yield stored
                fit = batch_bytes * len(rows) // max(1, stored.rows.nbytes)
                count = max(1, min(fit, _GROWTH * count, _MOST_ROWS))

    def finished(self, rows: "pa.Table", extents: Mapping[str, Extent]) -> list[Column]:
        """Return the columns as their readings finish them."""
        return [
            self.readings[name].finish(column, extents.get(name, Extent()))
            for name, column in zip(rows.column_names, rows.columns, strict=True)
        ]


@contextmanager
def _cursor(connection: Connection) -> Iterator["ServerCursor[Any]"]:
    driver: Any = connection.connection.driver_connection
    with driver.cursor(f"{_CURSOR}_{next(_cursor_numbers)}", binary=True) as cursor:
        _keep_range(cursor)
        yield cursor


def _keep_range(cursor: "ServerCursor[Any]") -> None:
    """Load dates and times as integers and JSON as text, on this cursor alone."""
    for name, loader in _LOADED_AS_INTEGER.items():
        cursor.adapters.register_loader(name, loader)
    set_json_loads(_text_of, cursor)


def _text_of(json: str | bytes) -> str:
    return json if isinstance(json, str) else json.decode()


def _readings(
    connection: Connection, cursor: "ServerCursor[Any]", described: Sequence[Described]
) -> list[Reading]:
    found = [_reading(cursor, column) for column in described]
    check(
        RESULT,
        [
            _unsupported(connection, column)
            for column, reading in zip(described, found, strict=True)
            if reading is None
        ],
    )
    return [reading for reading in found if reading is not None]


def _reading(cursor: "ServerCursor[Any]", column: Described) -> Reading | None:
    known = cursor.adapters.types.get(column.type_code)
    if known is None:
        return None
    reading = (
        numeric(column.precision, column.scale)
        if known.name == "numeric"
        else readings_by_type().get(known.name)
    )
    is_array = column.type_code == known.array_oid
    return list_of(reading) if is_array and reading is not None else reading


def _unsupported(connection: Connection, column: Described) -> Problem:
    # A type of the database's own has a name there only.
    spelling = connection.scalar(
        text("SELECT format_type(:type, NULL)"), {"type": column.type_code}
    )
    return unsupported_type(column.name, spelling)


def _stored(readings: Mapping[str, Reading], rows: Sequence[Sequence[object]]) -> Fetched:
    import pyarrow as pa

    arrays, extents = {}, {}
    columns = zip(*rows, strict=True)
    for (name, reading), values in zip(readings.items(), columns, strict=True):
        arrays[name], extent = reading.store(values)
        if reading.survey:
            extents[name] = extent
    return Fetched(pa.table(arrays), extents)
