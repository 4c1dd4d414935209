"""A SQL table as it is now, on real Postgres and DuckDB; statements end in time."""

import time

import duckdb
import pytest

from datasource_governance.errors import UnreadableSourceError
from datasource_governance.sources.sql.live import LiveTable

DAY = 86_400


@pytest.fixture(params=["postgres", "duckdb"])
def database(request, tmp_path):
    """What runs statements, and the URL of the same database."""
    if request.param == "postgres":
        world = request.getfixturevalue("world")
        return world.as_superuser, world.database.admin_url
    path = tmp_path / "live.duckdb"

    def run(statement):
        with duckdb.connect(str(path)) as connection:
            connection.execute(statement)

    return run, f"duckdb:///{path}"


def live(url, table="t", seconds=30):
    return LiveTable(url=url, table=table, schema=None, timeout_seconds=seconds)


def test_age_comes_out_as_a_share_and_nothing_else(database):
    run, url = database
    run('CREATE TABLE t (id integer, "at: ""x""" timestamptz, day date)')
    column = 'at: "x"'

    assert live(url).used_percent(column, DAY) is None
    run("INSERT INTO t VALUES (1, now() - interval '18 hours 1 minute', current_date)")
    run("INSERT INTO t VALUES (2, now() - interval '40 hours', current_date - 3)")

    assert live(url).used_percent(column, DAY) == 75
    assert live(url).used_percent("day", DAY) <= 100
    assert [one.name for one in live(url).columns()] == ["id", column, "day"]


def test_a_table_that_is_not_there_is_not_readable(database):
    run, url = database
    run("CREATE TABLE t (id integer)")

    assert live(url).is_readable()
    assert not live(url, table="gone").is_readable()
    with pytest.raises(UnreadableSourceError):
        live(url, table="gone").columns()


def test_what_the_database_says_goes_no_further(database):
    run, url = database
    run("CREATE TABLE t (secret varchar)")
    run("INSERT INTO t VALUES ('zq-canary-7731')")

    with pytest.raises(UnreadableSourceError) as refused:
        live(url).used_percent("secret", DAY)
    error = refused.value
    assert "canary" not in str(error)
    assert (error.__cause__, error.__context__) == (None, None)


def test_a_statement_ends_in_time(database):
    run, url = database
    run(
        "CREATE VIEW t AS SELECT sum(a.x * b.x) AS total FROM generate_series(1, 300000) AS a(x),"
        " generate_series(1, 300000) AS b(x)"
    )
    begun = time.monotonic()

    with pytest.raises(UnreadableSourceError):
        live(url, seconds=1)._asked("SELECT total FROM {table}")
    assert time.monotonic() - begun < 20


def test_a_database_that_is_away_is_not_readable():
    away = LiveTable(
        url="postgresql+psycopg://nobody:secret@127.0.0.1:9/x",
        table="t",
        schema=None,
        timeout_seconds=2,
    )
    assert not away.is_readable()
    assert "secret" not in repr(away)
