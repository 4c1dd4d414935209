"""Connections to Postgres: the one border that SQL crosses, and that values do not.

Every statement goes through `Connection.execute`, which replaces the driver's errors: their text
can quote rows. Isolation level and timeouts are set here and asserted.

Source: facts on roles, isolation and time; SPEC section 17.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.abc import Buffer
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
from sqlalchemy.engine.interfaces import IsolationLevel
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, SQLAlchemyError
from typing_extensions import override

from datasource_governance.errors import (
    GovernanceError,
    GuardError,
    InvalidArgumentError,
    ServiceUnavailableError,
)
from datasource_governance.persistence.tables import REVISION

LOCK_TIMEOUT = "10s"
STATEMENT_TIMEOUT = "60s"
IDLE_TIMEOUT = "60s"
_BUSY = frozenset({"55P03", "57014", "40P01", "40001"})
_UNIQUE = "23505"
_NOT_PERMITTED = "42501"
_LOGGING_NAME = "datasource_governance"
_ISOLATION: IsolationLevel = "READ COMMITTED"
_ENTER = text(
    "SELECT set_config('governance.tenant', :tenant, true),"
    " set_config('lock_timeout', :lock, true),"
    " set_config('statement_timeout', :statement, true),"
    " set_config('idle_in_transaction_session_timeout', :idle, true),"
    " set_config('TimeZone', 'UTC', true),"
    " current_setting('transaction_isolation')"
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
        isolation_level=_ISOLATION,
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


class Connection:
    """One transaction's connection, bound to one tenant."""

    def __init__(self, engine: Engine, tenant: str, isolation: IsolationLevel = _ISOLATION) -> None:
        self._engine = engine
        self._tenant = tenant
        self._isolation: IsolationLevel = isolation
        self._open: SqlConnection | None = None

    def begin(self) -> None:
        """Connect, set tenant and timeouts, and make sure that the isolation is in force.

        A connection that the server closed while it lay in the pool is found out by this first
        statement, and replaced; to ask beforehand would cost every transaction a round trip.

        Raises:
            ServiceUnavailableError: when Postgres cannot be reached or used.
        """
        self._connect()
        try:
            isolation = self._enter()
        except ServiceUnavailableError:
            if self._open is None or not self._open.invalidated:
                raise
            isolation = None
        if isolation is None:
            self.close()
            self._connect()
            isolation = self._enter()
        if isolation != self._isolation.lower():
            raise ServiceUnavailableError(f"transactions are not {self._isolation}")

    def _connect(self) -> None:
        failure: GovernanceError | None = None
        try:
            opened = self._engine.connect()
            if self._isolation != _ISOLATION:
                opened = opened.execution_options(isolation_level=self._isolation)
            self._open = opened
        except SQLAlchemyError as error:
            failure = _unreachable(self._engine, error)
        if failure is not None:
            raise failure

    def _enter(self) -> str:
        """Set tenant and timeouts, and return the isolation that is in force."""
        settings = {
            "tenant": self._tenant,
            "lock": LOCK_TIMEOUT,
            "statement": STATEMENT_TIMEOUT,
            "idle": IDLE_TIMEOUT,
        }
        return str(self.execute(_ENTER, settings).one()[-1])

    def execute(
        self,
        statement: Executable,
        parameters: Mapping[str, object] | Sequence[Mapping[str, object]] | None = None,
    ) -> CursorResult[Any]:
        """Run one statement.

        Raises:
            GovernanceError: in place of every driver error; it holds SQLSTATE and constraint only.
            InvalidArgumentError: for a text with NUL or a lone surrogate, which Postgres lacks.
        """
        if self._open is None:
            raise ServiceUnavailableError("the unit of work is not open: use `with work:`")
        try:
            return self._open.execute(statement, parameters)
        except (SQLAlchemyError, UnicodeEncodeError) as error:
            failure = _value_free(error)
        raise failure

    def commit(self) -> None:
        """Make the transaction durable.

        Raises:
            ServiceUnavailableError: code `outcome_unknown` when the connection broke meanwhile.
        """
        self._finish("commit")

    def close(self) -> None:
        """Roll back what was not committed and give the connection back."""
        if self._open is not None:
            try:
                self._finish("rollback")
            finally:
                self._open.close()
                self._open = None

    def _finish(self, how: str) -> None:
        failure: GovernanceError | None = None
        try:
            getattr(self._open, how)()
        except SQLAlchemyError as error:
            broken = how == "commit" and _is_broken(error)
            failure = _unknown_outcome() if broken else _value_free(error)
        if failure is not None:
            raise failure


def _unreachable(engine: Engine, error: SQLAlchemyError) -> GovernanceError:
    url = engine.url
    state = _sqlstate(error)
    why = f" (SQLSTATE {state})" if state else ""
    return ServiceUnavailableError(
        f"Postgres at {url.host}:{url.port}/{url.database} cannot be used{why}; start it "
        "(`datasource-governance dev`) or correct GOVERNANCE_DATABASE_URL"
    )


def _sqlstate(error: Exception) -> str | None:
    original = getattr(error, "orig", None)
    return getattr(original, "sqlstate", None)


def _is_broken(error: SQLAlchemyError) -> bool:
    """Tell whether the server went away, instead of answering that it refuses."""
    state = _sqlstate(error)
    return state is None or state.startswith(("08", "57P"))


def _unknown_outcome() -> GovernanceError:
    return ServiceUnavailableError(
        "Postgres did not answer the commit, so whether it was written is not known; look, or try "
        "again: what is there already is not written twice",
        code="outcome_unknown",
    )


def _value_free(error: SQLAlchemyError | UnicodeEncodeError) -> GovernanceError:
    state = _sqlstate(error)
    if state is None and isinstance(error, (DataError, UnicodeEncodeError)):
        return InvalidArgumentError(
            "a text holds NUL or half a surrogate pair, which Postgres cannot keep or look for"
        )
    if not isinstance(error, DBAPIError) or state is None:
        return ServiceUnavailableError("Postgres did not answer; nothing was written, try again")
    diagnosis = getattr(error.orig, "diag", None)
    constraint = getattr(diagnosis, "constraint_name", None)
    if state in _BUSY:
        return ServiceUnavailableError(
            "another transaction holds what this one needs; nothing was written, try again",
            code="busy",
        )
    if state == _UNIQUE:
        return GuardError(
            f"it is already there ({constraint}); nothing was written",
            code="conflict",
            constraint=constraint,
        )
    if state == _NOT_PERMITTED:
        return ServiceUnavailableError(
            f"the login of GOVERNANCE_DATABASE_URL may not do this (SQLSTATE {state}); "
            "an auditor's reads and verifies only, the application's is written by: db upgrade",
            sqlstate=state,
        )
    broken = f", constraint {constraint}" if constraint else ""
    return ServiceUnavailableError(
        f"Postgres refused (SQLSTATE {state}{broken}); nothing was written",
        sqlstate=state,
    )
