"""Connections to Postgres: the one border that SQL crosses, and that values do not.

Every statement goes through a `Connection`, which replaces the driver's errors: their text can
quote rows. Isolation level and timeouts are set here and asserted.

Source: facts on roles, isolation and time; SPEC section 17.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.rows import DictRow, dict_row
from psycopg.types.datetime import TimestamptzLoader
from sqlalchemy import (
    Connection as SqlConnection,
)
from sqlalchemy import (
    CursorResult,
    Engine,
    Executable,
    create_engine,
    event,
    text,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from typing_extensions import override

from datasource_governance.errors import (
    GovernanceError,
    InvalidArgumentError,
    ServiceUnavailableError,
)
from datasource_governance.persistence.driver_errors import (
    is_broken,
    unknown_outcome,
    unreachable,
    value_free,
)
from datasource_governance.persistence.statements import Kept, Prepared, prepared
from datasource_governance.persistence.tables import REVISION

LOCK_TIMEOUT = "10s"
STATEMENT_TIMEOUT = "60s"
IDLE_TIMEOUT = "60s"
_LOGGING_NAME = "datasource_governance"
_ISOLATION = "READ COMMITTED"
_OF_A_SNAPSHOT = "REPEATABLE READ"
_COMMIT = Prepared(b"COMMIT")
# The estimate of what is asked for a plan is above the cost from which a server compiles, and to
# compile takes longer than what is asked.
_ENTER = text(
    "SELECT set_config('governance.tenant', :tenant, true),"
    " set_config('lock_timeout', :lock, true),"
    " set_config('statement_timeout', :statement, true),"
    " set_config('idle_in_transaction_session_timeout', :idle, true),"
    " set_config('TimeZone', 'UTC', true),"
    " set_config('jit', 'off', true),"
    " current_setting('transaction_isolation') AS isolation"
)
_NO_TABLES = frozenset({"42P01", "3F000", "42501"})
"""SQLSTATEs of a database that was never upgraded, or not for this role."""


def governance_engine(url: str) -> Engine:
    """Return the engine of the application role. It connects only when it is used.

    Raises:
        InvalidArgumentError: when the URL is not `postgresql+psycopg://…`.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        parsed = None
    if parsed is None or parsed.drivername != "postgresql+psycopg":
        raise InvalidArgumentError(
            "GOVERNANCE_DATABASE_URL must begin with postgresql+psycopg://; "
            "`datasource-governance db upgrade` writes it"
        )
    # At DEBUG SQLAlchemy logs the rows that it fetches, whatever `hide_parameters` says.
    logger = logging.getLogger(f"sqlalchemy.engine.Engine.{_LOGGING_NAME}")
    logger.setLevel(max(logger.getEffectiveLevel(), logging.INFO))
    engine = create_engine(
        parsed,
        # A transaction begins and ends with statements of our own: the driver would wait until its
        # own BEGIN is answered.
        isolation_level="AUTOCOMMIT",
        hide_parameters=True,
        logging_name=_LOGGING_NAME,
        pool_size=5,
        connect_args={"connect_timeout": 10},
    )
    event.listen(engine, "connect", _check_session)
    return engine


def _check_session(driver_connection: Any, _record: object) -> None:  # noqa: ANN401 - a psycopg connection, whose type SQLAlchemy does not promise
    """Prepare a session; refuse a role that could edit evidence and another revision's tables."""
    driver_connection.adapters.register_loader("timestamptz", _AnyInstant)
    refusal = _powerful_role(driver_connection) or _wrong_revision(driver_connection)
    if refusal is not None:
        raise refusal


def _powerful_role(driver_connection: Any) -> GovernanceError | None:  # noqa: ANN401 - as above
    """Return the refusal of a superuser, of one who bypasses row-level security, of an owner."""
    with driver_connection.cursor() as cursor:
        cursor.execute(
            "SELECT rolsuper OR rolbypassrls OR EXISTS ("
            " SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
            " ON n.oid = c.relnamespace WHERE n.nspname = 'governance'"
            " AND pg_has_role(r.oid, c.relowner, 'MEMBER'))"
            " FROM pg_catalog.pg_roles r WHERE rolname = current_user"
        )
        powerful = cursor.fetchone()[0]
    driver_connection.rollback()
    if not powerful:
        return None
    return ServiceUnavailableError(
        "GOVERNANCE_DATABASE_URL connects as an owner or superuser, who could edit evidence; "
        "use the application role that `datasource-governance db upgrade` writes",
        code="powerful_role",
    )


def _wrong_revision(driver_connection: Any) -> GovernanceError | None:  # noqa: ANN401 - as above
    revision = None
    try:
        with driver_connection.cursor() as cursor:
            cursor.execute("SELECT version_num FROM governance.alembic_version")
            (revision,) = cursor.fetchone() or (None,)
    except psycopg.Error as error:
        if error.sqlstate not in _NO_TABLES:
            raise
    driver_connection.rollback()
    if revision == REVISION:
        return None
    return ServiceUnavailableError(
        f"the database is at revision {revision or 'none'}, this version needs {REVISION}; "
        "run `datasource-governance db upgrade`",
        code="wrong_revision",
        revision=revision,
    )


class _AnyInstant(TimestamptzLoader):
    """Reads an instant beyond Python's years as the last one, so that verification can name it.

    Only tampering brings in `infinity`; the driver would raise, and quote it.
    """

    @override
    def load(self, data: Buffer) -> datetime:
        try:
            return super().load(data)
        except psycopg.DataError:
            return datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Step:
    """A statement on its way; `then` is told the rows that come back."""

    statement: Prepared
    parameters: Mapping[str, object] = field(default_factory=dict)
    then: Callable[[list[DictRow]], None] | None = None


class Connection:
    """One transaction's connection, bound to one tenant.

    Statements that are kept are run by the driver, as they were compiled once. Those whose answer
    nobody waits for go `later`: in one trip with whatever is run next, or with the commit. They
    keep their order and each sees what was committed before it, as if it had gone alone.
    """

    def __init__(self, engine: Engine, tenant: str) -> None:
        self._engine = engine
        self._tenant = tenant
        self._isolation = _ISOLATION
        self._open: SqlConnection | None = None
        self._waiting: list[_Step] = []
        self._is_answered = False
        self._is_refused = False

    def begin(self, *, snapshot: bool = False) -> None:
        """Connect; the transaction begins with the first statement, and in one trip with it.

        A `snapshot` only reads, and sees everything as the first statement does.

        Then tenant and timeouts are set, and the isolation has to be in force. A connection that
        the server closed while it lay in the pool is found out by then, and replaced; to ask
        beforehand would cost every transaction a round trip.

        Raises:
            ServiceUnavailableError: when Postgres cannot be reached or used.
        """
        self._connect()
        self._isolation = _OF_A_SNAPSHOT if snapshot else _ISOLATION
        access = "READ ONLY" if snapshot else "READ WRITE"
        settings = {
            "tenant": self._tenant,
            "lock": LOCK_TIMEOUT,
            "statement": STATEMENT_TIMEOUT,
            "idle": IDLE_TIMEOUT,
        }
        self._is_answered = self._is_refused = False
        self._waiting = [
            _Step(Prepared(f"BEGIN ISOLATION LEVEL {self._isolation} {access}".encode())),
            _Step(prepared(_ENTER), settings, self._check_isolation),
        ]

    def _connect(self) -> None:
        failure: GovernanceError | None = None
        try:
            self._open = self._engine.connect()
            # So that it does not connect anew, past `begin`, when the connection is lost.
            self._open.begin()
        except SQLAlchemyError as error:
            failure = unreachable(self._engine, error)
        if failure is not None:
            raise failure

    def _check_isolation(self, rows: list[DictRow]) -> None:
        if rows[0]["isolation"] != self._isolation.lower():
            raise ServiceUnavailableError(f"transactions are not {self._isolation}")

    def execute(
        self,
        statement: Executable,
        parameters: Mapping[str, object] | Sequence[Mapping[str, object]] | None = None,
    ) -> CursorResult[Any]:
        """Run one statement that was built for this once.

        Raises:
            GovernanceError: in place of every driver error; it holds SQLSTATE and constraint only.
            InvalidArgumentError: for a text with NUL or a lone surrogate, which Postgres lacks.
        """
        self._opened()
        if self._waiting:
            self._send([])
        try:
            return self._opened().execute(statement, parameters)
        except (SQLAlchemyError, UnicodeEncodeError) as error:
            failure = value_free(error)
        raise failure

    def run(self, statement: Kept, parameters: Mapping[str, object]) -> list[DictRow]:
        """Run one statement that is kept, and return its rows.

        Raises:
            GovernanceError: as `execute`, also in place of what was to go `later`.
        """
        return self._send([_Step(prepared(statement), parameters)])[-1]

    def later(
        self,
        statement: Kept,
        parameters: Mapping[str, object],
        then: Callable[[list[DictRow]], None] | None = None,
    ) -> None:
        """Run one statement that is kept before anything else is run, and tell `then` its rows."""
        self._opened()
        self._waiting.append(_Step(prepared(statement), parameters, then))

    def _opened(self) -> SqlConnection:
        if self._open is None:
            raise ServiceUnavailableError("the unit of work is not open: use `with work:`")
        return self._open

    def _send(self, asked: list[_Step]) -> list[list[DictRow]]:
        """Send what waits and what is asked in one trip, and return the rows of each."""
        opened = self._opened()
        steps, self._waiting = [*self._waiting, *asked], []
        try:
            answers = self._exchange(steps)
        except ServiceUnavailableError:
            if self._is_answered or not opened.invalidated:
                raise
            answers = None
        if answers is None:
            self.close()
            self._connect()
            answers = self._exchange(steps)
        self._is_answered = True
        for step, rows in zip(steps, answers, strict=True):
            if step.then is not None:
                step.then(rows)
        return answers

    def _exchange(self, steps: list[_Step]) -> list[list[DictRow]]:
        opened = self._opened()
        try:
            return _answers(_driver(opened), steps)
        except (SQLAlchemyError, psycopg.Error, UnicodeEncodeError) as error:
            broken = steps[-1].statement is _COMMIT and is_broken(error)
            failure = unknown_outcome() if broken else value_free(error)
        self._is_refused = True
        if not opened.invalidated and _driver(opened).closed:
            opened.invalidate()
            # Those in the pool were open as long, to the same server.
            self._engine.dispose()
        raise failure

    def commit(self) -> None:
        """Make the transaction durable.

        Raises:
            ServiceUnavailableError: code `outcome_unknown` when the connection broke meanwhile.
        """
        if any(step.then for step in self._waiting):
            self._send([])
        self._send([_Step(_COMMIT)])

    def close(self) -> None:
        """Roll back what was not committed and give the connection back."""
        opened, self._open, self._waiting = self._open, None, []
        if opened is None:
            return
        failure: GovernanceError | None = None
        try:
            if not opened.invalidated:
                _roll_back(_driver(opened), forgets=self._is_refused)
        except psycopg.Error as error:
            failure = value_free(error)
            opened.invalidate()
        finally:
            opened.close()
        if failure is not None:
            raise failure


def _driver(opened: SqlConnection) -> psycopg.Connection[Any]:
    return opened.connection.driver_connection  # type: ignore[return-value]  # what the dialect is for


def _roll_back(driver: psycopg.Connection[Any], *, forgets: bool) -> None:
    """Undo what was not committed. The driver `forgets` what it prepared, or else keeps it.

    It has to forget where a statement was refused, because it takes those behind it for prepared.
    """
    if forgets:
        driver.rollback()
    elif driver.pgconn.transaction_status != TransactionStatus.IDLE:
        result = driver.pgconn.exec_(b"ROLLBACK")
        if result.status != ExecStatus.COMMAND_OK:
            raise error_from_result(result)


def _answers(driver: psycopg.Connection[Any], steps: Sequence[_Step]) -> list[list[DictRow]]:
    """Run statements in one trip and return the rows of each."""
    cursors = [driver.cursor(row_factory=dict_row) for _ in steps]
    if len(steps) == 1:
        _run(cursors[0], steps[0])
    else:
        with driver.pipeline() as pipeline:
            try:
                for cursor, step in zip(cursors, steps, strict=True):
                    _run(cursor, step)
                pipeline.sync()
            except (psycopg.Error, UnicodeEncodeError):
                # Else the driver meets what more the server refuses when it leaves, and logs it.
                with suppress(psycopg.Error):
                    pipeline.sync()
                raise
    return [cursor.fetchall() if cursor.rownumber is not None else [] for cursor in cursors]


def _run(cursor: psycopg.Cursor[DictRow], step: _Step) -> None:
    cursor.execute(step.statement.text, step.statement.values(step.parameters))
