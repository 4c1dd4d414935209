"""When the database is away, misnamed or too powerful: one line, one exit code, nothing done."""

import pytest

from datasource_governance_tests.postgres import GovernanceDatabase

AWAY = "postgresql+psycopg://application:zq-secret@127.0.0.1:1/governance"
READING = [
    ("datasource", "list"),
    ("datasource", "show", "airports"),
    ("stage", "list"),
    ("stage", "show", "s-1"),
    ("actor", "list"),
    ("key", "list"),
    ("evidence", "verify"),
]
WRITING = [
    ("approve", "s-1", "--reason", "fine"),
    ("reject", "s-1", "--reason", "bad"),
    ("promote", "s-1"),
    ("datasource", "apply"),
    ("actor", "grant", "dana", "viewer"),
    ("actor", "withdraw", "g-1"),
    ("key", "register", "dana"),
    ("key", "revoke", "ab"),
    ("stage", "create", "airports", "delivery.csv", "--in-process"),
]


@pytest.fixture
def dana(command, tmp_path, monkeypatch):
    """The command line of somebody who has a key, and a file to deliver."""
    command("key", "create", "dana")
    monkeypatch.setenv("GOVERNANCE_ACTOR", "dana")
    (tmp_path / "delivery.csv").write_text("id\n1\n")
    return command


@pytest.mark.parametrize("arguments", READING + WRITING, ids=" ".join)
def test_without_an_address_every_command_says_how_to_get_one(dana, arguments):
    answer = dana(*arguments)

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("GOVERNANCE_DATABASE_URL is not set")
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize("arguments", READING + WRITING, ids=" ".join)
def test_an_unreachable_database_is_named_without_its_password(dana, monkeypatch, arguments):
    monkeypatch.setenv("GOVERNANCE_DATABASE_URL", AWAY)

    answer = dana(*arguments)

    assert (answer.code, answer.out) == (3, "")
    assert "127.0.0.1:1" in answer.err
    assert "zq-secret" not in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "postgresql://a:zq-secret@b/c",
        "postgresql+psycopg2://a:zq-secret@b/c",
        "postgresql+psycopg://a:zq-secret@b:port/c",
        "sqlite://",
    ],
)
def test_an_address_of_another_form_is_refused_without_repeating_it(dana, monkeypatch, url):
    monkeypatch.setenv("GOVERNANCE_DATABASE_URL", url)

    answer = dana("stage", "list")

    assert (answer.code, answer.out) == (2, "")
    assert "postgresql+psycopg://" in answer.err
    assert "zq-secret" not in answer.err


def test_a_connections_file_that_lacks_an_address_is_refused(command, tmp_path):
    (tmp_path / "connections.env").write_text("# nothing\n")

    answer = command("stage", "list")

    assert (answer.code, answer.out) == (2, "")
    assert "does not say GOVERNANCE_DATABASE_URL, DAGSTER_DATABASE_URL" in answer.err


@pytest.mark.postgres
@pytest.mark.slow
def test_it_does_not_work_as_a_superuser(
    command, governance_database: GovernanceDatabase, monkeypatch
):
    _, _, rest = governance_database.admin_url.partition("://")
    monkeypatch.setenv("GOVERNANCE_DATABASE_URL", f"postgresql+psycopg://{rest}")

    answer = command("stage", "list")

    assert (answer.code, answer.out) == (3, "")
    assert "could edit evidence" in answer.err


@pytest.mark.postgres
@pytest.mark.slow
def test_a_database_without_tables_is_no_traceback(command, dagster_database, monkeypatch):
    _, _, rest = dagster_database.partition("://")
    monkeypatch.setenv("GOVERNANCE_DATABASE_URL", f"postgresql+psycopg://{rest}")

    answer = command("stage", "list")

    assert (answer.code, answer.out) == (3, "")
    assert "db upgrade" in answer.err
    assert "unforeseen" not in answer.err
