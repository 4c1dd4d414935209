"""Tables and queries of Postgres and DuckDB are read exactly, in a known order or in none."""

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from sqlalchemy import create_engine, make_url

from datasource_governance.errors import InvalidArgumentError
from datasource_governance.sources.limits import Limits
from datasource_governance.sources.sql.read import SqlSource, read_sql
from datasource_governance_tests.sources.refusals import CANARY, kinds_and_names, refusal_of

ROWS = (
    "CREATE TABLE t (k integer PRIMARY KEY, v text)",
    "INSERT INTO t VALUES (3, 'c'), (1, NULL), (2, 'b')",
)


def test_a_table_is_read_in_the_order_of_its_primary_key(database):
    database.run(*ROWS)

    table, rows_numbered = database.table()

    assert rows_numbered
    assert table.to_pylist() == [{"k": 1, "v": None}, {"k": 2, "v": "b"}, {"k": 3, "v": "c"}]


def test_a_composite_key_orders_in_the_order_of_the_key_not_of_the_columns(database):
    database.run(
        "CREATE TABLE t (a integer, b integer, PRIMARY KEY (b, a))",
        "INSERT INTO t VALUES (1, 2), (2, 1), (1, 1)",
    )

    rows = database.table().table.to_pylist()

    assert rows == [{"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 2}]


@pytest.mark.parametrize("name", ["t", "v"])
def test_without_a_key_rows_are_read_but_not_numbered(database, name):
    database.run(
        "CREATE TABLE t (k integer)", "INSERT INTO t VALUES (1)", "CREATE VIEW v AS TABLE t"
    )

    table, rows_numbered = database.table(name)

    assert not rows_numbered
    assert table.num_rows == 1


def test_a_declared_order_takes_the_place_of_the_key(database):
    database.run(*ROWS)

    table, rows_numbered = database.table(order_by=("v", "k"))

    assert rows_numbered
    assert table.column("k").to_pylist() == [2, 3, 1]


def test_a_query_is_numbered_only_with_an_order(database):
    query = "SELECT * FROM (VALUES (2), (1)) AS v (x)"

    assert not database.query(query).rows_numbered
    assert database.query(query, "x").rows_numbered
    assert database.query(query, "x").table.column("x").to_pylist() == [1, 2]


@pytest.mark.parametrize("end", ["", ";", " ;\n", " -- a comment"])
def test_a_query_may_end_like_a_script(database, end):
    assert database.query(f"SELECT 1 AS x{end}", "x").table.num_rows == 1


def test_a_table_in_another_schema_is_found_there_only(database):
    database.run("CREATE SCHEMA s", "CREATE TABLE s.t (k integer PRIMARY KEY)")

    assert database.table(schema="s").rows_numbered
    assert kinds_and_names(database.table) == [("not_found", ())]
    database.run("DROP SCHEMA s CASCADE")


def test_names_are_only_ever_quoted(database):
    name = 't"; DROP TABLE x; -- %s :y'
    quoted = name.replace('"', '""')
    database.load(f'CREATE TABLE "{quoted}" ("{quoted}" integer PRIMARY KEY)', "SELECT 1", [])

    table = database.table(name, order_by=(name,)).table

    assert table.column_names == [name]


def test_a_table_without_rows_keeps_its_types(database):
    database.run("CREATE TABLE t (k bigint PRIMARY KEY, n numeric(5,2), s text, l integer[])")

    kinds = database.table().table.schema.types

    assert kinds[:3] == [pa.int64(), pa.decimal128(5, 2), pa.large_string()]
    assert pa.types.is_list(kinds[3]) or pa.types.is_large_list(kinds[3])


@pytest.mark.parametrize(
    ("expression", "kind", "value"),
    [
        ("CAST(-32768 AS smallint)", pa.int16(), -32768),
        ("CAST(2147483647 AS integer)", pa.int32(), 2147483647),
        ("CAST(9223372036854775807 AS bigint)", pa.int64(), 2**63 - 1),
        ("CAST('0.1' AS real)", pa.float32(), 0.10000000149011612),
        ("CAST('0.1' AS double precision)", pa.float64(), 0.1),
        ("CAST('Infinity' AS double precision)", pa.float64(), math.inf),
        ("CAST('NaN' AS double precision)", pa.float64(), None),
        ("CAST('1.10' AS numeric(4,2))", pa.decimal128(4, 2), Decimal("1.10")),
        (f"CAST('{'9' * 38}' AS numeric(38,0))", pa.decimal128(38, 0), Decimal("9" * 38)),
        ("true", pa.bool_(), True),
        ("CAST('  é ' AS varchar(9))", pa.large_string(), "  é "),
        ("DATE '0001-01-01'", pa.date32(), dt.date(1, 1, 1)),
        ("TIME '23:59:59.999999'", pa.time64("us"), dt.time(23, 59, 59, 999999)),
        (
            "TIMESTAMP '2026-02-28 23:59:59.999999'",
            pa.timestamp("us"),
            dt.datetime(2026, 2, 28, 23, 59, 59, 999999),  # noqa: DTZ001 - without a zone
        ),
        (
            "CAST('2026-01-01 00:00:00+02' AS timestamptz)",
            pa.timestamp("us", "UTC"),
            dt.datetime(2025, 12, 31, 22, tzinfo=dt.UTC),
        ),
        ("CAST('{\"a\" : [1]}' AS json)", pa.large_string(), '{"a" : [1]}'),
        (
            "CAST('A0EEBC99-9c0b-4ef8-bb6d-6bb9bd380a11' AS uuid)",
            pa.large_string(),
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_every_type_is_read_exactly_and_so_is_null(database, expression, kind, value):
    database.run(f"CREATE TABLE t AS SELECT {expression} AS x", "INSERT INTO t VALUES (NULL)")

    column = database.table().table.column("x")

    assert column.type == kind
    assert column.to_pylist() in ([value, None], [None, value])


@pytest.mark.parametrize(
    ("expression", "kind", "value"),
    [
        ("'\\x00ff'::bytea", pa.large_binary(), b"\x00\xff"),
        ("'ab'::char(4)", pa.large_string(), "ab  "),
        ('\'{"b":1,  "a" : 2}\'::jsonb', pa.large_string(), '{"a": 2, "b": 1}'),
        ("1.5::numeric(40,2)", pa.decimal256(40, 2), Decimal("1.50")),
        ("'NaN'::numeric(4,2)", pa.decimal128(4, 2), None),
        ("1234::numeric(2,-2)", pa.decimal128(4, 0), Decimal(1200)),
        ("0.00012::numeric(2,5)", pa.decimal128(5, 5), Decimal("0.00012")),
        (f"{'9' * 70}.5::numeric", pa.decimal256(71, 1), Decimal(f"{'9' * 70}.5")),
        ("'NaN'::numeric", pa.decimal128(38, 0), None),
    ],
)
def test_types_of_postgres_alone_are_read_exactly(postgres, expression, kind, value):
    column = postgres.column(f"SELECT {expression} AS x")

    assert column.type == kind
    assert column.to_pylist() == [value]


def test_a_numeric_without_precision_keeps_every_digit_of_a_column(postgres):
    column = postgres.column("SELECT * FROM (VALUES (1e20), (1e-20), (NULL), ('NaN')) AS v (x)")

    assert column.to_pylist() == [Decimal("1e20"), Decimal("1e-20"), None, None]


def test_numbers_that_no_decimal_holds_are_kept_as_exact_text(postgres):
    column = postgres.column("SELECT * FROM (VALUES (1e100::numeric), ('Infinity')) AS v (x)")

    assert [cell["value"].as_py() for cell in column] == [b"1E+100", b"inf"]


@pytest.mark.parametrize("text", ["4713-01-01 00:00:00 BC", "294246-12-31 23:59:59.999999"])
@pytest.mark.parametrize("kind", ["timestamp", "timestamptz"])
def test_datetimes_beyond_pythons_range_are_exact(postgres, kind, text):
    table = postgres.query(
        f"SELECT x, (extract(epoch FROM x) * 1000000)::bigint AS microseconds"
        f" FROM (SELECT '{text}'::{kind} AS x) AS t"
    ).table

    assert table.column("x").cast(pa.int64()).equals(table.column("microseconds"))


def test_dates_have_all_of_postgres_range(postgres):
    column = postgres.column("SELECT '5874897-12-31'::date AS x")

    assert column.cast(pa.int32()).to_pylist() == [2_145_042_905]


@pytest.mark.parametrize(
    "expression",
    [
        "'infinity'::timestamp",
        "'-infinity'::timestamptz",
        "'infinity'::date",
        "'-infinity'::date",
    ],
)
def test_infinite_dates_are_refused_by_column_and_count(database, expression):
    query = f"SELECT {expression} AS x UNION ALL SELECT {expression} UNION ALL SELECT NULL"

    (problem,) = refusal_of(lambda: database.query(query))

    assert (problem.kind, problem.names) == ("unsupported_value", ("x",))
    assert "2 value(s)" in problem.message


@pytest.mark.parametrize(
    "expression",
    [
        "'294276-12-31'::timestamp",
        "'24:00'::time",
        "ARRAY[[1, 2]]",
        "ARRAY['infinity'::date]",
    ],
)
def test_values_that_arrow_cannot_hold_are_refused(postgres, expression):
    query = f"SELECT {expression} AS x, 1 AS y"

    assert kinds_and_names(lambda: postgres.query(query)) == [("unsupported_value", ("x",))]


def test_arrays_are_lists_of_their_type(postgres):
    table = postgres.query(
        "SELECT ARRAY[1, NULL]::bigint[] AS i, ARRAY['2026-01-01']::date[] AS d,"
        " ARRAY[1.5, 'NaN']::numeric(4,2)[] AS n, ARRAY[1e20, 0.5]::numeric[] AS e,"
        " ARRAY[]::uuid[] AS u, NULL::text[] AS t"
    ).table

    assert [str(kind.value_type) for kind in table.schema.types] == [
        "int64",
        "date32[day]",
        "decimal128(4, 2)",
        "decimal128(22, 1)",
        "large_string",
        "large_string",
    ]
    assert table.to_pylist() == [
        {
            "i": [1, None],
            "d": [dt.date(2026, 1, 1)],
            "n": [Decimal("1.50"), None],
            "e": [Decimal("1e20"), Decimal("0.5")],
            "u": [],
            "t": None,
        }
    ]


def test_types_of_duckdb_alone_are_read_exactly(duckdb):
    table = duckdb.query(
        "SELECT 1::UTINYINT AS u, 'x'::ENUM('x', 'y') AS e, [1, NULL] AS l,"
        " '\\x00'::BLOB AS b, NULL AS n, '2026-01-01 00:00:00.123456789'::TIMESTAMP_NS AS t"
    ).table

    assert [str(kind) for kind in table.schema.types] == [
        "uint8",
        "large_string",
        "list<l: int32>",
        "large_binary",
        "null",
        "timestamp[ns]",
    ]
    assert table.column("b").to_pylist() == [b"\0"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ("(1), (NULL)", pa.int64()),
        ("(170141183460469231731687303715884105727)", pa.decimal256(76, 0)),
    ],
)
def test_a_sum_of_integers_stays_an_integer_in_duckdb(duckdb, values, kind):
    column = duckdb.column(f"SELECT v::HUGEINT AS x FROM (VALUES {values}) AS t (v)")

    assert column.type == kind


def test_the_zone_of_a_session_does_not_change_the_content(database):
    zone = "SET TimeZone = 'Asia/Tokyo'"
    engine = create_engine(database.url)
    with engine.begin() as connection:
        connection.exec_driver_sql(zone)
        instant = "'2026-01-01 00:00:00+00'::timestamptz"
        source = SqlSource(engine, query=f"SELECT {instant} AS x, ARRAY[{instant}] AS y")
        table = read_sql(source).table
    engine.dispose()

    assert table.column("x").type == pa.timestamp("us", "UTC")
    assert table.column("x").cast(pa.int64()).to_pylist() == [1_767_225_600_000_000]
    assert table.column("y").type.value_type == pa.timestamp("us", "UTC")


@pytest.mark.parametrize("expression", ["'1 day'::interval", "'12:00:00+01'::timetz"])
def test_other_types_are_refused_by_column_and_type(database, expression):
    query = f"SELECT {expression} AS x, 1 AS y, {expression} AS z"

    problems = refusal_of(lambda: database.query(query))

    assert [(one.kind, one.names) for one in problems] == [
        ("unsupported_type", ("x",)),
        ("unsupported_type", ("z",)),
    ]


def test_a_type_of_the_databases_own_is_refused_by_its_name(postgres):
    postgres.run("CREATE TYPE mood AS ENUM ('good')", "CREATE TABLE t (m mood)")

    (problem,) = refusal_of(postgres.table)

    assert (problem.kind, problem.names) == ("unsupported_type", ("m",))
    assert "the type mood" in problem.message


def test_a_structure_is_refused_in_duckdb(duckdb):
    query = "SELECT {'a': 1} AS x, [{'a': 1}] AS y"

    assert kinds_and_names(lambda: duckdb.query(query)) == [
        ("unsupported_type", ("x",)),
        ("unsupported_type", ("y",)),
    ]


def test_repeated_names_are_refused(database):
    assert kinds_and_names(lambda: database.query("SELECT 1 AS x, 2 AS x, 3 AS y", "y")) == [
        ("duplicate_column", ("x",))
    ]


def test_a_failing_query_says_its_state_and_nothing_of_the_data(database):
    query = f"SELECT CAST(v AS integer) AS x FROM (VALUES ('{CANARY}')) AS t (v)"

    (problem,) = refusal_of(lambda: database.query(query))

    assert problem.kind == "unreadable"
    assert problem.names in {("22P02",), ("ConversionException",)}


def test_a_column_to_order_by_that_is_not_there_is_refused(database):
    (problem,) = refusal_of(lambda: database.query("SELECT 1 AS x", "y"))

    assert problem.names in {("42703",), ("BinderException",)}


@pytest.mark.parametrize(
    "query", ["SELECT 1 AS x; SELECT 2 AS x", "SELECT 1) AS a; DROP TABLE t;--"]
)
def test_a_query_is_one_statement(database, query):
    database.run(*ROWS)

    (problem,) = refusal_of(lambda: database.query(query))

    assert problem.kind == "unreadable"
    assert database.table().table.num_rows == 3


def test_a_query_cannot_write(postgres):
    postgres.run(*ROWS, "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'DELETE FROM t; SELECT 1'")

    (problem,) = refusal_of(lambda: postgres.query("SELECT f() AS x"))

    assert problem.names == ("25006",)
    assert postgres.table().table.num_rows == 3


def test_a_server_that_cannot_be_reached_is_refused_without_the_password():
    url = f"postgresql+psycopg://user:{CANARY}@127.0.0.1:1/none"

    (problem,) = refusal_of(lambda: read_sql(SqlSource(url, table="t")))

    assert problem.kind == "unreadable"
    assert CANARY not in repr(SqlSource(url, table="t"))


@pytest.mark.parametrize(
    "url", [f"{CANARY}", f"oracle://u:{CANARY}@h/x", f"nothing://u:{CANARY}@h/x", "sqlite://"]
)
def test_only_known_databases_are_read(url):
    with pytest.raises(InvalidArgumentError) as refusal:
        read_sql(SqlSource(url, table="t"))

    assert CANARY not in str(refusal.value)
    assert refusal.value.__context__ is None


@pytest.mark.parametrize(
    "keys", [{}, {"table": "t", "query": "SELECT 1"}, {"query": "SELECT 1", "schema": "s"}]
)
def test_a_source_is_either_a_table_or_a_query(keys):
    with pytest.raises(InvalidArgumentError):
        SqlSource("duckdb://", **keys)


def test_an_engine_of_the_caller_is_used_and_left_as_it_was(postgres):
    postgres.run(*ROWS)
    engine = create_engine(make_url(postgres.url), isolation_level="AUTOCOMMIT", pool_size=1)

    for _ in range(2):
        assert read_sql(SqlSource(engine, table="t")).table.num_rows == 3
    with engine.connect() as connection:
        cells = connection.exec_driver_sql("SELECT '2026-01-01'::date, '[1]'::json").one()
    engine.dispose()

    assert tuple(cells) == (dt.date(2026, 1, 1), [1])


def test_rows_are_read_across_batches(database):
    database.run("CREATE TABLE t AS SELECT g AS x FROM generate_series(1, 250000) AS s (g)")

    column = database.query("SELECT x FROM t", "x").table.column("x")

    assert column.to_pylist() == list(range(1, 250_001))


def test_size_and_columns_are_bounded(database):
    database.run("CREATE TABLE t AS SELECT 1 AS a, 2 AS b")

    for limits in (Limits(columns=1), Limits(table_bytes=7)):
        kinds = kinds_and_names(lambda: database.query("SELECT * FROM t", limits=limits))  # noqa: B023 - called at once
        assert kinds == [("too_large", ())]
