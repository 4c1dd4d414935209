"""A SQL table as it is now: whether it can be read, its columns, and how old it is.

Every statement ends in time: Postgres ends it by itself, DuckDB is interrupted. Of how old a table
is only a share comes out of the database, so that no cell does.

Source: SPEC sections 5 and 14.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Timer
from typing import TYPE_CHECKING, Any

from datasource_governance.errors import UnreadableSourceError
from datasource_governance.sources.sql.read import SqlSource, sql_schema
from datasource_governance.sources.sql.selection import quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlalchemy import Connection, Engine

_MOST_PERCENT = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTable:
    """A table or view of Postgres or DuckDB. `url` is a SQLAlchemy URL, with its password."""

    url: str = field(repr=False)
    table: str
    schema: str | None
    timeout_seconds: int

    def is_readable(self) -> bool:
        """Tell whether the table can be read now, without reading a row of it."""
        try:
            self._asked("SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT 0) AS nothing")
        except UnreadableSourceError:
            return False
        return True

    def columns(self) -> "pa.Schema":
        """Return the columns with the Arrow types that they are read as.

        Raises:
            UnreadableSourceError: as `sql_schema`.
        """
        with self._engine() as engine:
            return sql_schema(SqlSource(engine, table=self.table, schema=self.schema))

    def used_percent(self, column: str, allowed_seconds: float) -> int | None:
        """Return how much of an age is used by the latest instant of a column, in whole percent.

        None where no row has one. An instant without a zone counts as UTC, a date as its midnight.

        Raises:
            UnreadableSourceError: the table or column cannot be read, or is of no instants.
        """
        latest = f"max(CAST({quoted(column)} AS timestamptz))"
        age = f"extract(epoch FROM (now() - {latest})) / {float(allowed_seconds)!r}"
        # Without a row there is no age, of which `greatest` would make 0.
        share = (
            f"CASE WHEN {latest} IS NOT NULL"
            f" THEN floor(least(greatest(100 * {age}, 0), {_MOST_PERCENT})) END"
        )
        found = self._asked(f"SELECT {share} FROM {{table}}")  # noqa: S608 - quoted above
        return None if found is None else int(found)

    def _asked(self, statement: str) -> Any:  # noqa: ANN401 - a number of the database, or None
        """Return the one value that a statement gives; the driver's own words go no further."""
        relation = ".".join(map(quoted, filter(None, (self.schema, self.table))))
        from sqlalchemy import text

        # Quoted names may have colons, which would be parameters.
        asked = text(statement.replace("{table}", relation).replace(":", r"\:"))
        problem = None
        try:
            with self._connection() as connection:
                return connection.execute(asked).scalar()
        except Exception as error:  # noqa: BLE001 - the border that a driver's words do not cross
            problem = type(error).__name__
        raise unreadable(self.table, problem)

    @contextmanager
    def _connection(self) -> "Iterator[Connection]":
        with (
            self._engine() as engine,
            engine.connect() as connection,
            _interrupted(connection, self.timeout_seconds),
        ):
            _use_utc(connection)
            yield connection

    @contextmanager
    def _engine(self) -> "Iterator[Engine]":
        from sqlalchemy import NullPool, create_engine

        seconds = self.timeout_seconds
        options: dict[str, Any] = {}
        if not self.url.startswith("duckdb"):
            options = {
                "connect_timeout": seconds,
                "options": f"-c statement_timeout={seconds}s -c lock_timeout={seconds}s",
            }
        problem, engine = None, None
        try:
            engine = create_engine(
                self.url, poolclass=NullPool, hide_parameters=True, connect_args=options
            )
        except Exception as error:  # noqa: BLE001 - its text may quote the URL, with its password
            problem = type(error).__name__
        if engine is None:
            raise unreadable(self.table, problem)
        try:
            yield engine
        finally:
            engine.dispose()


def unreadable(table: str, problem: str | None) -> UnreadableSourceError:
    """Return the error of a table that cannot be read, with the name of the error as its fact."""
    from datasource_governance.sources.refusal import refused

    return refused(table, "unreadable", f"the database answered with {problem}")


@contextmanager
def _interrupted(connection: "Connection", seconds: int) -> Iterator[None]:
    """Interrupt DuckDB when its time is over; Postgres does it by itself."""
    if connection.dialect.name != "duckdb":
        yield
        return
    driver: Any = connection.connection.driver_connection
    timer = Timer(seconds, driver.interrupt)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _use_utc(connection: "Connection") -> None:
    if connection.dialect.name == "duckdb":
        connection.exec_driver_sql("SET TimeZone = 'UTC'")
    else:
        connection.exec_driver_sql("SET LOCAL TIME ZONE 'UTC'")
