"""Migrations: whose they are, what they need, and that they happen as a whole or not at all."""

from collections.abc import Iterator

import pytest
from sqlalchemy import NullPool, create_engine

from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.persistence import upgrade as upgrading
from datasource_governance.persistence.provisioning import owner_role, provision
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
