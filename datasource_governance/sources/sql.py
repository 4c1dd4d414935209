"""A SQL table or query in the typed form, through SQLAlchemy.

The caller's engine or URL gives the connection, SQLAlchemy the quoting of names; the rows come from
the driver itself, in batches and with the database's own types, because no value may pass through
one that cannot hold it. Known are Postgres through psycopg, and DuckDB.

Source: SPEC section 3; decision SQL_ROW_ORDER.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from sqlalchemy import Connection, Engine, NullPool, create_engine
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import ArgumentError, NoSuchTableError

from datasource_governance.errors import (
    GovernanceError,
    InvalidArgumentError,
    UnreadableSourceError,
)
from datasource_governance.sources.limits import DEFAULT_LIMITS, Limits
from datasource_governance.sources.refusal import refused
from datasource_governance.sources.selection import Selection

if TYPE_CHECKING:
    import pyarrow as pa

# Not the preparer of a connection: for psycopg it doubles every %, which only a statement with
# parameters undoes. DuckDB quotes as Postgres does.
_postgres = postgresql.dialect(paramstyle="named")  # type: ignore[no-untyped-call]  # SQLAlchemy's dialects are not typed
_quoted = _postgres.identifier_preparer.quote_identifier
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

    def read(self, connection: Connection, selection: Selection, limits: Limits) -> "pa.Table":
        """Return the rows of a selection in the typed form."""
        ...


def read_sql(source: SqlSource, limits: Limits = DEFAULT_LIMITS) -> SqlRows:
    """Read a table or query in one statement, and so from one snapshot.

    Rows come in the order of `order_by`, else of the table's primary key. Where there is neither,
    `rows_numbered` is False, and positions mean nothing beyond this reading.

    Raises:
        InvalidArgumentError: a URL or engine that is of no known database.
        UnreadableSourceError: kinds `not_found`; `unsupported_type` (names the field),
            `unsupported_value` (names the field; for infinite dates, and values that no typed form
            holds); `too_large`; `unreadable` when the database fails, with its SQLSTATE or the name
            of its error as the only fact; and those of `to_typed`. Nothing is chained.
    """
    with _engine(source.url) as engine:
        try:
            return _read(engine, source, limits)
        except GovernanceError:
            raise
        except NoSuchTableError:
            failure = refused(source.name, "not_found", "no such table or view")
        except Exception as error:  # noqa: BLE001 - every message of a driver may quote a cell
            failure = _failed(source.name, error)
    raise failure


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


def _read(engine: Engine, source: SqlSource, limits: Limits) -> SqlRows:
    database = _database(engine.dialect.name)
    with engine.connect().execution_options(**database.options) as connection:
        order = source.order_by
        if source.table is not None:
            # Asked in any case: it is what tells that there is no such table.
            order = order or database.primary_key(connection, source.table, source.schema)
        table = database.read(connection, _selection(source, order), limits)
    return SqlRows(table, rows_numbered=bool(order))


def _database(dialect: str) -> _Database:
    # Each imports a driver that may not be installed.
    if dialect == "duckdb":
        from datasource_governance.sources.duckdb import DuckDb

        return DuckDb()
    from datasource_governance.sources.postgres import Postgres

    return Postgres()


def _selection(source: SqlSource, order: tuple[str, ...]) -> Selection:
    if source.query is not None:
        statement = source.query.rstrip().rstrip(";")
        # On a line of its own, for a query that ends in a comment.
        selected = f"({statement}\n) AS selected"
    else:
        parts = filter(None, (source.schema, source.table))
        selected = ".".join(map(_quoted, parts))
        statement = f"SELECT * FROM {selected}"  # noqa: S608 - quoted above
    ordering = f" ORDER BY {', '.join(map(_quoted, order))}" if order else ""
    return Selection(statement, f"SELECT * FROM {selected}{ordering}")  # noqa: S608 - the caller's own query


def _failed(name: str, error: Exception) -> UnreadableSourceError:
    cause = getattr(error, "orig", None) or error
    state = getattr(cause, "sqlstate", None) or type(cause).__name__
    return refused(name, "unreadable", f"the database could not answer ({state})", state)
