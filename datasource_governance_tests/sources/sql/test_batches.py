"""Results larger than memory are read in batches, from one snapshot, as if read at once."""

import logging
import os
import subprocess
import sys

import pyarrow as pa
import pytest
from sqlalchemy import create_engine, text

from datasource_governance.sources.batches import DEFAULT_BATCH_BYTES
from datasource_governance.sources.limits import DEFAULT_LIMITS, Limits
from datasource_governance.sources.sql.read import SqlSource, sql_batches
from datasource_governance_tests.sources.refusals import CANARY, kinds_and_names, refusal_of

MEBIBYTE = 1024 * 1024


# Two of DuckDB's own units and a bit.
ROWS = 5000
NUMBERS = f"FROM generate_series(1, {ROWS}) AS s (g)"

OF_BOTH = (
    "CAST(g % 100 AS smallint)",
    "g * 1000000000000",
    "CAST(g AS real) / 3",
    "CASE g % 3 WHEN 0 THEN CAST('NaN' AS double precision) ELSE g / 7.0 END",
    "CAST(g AS numeric(9,2)) / 100",
    "g % 2 = 0",
    "CAST(g AS varchar)",
    "DATE '2026-01-01' + CAST(g AS integer)",
    "TIME '12:00' + g * INTERVAL '1 second'",
    "TIMESTAMP '2026-01-01' + g * INTERVAL '1 hour'",
    "CAST('2026-01-01 00:00:00+02' AS timestamptz) + g * INTERVAL '1 hour'",
    "CAST('{}' AS json)",
    "CAST('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' AS uuid)",
    "CAST(NULL AS integer)",
)
OF_POSTGRES = (
    "decode(to_hex(g), 'escape')",
    "CAST(g AS char(9))",
    "CAST(jsonb_build_object('g', g) AS jsonb)",
    "CAST(g AS numeric(40,2))",
    "CASE g % 5 WHEN 0 THEN 'NaN' ELSE CAST(g AS numeric) / 1000 END",
    "CAST(0 AS numeric)",
    "CAST('NaN' AS numeric)",
    "CASE g WHEN 4999 THEN 1e60 ELSE CAST(g AS numeric) END",
    "CASE g WHEN 4999 THEN 'Infinity' ELSE CAST(g AS numeric) END",
    "ARRAY[g, NULL]",
    "ARRAY[DATE '2026-01-01' + g]",
    "CASE g % 2 WHEN 0 THEN ARRAY[1.5, CAST(g AS numeric)] END",
    "CASE g WHEN 4999 THEN ARRAY[CAST('1e90' AS numeric)] ELSE ARRAY[CAST(g AS numeric)] END",
)
OF_DUCKDB = (
    "CAST(g % 200 AS UTINYINT)",
    "CAST(CASE g % 2 WHEN 0 THEN 'x' ELSE 'y' END AS ENUM('x', 'y'))",
    "[g, NULL]",
    "CAST([g, 1] AS BIGINT[2])",
    "encode(CAST(g AS varchar))",
    "NULL",
    "TIMESTAMP_NS '2026-01-01 00:00:00.123456789'",
    "CAST(g AS HUGEINT)",
    "CASE g WHEN 4999 THEN 9223372036854775808 ELSE CAST(g AS HUGEINT) END",
    "CASE g WHEN 4999 THEN 9223372036854775808 ELSE -CAST(g AS HUGEINT) END",
    "CASE g WHEN 4999 THEN 170141183460469231731687303715884105727 ELSE CAST(g AS HUGEINT) END",
)


def query_of(*expressions, rows=NUMBERS):
    columns = ", ".join(f"{one} AS x{place}" for place, one in enumerate(expressions))
    return f"SELECT g, {columns} {rows}"


def in_batches(database, query, *order_by, limits=DEFAULT_LIMITS, batch_bytes=DEFAULT_BATCH_BYTES):
    return sql_batches(SqlSource(database.url, query=query, order_by=order_by), limits, batch_bytes)


def all_of(database, query, **options):
    """Read every batch once."""
    with in_batches(database, query, **options) as batches:
        return [batch.num_rows for batch in batches]


def assert_as_if_read_at_once(database, query):
    table = database.query(query, "g").table
    with in_batches(database, query, "g", batch_bytes=20_000) as batches:
        for _ in range(2):
            tables = list(batches)
            assert len(tables) > 1
            assert all(one.schema.equals(batches.schema, check_metadata=True) for one in tables)
            assert pa.concat_tables(tables).equals(table, check_metadata=True)


def test_batches_hold_what_is_read_at_once(database):
    assert_as_if_read_at_once(database, query_of(*OF_BOTH))


def test_batches_of_postgres_types_hold_what_is_read_at_once(postgres):
    assert_as_if_read_at_once(postgres, query_of(*OF_POSTGRES))


def test_batches_of_duckdb_types_hold_what_is_read_at_once(duckdb):
    assert_as_if_read_at_once(duckdb, query_of(*OF_DUCKDB))


def test_a_result_without_rows_has_its_types_and_no_batch(database):
    query = query_of(*OF_BOTH, rows="FROM generate_series(1, 0) AS s (g)")

    with in_batches(database, query) as batches:
        assert list(batches) == []
        assert batches.schema.equals(database.query(query).table.schema, check_metadata=True)


def test_a_table_is_numbered_by_its_key_in_batches_too(database):
    database.run("CREATE TABLE t (k integer PRIMARY KEY)", "INSERT INTO t VALUES (2), (1)")

    with sql_batches(SqlSource(database.url, table="t")) as batches:
        assert batches.rows_numbered
        assert pa.concat_tables(batches).column("k").to_pylist() == [1, 2]
    with in_batches(database, "SELECT k FROM t") as batches:
        assert not batches.rows_numbered


def test_a_batch_takes_about_what_was_asked_for(database):
    query = f"SELECT g, CAST(g AS varchar) AS x {NUMBERS}"

    with in_batches(database, query, batch_bytes=50_000) as batches:
        sizes = [batch.nbytes for batch in batches]

    assert len(sizes) > 1
    assert max(sizes) < 150_000


def test_rows_that_others_write_between_two_passes_are_not_seen(database):
    database.run("CREATE TABLE t (k integer PRIMARY KEY)", "INSERT INTO t VALUES (1)")

    with sql_batches(SqlSource(database.url, table="t")) as batches:
        before = pa.concat_tables(batches)
        database.run("INSERT INTO t VALUES (2)", "UPDATE t SET k = 7 WHERE k = 1")
        after = pa.concat_tables(batches)

    assert before.column("k").to_pylist() == [1]
    assert after.equals(before)
    assert database.table().table.num_rows == 2


def test_a_pass_that_was_given_up_leaves_the_next_one_whole(database):
    with in_batches(database, f"SELECT g {NUMBERS}", batch_bytes=1000) as batches:
        for batch in batches:
            assert batch.num_rows < ROWS
            break
        assert sum(batch.num_rows for batch in batches) == ROWS


def test_nothing_is_read_once_the_connection_was_given_back(database):
    with in_batches(database, f"SELECT g {NUMBERS}", batch_bytes=1000) as batches:
        unfinished = iter(batches)
        next(unfinished)

    assert kinds_and_names(lambda: next(unfinished)) == [("unreadable", ())]
    assert kinds_and_names(lambda: list(batches)) == [("unreadable", ())]


def test_an_engine_of_the_caller_gets_its_connection_back(database):
    engine = create_engine(database.url, pool_size=1, max_overflow=0, pool_timeout=1)
    source = SqlSource(engine, query=f"SELECT g {NUMBERS}")

    for _ in range(2):
        with sql_batches(source, batch_bytes=1000) as batches:
            unfinished = iter(batches)
            next(unfinished)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT 1")) == 1
    engine.dispose()


def test_what_fails_in_between_stays_what_it_is(database):
    def read():
        with in_batches(database, f"SELECT g {NUMBERS}", batch_bytes=1000) as batches:
            for _ in batches:
                raise LookupError

    with pytest.raises(LookupError):
        read()


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz"])
def test_values_that_no_type_holds_are_refused_before_any_batch(database, kind):
    infinite = f"CASE WHEN g > 4990 THEN CAST('infinity' AS {kind}) END"
    query = f"SELECT {infinite} AS x, 1 AS y, {infinite} AS z {NUMBERS}"

    problems = refusal_of(lambda: all_of(database, query, batch_bytes=1000))

    assert problems == refusal_of(lambda: database.query(query))
    assert [problem.names for problem in problems] == [("x",), ("z",)]
    assert all("10 value(s)" in problem.message for problem in problems)


def test_arrays_in_arrays_are_refused_before_any_batch(postgres):
    query = f"SELECT ARRAY[ARRAY[g]] AS x {NUMBERS}"

    problems = refusal_of(lambda: all_of(postgres, query, batch_bytes=1000))

    assert problems == refusal_of(lambda: postgres.query(query))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 AS x, 2 AS x",
        "SELECT '1 day'::interval AS x",
        "SELECT y FROM nothing",
        "SELECT 1 AS x; SELECT 2 AS x",
    ],
)
def test_batches_refuse_what_is_refused_at_once(database, query):
    problems = refusal_of(lambda: all_of(database, query))

    assert problems == refusal_of(lambda: database.query(query))


def test_a_table_that_is_not_there_is_refused(database):
    def read():
        with sql_batches(SqlSource(database.url, table="t")):
            pass

    assert kinds_and_names(read) == [("not_found", ())]


def test_a_database_that_fails_on_the_way_says_its_state_and_nothing_of_the_data(database):
    cell = f"CASE g WHEN 4999 THEN '{CANARY}' ELSE '1' END"
    query = f"SELECT CAST({cell} AS integer) AS x {NUMBERS}"

    (problem,) = refusal_of(lambda: all_of(database, query, batch_bytes=1000))

    assert problem.kind == "unreadable"
    # DuckDB's errors come through Arrow once rows do.
    assert problem.names in {("22P02",), ("OSError",)}


def test_a_connection_lost_on_the_way_is_refused(postgres, caplog):
    def read():
        with in_batches(postgres, f"SELECT g, '{CANARY}' AS x {NUMBERS}", batch_bytes=1) as batches:
            for _ in batches:
                postgres.run(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )

    with caplog.at_level(logging.DEBUG):
        (problem,) = refusal_of(read)

    assert (problem.kind, problem.names) == ("unreadable", ("57P01",))
    assert CANARY not in caplog.text


# A counter of the session, which a transaction that only reads may keep.
TIMES_ASKED = (
    "CAST(set_config('asked.times', CAST(CAST(coalesce(nullif("
    "current_setting('asked.times', true), ''), '0') AS integer) + 1 AS text), true) AS integer)"
)


def test_a_query_that_gives_other_rows_when_asked_again_is_refused(postgres):
    query = f"SELECT g AS x FROM generate_series(1, {TIMES_ASKED}) AS s (g)"

    with in_batches(postgres, query) as batches:
        assert sum(batch.num_rows for batch in batches) == 1
        (problem,) = refusal_of(lambda: list(batches))

    assert problem.kind == "unreadable"
    assert "asked again" in problem.message


def test_a_query_that_gives_values_beyond_the_type_they_decided_is_refused(postgres):
    with in_batches(postgres, f"SELECT power(10::numeric, {TIMES_ASKED}) AS x") as batches:
        (problem,) = refusal_of(lambda: list(batches))

    assert problem.kind == "unreadable"
    assert "asked again" in problem.message


def test_the_limit_of_bytes_is_of_a_batch(database):
    query = f"SELECT CAST(g AS bigint) AS x {NUMBERS}"
    limits = Limits(table_bytes=20_000)

    assert sum(all_of(database, query, limits=limits, batch_bytes=1000)) == ROWS
    assert kinds_and_names(lambda: all_of(database, query, limits=limits)) == [("too_large", ())]
    assert kinds_and_names(lambda: database.query(query, limits=limits)) == [("too_large", ())]


# Not ru_maxrss, which a process takes over from the one that started it.
MEASURED = """
import os
from pathlib import Path
from datasource_governance.sources.sql.read import SqlSource, sql_batches

def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024

def read(rows):
    query = f"SELECT repeat('x', 50) AS x FROM generate_series(1, {rows}) AS s (g)"
    with sql_batches(SqlSource(os.environ["SOURCE"], query=query), batch_bytes=2**20) as batches:
        return sum(batch.num_rows for batch in batches)

read(30_000)
before = peak()
assert read(2_000_000) == 2_000_000
print(peak() - before)
"""


@pytest.mark.slow
def test_two_million_rows_take_no_more_memory_than_a_few_batches(postgres):
    answer = subprocess.run(
        [sys.executable, "-c", MEASURED],
        env={**os.environ, "SOURCE": postgres.url},
        capture_output=True,
        check=True,
    )

    # The whole of it takes 110 MiB.
    assert int(answer.stdout) < 16 * MEBIBYTE
