"""The border to Postgres: who gets in, under which settings, and what errors say."""

import logging
import secrets
from collections.abc import Callable, Iterator
from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import Engine, event, insert, make_url, select, text
from sqlalchemy.engine import URL

from datasource_governance.errors import (
    GovernanceError,
    GuardError,
    InvalidArgumentError,
    ServiceUnavailableError,
)
from datasource_governance.persistence import connection as border
from datasource_governance.persistence import tables
from datasource_governance.persistence.connection import Connection, governance_engine
from datasource_governance.persistence.statements import inserted, insertion
from datasource_governance.persistence.upgrade import required_revision
from datasource_governance_tests.postgres import (
    GovernanceDatabase,
    admin_connection,
    unique_name,
)

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

CANARY = "zq_canary"
ACTOR = {
    "tenant": "default",
    "id": CANARY,
    "display_name": CANARY,
    "created_at": "2026-01-01T00:00:00Z",
}
DATASOURCE = {
    "tenant": "default",
    "id": "orders",
    "kind": "static",
    "created_at": "2026-01-01T00:00:00Z",
    "settings": b"{}",
    "revision": 0,
}

ADD_ACTOR = insertion((tables.actor, tuple(ACTOR)))
ACTORS = select(tables.actor.c.id)
TIMEOUTS = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")


@pytest.fixture
def engine(governance_database: GovernanceDatabase) -> Iterator[Engine]:
    made = governance_engine(governance_database.application_url)
    yield made
    made.dispose()


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    """A transaction of tenant `default`."""
    made = Connection(engine, "default")
    made.begin()
    yield made
    made.close()


def run(database: GovernanceDatabase, statement: str) -> list[tuple]:
    with admin_connection(database.admin_url) as superuser:
        cursor = superuser.execute(statement)
        return cursor.fetchall() if cursor.description else []


def entering_fails(url: str | URL) -> GovernanceError:
    """Return the refusal to connect; nothing is chained to it and no connection stays open."""
    address = url if isinstance(url, str) else url.render_as_string(hide_password=False)
    engine = governance_engine(address)
    with pytest.raises(GovernanceError) as caught:
        Connection(engine, "default").begin()
    assert engine.pool.checkedout() == 0
    return chainless(caught.value)


def chainless(error: GovernanceError) -> GovernanceError:
    """Return an error that leads to no other and says no value."""
    assert (error.__context__, error.__cause__) == (None, None)
    assert CANARY not in f"{error!r} {error.facts}"
    return error


@pytest.mark.parametrize(
    "url", ["", CANARY, f"postgresql://{CANARY}@h/d", f"postgresql+psycopg://h:{CANARY}/d"]
)
def test_a_url_of_another_form_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        governance_engine(url)

    chainless(caught.value)


@pytest.mark.parametrize(
    ("wanted", "level"),
    [("DEBUG", logging.INFO), ("INFO", logging.INFO), ("WARNING", logging.WARNING)],
)
def test_statements_are_logged_if_wanted_and_rows_never(
    caplog: pytest.LogCaptureFixture, wanted: str, level: int
) -> None:
    name = "sqlalchemy.engine.Engine.datasource_governance"
    caplog.set_level(logging.NOTSET, logger=name)
    caplog.set_level(wanted, logger="sqlalchemy.engine")

    governance_engine("postgresql+psycopg://h/d")

    assert logging.getLogger(name).level == level


def test_an_unreachable_server_is_named_without_user_and_password() -> None:
    error = entering_fails(f"postgresql+psycopg://{CANARY}:{CANARY}@127.0.0.1:1/governance")

    assert error.code == "service_unavailable"
    assert "127.0.0.1:1/governance" in str(error)


def test_a_refused_sign_in_says_no_password(governance_database: GovernanceDatabase) -> None:
    url = make_url(governance_database.application_url).set(password=CANARY)

    assert entering_fails(url).code == "service_unavailable"


def test_a_superuser_is_refused(governance_database: GovernanceDatabase) -> None:
    url = make_url(governance_database.admin_url).set(drivername="postgresql+psycopg")

    assert entering_fails(url).code == "powerful_role"


@pytest.mark.parametrize("power", ["IN ROLE {owner}", "NOINHERIT IN ROLE {owner}", "BYPASSRLS"])
def test_whoever_could_get_round_the_protection_is_refused(
    governance_database: GovernanceDatabase, power: str
) -> None:
    role, password = unique_name("role"), secrets.token_hex()
    attributes = power.format(owner=governance_database.owner_role)
    run(governance_database, f"CREATE ROLE {role} LOGIN PASSWORD '{password}' {attributes}")
    run(governance_database, f"GRANT CONNECT ON DATABASE {governance_database.name} TO {role}")
    url = make_url(governance_database.application_url).set(username=role, password=password)

    error = entering_fails(url)

    run(governance_database, f"DROP OWNED BY {role}; DROP ROLE {role}")
    assert error.code == "powerful_role"


def test_the_tables_are_written_for_the_revision_that_upgrading_leads_to() -> None:
    assert required_revision() == tables.REVISION


@pytest.mark.parametrize(
    ("change", "revision"),
    [
        ("UPDATE governance.alembic_version SET version_num = '9998'", "9998"),
        ("DELETE FROM governance.alembic_version", None),
        ("DROP TABLE governance.alembic_version", None),
        ("DROP SCHEMA governance CASCADE", None),
    ],
)
def test_a_database_of_another_revision_is_refused(
    governance_database: GovernanceDatabase, change: str, revision: str | None
) -> None:
    run(governance_database, change)

    error = entering_fails(governance_database.application_url)

    assert (error.code, error.facts) == ("wrong_revision", {"revision": revision})
    assert "db upgrade" in str(error)


def test_a_refused_session_is_closed(
    governance_database: GovernanceDatabase, engine: Engine
) -> None:
    sessions: list[psycopg.Connection] = []
    event.listen(engine, "connect", lambda session, _: sessions.append(session), insert=True)
    run(governance_database, "DELETE FROM governance.alembic_version")

    with pytest.raises(ServiceUnavailableError):
        Connection(engine, "default").begin()

    assert [session.closed for session in sessions] == [True]


@pytest.mark.parametrize(
    ("snapshot", "isolation"), [(False, "read committed"), (True, "repeatable read")]
)
@pytest.mark.parametrize("default", ["repeatable read", "serializable", "read uncommitted"])
def test_isolation_is_what_was_asked_for_whatever_the_database_defaults_to(
    governance_database: GovernanceDatabase,
    engine: Engine,
    default: str,
    snapshot: bool,
    isolation: str,
) -> None:
    run(
        governance_database,
        f"ALTER DATABASE {governance_database.name}"
        f" SET default_transaction_isolation = '{default}'",
    )
    connection = Connection(engine, "default")

    connection.begin(snapshot=snapshot)

    assert setting(connection, "transaction_isolation") == isolation
    assert setting(connection, "transaction_read_only") == ("on" if snapshot else "off")
    connection.close()


@pytest.mark.parametrize("default", ["repeatable read", "serializable"])
def test_isolation_is_what_was_asked_for_whatever_the_role_defaults_to(
    governance_database: GovernanceDatabase, engine: Engine, default: str
) -> None:
    where = f"{governance_database.application_role} IN DATABASE {governance_database.name}"
    run(governance_database, f"ALTER ROLE {where} SET default_transaction_isolation = '{default}'")
    connection = Connection(engine, "default")

    connection.begin()

    assert setting(connection, "default_transaction_isolation") == default
    assert setting(connection, "transaction_isolation") == "read committed"
    connection.close()


def test_isolation_and_timeouts_are_ours_whatever_the_address_asks_for(
    governance_database: GovernanceDatabase,
) -> None:
    options = {"default_transaction_isolation": "serializable", **dict.fromkeys(TIMEOUTS, "9s")}
    asked = " ".join(f"-c {name}={value}" for name, value in options.items())
    url = make_url(governance_database.application_url).update_query_dict({"options": asked})
    engine = governance_engine(url.render_as_string(hide_password=False))
    connection = Connection(engine, "default")

    connection.begin()

    assert setting(connection, "default_transaction_isolation") == "serializable"
    assert setting(connection, "transaction_isolation") == "read committed"
    assert [setting(connection, name) for name in TIMEOUTS] == ["10s", "1min", "1min"]
    connection.close()
    engine.dispose()


def setting(connection: Connection, name: str) -> str:
    return connection.execute(text(f"SELECT current_setting('{name}', true)")).scalar_one()


def test_another_isolation_than_asked_for_is_refused(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(border, "_ENTER", text("SELECT 'serializable' AS isolation"))
    connection = Connection(engine, "default")
    connection.begin()

    error = refused(connection, text("SELECT 1"))

    assert "READ COMMITTED" in str(error)
    connection.close()


def test_tenant_and_timeouts_end_with_the_transaction(engine: Engine) -> None:
    first = Connection(engine, "default")
    first.begin()
    names = ("governance.tenant", *TIMEOUTS)
    during = [setting(first, name) for name in names]
    first.close()

    with engine.connect() as session:
        after = [session.scalar(text(f"SELECT current_setting('{name}')")) for name in names]

    assert during == ["default", "10s", "1min", "1min"]
    assert after == ["", "0", "0", "0"]


def test_no_transaction_compiles_what_it_asks_and_that_ends_with_it(
    governance_database: GovernanceDatabase,
) -> None:
    """What a plan asks is estimated above what a server compiles from, and takes milliseconds."""
    url = make_url(governance_database.application_url)
    engine = governance_engine(
        url.update_query_dict({"options": "-c jit=on"}).render_as_string(hide_password=False)
    )
    connection = Connection(engine, "default")
    connection.begin()
    during = setting(connection, "jit")
    connection.close()

    with engine.connect() as session:
        after = session.scalar(text("SELECT current_setting('jit')"))

    assert (during, after) == ("off", "on")
    engine.dispose()


def test_instants_are_utc_whatever_the_databases_time_zone(
    governance_database: GovernanceDatabase, engine: Engine
) -> None:
    run(
        governance_database,
        f"ALTER DATABASE {governance_database.name} SET timezone = 'Asia/Kathmandu'",
    )
    connection = Connection(engine, "default")
    connection.begin()

    instant = connection.execute(text("SELECT governance.now()")).scalar_one()

    assert instant.utcoffset() == timedelta(0)
    connection.close()


def refused(connection: Connection, statement, parameters=None) -> GovernanceError:
    with pytest.raises(GovernanceError) as caught:
        connection.execute(statement, parameters)
    return chainless(caught.value)


def test_what_is_there_already_is_a_conflict_that_names_the_constraint_only(
    connection: Connection,
) -> None:
    connection.execute(insert(tables.actor), ACTOR)

    error = refused(connection, insert(tables.actor), ACTOR)

    assert isinstance(error, GuardError)
    assert (error.code, error.facts) == ("conflict", {"constraint": "actor_pkey"})


@pytest.mark.parametrize(
    ("wrong", "sqlstate"),
    [
        ({"kind": CANARY}, "23514"),
        ({"id": "x", "kind": None}, "23502"),
        ({"current_materialization": CANARY}, "23503"),
        ({"tenant": CANARY}, "42501"),
        ({"created_at": CANARY}, "22007"),
    ],
)
def test_a_refused_row_is_told_by_its_sqlstate_only(
    connection: Connection, wrong: dict[str, object], sqlstate: str
) -> None:
    error = refused(connection, insert(tables.datasource), DATASOURCE | wrong)

    assert (error.code, error.facts) == ("service_unavailable", {"sqlstate": sqlstate})
    assert sqlstate in str(error)


@pytest.mark.parametrize("wrong", [f"{CANARY}\x00", f"{CANARY}\ud800"])
def test_a_text_that_postgres_cannot_hold_is_refused_without_repeating_it(
    connection: Connection, wrong: str
) -> None:
    error = refused(connection, select(tables.actor).where(tables.actor.c.id == wrong))

    assert isinstance(error, InvalidArgumentError)


def test_a_lock_that_is_not_free_in_time_is_busy(
    governance_database: GovernanceDatabase, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(
        governance_database,
        "INSERT INTO governance.evidence_head VALUES ('default', 'tenant', 0, '')",
    )
    monkeypatch.setattr(border, "LOCK_TIMEOUT", "100ms")
    head = select(tables.evidence_head).with_for_update()
    first, second = Connection(engine, "default"), Connection(engine, "default")
    first.begin()
    first.execute(head)
    second.begin()

    error = refused(second, head)

    assert error.code == "busy"
    second.close()
    first.close()


def test_a_statement_that_takes_too_long_is_busy(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(border, "STATEMENT_TIMEOUT", "100ms")
    connection = Connection(engine, "default")
    connection.begin()

    error = refused(connection, text("SELECT pg_sleep(10)"))

    assert error.code == "busy"
    connection.close()


def test_a_lost_connection_is_told_at_commit_and_replaced_afterwards(
    governance_database: GovernanceDatabase, engine: Engine
) -> None:
    connection = Connection(engine, "default")
    connection.begin()
    connection.execute(insert(tables.actor), ACTOR)
    end_sessions(governance_database)

    with pytest.raises(ServiceUnavailableError) as caught:
        connection.commit()
    connection.close()
    connection.begin()

    chainless(caught.value)
    assert connection.execute(select(tables.actor)).all() == []
    connection.close()


def test_a_connection_that_broke_while_nobody_used_it_is_replaced(
    governance_database: GovernanceDatabase, connection: Connection
) -> None:
    connection.close()
    end_sessions(governance_database)

    connection.begin()

    assert connection.execute(select(tables.actor)).all() == []


def end_sessions(database: GovernanceDatabase) -> None:
    ended = run(
        database,
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        f" WHERE usename = '{database.application_role}' AND datname = current_database()",
    )
    assert set(ended) == {(True,)}


def test_without_a_transaction_nothing_runs(engine: Engine) -> None:
    error = refused(Connection(engine, "default"), text("SELECT 1"))

    assert "with work" in str(error)


def test_closing_twice_is_harmless(connection: Connection) -> None:
    connection.close()

    connection.close()


def test_what_goes_later_has_gone_before_whatever_is_run_next(connection: Connection) -> None:
    told: list[object] = []
    connection.later(ADD_ACTOR, inserted(ACTOR))
    connection.later(ACTORS, {}, told.append)
    assert told == []

    rows = connection.run(ACTORS, {})

    assert told == [rows] == [[{"id": CANARY}]]


def test_what_goes_later_has_gone_before_a_statement_that_was_built_for_once(
    connection: Connection,
) -> None:
    connection.later(ADD_ACTOR, inserted(ACTOR))

    assert connection.execute(select(tables.actor.c.id)).all() == [(CANARY,)]


def test_what_goes_later_goes_with_the_commit_at_last(engine: Engine) -> None:
    connection = Connection(engine, "default")
    connection.begin()
    connection.later(ADD_ACTOR, inserted(ACTOR))

    connection.commit()
    connection.close()
    connection.begin()

    assert connection.run(ACTORS, {}) == [{"id": CANARY}]
    connection.close()


def test_whoever_objects_to_what_came_back_keeps_it_from_being_committed(engine: Engine) -> None:
    def object_to(rows: list[dict[str, object]]) -> None:
        raise GuardError(f"{len(rows)} rows", code="conflict")

    connection = Connection(engine, "default")
    connection.begin()
    connection.later(ADD_ACTOR, inserted(ACTOR), object_to)

    with pytest.raises(GuardError, match="0 rows"):
        connection.commit()

    connection.close()
    connection.begin()
    assert connection.run(ACTORS, {}) == []
    connection.close()


@pytest.mark.parametrize("end", [Connection.commit, lambda one: one.run(ACTORS, {})])
def test_a_refusal_of_what_went_later_says_no_value_wherever_it_comes_out(
    engine: Engine, caplog: pytest.LogCaptureFixture, end: Callable[[Connection], object]
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "psycopg")
    connection = Connection(engine, "default")
    connection.begin()
    connection.later(ADD_ACTOR, inserted(ACTOR))
    connection.later(ADD_ACTOR, inserted(ACTOR))
    connection.later(ADD_ACTOR, inserted(ACTOR | {"id": f"{CANARY}\x00"}))

    with pytest.raises(GovernanceError) as caught:
        end(connection)

    chainless(caught.value)
    assert CANARY not in caplog.text
    connection.close()
    connection.begin()
    assert connection.run(ACTORS, {}) == []
    connection.close()


def test_a_row_that_is_there_is_a_conflict_at_the_commit_it_went_with(engine: Engine) -> None:
    connection = Connection(engine, "default")
    connection.begin()
    connection.later(ADD_ACTOR, inserted(ACTOR))
    connection.later(ADD_ACTOR, inserted(ACTOR))

    with pytest.raises(GuardError) as caught:
        connection.commit()

    assert chainless(caught.value).facts == {"constraint": "actor_pkey"}
    connection.close()


def test_the_first_refusal_is_told_of_many_statements_that_went_together(engine: Engine) -> None:
    connection = Connection(engine, "default")
    for _ in range(10):
        connection.begin()
        for _ in range(30):
            connection.later(ADD_ACTOR, inserted(ACTOR))

        with pytest.raises(GuardError, match="actor_pkey"):
            connection.commit()

        connection.close()


def test_a_text_that_cannot_go_with_the_commit_leaves_no_doubt(engine: Engine) -> None:
    connection = Connection(engine, "default")
    connection.begin()
    connection.run(ADD_ACTOR, inserted(ACTOR))
    connection.later(ADD_ACTOR, inserted(ACTOR | {"id": f"{CANARY}\x00"}))

    with pytest.raises(InvalidArgumentError) as caught:
        connection.commit()

    chainless(caught.value)
    connection.close()
    connection.begin()
    assert connection.run(ACTORS, {}) == []
    connection.close()


def test_a_lost_connection_is_not_replaced_in_the_midst_of_a_transaction(
    governance_database: GovernanceDatabase, connection: Connection
) -> None:
    connection.run(ADD_ACTOR, inserted(ACTOR))
    end_sessions(governance_database)

    for _ in range(2):
        with pytest.raises(ServiceUnavailableError):
            connection.run(ACTORS, {})
    with pytest.raises(ServiceUnavailableError):
        connection.execute(select(tables.actor))
    connection.close()
    connection.begin()

    assert connection.run(ACTORS, {}) == []


def test_all_connections_that_broke_while_nobody_used_them_are_replaced(
    governance_database: GovernanceDatabase, engine: Engine
) -> None:
    several = [Connection(engine, "default") for _ in range(3)]
    for one in several:
        one.begin()
        one.run(ACTORS, {})
    for one in several:
        one.close()
    end_sessions(governance_database)

    for one in several:
        one.begin()
        assert one.run(ACTORS, {}) == []
        one.close()


def test_a_session_knows_what_it_prepared_after_a_rollback(connection: Connection) -> None:
    prepared = text("SELECT count(*) AS n FROM pg_prepared_statements WHERE NOT from_sql")
    for _ in range(10):
        connection.run(ACTORS, {})
        connection.close()
        connection.begin()

    (found,) = connection.run(prepared, {})

    assert found["n"] > 0
