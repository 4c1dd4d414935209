"""What checks can be run on, and what is said of everything else."""

import pyarrow as pa
import pytest
from sqlalchemy import create_engine

from datasource_governance.errors import InvalidArgumentError
from datasource_governance.quality.connections import address_of, connection_to
from datasource_governance.quality.lineage import Dataset
from datasource_governance.sources.sql.read import SqlSource

BAIT = "zq-password"


def refused(source):
    with pytest.raises(InvalidArgumentError) as raised:
        connection_to(source)
    assert raised.value.__context__ is None
    assert BAIT not in str(raised.value)
    return str(raised.value)


def test_a_table_in_memory_has_no_dialect_and_shows_no_cell():
    connection = connection_to(pa.table({"a": ["zq-canary"]}))

    assert connection.dialect is None
    assert connection.dataset == Dataset(namespace="memory", name="Table")
    assert connection.frame.num_rows == 1
    assert "zq-canary" not in repr(connection)


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+psycopg"])
def test_a_table_of_postgres_is_known_by_its_place_without_the_password(scheme):
    source = SqlSource(f"{scheme}://u:{BAIT}@db/shop", table="t", schema="s")

    connection = connection_to(source)

    assert connection.dialect == "postgresql"
    assert connection.dataset == Dataset(namespace="postgres://db:5432", name="shop.s.t")
    assert BAIT not in repr(connection)
    assert address_of(source) == {
        "url": f"{scheme}://u:{BAIT}@db/shop",
        "table": "t",
        "schema": "s",
    }


def test_an_engine_stands_for_its_url():
    engine = create_engine(f"postgresql+psycopg://u:{BAIT}@db/shop")

    assert address_of(SqlSource(engine, table="t"))["url"] == (
        f"postgresql+psycopg://u:{BAIT}@db/shop"
    )


def test_a_duckdb_file_is_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = SqlSource("duckdb:///rows.duckdb?access_mode=read_only", table="t")

    assert connection_to(source).dialect == "duckdb"
    assert address_of(source)["url"] == (
        f"duckdb:///{tmp_path / 'rows.duckdb'}?access_mode=read_only"
    )


def test_a_query_is_refused():
    assert refused(SqlSource("duckdb:///rows.duckdb", query="SELECT 1")) == (
        "checks run on a table or view, not on a query; create a view"
    )


@pytest.mark.parametrize(
    "url", ["duckdb://", "duckdb:///", "duckdb:///:memory:", "duckdb:///:memory:x"]
)
def test_a_duckdb_database_in_memory_is_refused(url):
    assert "does not see a DuckDB database in memory" in refused(SqlSource(url, table="t"))


@pytest.mark.parametrize(
    "url",
    [
        f"sqlite:///{BAIT}",
        f"postgresql+psycopg2://u:{BAIT}@db/shop",
        f"postgres://u:{BAIT}@db/shop",
        f"snowflake://u:{BAIT}@db/shop",
    ],
)
def test_another_database_or_driver_is_refused(url):
    assert "the URL must begin with postgresql+psycopg:// or duckdb://" in refused(
        SqlSource(url, table="t")
    )


@pytest.mark.parametrize("url", [BAIT, f"postgresql://u:{BAIT}@db:port/shop", ""])
def test_what_is_no_url_is_refused_without_being_quoted(url):
    assert refused(SqlSource(url, table="t")) == "the URL is not a SQLAlchemy URL"
