"""Databases, roles and the private file: what is made, kept, refused and never shown."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from datasource_governance.errors import (
    GovernanceError,
    InvalidArgumentError,
    NotFoundError,
    ServiceUnavailableError,
)
from datasource_governance.persistence.connections import (
    Connections,
    read_connections,
    write_connections,
)
from datasource_governance.persistence.provisioning import (
    application_role,
    dagster_role,
    owner_role,
    provision,
    reader_role,
    retention_role,
)
from datasource_governance_tests.postgres import (
    admin_connection,
    drop_database,
    drop_provisioned,
    unique_name,
)

pytestmark = pytest.mark.postgres

WITH_BLANK = Connections(
    governance_url="postgresql+psycopg://a:p%20w@h:1/g?sslmode=require&options=-c x",
    dagster_url="postgresql+psycopg2://d:pw@h:1/d",
)


@dataclass(frozen=True)
class Names:
    governance: str
    dagster: str


@pytest.fixture
def names(cluster: str) -> Iterator[Names]:
    """Names of databases that do not exist, and will not exist afterwards."""
    fresh = Names(unique_name("governance"), unique_name("dagster"))
    yield fresh
    drop_provisioned(cluster, fresh.governance, fresh.dagster)


@pytest.fixture
def limited_admin(cluster: str) -> Iterator[str]:
    """The URL of an administrator who may create databases and roles, and nothing else."""
    role = unique_name("admin")
    with admin_connection(cluster) as connection:
        create = sql.SQL("CREATE ROLE {} LOGIN CREATEDB CREATEROLE PASSWORD 'limited'")
        connection.execute(create.format(sql.Identifier(role)))
    yield as_user(cluster, role, "limited")
    with admin_connection(cluster) as connection:
        connection.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role)))
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


def as_user(url: str, user: str, password: str) -> str:
    changed = make_url(url).set(username=user, password=password)
    return changed.render_as_string(hide_password=False)


def provisioned(url: str, names: Names, previous: Connections | None = None) -> Connections:
    return provision(url, governance=names.governance, dagster=names.dagster, previous=previous)


def answer(url: str, query: str, *parameters: object, database: str | None = None) -> object:
    with admin_connection(url, database) as connection:
        row = connection.execute(query, parameters).fetchone()
    return row[0] if row and len(row) == 1 else row


def assert_nothing_behind(error: GovernanceError) -> None:
    assert error.__cause__ is None
    assert error.__context__ is None


def test_the_application_signs_in_as_a_role_that_owns_nothing(cluster: str, names: Names) -> None:
    connections = provisioned(cluster, names)

    role = answer(connections.governance_url, "SELECT current_user")
    owned = "SELECT count(*) FROM pg_shdepend WHERE deptype = 'o' AND refobjid = %s::regrole"
    assert role == application_role(names.governance)
    assert answer(cluster, owned, role, database=names.governance) == 0


def test_no_role_has_any_special_power_and_the_owner_cannot_sign_in(
    cluster: str, names: Names
) -> None:
    provisioned(cluster, names)

    query = (
        "SELECT rolcanlogin, rolsuper, rolbypassrls, rolcreatedb, rolcreaterole, rolreplication"
        " FROM pg_roles WHERE rolname = %s"
    )
    assert answer(cluster, query, owner_role(names.governance)) == (False,) * 6
    assert answer(cluster, query, application_role(names.governance)) == (True,) + (False,) * 5
    assert answer(cluster, query, dagster_role(names.dagster)) == (True,) + (False,) * 5
    for role in (reader_role(names.governance), retention_role(names.governance)):
        assert answer(cluster, query, role) == (False,) * 6


def test_the_application_may_become_who_purges_and_is_it_only_then(
    cluster: str, names: Names
) -> None:
    application, other = application_role(names.governance), retention_role(names.governance)
    for _ in range(2):
        provisioned(cluster, names)
        with admin_connection(cluster) as connection:
            # As the first upgrade of an older database finds it.
            connection.execute(f"ALTER ROLE {application} INHERIT")

    provisioned(cluster, names)

    query = "SELECT pg_has_role(%s, %s, 'MEMBER'), pg_has_role(%s, %s, 'USAGE')"
    assert answer(cluster, query, *(application, other) * 2) == (True, False)


def test_the_owner_owns_the_database_and_its_schema(cluster: str, names: Names) -> None:
    provisioned(cluster, names)

    database = "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = %s"
    schema = "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'governance'"
    assert answer(cluster, database, names.governance) == owner_role(names.governance)
    assert answer(cluster, schema, database=names.governance) == owner_role(names.governance)
    assert answer(cluster, database, names.dagster) == dagster_role(names.dagster)


def test_neither_role_reaches_the_database_of_the_other(cluster: str, names: Names) -> None:
    connections = provisioned(cluster, names)

    with pytest.raises(psycopg.OperationalError):
        admin_connection(connections.governance_url, names.dagster)
    with pytest.raises(psycopg.OperationalError):
        admin_connection(connections.dagster_url, names.governance)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE public.mine (id integer)",
        "CREATE TABLE governance.mine (id integer)",
        "CREATE TEMPORARY TABLE mine (id integer)",
        "CREATE SCHEMA mine",
        "SET ROLE {owner}",
        "SET log_min_messages = 'debug1'",
    ],
)
def test_the_application_may_create_nothing_and_become_no_one(
    cluster: str, names: Names, statement: str
) -> None:
    connections = provisioned(cluster, names)
    statement = statement.format(owner=owner_role(names.governance))

    with (
        admin_connection(connections.governance_url) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(statement)


def test_dagster_may_create_its_tables(cluster: str, names: Names) -> None:
    connections = provisioned(cluster, names)

    with admin_connection(connections.dagster_url) as connection:
        connection.execute("CREATE TABLE runs (id integer)")


def test_each_url_names_the_driver_that_its_reader_needs(cluster: str, names: Names) -> None:
    connections = provisioned(cluster, names)

    assert make_url(connections.governance_url).drivername == "postgresql+psycopg"
    assert make_url(connections.dagster_url).drivername == "postgresql+psycopg2"


def test_the_applications_errors_stay_out_of_the_servers_log(cluster: str, names: Names) -> None:
    connections = provisioned(cluster, names)

    assert answer(connections.governance_url, "SHOW log_min_messages") == "fatal"


def test_text_is_utf8_and_sorts_by_code_point(cluster: str, names: Names) -> None:
    connections = provisioned(cluster, names)

    query = "SELECT pg_encoding_to_char(encoding), datcollate FROM pg_database WHERE datname = %s"
    assert answer(connections.governance_url, query, names.governance) == ("UTF8", "C")


def test_passwords_that_still_work_are_kept(cluster: str, names: Names) -> None:
    first = provisioned(cluster, names)

    assert provisioned(cluster, names, previous=first) == first


def test_without_previous_connections_passwords_are_made_anew(cluster: str, names: Names) -> None:
    first = provisioned(cluster, names)

    second = provisioned(cluster, names)

    assert second.governance_url != first.governance_url
    assert answer(second.governance_url, "SELECT 1") == 1
    with pytest.raises(psycopg.OperationalError):
        admin_connection(first.governance_url)


def test_only_the_password_that_no_longer_works_is_replaced(cluster: str, names: Names) -> None:
    first = provisioned(cluster, names)
    stale = Connections(
        governance_url=as_user(first.governance_url, application_role(names.governance), "stale"),
        dagster_url=first.dagster_url,
    )

    second = provisioned(cluster, names, previous=stale)

    assert second.dagster_url == first.dagster_url
    assert answer(second.governance_url, "SELECT 1") == 1


def test_a_kept_password_gets_the_address_that_the_server_has_now(
    cluster: str, names: Names
) -> None:
    first = provisioned(cluster, names)
    moved = Connections(
        governance_url=make_url(first.governance_url)
        .set(host="former.invalid", port=1)
        .render_as_string(hide_password=False),
        dagster_url=first.dagster_url,
    )

    assert provisioned(cluster, names, previous=moved) == first


def test_a_role_that_was_given_power_loses_it_again(cluster: str, names: Names) -> None:
    first = provisioned(cluster, names)
    role = application_role(names.governance)
    with admin_connection(cluster) as connection:
        connection.execute(f"ALTER ROLE {role} SUPERUSER BYPASSRLS")

    provisioned(cluster, names, previous=first)

    query = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = %s"
    assert answer(cluster, query, role) is False


def test_a_database_of_someone_else_is_refused_before_anything_is_made(
    cluster: str, names: Names
) -> None:
    with admin_connection(cluster) as connection:
        connection.execute(f"CREATE DATABASE {names.dagster}")

    with pytest.raises(InvalidArgumentError) as refused:
        provisioned(cluster, names)

    roles = "SELECT count(*) FROM pg_roles WHERE rolname = %s"
    assert refused.value.facts["names"] == [names.dagster]
    assert answer(cluster, roles, owner_role(names.governance)) == 0


@pytest.mark.parametrize("name", ["", "Upper", "1st", "with blank", 'quo"te', "a" * 52])
def test_a_name_that_is_no_plain_identifier_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        provision("postgresql://localhost", governance=name, dagster=name)

    assert refused.value.facts["names"] == [name, name]


def test_the_longest_name_still_gives_three_different_roles(cluster: str) -> None:
    longest = Names(unique_name("g").ljust(51, "x"), unique_name("d").ljust(51, "x"))

    connections = provisioned(cluster, longest)
    role = answer(connections.governance_url, "SELECT current_user")
    drop_provisioned(cluster, longest.governance, longest.dagster)

    assert role == application_role(longest.governance)


def test_governance_and_dagster_cannot_share_a_database() -> None:
    with pytest.raises(InvalidArgumentError):
        provision("postgresql://localhost", governance="one", dagster="one")


def test_an_administrator_without_superuser_rights_can_provision(
    cluster: str, limited_admin: str, names: Names
) -> None:
    first = provisioned(limited_admin, names)

    assert provisioned(limited_admin, names, previous=first) == first
    assert answer(first.governance_url, "SELECT 1") == 1
    with admin_connection(cluster) as connection:
        drop_database(connection, names.governance)
        drop_database(connection, names.dagster)


def test_a_user_without_rights_is_told_so_without_the_servers_words(
    cluster: str, names: Names
) -> None:
    connections = provisioned(cluster, names)

    with pytest.raises(ServiceUnavailableError) as refused:
        provision(
            connections.dagster_url, governance=unique_name("new"), dagster=unique_name("new")
        )

    password = make_url(connections.dagster_url).password
    assert refused.value.facts["sqlstate"] == "42501"
    assert names.dagster in str(refused.value)
    assert str(password) not in str(refused.value)
    assert_nothing_behind(refused.value)


def test_a_wrong_password_is_reported_by_place_alone(cluster: str) -> None:
    url = as_user(cluster, "postgres", "zq-secret")

    with pytest.raises(ServiceUnavailableError) as refused:
        provision(url)

    address = make_url(cluster)
    assert refused.value.facts["place"] == f"{address.host}:{address.port}/{address.database}"
    assert "zq-secret" not in str(refused.value)
    assert_nothing_behind(refused.value)


def test_a_server_that_is_not_there_is_reported_by_place() -> None:
    with pytest.raises(ServiceUnavailableError) as refused:
        provision("postgresql://me:zq-secret@127.0.0.1:1/there")

    assert refused.value.facts["place"] == "127.0.0.1:1/there"
    assert "zq-secret" not in str(refused.value)
    assert_nothing_behind(refused.value)


@pytest.mark.parametrize("url", ["", "zq-secret", "mysql://me:zq-secret@host/db", "sqlite://"])
def test_what_is_no_postgres_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        provision(url)

    assert "zq-secret" not in str(refused.value)
    assert_nothing_behind(refused.value)


def test_connections_do_not_show_their_passwords() -> None:
    assert "pw" not in repr(WITH_BLANK)


def test_connections_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "connections.env"

    write_connections(path, WITH_BLANK)
    write_connections(path, WITH_BLANK)

    assert read_connections(path) == WITH_BLANK
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["connections.env"]


def test_a_missing_file_of_connections_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        read_connections(tmp_path / "connections.env")


def test_every_missing_address_is_named(tmp_path: Path) -> None:
    path = tmp_path / "connections.env"
    path.write_text("# nothing yet\nOTHER=1\nGOVERNANCE_DATABASE_URL=\n")

    with pytest.raises(InvalidArgumentError) as refused:
        read_connections(path)

    assert refused.value.facts["missing"] == ["GOVERNANCE_DATABASE_URL", "DAGSTER_DATABASE_URL"]
