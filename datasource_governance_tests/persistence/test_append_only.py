"""What Postgres itself refuses, to whom: privileges, triggers, row-level security, keys."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from sqlalchemy import Column, MetaData, NullPool, Table, create_engine
from sqlalchemy.dialects import postgresql

from datasource_governance.persistence import tables, upgrade
from datasource_governance.persistence.administration import administrative_url
from datasource_governance_tests.postgres import admin_connection
from datasource_governance_tests.world import World, triggers_of

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

TABLES = sorted(table.name for table in tables.metadata.tables.values())
MUTABLE = {
    table: columns
    for script in reversed(list(upgrade._scripts().walk_revisions()))
    for table, columns in script.module.MUTABLE.items()
}
CHANGED = {
    "TEXT": "'?'",
    "BYTEA": "'?'",
    "BOOLEAN": "NOT {0}",
    "BIGINT": "{0} + 1",
    "INTEGER": "{0} + 1",
    "DOUBLE PRECISION": "{0} + 1",
    "BIGINT[]": "{0} || 1",
    "TIMESTAMP WITH TIME ZONE": "{0} + interval '1 microsecond'",
}
NOT_PERMITTED = "42501"
RESTRICTED = "23001"


@contextmanager
def session(world: World, who: str) -> Iterator[psycopg.Connection]:
    """A session of the application, the owner or a superuser, in the story's tenant."""
    database = world.database
    url = database.application_url if who == "application" else database.admin_url
    with admin_connection(url) as connection:
        if who == "owner":
            connection.execute(f"SET ROLE {database.owner_role}")
        if who == "replica":
            connection.execute("SET session_replication_role = replica")
        connection.execute("SET governance.tenant = 'default'")
        connection.execute("SET search_path = governance")
        yield connection


def refusal(connection: psycopg.Connection, statement: str) -> str | None:
    """Return the SQLSTATE with which a statement is refused; it is never carried out."""
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(statement)
    except psycopg.Error as error:
        return error.sqlstate
    return None


def immutable(table: str) -> list[str]:
    columns = tables.metadata.tables[f"governance.{table}"].columns
    return [column.name for column in columns if column.name not in MUTABLE[table]]


def catalogue(world: World, query: str) -> list[tuple]:
    with admin_connection(world.database.admin_url) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.parametrize("table", TABLES)
def test_the_application_may_not_change_what_never_changes(told_world: World, table: str) -> None:
    with session(told_world, "application") as connection:
        refused = {
            column: refusal(connection, f"UPDATE {table} SET {column} = {column}")
            for column in immutable(table)
        }

    assert refused == dict.fromkeys(immutable(table), NOT_PERMITTED)


@pytest.mark.parametrize("table", TABLES)
def test_the_application_may_not_remove_or_unprotect_anything(
    told_world: World, table: str
) -> None:
    statements = [
        f"DELETE FROM {table}",
        f"TRUNCATE {table}",
        f"ALTER TABLE {table} DISABLE TRIGGER append_only",
        f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY",
        f"DROP POLICY tenant ON {table}",
        f"DROP TRIGGER append_only ON {table}",
        f"DROP TABLE {table}",
    ]

    with session(told_world, "application") as connection:
        refused = {statement: refusal(connection, statement) for statement in statements}

    assert refused == dict.fromkeys(statements, NOT_PERMITTED)


def test_the_application_may_not_become_anybody_else_or_make_anything(told_world: World) -> None:
    statements = [
        "SET session_replication_role = replica",
        "SET row_security = off; SELECT * FROM stage",
        f"SET ROLE {told_world.database.owner_role}",
        "UPDATE alembic_version SET version_num = version_num",
        "CREATE OR REPLACE FUNCTION now() RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL'",
        "CREATE TABLE governance.more (id text)",
        "CREATE TABLE public.more (id text)",
        "CREATE SCHEMA more",
    ]

    with session(told_world, "application") as connection:
        refused = {statement: refusal(connection, statement) for statement in statements}

    assert refused == dict.fromkeys(statements, NOT_PERMITTED)


@pytest.mark.parametrize("who", ["owner", "superuser", "replica"])
@pytest.mark.parametrize("table", TABLES)
def test_triggers_refuse_even_those_who_have_the_privilege(
    told_world: World, table: str, who: str
) -> None:
    statements = [f"DELETE FROM {table}", f"TRUNCATE {table} CASCADE"]
    for column in immutable(table):
        changed = CHANGED[kind(tables.metadata.tables[f"governance.{table}"].c[column])]
        statements.append(f"UPDATE {table} SET {column} = {changed.format(column)}")

    with session(told_world, who) as connection:
        refused = {statement: refusal(connection, statement) for statement in statements}

    assert refused == dict.fromkeys(statements, RESTRICTED)


def test_what_the_application_may_change_is_what_the_migration_and_the_tables_say(
    told_world: World,
) -> None:
    granted = catalogue(
        told_world,
        "SELECT table_name, column_name FROM information_schema.column_privileges"
        f" WHERE grantee = '{told_world.database.application_role}' AND privilege_type = 'UPDATE'",
    )

    said = {(table, column) for table, columns in MUTABLE.items() for column in columns}
    marked = {
        (table.name, column.name)
        for table in tables.metadata.tables.values()
        for column in table.columns
        if column.info.get("mutable")
    }
    assert set(granted) == said == marked
    assert sorted(MUTABLE) == TABLES


def test_the_application_may_read_and_add_and_nothing_else(told_world: World) -> None:
    granted = catalogue(
        told_world,
        "SELECT table_name, privilege_type FROM information_schema.table_privileges"
        f" WHERE grantee IN ('{told_world.database.application_role}', 'PUBLIC')"
        " AND table_schema = 'governance'",
    )

    adding = {(table, privilege) for table in TABLES for privilege in ("SELECT", "INSERT")}
    views = {(view.name, "SELECT") for view in tables.DIGESTS.values()}
    assert set(granted) == adding | views | {("alembic_version", "SELECT")}


@pytest.mark.parametrize("table", TABLES)
def test_a_row_of_another_tenant_can_be_neither_written_nor_seen(
    told_world: World, table: str
) -> None:
    names = [column.name for column in tables.metadata.tables[f"governance.{table}"].columns]
    copied = ", ".join("'other'" if name == "tenant" else name for name in names)

    with session(told_world, "application") as connection:
        written = refusal(
            connection, f"INSERT INTO {table} ({', '.join(names)}) SELECT {copied} FROM {table}"
        )
        connection.execute("SET governance.tenant = 'other'")
        seen = connection.execute(f"SELECT count(*) FROM {table}").fetchone()

    assert (written, seen) == (NOT_PERMITTED, (0,))


@pytest.mark.parametrize("who", ["application", "owner"])
@pytest.mark.parametrize("unset", ["SET governance.tenant = ''", "RESET governance.tenant"])
def test_a_session_without_a_tenant_sees_nothing(told_world: World, who: str, unset: str) -> None:
    with session(told_world, who) as connection:
        seen = {table: count(connection, table) for table in TABLES}
        connection.execute(unset)
        left = {table: count(connection, table) for table in TABLES}

    assert 0 not in seen.values()
    assert left == dict.fromkeys(TABLES, 0)


def count(connection: psycopg.Connection, table: str) -> int:
    return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def test_row_level_security_is_forced_on_every_table_by_one_policy(told_world: World) -> None:
    found = catalogue(
        told_world,
        "SELECT relname, relrowsecurity, relforcerowsecurity, polcmd::text, polpermissive,"
        " polroles::text, pg_get_expr(polqual, c.oid) = pg_get_expr(polwithcheck, c.oid)"
        " FROM pg_class c LEFT JOIN pg_policy p ON p.polrelid = c.oid"
        " WHERE relnamespace = 'governance'::regnamespace AND relkind IN ('r', 'p')"
        " AND relname <> 'alembic_version' ORDER BY relname",
    )

    assert found == [(table, True, True, "*", True, "{0}", True) for table in TABLES]


def test_every_trigger_fires_for_replicas_too(told_world: World) -> None:
    found = catalogue(
        told_world,
        "SELECT relname, tgname, tgenabled::text FROM pg_trigger t JOIN pg_class c"
        " ON c.oid = t.tgrelid WHERE relnamespace = 'governance'::regnamespace"
        " AND NOT tgisinternal ORDER BY relname, tgname",
    )

    assert found == [(table, trigger, "A") for table in TABLES for trigger in triggers_of(table)]


def test_every_unique_index_and_every_reference_carries_the_tenant(told_world: World) -> None:
    without = catalogue(
        told_world,
        "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
        " JOIN pg_class t ON t.oid = i.indrelid"
        " WHERE c.relnamespace = 'governance'::regnamespace AND t.relname <> 'alembic_version'"
        " AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = t.oid"
        "  AND a.attname = 'tenant' AND a.attnum = i.indkey[0])"
        " UNION ALL SELECT conname FROM pg_constraint"
        " WHERE connamespace = 'governance'::regnamespace AND contype = 'f' AND NOT ("
        "  EXISTS (SELECT FROM pg_attribute WHERE attrelid = conrelid AND attname = 'tenant'"
        "   AND attnum = conkey[1])"
        "  AND EXISTS (SELECT FROM pg_attribute WHERE attrelid = confrelid AND attname = 'tenant'"
        "   AND attnum = confkey[1]))",
    )

    assert without == []


def test_the_tables_are_those_of_the_migrated_database(told_world: World) -> None:
    engine = create_engine(administrative_url(told_world.database.admin_url), poolclass=NullPool)
    migrated = MetaData(schema="governance")
    migrated.reflect(engine)

    found = {name: shape(table) for name, table in migrated.tables.items()}

    del found["governance.alembic_version"]
    assert found == {name: shape(table) for name, table in tables.metadata.tables.items()}


def test_the_digests_are_views_of_the_owner_whom_row_level_security_binds(
    told_world: World,
) -> None:
    found = catalogue(
        told_world,
        "SELECT relname, relowner::regrole::text, reloptions FROM pg_class"
        " WHERE relnamespace = 'governance'::regnamespace AND relkind = 'v' ORDER BY relname",
    )

    names = sorted(view.name for view in tables.DIGESTS.values())
    assert found == [(name, told_world.database.owner_role, None) for name in names]


def shape(table: Table) -> tuple[list[tuple[str, str, bool]], list[str]]:
    """Return what must agree: columns in order, their types, emptiness, and the primary key."""
    columns = [(column.name, kind(column), column.nullable) for column in table.columns]
    return columns, [column.name for column in table.primary_key.columns]


def kind(column: Column) -> str:
    return column.type.compile(postgresql.dialect())
