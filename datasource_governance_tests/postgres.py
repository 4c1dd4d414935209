"""A real server for tests: embedded, or the one of DATABASE_URL. Without either, tests fail.

One server and one migrated template database per test process, one clone of it per test. The roles
are the template's, whose names are of this run alone, so runs may share a server.
"""

import os
import secrets
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from datasource_governance.persistence.administration import administrative_url, connect
from datasource_governance.persistence.connections import Connections
from datasource_governance.persistence.embedded import EmbeddedPostgres
from datasource_governance.persistence.provisioning import (
    application_role,
    dagster_role,
    owner_role,
    provision,
    reader_role,
    restrict,
    retention_role,
)
from datasource_governance.persistence.upgrade import upgrade

# No crash of the machine is tested, and without waiting for the disk tests are twice as fast.
FOR_TESTS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

# A database is hundreds of files; making and dropping them on a disk takes five times as long.
_MEMORY = Path("/dev/shm")  # noqa: S108 - directories in it are made by `mkdtemp`
_ENOUGH_BYTES = 4 * 1024**3


@dataclass(frozen=True)
class Template:
    """A provisioned and migrated pair of databases that nothing connects to."""

    admin_url: str
    governance: str
    dagster: str
    connections: Connections


@dataclass(frozen=True)
class GovernanceDatabase:
    """A migrated database of one test. Tests default to the application's URL."""

    name: str
    admin_url: str
    application_url: str
    application_role: str
    owner_role: str
    reader_role: str
    retention_role: str


def unique_name(kind: str) -> str:
    return f"test_{kind}_{secrets.token_hex(6)}"


def reachable_directory() -> Path:
    """Return a new directory that a server run by root as `nobody` can reach, in memory if it can.

    Containers often have 64 MB of shared memory, which is not enough.
    """
    has_room = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ENOUGH_BYTES
    parent = _MEMORY if has_room else None
    directory = Path(tempfile.mkdtemp(prefix="datasource_governance_", dir=parent))
    directory.chmod(0o711)
    return directory


def admin_connection(url: str, database: str | None = None) -> psycopg.Connection:
    address = administrative_url(url)
    return connect(address.set(database=database) if database else address)


def drop_database(connection: psycopg.Connection, database: str) -> None:
    drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
    connection.execute(drop.format(sql.Identifier(database)))


def drop_provisioned(admin_url: str, governance: str, dagster: str) -> None:
    """Remove everything that `provision` made."""
    named = (owner_role, application_role, reader_role, retention_role)
    roles = (*(role(governance) for role in named), dagster_role(dagster))
    with admin_connection(admin_url) as connection:
        drop_database(connection, governance)
        drop_database(connection, dagster)
        for role in roles:
            drop = sql.SQL("DROP ROLE IF EXISTS {}")
            connection.execute(drop.format(sql.Identifier(role)))


def _clone(
    template: Template, source: str, owner: str, *, to: Collection[str] = ()
) -> Iterator[str]:
    name = unique_name("database")
    # Copying files takes less than half of what copying pages through the log does.
    create = sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {} STRATEGY FILE_COPY").format(
        sql.Identifier(name), sql.Identifier(owner), sql.Identifier(source)
    )
    with admin_connection(template.admin_url) as connection:
        connection.execute(create)
        restrict(connection, name, to=to)  # a copy does not take over who may connect
    yield name
    with admin_connection(template.admin_url) as connection:
        drop_database(connection, name)


@contextmanager
def auditor_login(database: GovernanceDatabase) -> Iterator[str]:
    """Yield the URL of a login that was given the reader's role, as `db upgrade` says."""
    login, password = unique_name("auditor"), secrets.token_hex()
    with admin_connection(database.admin_url) as connection:
        connection.execute(f"CREATE ROLE {login} LOGIN PASSWORD '{password}'")
        connection.execute(f"GRANT {database.reader_role} TO {login}")
    url = make_url(database.application_url).set(username=login, password=password)
    yield url.render_as_string(hide_password=False)
    with admin_connection(database.admin_url) as connection:
        connection.execute(f"DROP ROLE {login}")


def _at(url: str, database: str) -> str:
    return make_url(url).set(database=database).render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """The administrative URL of a server."""
    given = os.environ.get("DATABASE_URL")
    if given:
        yield given
        return
    directory = reachable_directory()
    with EmbeddedPostgres.start(directory / "postgres", settings=FOR_TESTS) as server:
        yield server.url
    shutil.rmtree(directory)


@pytest.fixture(scope="session")
def template(cluster: str) -> Iterator[Template]:
    governance, dagster = unique_name("governance"), unique_name("dagster")
    connections = provision(cluster, governance=governance, dagster=dagster)
    upgrade(cluster, governance)
    yield Template(cluster, governance, dagster, connections)
    drop_provisioned(cluster, governance, dagster)


def cloned_governance(
    template: Template, source: str | None = None
) -> Iterator[GovernanceDatabase]:
    """Yield one database of its own, migrated and empty, and drop it afterwards.

    With `source` it is as that clone is, to which nothing may be connected.
    """
    owner, application = owner_role(template.governance), application_role(template.governance)
    reader = reader_role(template.governance)
    origin = source or template.governance
    for name in _clone(template, origin, owner, to=(application, reader)):
        yield GovernanceDatabase(
            name=name,
            admin_url=_at(template.admin_url, name),
            application_url=_at(template.connections.governance_url, name),
            application_role=application,
            owner_role=owner,
            reader_role=reader,
            retention_role=retention_role(template.governance),
        )


@pytest.fixture(scope="session")
def dagster_template(template: Template) -> Iterator[str]:
    """A database with the tables of Dagster's storage, which take seconds to make."""
    import dagster as dg

    for name in _clone(template, template.dagster, dagster_role(template.dagster)):
        url = _at(template.connections.dagster_url, name)
        with dg.instance_for_test(overrides={"storage": {"postgres": {"postgres_url": url}}}):
            pass
        yield name


@pytest.fixture
def dagster_database(template: Template, dagster_template: str) -> Iterator[str]:
    """The URL of a database of its own that has Dagster's tables, without a row."""
    yield from cloned_dagster(template, dagster_template)


def cloned_dagster(template: Template, source: str | None = None) -> Iterator[str]:
    """Yield the URL of one database for Dagster's storage, and drop it afterwards.

    It is empty; with `source` it is as that clone is, to which nothing may be connected.
    """
    owner = dagster_role(template.dagster)
    for name in _clone(template, source or template.dagster, owner):
        yield _at(template.connections.dagster_url, name)
