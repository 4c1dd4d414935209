"""Administrative connections: for provisioning and migrations only.

Whatever the driver reports is replaced by our own error, made of the place and the SQLSTATE alone:
a server's messages may quote values, and a chained exception keeps the frames that held a password.

Source: SPEC section 17.
"""

from collections.abc import Callable
from typing import TypeVar

import psycopg
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from datasource_governance.errors import InvalidArgumentError, ServiceUnavailableError

T = TypeVar("T")

_SCHEMES = ("postgres", "postgresql")
_CONNECT_SECONDS = 10


def administrative_url(url: str) -> URL:
    """Return `url` for psycopg 3, whichever Postgres driver, or none, it names.

    Raises:
        InvalidArgumentError: it is no PostgreSQL URL. The message does not repeat it.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        parsed = None
    if parsed is None or parsed.drivername.partition("+")[0] not in _SCHEMES:
        raise InvalidArgumentError(
            "DATABASE_URL is not of the form postgresql://user:password@host:port/database"
        )
    return parsed.set(drivername="postgresql+psycopg")


def connect(url: URL) -> psycopg.Connection:
    """Return an autocommitting connection."""
    _, words = url.get_dialect()().create_connect_args(url)
    return psycopg.connect(**{"connect_timeout": _CONNECT_SECONDS, **words}, autocommit=True)


def attempt(action: str, url: URL, operation: Callable[[], T]) -> T:
    """Return what `operation` returns; say where `action` failed if the server refused it.

    Raises:
        ServiceUnavailableError: the server cannot be reached, or refused the sign-in or a
            statement. It names host, port, database and SQLSTATE, never a password or a value.
    """
    try:
        return operation()
    except psycopg.Error as error:
        sqlstate = error.sqlstate
    except DBAPIError as error:
        sqlstate = error.orig.sqlstate if isinstance(error.orig, psycopg.Error) else None
    place = f"{url.host or 'localhost'}:{url.port or 5432}/{url.database or 'postgres'}"
    raise ServiceUnavailableError(
        f"cannot {action} at {place}: {_explain(sqlstate)}", place=place, sqlstate=sqlstate
    )


def _explain(sqlstate: str | None) -> str:
    if sqlstate is None or sqlstate.startswith("08"):
        return "the server cannot be reached, or refused the sign-in; check DATABASE_URL"
    if sqlstate.startswith("28"):
        return f"the sign-in was refused (SQLSTATE {sqlstate}); check user and password"
    if sqlstate == "42501":
        return f"the user of DATABASE_URL is not permitted to (SQLSTATE {sqlstate})"
    if sqlstate == "55P03":
        return f"a lock was not free in time (SQLSTATE {sqlstate}); stop what uses it, try again"
    return f"the server refused it (SQLSTATE {sqlstate})"
