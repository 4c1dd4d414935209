"""Connections to Postgres: the one border that SQL crosses, and that values do not.

Every statement goes through `Connection.execute`, which replaces the driver's errors: their text
can quote rows. Isolation level and timeouts are set here and asserted.

Source: facts on roles, isolation and time; SPEC section 17.
"""

from collections.abc import Mapping, Sequence
from typing import Any

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
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from datasource_governance.errors import (
    GovernanceError,
    GuardError,
    InvalidArgumentError,
    ServiceUnavailableError,
)

LOCK_TIMEOUT = "10s"
STATEMENT_TIMEOUT = "60s"
IDLE_TIMEOUT = "60s"
_BUSY = frozenset({"55P03", "57014", "40P01", "40001"})
_UNIQUE = "23505"
_NO_TABLES = frozenset({"42P01", "3F000"})


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
    engine = create_engine(
        parsed,
        isolation_level="READ COMMITTED",
        hide_parameters=True,
        pool_pre_ping=True,
        pool_size=5,
        connect_args={"connect_timeout": 10},
    )
    event.listen(engine, "connect", _refuse_powerful_role)
    return engine


def _refuse_powerful_role(driver_connection: Any, _record: object) -> None:  # noqa: ANN401 - a psycopg connection, whose type SQLAlchemy does not promise
    """Refuse to work as a superuser, as one who bypasses row-level security, or as an owner."""
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
    if powerful:
        raise ServiceUnavailableError(
            "GOVERNANCE_DATABASE_URL connects as an owner or superuser, who could edit evidence; "
            "use the application role that `datasource-governance db upgrade` writes",
            code="powerful_role",
        )


class Connection:
    """One transaction's connection, bound to one tenant."""

    def __init__(
        self, engine: Engine, tenant: str, isolation: IsolationLevel = "READ COMMITTED"
    ) -> None:
        self._engine = engine
        self._tenant = tenant
        self._isolation: IsolationLevel = isolation
        self._open: SqlConnection | None = None

    def begin(self) -> None:
        """Connect, set tenant and timeouts, and make sure that the isolation is in force.

        Raises:
            ServiceUnavailableError: when Postgres cannot be reached or used.
        """
        failure: GovernanceError | None = None
        try:
            self._open = self._engine.connect().execution_options(isolation_level=self._isolation)
        except SQLAlchemyError as error:
            failure = _unreachable(self._engine, error)
        if failure is not None:
            raise failure
        settings = self.execute(
            text(
                "SELECT set_config('governance.tenant', :tenant, true),"
                " set_config('lock_timeout', :lock, true),"
                " set_config('statement_timeout', :statement, true),"
                " set_config('idle_in_transaction_session_timeout', :idle, true),"
                " current_setting('transaction_isolation')"
            ),
            {
                "tenant": self._tenant,
                "lock": LOCK_TIMEOUT,
                "statement": STATEMENT_TIMEOUT,
                "idle": IDLE_TIMEOUT,
            },
        ).one()
        if settings[-1] != self._isolation.lower():
            raise ServiceUnavailableError(f"transactions are not {self._isolation}")

    def execute(
        self,
        statement: Executable,
        parameters: Mapping[str, object] | Sequence[Mapping[str, object]] | None = None,
    ) -> CursorResult[Any]:
        """Run one statement.

        Raises:
            GovernanceError: in place of every driver error; it holds SQLSTATE and constraint only.
        """
        if self._open is None:
            raise ServiceUnavailableError("the unit of work is not open: use `with work:`")
        try:
            return self._open.execute(statement, parameters)
        except SQLAlchemyError as error:
            failure = _value_free(error)
        raise failure

    def commit(self) -> None:
        """Make the transaction durable."""
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
            failure = _value_free(error)
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


def _sqlstate(error: SQLAlchemyError) -> str | None:
    original = getattr(error, "orig", None)
    return getattr(original, "sqlstate", None)


def _value_free(error: SQLAlchemyError) -> GovernanceError:
    state = _sqlstate(error)
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
    if state in _NO_TABLES:
        return ServiceUnavailableError(
            "the database lacks the governance tables; run `datasource-governance db upgrade`",
            sqlstate=state,
        )
    broken = f", constraint {constraint}" if constraint else ""
    return ServiceUnavailableError(
        f"Postgres refused (SQLSTATE {state}{broken}); nothing was written",
        sqlstate=state,
    )
