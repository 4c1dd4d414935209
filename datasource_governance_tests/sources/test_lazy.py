"""A Polars query is judged as what it answers with, and fails without a value."""

import datetime as dt
import itertools
import math
from decimal import Decimal

import polars as pl
import pytest
from polars.io.plugins import register_io_source

from datasource_governance.evaluation.evaluate import validate
from datasource_governance.sources.frames import from_data
from datasource_governance.sources.lazy import lazy_batches
from datasource_governance_tests.builders import quality_policy, rule
from datasource_governance_tests.sources.refusals import CANARY, kinds_and_names

ROWS = 1_000
FRAME = pl.DataFrame(
    {
        "id": [place % 990 for place in range(ROWS)],
        "text": [f"text {place % 7}" if place % 5 else None for place in range(ROWS)],
        "number": [math.nan if place % 11 == 3 else place / 4 for place in range(ROWS)],
        "price": pl.Series([Decimal(place) / 4 for place in range(ROWS)], dtype=pl.Decimal(10, 2)),
        "day": [dt.date(2024, 1, 1) + dt.timedelta(place) for place in range(ROWS)],
        "code": pl.Series(["a", "b"] * (ROWS // 2), dtype=pl.Enum(["b", "a"])),
        "category": pl.Series(["y", "x"] * (ROWS // 2), dtype=pl.Categorical),
        "list": [[place % 3, None] for place in range(ROWS)],
        "pair": pl.Series([[place, 0] for place in range(ROWS)], dtype=pl.Array(pl.Int16, 2)),
        "struct": [{"a": place % 9, "b": "x"} for place in range(ROWS)],
        "nothing": [None] * ROWS,
    }
)
POLICY = quality_policy(
    *(
        rule(kind, id=f"{kind} {name}", field=name)
        for name in FRAME.columns
        for kind in ("unique", "not_null")
    ),
    rule("range", id="range", field="number", minimum=1, maximum=100),
    rule("referential", id="referential", field="code", allowed_values=["a"]),
    rule("row_count", id="rows", minimum=ROWS, maximum=ROWS),
    rule("field", id="type", field="price", data_type="number", nullable=False),
)
UNREADABLE = [("unreadable", ())]


def two_rows(columns):
    """Return the bytes that two rows of so many columns count for."""
    return 2 * columns * 16


def query_that_fails(*, batches):
    """Return a query of two columns whose answer breaks off after so many batches."""

    def answer(**_):
        yield from itertools.repeat(pl.DataFrame({"a": [1, 2], "b": [CANARY, CANARY]}), batches)
        raise ValueError(f"cannot convert {CANARY}")

    schema = {"a": pl.Int64, "b": pl.String}
    return register_io_source(lambda *_: answer(), schema=schema)


def test_a_query_is_judged_as_the_frame_that_it_answers_with():
    found = validate(POLICY, FRAME.lazy(), memory_bytes=two_rows(FRAME.width) * 50 * 16)

    assert found.engine == "pandas_batches"
    assert found.hashed_bytes() == validate(POLICY, FRAME).hashed_bytes()
    assert found.rule_counts["error"]["failed"] > 5


@pytest.mark.parametrize("rows", [0, 1, 2, 3])
def test_the_rows_of_all_batches_are_those_of_the_answer(rows):
    answer = FRAME.head(rows)

    batches = lazy_batches(answer.lazy(), two_rows(FRAME.width))
    parts = list(batches)

    assert batches.rows_numbered
    assert batches.schema.equals(from_data(answer).schema, check_metadata=True)
    assert all(part.schema.equals(batches.schema, check_metadata=True) for part in parts)
    assert sum(part.num_rows for part in parts) == rows
    whole = from_data(answer)
    starts = itertools.accumulate((part.num_rows for part in parts), initial=0)
    assert all(
        part.equals(whole.slice(start, part.num_rows))
        for start, part in zip(starts, parts, strict=False)
    )


def test_a_batch_is_of_the_size_that_is_meant():
    batches = lazy_batches(pl.LazyFrame({"a": range(10), "b": range(10)}), two_rows(2))

    assert max(part.num_rows for part in batches) <= 2


def test_rows_come_in_the_order_of_the_answer():
    query = pl.LazyFrame({"a": range(5_000)}).sort("a", descending=True)

    batches = lazy_batches(query, two_rows(50))
    rows = [cell for part in batches for cell in part.column("a").to_pylist()]

    assert rows == list(range(4_999, -1, -1))


def test_a_query_is_run_anew_every_time():
    batches = lazy_batches(pl.LazyFrame({"a": [1, 2, 3]}))

    for _ in range(2):
        assert [part.column("a").to_pylist() for part in batches] == [[1, 2, 3]]


def test_a_query_without_columns_is_a_payload_without_columns():
    query = pl.LazyFrame()

    found = validate(quality_policy(rule("row_count", maximum=0)), query)

    assert found.row_count == 0
    assert (
        found.hashed_bytes()
        == validate(quality_policy(rule("row_count", maximum=0)), query.collect()).hashed_bytes()
    )


@pytest.mark.parametrize(
    "series",
    [
        pl.Series("a", [2**100, 1, 1, None], dtype=pl.Int128),
        pl.Series("a", [2**100, 1, 1, None], dtype=pl.UInt128),
        pl.Series("a", [1, "x", 1, None], dtype=pl.Object),
    ],
    ids=lambda series: str(series.dtype),
)
def test_types_that_are_known_by_values_only_are_collected(series):
    policy = quality_policy(rule("unique", field="a"))
    query = series.to_frame().lazy()

    assert lazy_batches(query) is None
    found = validate(policy, query)
    assert found.rules[0].affected == 2
    assert found.hashed_bytes() == validate(policy, series.to_frame()).hashed_bytes()


@pytest.mark.parametrize("data", [FRAME, from_data(FRAME), None, object(), "LazyFrame"])
def test_other_data_is_no_query(data):
    assert lazy_batches(data) is None


def test_a_class_that_is_only_called_so_is_no_query():
    assert lazy_batches(type("LazyFrame", (), {})()) is None


@pytest.mark.parametrize(
    "query",
    [
        pl.LazyFrame({"a": [1]}).select(CANARY),
        pl.scan_parquet(f"/nowhere/{CANARY}.parquet"),
    ],
    ids=["column", "file"],
)
def test_a_query_that_does_not_tell_its_columns_is_refused_at_once(query):
    assert kinds_and_names(lambda: lazy_batches(query)) == UNREADABLE
    assert kinds_and_names(lambda: validate(POLICY, query)) == UNREADABLE


@pytest.mark.parametrize(
    "query",
    [
        pl.LazyFrame({"a": [CANARY]}).select(pl.col("a").cast(pl.Int64)),
        pl.LazyFrame({"a": [CANARY]}).select(pl.col("a").str.to_date("%Y")),
        pl.LazyFrame({"a": [CANARY]}).select(pl.col("a").dt.year()),
        query_that_fails(batches=0),
        query_that_fails(batches=3),
    ],
    ids=["cast", "date", "type", "first batch", "later batch"],
)
def test_a_query_that_fails_on_the_way_is_refused_without_its_values(query):
    batches = lazy_batches(query, two_rows(2))

    assert kinds_and_names(lambda: list(batches)) == UNREADABLE
    assert kinds_and_names(lambda: validate(POLICY, query)) == UNREADABLE


def test_a_blank_name_is_refused_at_once():
    assert kinds_and_names(lambda: lazy_batches(pl.LazyFrame({" ": [1]}))) == [
        ("blank_column_name", ("1",))
    ]
