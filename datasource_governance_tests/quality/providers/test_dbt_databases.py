"""Tests read the table that was asked about; where it is stays out of files."""

import duckdb
import pyarrow as pa
import pytest

from datasource_governance.domain.rules import NotNullRule, RowCountRule, Severity, UniqueRule
from datasource_governance.quality.providers.dbt_databases import database_of
from datasource_governance.quality.targets import FrameTarget, SqlTarget

POSTGRES = "postgresql+psycopg://us%7Ber:se%7Bcret@example.org:5433/data%20base"


def sql_target(url, dialect):
    return SqlTarget(
        url=url,
        dialect=dialect,
        table="t",
        schema="s",
        columns=pa.schema([("a", pa.int64())]),
        timeout_seconds=7,
    )


def not_null(*fields):
    return NotNullRule(id="r", severity=Severity.ERROR, fields=fields)


def test_an_address_in_postgres_is_in_the_variables_of_its_clients_only(tmp_path):
    url = f"{POSTGRES}?sslmode=require&options=-c%20search_path%3Ds&keepalives=1"

    database = database_of(sql_target(url, "postgresql"), tmp_path)

    assert database.environment == {
        "PGHOST": "example.org",
        "PGPORT": "5433",
        "PGUSER": "us{er",
        "PGPASSWORD": "se{cret",
        "PGDATABASE": "data base",
        "PGSSLMODE": "require",
        "PGOPTIONS": "-c search_path=s -c default_transaction_read_only=on "
        "-c statement_timeout=7000",
    }
    assert not any(word in str(database.profile) for word in ("us{er", "se{cret", "example"))
    assert not list(tmp_path.iterdir())


def test_an_address_without_a_port_is_that_of_every_postgres(tmp_path):
    database = database_of(sql_target("postgresql+psycopg:///d", "postgresql"), tmp_path)

    assert database.environment["PGPORT"] == "5432"
    assert "PGHOST" not in database.environment


def test_a_duckdb_file_is_opened_to_read(tmp_path):
    database = database_of(sql_target(f"duckdb:///{tmp_path}/a.duckdb", "duckdb"), tmp_path)

    assert database.environment == {"DUCKDB_FILE": f"{tmp_path}/a.duckdb"}
    assert database.profile["config_options"] == {"access_mode": "READ_ONLY"}
    assert not list(tmp_path.iterdir())


def failed(database, rule):
    (file,) = database.environment.values()
    with duckdb.connect(file, read_only=True) as connection:
        return len(connection.execute(database.query(rule)).fetchall())


def test_names_of_a_frame_differ_in_case(tmp_path):
    table = pa.table([[1, None, 3], [None, None, 3], [1, 2, None]], ["a", "A", 'row"{{ 1 }}'])

    database = database_of(FrameTarget(table=table), tmp_path)

    assert [failed(database, not_null(name)) for name in table.column_names] == [1, 2, 1]
    assert failed(database, not_null("a", "A")) == 2


def unique(*fields):
    return UniqueRule(id="r", severity=Severity.ERROR, fields=fields, ignore_nulls=True)


@pytest.mark.parametrize(
    "kind",
    [pa.decimal256(60, 2), pa.duration("ns"), pa.list_(pa.int8()), pa.timestamp("ns", "UTC")],
)
def test_of_a_field_that_duckdb_does_not_keep_only_nulls_are_told(tmp_path, kind):
    table = pa.table({"opaque": pa.nulls(3, kind), "a": [1, 1, None]})

    database = database_of(FrameTarget(table=table), tmp_path)

    assert database.query(unique("opaque")) is None
    assert database.query(unique("a", "opaque")) is None
    assert failed(database, not_null("opaque", "a")) == 3
    assert failed(database, unique("a")) == 2


def test_values_that_are_not_kept_are_no_nulls(tmp_path):
    table = pa.table({"opaque": pa.array([[1], [], None]), "text": ["a", "a", None]})
    table = table.set_column(1, "text", table["text"].cast(pa.large_string()).dictionary_encode())

    database = database_of(FrameTarget(table=table), tmp_path)

    assert failed(database, not_null("opaque")) == 1
    assert failed(database, unique("text")) == 2


def test_rows_count_whatever_is_in_them(tmp_path):
    rule = RowCountRule(id="r", severity=Severity.ERROR, minimum=3, maximum=3)

    for count, expected in ((3, 0), (2, 1)):
        folder = tmp_path / str(count)
        folder.mkdir()
        table = pa.table({"opaque": pa.nulls(count, pa.decimal256(60, 2))})
        assert failed(database_of(FrameTarget(table=table), folder), rule) == expected
