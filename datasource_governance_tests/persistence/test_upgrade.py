"""Migrations: whose they are, what they need, and that they happen as a whole or not at all."""

import secrets
from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest
from sqlalchemy import NullPool, create_engine, make_url

from datasource_governance.composition import Application
from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.persistence import upgrade as upgrading
from datasource_governance.persistence.provisioning import (
    application_role,
    owner_role,
    provision,
)
from datasource_governance.persistence.upgrade import (
    current_revision,
    required_revision,
    upgrade,
)
from datasource_governance_tests.postgres import (
    GovernanceDatabase,
    admin_connection,
    drop_provisioned,
    unique_name,
)
from datasource_governance_tests.world import World

pytestmark = pytest.mark.postgres


@pytest.fixture
def provisioned(cluster: str) -> Iterator[str]:
    """The name of a governance database before its first upgrade."""
    governance, dagster = unique_name("governance"), unique_name("dagster")
    provision(cluster, governance=governance, dagster=dagster)
    yield governance
    drop_provisioned(cluster, governance, dagster)


def revision(url: str) -> str | None:
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        return current_revision(connection)


def tables(url: str, database: str) -> set[str]:
    query = "SELECT tablename, tableowner FROM pg_tables WHERE schemaname = 'governance'"
    with admin_connection(url, database) as connection:
        rows = connection.execute(query).fetchall()
    assert {owner for _, owner in rows} <= {owner_role(database)}
    return {name for name, _ in rows}


def test_the_first_upgrade_gives_the_owner_all_tables(cluster: str, provisioned: str) -> None:
    assert tables(cluster, provisioned) == set()

    upgrade(cluster, provisioned)

    assert tables(cluster, provisioned) >= {"alembic_version", "stage", "evidence"}


def test_upgrading_again_changes_nothing(cluster: str, provisioned: str) -> None:
    upgrade(cluster, provisioned)
    before = tables(cluster, provisioned)

    upgrade(cluster, provisioned)

    assert tables(cluster, provisioned) == before


def test_the_application_sees_the_revision_that_it_requires(
    governance_database: GovernanceDatabase,
) -> None:
    assert revision(governance_database.application_url) == required_revision()


def test_before_the_first_upgrade_there_is_no_revision(cluster: str) -> None:
    assert revision(cluster) is None


def test_a_database_of_a_newer_version_is_left_alone(cluster: str, provisioned: str) -> None:
    upgrade(cluster, provisioned)
    with admin_connection(cluster, provisioned) as connection:
        connection.execute("UPDATE governance.alembic_version SET version_num = '9999'")

    with pytest.raises(ServiceUnavailableError) as refused:
        upgrade(cluster, provisioned)

    with admin_connection(cluster, provisioned) as connection:
        left = connection.execute("SELECT version_num FROM governance.alembic_version").fetchall()
    assert "9999" in str(refused.value)
    assert left == [("9999",)]


def test_a_failing_migration_leaves_nothing_behind_and_says_no_value(
    cluster: str, provisioned: str
) -> None:
    with admin_connection(cluster, provisioned) as connection:
        connection.execute(f"SET ROLE {owner_role(provisioned)}")
        connection.execute("CREATE TABLE governance.evidence_head (zq_canary integer)")

    with pytest.raises(ServiceUnavailableError) as refused:
        upgrade(cluster, provisioned)

    assert refused.value.facts["sqlstate"] == "42P07"
    assert refused.value.__context__ is None
    assert tables(cluster, provisioned) == {"evidence_head"}


def test_an_upgrade_does_not_wait_for_ever(
    cluster: str, provisioned: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upgrading, "_LOCK_SECONDS", 0.2)
    with admin_connection(cluster, provisioned) as other, other.transaction():
        other.execute("SELECT pg_advisory_xact_lock(%s)", (upgrading._MIGRATION_LOCK,))

        with pytest.raises(ServiceUnavailableError) as refused:
            upgrade(cluster, provisioned)

    assert refused.value.facts["sqlstate"] == "55P03"
    assert tables(cluster, provisioned) == set()


def test_a_database_that_was_not_provisioned_is_refused(cluster: str) -> None:
    with pytest.raises(ServiceUnavailableError):
        upgrade(cluster, unique_name("missing"))


@pytest.fixture(params=["0001", "0002", "0003"])
def earlier(
    cluster: str, provisioned: str, world: World, request: pytest.FixtureRequest
) -> Iterator[World]:
    """What `world` lived through, in a database of an earlier revision of this package."""
    world.declare(approval={"version": "v1", "required": True})
    world.stage(creator=None)
    stage = world.stage()
    world.decide("approver-1", stage)
    world.promote(stage)
    upgrade_to(request.param, cluster, provisioned)
    password = secrets.token_hex()
    with (
        admin_connection(world.database.admin_url) as source,
        admin_connection(cluster, provisioned) as target,
    ):
        copy_rows(source, target)
        target.execute(f"ALTER ROLE {application_role(provisioned)} PASSWORD '{password}'")
    url = make_url(world.database.application_url).set(
        username=application_role(provisioned), password=password, database=provisioned
    )
    at = url.render_as_string(hide_password=False)
    admin_url = make_url(cluster).set(database=provisioned)
    copied = World(
        Application(replace(world.application.settings, database_url=at)),
        replace(
            world.database,
            name=provisioned,
            admin_url=admin_url.render_as_string(hide_password=False),
            application_url=at,
        ),
    )
    yield copied
    copied.application.close()


def upgrade_to(earlier: str, cluster: str, database: str) -> None:
    newest = upgrading.command.upgrade
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(upgrading.command, "upgrade", lambda config, _: newest(config, earlier))
        upgrade(cluster, database)


def copy_rows(source: psycopg.Connection, target: psycopg.Connection) -> None:
    """Copy whatever both databases have a column for, references unchecked."""
    target.execute("SET session_replication_role = replica")
    for (table,) in target.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'governance'"
        " AND tablename <> 'alembic_version'"
    ).fetchall():
        columns = ", ".join(sorted(columns_of(source, table) & columns_of(target, table)))
        with (
            source.cursor().copy(f"COPY governance.{table} ({columns}) TO STDOUT") as rows,
            target.cursor().copy(f"COPY governance.{table} ({columns}) FROM STDIN") as written,
        ):
            for block in rows:
                written.write(block)


def columns_of(connection: psycopg.Connection, table: str) -> set[str]:
    found = connection.execute(
        "SELECT column_name FROM information_schema.columns"
        " WHERE table_schema = 'governance' AND table_name = %s",
        (table,),
    )
    return {name for (name,) in found}


@pytest.mark.slow
def test_an_upgrade_with_data_keeps_every_proof_and_life_goes_on(
    cluster: str, world: World, earlier: World, request: pytest.FixtureRequest
) -> None:
    with pytest.raises(ServiceUnavailableError) as refused:
        earlier.verification()
    assert refused.value.facts == {"revision": request.node.callspec.params["earlier"]}

    upgrade(cluster, earlier.database.name)

    assert earlier.verification() == world.verification()
    stage = earlier.stage()
    earlier.decide("approver-1", stage)
    assert earlier.promote(stage).materialization.revision == 2
    assert earlier.verification().holds
