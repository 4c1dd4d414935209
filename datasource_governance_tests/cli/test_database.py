"""`db upgrade`: two databases, their roles and tables, and the first administrator."""

import secrets
import stat
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from sqlalchemy import make_url

from datasource_governance_tests.cli.conftest import Answer
from datasource_governance_tests.postgres import (
    admin_connection,
    drop_provisioned,
    unique_name,
)

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@dataclass(frozen=True)
class Upgrade:
    """Runs `db upgrade` on databases of its own."""

    governance: str
    run: Callable[..., Answer]

    def __call__(self, *options) -> Answer:
        return self.run(*options)


@pytest.fixture
def upgrade(command, cluster, monkeypatch):
    """A function that upgrades databases of this test alone."""
    governance, dagster = unique_name("governance"), unique_name("dagster")
    monkeypatch.setenv("DATABASE_URL", cluster)
    names = ("--governance-database", governance, "--dagster-database", dagster)
    yield Upgrade(governance, lambda *options: command("db", "upgrade", *names, *options))
    drop_provisioned(cluster, governance, dagster)


def test_it_makes_the_databases_the_first_administrator_and_a_private_file(
    upgrade, command, tmp_path
):
    public = command("key", "create", "Ada", "--json").document["public"]

    answer = upgrade("--administrator", "Ada", "--public-key", public, "--json")

    file = tmp_path / "connections.env"
    assert answer.code == 0
    assert answer.document == {
        "connections": str(file),
        "administrator_created": True,
        "reader_role": f"{upgrade.governance}_reader",
    }
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    grants = command("actor", "list", "--json").document["grants"]
    assert [(one["actor"], one["role"]) for one in grants] == [("ada", "administrator")]
    assert command("evidence", "verify").code == 0


def test_repeating_it_changes_nothing(upgrade, command, tmp_path):
    public = command("key", "create", "ada", "--json").document["public"]
    founding = ("--administrator", "ada", "--public-key", public)
    upgrade(*founding)
    before = (tmp_path / "connections.env").read_text()

    answer = upgrade(*founding, "--json")

    assert answer.document["administrator_created"] is False
    assert (tmp_path / "connections.env").read_text() == before


def test_a_login_that_is_given_what_it_says_verifies_and_cannot_write(
    upgrade, command, cluster, monkeypatch, tmp_path
):
    public = command("key", "create", "ada", "--json").document["public"]
    said = upgrade("--administrator", "ada", "--public-key", public).out
    grant = said[said.index("GRANT") : said.index(" TO auditor")]
    login, password = unique_name("auditor"), secrets.token_hex()
    with admin_connection(cluster) as connection:
        connection.execute(f"CREATE ROLE {login} LOGIN PASSWORD '{password}'")
        connection.execute(f"{grant} TO {login}")
    url = make_url(cluster).set(
        drivername="postgresql+psycopg",
        username=login,
        password=password,
        database=upgrade.governance,
    )
    monkeypatch.setenv("GOVERNANCE_DATABASE_URL", url.render_as_string(hide_password=False))

    verified = command("evidence", "verify")
    written = command("actor", "grant", "ada", "viewer", "--actor", "ada")

    with admin_connection(cluster) as connection:
        connection.execute(f"DROP ROLE {login}")
    assert (verified.code, written.code) == (0, 3)
    assert "evidence holds" in verified.out
    assert "an auditor's reads and verifies only" in written.err


def test_a_tenant_has_one_first_administrator(upgrade, command):
    ada, eve = (
        command("key", "create", name, "--json").document["public"] for name in ("ada", "eve")
    )
    upgrade("--administrator", "ada", "--public-key", ada)

    answer = upgrade("--administrator", "eve", "--public-key", eve)

    assert answer.code == 1
    assert "has its administrator already" in answer.err
    actors = command("actor", "list", "--json").document["actors"]
    assert {one["id"] for one in actors} == {"ada", "system"}


def test_an_administrator_without_a_usable_key_is_refused_before_anything_is_made(
    upgrade, tmp_path
):
    (tmp_path / "key.pem").write_text("not a key")

    alone = upgrade("--administrator", "ada")
    unusable = upgrade("--administrator", "ada", "--public-key", tmp_path / "key.pem")

    assert (alone.code, unusable.code) == (2, 2)
    assert "go together" in alone.err
    assert "not an Ed25519 public key" in unusable.err
    assert not (tmp_path / "connections.env").exists()


def test_a_directory_that_cannot_be_written_is_named(upgrade, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("GOVERNANCE_STATE", str(tmp_path / "file" / "state"))

    answer = upgrade()

    assert (answer.code, answer.out) == (2, "")
    assert str(tmp_path / "file") in answer.err
    assert "unforeseen" not in answer.err


def test_an_unknown_server_is_named_without_its_password(command, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://ada:zq-secret@127.0.0.1:1/postgres")

    answer = command("db", "upgrade")

    assert (answer.code, answer.out) == (3, "")
    assert "127.0.0.1:1" in answer.err
    assert "zq-secret" not in answer.err


@pytest.mark.parametrize("url", ["nonsense", "mysql://a:zq-secret@b/c", "postgresql://a:b@c:d/e"])
def test_an_address_of_another_form_is_refused_without_repeating_it(command, monkeypatch, url):
    monkeypatch.setenv("DATABASE_URL", url)

    answer = command("db", "upgrade")

    assert (answer.code, answer.out) == (2, "")
    assert "postgresql://user:password@host:port/database" in answer.err
    assert url not in answer.err


def test_without_an_address_it_says_which_variable_is_missing(command):
    answer = command("db", "upgrade")

    assert (answer.code, answer.out) == (2, "")
    assert "DATABASE_URL is not set" in answer.err
