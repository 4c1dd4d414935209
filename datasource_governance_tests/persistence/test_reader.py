"""An auditor's login: it verifies everything, and can neither read a payload nor write."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine

from datasource_governance.domain.evidence import BreakKind
from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.persistence import tables
from datasource_governance.persistence.connection import Connection, governance_engine
from datasource_governance.persistence.rows import Rows
from datasource_governance.persistence.verification import Verification, verify_evidence
from datasource_governance_tests.persistence.test_append_only import (
    NOT_PERMITTED,
    TABLES,
    catalogue,
    count,
    refusal,
)
from datasource_governance_tests.postgres import admin_connection, auditor_login
from datasource_governance_tests.world import World, new_world

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

PAYLOADS = sorted(tables.DIGESTS)
DIGESTS = sorted(view.name for view in tables.DIGESTS.values())
READABLE = sorted({*TABLES, *DIGESTS} - {*PAYLOADS})
WRONG_OBJECT = "42809"


@pytest.fixture(scope="module")
def login(told_world: World) -> Iterator[str]:
    with auditor_login(told_world.database) as url:
        yield url


@pytest.fixture
def session(login: str) -> Iterator[psycopg.Connection]:
    """A session of the auditor, in the story's tenant."""
    with admin_connection(login) as connection:
        connection.execute("SET governance.tenant = 'default'")
        connection.execute("SET search_path = governance")
        yield connection


def verified_by(url: str) -> Verification:
    engine = governance_engine(url)
    try:
        return verify_evidence(engine, "default")
    finally:
        engine.dispose()


def test_an_auditor_verifies_all_that_the_application_does(told_world: World, login: str) -> None:
    verification = verified_by(login)

    assert verification.holds
    assert verification == told_world.verification()


def test_an_auditor_finds_an_altered_payload_without_reading_it(world: World) -> None:
    world.declare()
    stage = world.stage()
    world.tamper("stage_payload", "UPDATE governance.stage_payload SET payload = 'other'")

    with auditor_login(world.database) as url:
        breaks = verified_by(url).breaks

    assert [(one.kind, one.table, one.key) for one in breaks] == [
        (BreakKind.ALTERED_ROW, "stage_payload", ("default", stage.id))
    ]


@pytest.mark.parametrize("table", PAYLOADS)
@pytest.mark.parametrize("what", ["*", "payload", "sha256(payload)", "length(payload)", "tenant"])
def test_an_auditor_reads_no_payload(session: psycopg.Connection, table: str, what: str) -> None:
    assert refusal(session, f"SELECT {what} FROM {table}") == NOT_PERMITTED


@pytest.mark.parametrize("table", sorted([*TABLES, *DIGESTS, "alembic_version"]))
def test_an_auditor_writes_and_locks_nothing(session: psycopg.Connection, table: str) -> None:
    statements = [
        f"INSERT INTO {table} DEFAULT VALUES",
        f"DELETE FROM {table}",
        f"TRUNCATE {table}",
        f"SELECT 1 FROM {table} FOR SHARE",
        f"ALTER TABLE {table} DISABLE TRIGGER ALL",
        f"DROP TABLE {table}",
    ]
    column = "version_num" if table == "alembic_version" else "tenant"
    statements.append(f"UPDATE {table} SET {column} = {column}")
    expected = dict.fromkeys(statements, NOT_PERMITTED)
    if table in DIGESTS:
        for statement in (f"TRUNCATE {table}", f"DROP TABLE {table}"):
            expected[statement] = WRONG_OBJECT

    assert {statement: refusal(session, statement) for statement in statements} == expected


def test_an_auditor_may_read_what_is_no_payload_and_nothing_else(told_world: World) -> None:
    granted = catalogue(
        told_world,
        "SELECT table_name, privilege_type FROM information_schema.table_privileges"
        f" WHERE grantee = '{told_world.database.reader_role}'"
        " UNION SELECT table_name, privilege_type FROM information_schema.column_privileges"
        f" WHERE grantee = '{told_world.database.reader_role}'",
    )

    assert sorted(granted) == sorted((name, "SELECT") for name in (*READABLE, "alembic_version"))


def test_an_auditor_becomes_nobody_else_and_makes_nothing(
    told_world: World, session: psycopg.Connection
) -> None:
    database = told_world.database
    statements = [
        f"SET ROLE {database.owner_role}",
        f"SET ROLE {database.application_role}",
        "SET row_security = off; SELECT * FROM stage",
        "SET session_replication_role = replica",
        "CREATE TEMPORARY TABLE mine (id text)",
        "CREATE TABLE public.mine (id text)",
        "CREATE FUNCTION governance.mine() RETURNS text LANGUAGE sql AS 'SELECT NULL'",
        "CREATE OR REPLACE VIEW stage_payload_digest AS SELECT 'x' AS tenant",
    ]

    refused = {statement: refusal(session, statement) for statement in statements}

    assert refused == dict.fromkeys(statements, NOT_PERMITTED)


@pytest.mark.parametrize("unset", ["SET governance.tenant = ''", "RESET governance.tenant"])
def test_an_auditor_without_a_tenant_sees_nothing(session: psycopg.Connection, unset: str) -> None:
    seen = {name: count(session, name) for name in READABLE}
    session.execute(unset)

    left = {name: count(session, name) for name in READABLE}

    assert 0 not in seen.values()
    assert left == dict.fromkeys(READABLE, 0)


def test_an_auditor_sees_the_tenant_that_was_named_and_no_other(
    world: World, tmp_path: Path
) -> None:
    other = new_world(world.database, tmp_path / "other", tenant="other")
    other.declare()
    other.stage()
    other.application.close()

    with auditor_login(world.database) as url, admin_connection(url) as connection:
        connection.execute("SET governance.tenant = 'default'; SET search_path = governance")
        found = {name: tenants(connection, name) for name in READABLE}
        connection.execute("SET governance.tenant = 'other'")
        others = {name: tenants(connection, name) for name in READABLE}

    assert {tenant for seen in found.values() for tenant in seen} == {"default"}
    assert {tenant for seen in others.values() for tenant in seen} == {"other"}
    assert others["stage_payload_digest"] == {"other"}


def tenants(connection: psycopg.Connection, name: str) -> set[str]:
    return {tenant for (tenant,) in connection.execute(f"SELECT tenant FROM {name}")}


@pytest.fixture
def engine(login: str) -> Iterator[Engine]:
    made = governance_engine(login)
    yield made
    made.dispose()


def test_what_an_auditors_login_may_not_do_is_told_in_one_sentence(engine: Engine) -> None:
    connection = Connection(engine, "default")
    connection.begin()
    rows = Rows(connection, "default")

    with pytest.raises(ServiceUnavailableError, match="an auditor's reads and verifies only") as no:
        rows.all(rows.of(tables.stage_payload))

    assert no.value.facts == {"sqlstate": NOT_PERMITTED}
    connection.close()
