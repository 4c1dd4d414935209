"""A SQL table or query in the typed form, through SQLAlchemy.

The caller's engine or URL gives the connection; the rows come from the driver itself, in pieces and
with the database's own types, because no value may pass through one that cannot hold it. Known are
Postgres through psycopg, and DuckDB.

Source: SPEC section 3; decision SQL_ROW_ORDER.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from sqlalchemy import Connection, Engine, NullPool, create_engine
from sqlalchemy.exc import ArgumentError

from datasource_governance.errors import InvalidArgumentError
from datasource_governance.sources.batches import DEFAULT_BATCH_BYTES, Batches
from datasource_governance.sources.limits import DEFAULT_LIMITS, Limits
from datasource_governance.sources.sql.batches import (
    Result,
    SqlBatches,
    answered,
    typed_empty,
    whole,
)
from datasource_governance.sources.sql.selection import Selection, quoted

if TYPE_CHECKING:
    import pyarrow as pa

_DRIVERS: Final = frozenset({("postgresql", "psycopg"), ("duckdb", "duckdb_engine")})


@dataclass(frozen=True, slots=True)
class SqlSource:
    """A table (in a schema, or where the database looks) or a query. Its repr has no password.

    `url` is a SQLAlchemy URL or an engine, which stays the caller's. `order_by` names columns that
    tell any two rows apart, ascending; a table without it is read in primary-key order.

    Raises:
        InvalidArgumentError: not exactly one of table and query, or a query in a schema.
    """

    url: str | Engine = field(repr=False)
    table: str | None = None
    schema: str | None = None
    query: str | None = field(default=None, repr=False)
    order_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.table is None) == (self.query is None):
            raise InvalidArgumentError("a SQL source is either a table or a query")
        if self.schema is not None and self.table is None:
            raise InvalidArgumentError("only a table is in a schema; a query names its own")

    @property
    def name(self) -> str:
        """What messages call the source."""
        return "the query" if self.table is None else self.table


class SqlRows(NamedTuple):
    """The typed table, and whether its rows are numbered: read in an order that means something."""

    table: "pa.Table"
    rows_numbered: bool


class _Database(Protocol):
    """How to read from one kind of database. `options` are those of its connections."""

    options: Mapping[str, Any]

    def primary_key(
        self, connection: Connection, table: str, schema: str | None
    ) -> tuple[str, ...]:
        """Return the columns of a table's primary key, none for a table without and for a view."""
        ...

    def result(self, connection: Connection, selection: Selection, limits: Limits) -> Result:
        """Return what a selection gives."""
        ...


def read_sql(source: SqlSource, limits: Limits = DEFAULT_LIMITS) -> SqlRows:
    """Read a table or query in one run of one statement, and so from one snapshot.

    Rows come in the order of `order_by`, else of the table's primary key. Where there is neither,
    `rows_numbered` is False, and positions mean nothing beyond this reading.

    Raises:
        InvalidArgumentError: a URL or engine that is of no known database.
        UnreadableSourceError: kinds `not_found`; `unsupported_type` (names the field),
            `unsupported_value` (names the field; for infinite dates, and values that no typed form
            holds); `too_large`; `unreadable` when the database fails, with its SQLSTATE or the name
            of its error as the only fact; and those of `to_typed`. Nothing is chained.
    """
    with _connection(source) as connection:
        return answered(source.name, lambda: _rows(connection, source, limits))


def sql_schema(source: SqlSource) -> "pa.Schema":
    """Return the columns of a table or query, with the Arrow types that they are read as.

    Numbers of any precision are told as decimals, whatever their digits, which only values decide.

    Raises:
        InvalidArgumentError: as `read_sql`.
        UnreadableSourceError: as `read_sql`, but for what only values can be refused for.
    """
    with _connection(source) as connection:
        result, _ = answered(source.name, lambda: _result(connection, source, DEFAULT_LIMITS))
        return answered(source.name, lambda: typed_empty(result)).schema


@contextmanager
def sql_batches(
    source: SqlSource, limits: Limits = DEFAULT_LIMITS, batch_bytes: int = DEFAULT_BATCH_BYTES
) -> Iterator[Batches]:
    """Read a table or query that may be larger than memory; every pass sees the same snapshot.

    The rows are those of `read_sql`, and so are its refusals, except that `limits.table_bytes` is
    of one batch. Values that decide a type or that no type holds are found on entering, in a
    reading of the columns that may have such. One pass at a time, and inside of the `with` only;
    the transaction stays open meanwhile.

    Raises:
        InvalidArgumentError: as `read_sql`.
        UnreadableSourceError: as `read_sql`, on entering and in every pass; also `unreadable` for
            a query that answers differently when it is run again.
    """
    with _connection(source) as connection:
        batches = answered(source.name, lambda: _batches(connection, source, limits, batch_bytes))
        with closing(batches):
            yield batches


@contextmanager
def _connection(source: SqlSource) -> Iterator[Connection]:
    with _engine(source.url) as engine:
        options = _database(engine.dialect.name).options
        connection = answered(source.name, engine.connect)
        try:
            answered(source.name, lambda: connection.execution_options(**options))
            yield connection
        finally:
            # The connection may be lost, which whoever read from it knows already.
            with suppress(Exception):
                connection.close()


@contextmanager
def _engine(url: str | Engine) -> Iterator[Engine]:
    engine = url if isinstance(url, Engine) else _created(url)
    dialect = engine.dialect
    if (dialect.name, dialect.driver) not in _DRIVERS:
        raise InvalidArgumentError(
            f"cannot read from {dialect.name}+{dialect.driver}; the URL must begin with "
            "postgresql+psycopg:// or duckdb://"
        )
    try:
        yield engine
    finally:
        if engine is not url:
            engine.dispose()


def _created(url: str) -> Engine:
    try:
        return create_engine(url, poolclass=NullPool, hide_parameters=True)
    except (ArgumentError, ImportError):
        # Their text may quote the URL, which has a password in it.
        pass
    raise InvalidArgumentError(
        "the URL is not a SQLAlchemy URL, or its dialect is not installed "
        "(datasource-governance[duckdb] brings DuckDB)"
    )


def _database(dialect: str) -> _Database:
    # Each imports a driver that may not be installed.
    if dialect == "duckdb":
        from datasource_governance.sources.sql.duckdb import DuckDb

        return DuckDb()
    from datasource_governance.sources.sql.postgres import Postgres

    return Postgres()


def _rows(connection: Connection, source: SqlSource, limits: Limits) -> SqlRows:
    result, rows_numbered = _result(connection, source, limits)
    return SqlRows(whole(result, limits), rows_numbered)


def _batches(
    connection: Connection, source: SqlSource, limits: Limits, batch_bytes: int
) -> SqlBatches:
    # One transaction around all passes, from before the first question.
    connection.begin()
    result, rows_numbered = _result(connection, source, limits)
    return SqlBatches(
        source.name, result, limits, rows_numbered=rows_numbered, batch_bytes=batch_bytes
    )


def _result(connection: Connection, source: SqlSource, limits: Limits) -> tuple[Result, bool]:
    database = _database(connection.dialect.name)
    order = source.order_by
    if source.table is not None:
        # Asked in any case: it is what tells that there is no such table.
        order = order or database.primary_key(connection, source.table, source.schema)
    return database.result(connection, _selection(source, order), limits), bool(order)


def _selection(source: SqlSource, order: tuple[str, ...]) -> Selection:
    if source.query is not None:
        statement = source.query.rstrip().rstrip(";")
        # On a line of its own, for a query that ends in a comment.
        return Selection(statement, f"({statement}\n) AS selected", order)
    relation = ".".join(map(quoted, filter(None, (source.schema, source.table))))
    return Selection(f"SELECT * FROM {relation}", relation, order)  # noqa: S608 - quoted above
