"""Bring a governance database to the revision that this version of the package is written for.

Source: SPEC sections 16 and 17.
"""

from functools import partial
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, NullPool, create_engine, func, select, text

from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.persistence.administration import administrative_url, attempt
from datasource_governance.persistence.provisioning import (
    SCHEMA,
    application_role,
    owner_role,
    reader_role,
    retention_role,
)

_LOCK_SECONDS = 5
# One migration at a time in a database; any number that nothing else there uses will do.
_MIGRATION_LOCK = 0x6473_676F_7675


def required_revision() -> str:
    """Return the revision that this version of the package needs, no older and no newer one."""
    return str(_scripts().get_current_head())


def current_revision(connection: Connection) -> str | None:
    """Return the revision that the database is at; None before the first upgrade.

    The application's role may ask, too.
    """
    options = {"version_table_schema": SCHEMA}
    return MigrationContext.configure(connection, opts=options).get_current_revision()


def upgrade(admin_url: str, governance_database: str = "governance") -> None:
    """Run the missing migrations as the owner role, all in one transaction. Idempotent.

    The database must have been provisioned. Waits at most 5 seconds for any lock.

    Raises:
        ServiceUnavailableError: the database is at a revision that this version does not know; it
            cannot be reached; a lock was not free in time; or a migration failed. Nothing changed.
    """
    admin = administrative_url(admin_url).set(database=governance_database)
    attempt("upgrade the database", admin, partial(_upgrade, admin, governance_database))


def _upgrade(admin: URL, database: str) -> None:
    engine = create_engine(admin, poolclass=NullPool)
    with engine.begin() as connection:
        _prepare(connection, owner_role(database))
        _check_known(connection)
        config = _config()
        config.attributes["connection"] = connection
        config.attributes["application_role"] = application_role(database)
        config.attributes["reader_role"] = reader_role(database)
        config.attributes["retention_role"] = retention_role(database)
        command.upgrade(config, "head")


def _prepare(connection: Connection, owner: str) -> None:
    quoted = connection.dialect.identifier_preparer.quote(owner)
    connection.execute(text(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'"))
    connection.execute(text(f"SET LOCAL ROLE {quoted}"))
    connection.execute(select(func.pg_advisory_xact_lock(_MIGRATION_LOCK)))


def _check_known(connection: Connection) -> None:
    current = current_revision(connection)
    known = {script.revision for script in _scripts().walk_revisions()}
    if current is not None and current not in known:
        raise ServiceUnavailableError(
            f"the database is at revision {current}, which is newer than {required_revision()}, "
            "the newest that this version knows; install the version that upgraded it"
        )


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())
