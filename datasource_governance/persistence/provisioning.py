"""Databases and database roles, made with administrative rights before anything is migrated.

A database belongs to a role that owns and does nothing else; the application's role owns nothing.
Nothing is open to PUBLIC. Running it again repairs what differs and changes nothing else.

Source: SPEC section 17.
"""

import re
import secrets
from collections.abc import Collection, Mapping
from functools import partial

import psycopg
from psycopg import sql
from sqlalchemy import URL

from datasource_governance.errors import InvalidArgumentError, ServiceUnavailableError
from datasource_governance.persistence.administration import administrative_url, attempt, connect
from datasource_governance.persistence.connections import Connections

OLDEST_SERVER = 15
SCHEMA = "governance"

# Leaves room for the longest suffix of a role within Postgres' 63 bytes.
_NAME = re.compile(r"[a-z][a-z0-9_]{0,50}")
# One provisioning at a time in a cluster; any number that nothing else there uses will do.
_PROVISIONING_LOCK = 0x6473_676F_7670


def owner_role(database: str) -> str:
    """Return the name of the role that owns a governance database and cannot sign in."""
    return f"{database}_owner"


def application_role(database: str) -> str:
    """Return the name of the role that the application signs in as."""
    return f"{database}_application"


def reader_role(database: str) -> str:
    """Return the name of the role that reads everything but payloads; give it to auditors."""
    return f"{database}_reader"


def retention_role(database: str) -> str:
    """Return the name of the role that the application has to become to purge a payload."""
    return f"{database}_retention"


def dagster_role(database: str) -> str:
    """Return the name of the role that Dagster signs in as, which owns Dagster's database."""
    return f"{database}_dagster"


def provision(
    admin_url: str,
    *,
    governance: str = "governance",
    dagster: str = "dagster",
    previous: Connections | None = None,
) -> Connections:
    """Make both databases and their roles, and return how to connect to them. Idempotent.

    Passwords of `previous` that still work, at whatever address the server has now, are kept; all
    others are made anew, so a lost file of connections is replaced by running this again. Without a
    superuser's rights everything is made except the application's server-side log level.

    Raises:
        InvalidArgumentError: a name is not `[a-z][a-z0-9_]{0,50}`, both are the same, or a database
            of that name exists and is not ours. Nothing was changed.
        ServiceUnavailableError: the server is older than PostgreSQL 15 or cannot be reached, or the
            user of `admin_url` may not do this.
    """
    _check_names(governance, dagster)
    admin = administrative_url(admin_url)
    work = partial(_provision, admin, governance, dagster, previous)
    return attempt("provision the databases", admin, work)


def restrict(connection: psycopg.Connection, database: str, *, to: Collection[str] = ()) -> None:
    """Close `database` to everyone but its owner and the roles `to`."""
    name = sql.Identifier(database)
    connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(name))
    for role in to:
        grant = sql.SQL("GRANT CONNECT ON DATABASE {} TO {}")
        connection.execute(grant.format(name, sql.Identifier(role)))


def _check_names(governance: str, dagster: str) -> None:
    wrong = [name for name in (governance, dagster) if not _NAME.fullmatch(name)]
    if wrong:
        message = f"not a database name of the form {_NAME.pattern}: {', '.join(wrong)}"
        raise InvalidArgumentError(message, names=wrong)
    if governance == dagster:
        message = f"governance and Dagster need a database each; both are called {governance}"
        raise InvalidArgumentError(message, names=[governance])


def _provision(
    admin: URL, governance: str, dagster: str, previous: Connections | None
) -> Connections:
    owner, application = owner_role(governance), application_role(governance)
    with connect(admin) as connection, connect(admin) as gate, gate.transaction():
        gate.execute("SELECT pg_advisory_xact_lock(%s)", (_PROVISIONING_LOCK,))
        _check_server(connection)
        _check_owners(connection, {governance: owner, dagster: dagster_role(dagster)})

        _ensure_role(connection, owner, login=False)
        for role in (reader_role(governance), retention_role(governance)):
            _ensure_role(connection, role, login=False)
        governance_url = _ensure_login(
            connection,
            admin.set(username=application, database=governance),
            previous.governance_url if previous else None,
        )
        dagster_url = _ensure_login(
            connection,
            admin.set(username=dagster_role(dagster), database=dagster),
            previous.dagster_url if previous else None,
        )
        _settle(connection, governance, dagster)
        _let_become(connection, application, retention_role(governance))
        with connect(admin.set(database=governance)) as inside:
            _ensure_schema(inside, owner)

    return Connections(
        governance_url=_text(governance_url),
        dagster_url=_text(dagster_url.set(drivername="postgresql+psycopg2")),
    )


def _check_server(connection: psycopg.Connection) -> None:
    if connection.info.server_version < OLDEST_SERVER * 10_000:
        raise ServiceUnavailableError(
            f"PostgreSQL {OLDEST_SERVER} or newer is needed; "
            f"the server is {connection.info.parameter_status('server_version')}"
        )


def _check_owners(connection: psycopg.Connection, owners: Mapping[str, str]) -> None:
    """Refuse databases that are someone else's: closing them would lock their users out."""
    found = connection.execute(
        "SELECT datname, pg_get_userbyid(datdba) FROM pg_database WHERE datname = ANY(%s)",
        (list(owners),),
    )
    foreign = sorted(name for name, owner in found if owner != owners[name])
    if foreign:
        message = f"databases of these names exist and are not ours: {', '.join(foreign)}"
        raise InvalidArgumentError(f"{message}; choose other names", names=foreign)


def _ensure_role(connection: psycopg.Connection, role: str, *, login: bool) -> None:
    found = connection.execute(
        "SELECT rolcanlogin,"
        " rolinherit OR rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls"
        " FROM pg_roles WHERE rolname = %s",
        (role,),
    ).fetchone()
    attributes = sql.SQL("LOGIN NOINHERIT" if login else "NOLOGIN NOINHERIT")
    if found is None:
        create = sql.SQL("CREATE ROLE {} {}")
        connection.execute(create.format(sql.Identifier(role), attributes))
    elif found != (login, False):
        alter = sql.SQL(
            "ALTER ROLE {} {} NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
        )
        connection.execute(alter.format(sql.Identifier(role), attributes))


def _let_become(connection: psycopg.Connection, role: str, other: str) -> None:
    """Let a role become another one; as roles inherit nothing, only by saying so."""
    grant = sql.SQL("GRANT {} TO {}")
    connection.execute(grant.format(sql.Identifier(other), sql.Identifier(role)))


def _ensure_login(connection: psycopg.Connection, url: URL, previous: str | None) -> URL:
    """Return `url` with a password that works: the previous one, or a new one."""
    role = str(url.username)
    kept = url.set(password=administrative_url(previous).password) if previous else None
    works = kept is not None and _works(kept)
    _ensure_role(connection, role, login=True)
    if kept is not None and works:
        return kept
    password = secrets.token_urlsafe(32)
    # The server gets a verifier, because it may log statements.
    verifier = connection.pgconn.encrypt_password(
        password.encode(), role.encode(), b"scram-sha-256"
    ).decode()
    connection.execute(
        sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(verifier))
    )
    return url.set(password=password)


def _works(url: URL) -> bool:
    try:
        connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def _settle(connection: psycopg.Connection, governance: str, dagster: str) -> None:
    """Make the databases, hand them to their owners and close them to everyone else."""
    application = application_role(governance)
    owners = {governance: owner_role(governance), dagster: dagster_role(dagster)}
    if connection.info.parameter_status("is_superuser") == "on":
        # A failed cast would put the value into the server's log at level error.
        quiet = sql.SQL("ALTER ROLE {} SET log_min_messages = 'fatal'")
        connection.execute(quiet.format(sql.Identifier(application)))
    else:
        # Others may give away only what their own roles could own.
        join = sql.SQL("GRANT {} TO CURRENT_USER")
        for owner in owners.values():
            connection.execute(join.format(sql.Identifier(owner)))
    for database, owner in owners.items():
        _ensure_database(connection, database, owner)
    restrict(connection, governance, to=(application, reader_role(governance)))
    restrict(connection, dagster)


def _ensure_database(connection: psycopg.Connection, database: str, owner: str) -> None:
    exists = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (database,))
    if exists.fetchone() is None:
        # One encoding and one sort order everywhere, whatever the server was made with.
        create = sql.SQL(
            "CREATE DATABASE {} OWNER {} TEMPLATE template0 ENCODING 'UTF8'"
            " LOCALE_PROVIDER libc LOCALE 'C'"
        )
        connection.execute(create.format(sql.Identifier(database), sql.Identifier(owner)))


def _ensure_schema(connection: psycopg.Connection, owner: str) -> None:
    schema, role = sql.Identifier(SCHEMA), sql.Identifier(owner)
    create = sql.SQL("CREATE SCHEMA IF NOT EXISTS {} AUTHORIZATION {}")
    connection.execute(create.format(schema, role))
    connection.execute(sql.SQL("ALTER SCHEMA {} OWNER TO {}").format(schema, role))
    connection.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")


def _text(url: URL) -> str:
    return url.render_as_string(hide_password=False)
