"""Rows of Postgres in the typed form, from a server-side cursor in the binary format.

Source: SPEC section 3, "no value ever passes through a lossy type".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from psycopg import Column as Described
from psycopg import ServerCursor
from psycopg.types.json import set_json_loads
from psycopg.types.numeric import Int4BinaryLoader, Int8BinaryLoader
from sqlalchemy import Connection, inspect, text

from datasource_governance.errors import Problem
from datasource_governance.sources.cells import UnsupportedCellError
from datasource_governance.sources.limits import Limits, check, column_problems, size_problems
from datasource_governance.sources.postgres_columns import (
    Reading,
    list_of,
    numeric,
    readings_by_type,
)
from datasource_governance.sources.selection import (
    RESULT,
    Selection,
    unsupported_type,
    unsupported_values,
)
from datasource_governance.sources.typed import Column, check_names, table_of

if TYPE_CHECKING:
    import pyarrow as pa

_CURSOR = "datasource_governance"
_BATCH_ROWS = 10_000
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
            NoSuchTableError: there is no such table or view.
        """
        return tuple(inspect(connection).get_pk_constraint(table, schema)["constrained_columns"])

    def read(self, connection: Connection, selection: Selection, limits: Limits) -> "pa.Table":
        """Return the rows; a server-side cursor takes one statement, and only one that reads.

        Raises:
            UnreadableSourceError: as `read_sql`.
        """
        driver: Any = connection.connection.driver_connection
        with driver.cursor(_CURSOR, binary=True) as cursor:
            _keep_range(cursor)
            cursor.execute(selection.ordered.encode())
            described = cursor.description or []
            names = [column.name for column in described]
            check_names(names, what=RESULT)
            check(RESULT, column_problems(len(names), limits))
            readings = _readings(connection, cursor, described)
            stored = _fetched(cursor, readings, limits)
        return _typed(names, stored)


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


@dataclass(slots=True)
class _Stored:
    """What was fetched of a column so far, and how many of its values could not be stored."""

    reading: Reading
    chunks: "list[pa.Array]" = field(default_factory=list)
    unsupported: int = 0

    def add(self, values: Sequence[object]) -> int:
        """Keep the values of one more batch; return the bytes that they take."""
        import pyarrow as pa

        if prepare := self.reading.prepare:
            values = [None if value is None else self._prepared(prepare, value) for value in values]
        self.chunks.append(pa.array(values, self.reading.stored))
        return int(self.chunks[-1].nbytes)

    def _prepared(self, prepare: Callable[[Any], object], value: object) -> object:
        try:
            return prepare(value)
        except UnsupportedCellError:
            self.unsupported += 1
        return None

    def finish(self) -> tuple[Column, int]:
        """Return the column, and how many of its values none can hold."""
        import pyarrow as pa

        column, beyond = self.reading.finish(pa.chunked_array(self.chunks, self.reading.stored))
        return column, self.unsupported + beyond


def _fetched(
    cursor: "ServerCursor[Any]", readings: Sequence[Reading], limits: Limits
) -> list[_Stored]:
    stored = [_Stored(reading) for reading in readings]
    size = 0
    while rows := cursor.fetchmany(_BATCH_ROWS):
        columns = zip(*rows, strict=True)
        size += sum(one.add(values) for one, values in zip(stored, columns, strict=True))
        check(RESULT, size_problems(size, limits))
    return stored


def _typed(names: Sequence[str], stored: Sequence[_Stored]) -> "pa.Table":
    finished = [one.finish() for one in stored]
    check(
        RESULT,
        [
            unsupported_values(name, count)
            for name, (_, count) in zip(names, finished, strict=True)
            if count
        ],
    )
    return table_of(names, [column for column, _ in finished])
