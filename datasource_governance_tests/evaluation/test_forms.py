"""The forms that payloads are read in: the same rows in each, and nothing rounded."""

import gc
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datasource_governance.domain.artifact import MediaType
from datasource_governance.errors import InvalidArgumentError, UnreadableSourceError
from datasource_governance.evaluation.forms import FORMS, checked_form, in_form, lazy_scan
from datasource_governance.sources.typed import to_typed

CANARY = "zq-canary-forms"
TABLE = to_typed(
    pa.table(
        {
            "id": pa.array([2**63 - 1, None, 3], pa.int64()),
            "price": pa.array([Decimal("0.10"), None, Decimal("2.00")], pa.decimal128(20, 2)),
            "note": [CANARY, None, ""],
            "at": pa.array([1767312000, None, None], pa.timestamp("s")),
            "tags": [[1, 2], [], None],
        }
    )
)
ROWS = TABLE.to_pylist()


@pytest.fixture
def stored(tmp_path):
    """A function that writes a table and returns its path."""

    def write(table=TABLE, write=pq.write_table, **options):
        path = tmp_path / "stored"
        write(table, path, **options)
        return path

    return write


def scan(path, media_type=MediaType.PARQUET, columns=None):
    with path.open("rb") as file:
        return lazy_scan(file, media_type, columns)


def write_arrow(table, path):
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def rows_of(frame):
    if isinstance(frame, pd.DataFrame):
        return pa.Table.from_pandas(frame).to_pylist()
    if isinstance(frame, pl.LazyFrame):
        return frame.collect().to_dicts()
    return frame.to_dicts() if isinstance(frame, pl.DataFrame) else frame.to_pylist()


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        ("pandas", pd.DataFrame),
        ("polars", pl.DataFrame),
        ("arrow", pa.Table),
        ("lazy", pl.LazyFrame),
    ],
)
def test_every_form_has_the_same_rows(form, kind):
    frame = in_form(TABLE, form)

    assert isinstance(frame, kind)
    assert rows_of(frame) == ROWS


def test_pandas_gets_arrow_dtypes_which_keep_every_value_exact():
    frame = in_form(TABLE, "pandas")

    assert {type(dtype) for dtype in frame.dtypes} == {pd.ArrowDtype}


def test_another_form_is_refused():
    assert [checked_form(form) for form in FORMS] == list(FORMS)
    with pytest.raises(InvalidArgumentError, match="pandas, polars, arrow, lazy"):
        checked_form("spark")


@pytest.mark.parametrize("form", ["polars", "lazy"])
def test_what_polars_has_no_type_for_is_refused_by_the_names_of_all_such_fields(form):
    big = pa.decimal256(60, 2)
    table = pa.table(
        {
            "big": pa.array([Decimal("1.25")], big),
            "id": [1],
            "bigs": pa.array([[Decimal("1.25")]], pa.list_(big)),
            "seconds": pa.array([[0]], pa.list_(pa.timestamp("s"))),
        }
    )

    with pytest.raises(UnreadableSourceError, match="pandas or arrow") as refused:
        in_form(table, form)

    (problem,) = refused.value.problems
    assert problem.names == ("big", "bigs", "seconds")
    assert in_form(table, "arrow") is table


def test_what_polars_would_count_past_its_end_is_refused_without_the_value():
    table = pa.table({"at": pa.array([2**61], pa.timestamp("s"))})

    with pytest.raises(UnreadableSourceError) as refused:
        in_form(table, "polars")

    assert str(2**61) not in str(refused.value)
    assert refused.value.__context__ is None


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize(
    ("media_type", "write"),
    [(MediaType.PARQUET, pq.write_table), (MediaType.ARROW_FILE, write_arrow)],
)
def test_a_scan_has_the_rows_of_the_file_each_time_it_is_run(stored, media_type, write, engine):
    query = scan(stored(write=write), media_type)

    assert query.collect(engine=engine).to_dicts() == ROWS
    assert query.collect(engine=engine).to_dicts() == ROWS


def test_a_scan_takes_columns_filters_and_heads_as_any_query_does(stored):
    query = scan(stored(pa.table({"id": range(100), "x": [CANARY] * 100})))

    assert query.select(pl.len()).collect().item() == 100
    assert query.filter(pl.col("id") > 97).select("x").collect().height == 2
    assert query.head(3).filter(pl.col("id") > 0).collect()["id"].to_list() == [1, 2]
    assert query.tail(1).collect()["id"].to_list() == [99]
    assert query.join(query, on="id").collect().columns == ["id", "x", "x_right"]


def test_a_scan_of_some_columns_knows_no_others(stored):
    query = scan(stored(), columns=["note", "id"])

    assert query.collect_schema().names() == ["note", "id"]
    assert query.collect().rows()[0] == (CANARY, 2**63 - 1)
    assert query.select("id").collect().columns == ["id"]
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        query.select("price").collect()


def test_a_scan_goes_on_with_the_file_that_it_began_with(stored, tmp_path):
    path = stored()
    query = scan(path)
    pq.write_table(pa.table({"id": [9]}), tmp_path / "other")
    (tmp_path / "other").replace(path)

    assert query.collect().to_dicts() == ROWS


def test_a_scan_of_a_file_that_was_changed_fails_and_gives_nothing(stored):
    path = stored()
    query = scan(path)
    stored(TABLE.slice(1))

    with pytest.raises(UnreadableSourceError) as refused:
        query.collect()

    assert CANARY not in str(refused.value)


def test_a_damaged_file_is_refused_without_a_value(tmp_path):
    path = tmp_path / "damaged"
    path.write_bytes(b"PAR1" + CANARY.encode() * 100 + b"PAR1")

    with pytest.raises(UnreadableSourceError) as refused:
        scan(path)

    assert CANARY not in str(refused.value)
    assert refused.value.__context__ is None


def times_open(path):
    """Return how many descriptors of this process are of a file."""
    descriptors = Path("/proc/self/fd").iterdir()
    return sum(os.path.realpath(descriptor) == str(path) for descriptor in descriptors)


def test_the_file_is_closed_when_there_is_no_query_of_it(stored):
    path = stored()
    query = scan(path).filter(pl.col("id") > 0)
    query.collect()
    assert times_open(path) == 1

    del query
    gc.collect()
    assert times_open(path) == 0


PEAK = """
import resource, sys
import polars as pl
from datasource_governance.domain.artifact import MediaType
from datasource_governance.evaluation.forms import lazy_scan

def sums(path):
    with open(path, "rb") as file:
        query = lazy_scan(file, MediaType.PARQUET)
    lengths = pl.col("number") + pl.col("text").str.len_bytes()
    return query.select(lengths.sum()).collect(engine="streaming").item()

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

small, large = sys.argv[1:]
sums(small)
before = peak()
print(sums(large), peak() - before)
"""


def test_a_scan_holds_a_batch_and_not_the_file(tmp_path):
    rows, text = 5_000_000, "x" * 32
    small, large = tmp_path / "small", tmp_path / "large"
    table = pa.table({"number": pa.array(range(rows)), "text": pa.array([text] * rows)})
    pq.write_table(table, large, row_group_size=250_000)
    pq.write_table(table.slice(0, 1_000), small)

    ended = subprocess.run(
        [sys.executable, "-c", PEAK, small, large], capture_output=True, text=True, check=True
    )

    total, mebibytes = map(int, ended.stdout.split())
    assert total == rows * (rows - 1) // 2 + rows * len(text)
    assert table.nbytes > 200 * 2**20
    assert mebibytes < 100
