"""What the driver's errors become: refusals of our own, without the values that its texts quote.

Source: SPEC section 17; facts on privacy.
"""

import psycopg
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from datasource_governance.errors import (
    GovernanceError,
    GuardError,
    InvalidArgumentError,
    ServiceUnavailableError,
)

_BUSY = frozenset({"55P03", "57014", "40P01", "40001"})
_UNIQUE = "23505"
_RESTRICTED = "23001"
_NOT_PERMITTED = "42501"


def unreachable(engine: Engine, error: SQLAlchemyError) -> GovernanceError:
    """Return the refusal of a server that does not let anybody in, without login and password."""
    url = engine.url
    state = _sqlstate(error)
    why = f" (SQLSTATE {state})" if state else ""
    return ServiceUnavailableError(
        f"Postgres at {url.host}:{url.port}/{url.database} cannot be used{why}; start it "
        "(`datasource-governance dev`) or correct GOVERNANCE_DATABASE_URL"
    )


def _sqlstate(error: Exception) -> str | None:
    """Return the SQLSTATE of a driver's error, whoever raised it."""
    return getattr(getattr(error, "orig", error), "sqlstate", None)


def is_broken(error: Exception) -> bool:
    """Tell whether the server went away, instead of answering that it refuses."""
    state = _sqlstate(error)
    if state is None:
        return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
    return state.startswith(("08", "57P"))


def unknown_outcome() -> GovernanceError:
    """Return what a commit that was not answered is told as."""
    return ServiceUnavailableError(
        "Postgres did not answer the commit, so whether it was written is not known; look, or try "
        "again: what is there already is not written twice",
        code="outcome_unknown",
    )


def value_free(error: SQLAlchemyError | psycopg.Error | UnicodeEncodeError) -> GovernanceError:
    """Return the refusal to raise in place of an error; it holds SQLSTATE and constraint only."""
    original = error.orig if isinstance(error, DBAPIError) else error
    state = _sqlstate(error)
    if state is None and isinstance(original, (psycopg.DataError, UnicodeEncodeError)):
        return InvalidArgumentError(
            "a text holds NUL or half a surrogate pair, which Postgres cannot keep or look for"
        )
    if state is None:
        return ServiceUnavailableError("Postgres did not answer; nothing was written, try again")
    diagnosis = getattr(original, "diag", None)
    constraint = getattr(diagnosis, "constraint_name", None)
    if state in _BUSY:
        return ServiceUnavailableError(
            "another transaction holds what this one needs; nothing was written, try again",
            code="busy",
        )
    if state in (_UNIQUE, _RESTRICTED):
        why = f"it is already there ({constraint})" if state == _UNIQUE else "it has to stay"
        return GuardError(f"{why}; nothing was written", code="conflict", constraint=constraint)
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
