import datetime as dt
import gc
import math
import weakref
from decimal import Decimal

import pandas as pd
import polars as pl
import pytest

from datasource_governance.errors import UnreadableSourceError
from datasource_governance.evaluation.columns import (
    ArrowColumn,
    FrameColumns,
    PolarsColumn,
)
from datasource_governance.sources.frames import from_data
from datasource_governance_tests.evaluation.judging import columns_of
from datasource_governance_tests.sources.refusals import CANARY, kinds_and_names

NOON = dt.datetime(2024, 1, 1, 12)  # noqa: DTZ001 - a local time
ALIKE = [
    *(pl.Series([0, 1, None, 1], dtype=kind) for kind in (pl.Int8, pl.Int16, pl.Int32, pl.Int64)),
    *(pl.Series([0, 1, None, 1], dtype=kind) for kind in (pl.UInt8, pl.UInt16, pl.UInt32)),
    pl.Series([0, 2**64 - 1, None, 0], dtype=pl.UInt64),
    pl.Series([True, False, None, True]),
    pl.Series(["", "a", None, "a\0", "a", "é", "e\u0301"]),
    pl.Series([b"", b"\0", None, b"\0"]),
    pl.Series([dt.date(1, 1, 1), dt.date(9999, 12, 31), None, dt.date(1, 1, 1)]),
    pl.Series([dt.time(0), dt.time(23, 59), None, dt.time(0)]),
    *(pl.Series([NOON, None, NOON], dtype=pl.Datetime(unit)) for unit in ("ms", "us", "ns")),
    pl.Series([NOON, None, NOON]).dt.replace_time_zone("Europe/Berlin"),
    *(pl.Series([dt.timedelta(1), None], dtype=pl.Duration(unit)) for unit in ("ms", "us", "ns")),
]
OTHERWISE = [
    pl.Series([0.0, -0.0, math.nan, None]),
    pl.Series([0.5, math.nan, None], dtype=pl.Float32),
    pl.Series([2**100, None], dtype=pl.Int128),
    pl.Series([2**127, None], dtype=pl.UInt128),
    pl.Series([Decimal("1.50"), None]),
    pl.Series(["a", None], dtype=pl.Categorical),
    pl.Series(["b", None], dtype=pl.Enum(["a", "b"])),
    pl.Series([[1], None]),
    pl.Series([[1, 2], None], dtype=pl.Array(pl.Int8, 2)),
    pl.Series([{"a": 1}, None]),
    pl.Series([1, "a", None], dtype=pl.Object),
    pl.Series([None, None]),
]


def in_both_forms(series):
    """Return the column of a frame of one series as it is found, and from its typed table."""
    frame = pl.DataFrame([series.alias("x")])
    return FrameColumns(frame, None)["x"], columns_of(from_data(frame))["x"]


def groups(column):
    """Return which rows have equal keys, and which have none."""
    keys = column.keys(0, 10)
    return [(keys.eq_missing(keys[[row]])).to_list() for row in range(len(keys))], keys.is_null()


@pytest.mark.parametrize("series", ALIKE, ids=lambda series: str(series.dtype))
def test_what_polars_compares_as_the_typed_form_does_is_used_as_it_is(series):
    own, typed = in_both_forms(series)

    assert isinstance(own, PolarsColumn)
    assert own.keys(0, 1) is not typed.keys(0, 1)
    assert own.field.equals(typed.field, check_metadata=True)
    assert own.values.equals(typed.values)
    assert own.nulls().to_pylist() == typed.nulls().to_pylist()
    (own_groups, own_nulls), (typed_groups, typed_nulls) = groups(own), groups(typed)
    assert own_groups == typed_groups
    assert own_nulls.to_list() == typed_nulls.to_list()


@pytest.mark.parametrize("series", OTHERWISE, ids=lambda series: str(series.dtype))
def test_what_polars_compares_otherwise_is_brought_to_the_typed_form(series):
    own, typed = in_both_forms(series)

    assert isinstance(own, ArrowColumn)
    assert own.field.equals(typed.field, check_metadata=True)
    assert own.values.equals(typed.values)
    assert own.nulls().to_pylist() == typed.nulls().to_pylist()


def test_negative_zero_and_nan_compare_as_the_typed_form_does():
    own, _ = in_both_forms(pl.Series([0.0, -0.0, math.nan, None]))

    assert own.nulls().to_pylist() == [False, False, True, True]
    assert own.keys(0, 10).to_list() == [0.0, 0.0, None, None]


@pytest.mark.parametrize(
    "texts",
    [[], [""], ["a", "é"], ["a\0", "z"], ["e\u0301"], ["A"], ["a", *"1234567"], ["a", *"12345678"]],
)
def test_texts_are_found_alike_in_both_forms(texts):
    cells = ["", "a", None, "a\0", "é", "e\u0301", "a "]
    own, typed = in_both_forms(pl.Series(cells))

    expected = [cell in texts for cell in cells]
    assert own.texts_among(texts).to_pylist() == expected
    assert typed.texts_among(texts).to_pylist() == expected


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_a_column_that_no_rule_names_is_not_converted(library):
    without_typed_form = {object(), frozenset()}
    unreadable = list(without_typed_form)
    frame = library.DataFrame({"x": [1, 2], "y": as_objects(library, unreadable)})
    columns = FrameColumns(frame, None)

    assert columns["x"].values.to_pylist() == [1, 2]
    with pytest.raises(UnreadableSourceError):
        columns["y"]


def as_objects(library, cells):
    if library is pd:
        return pd.Series(cells, dtype=object)
    return pl.Series(cells, dtype=pl.Object)


@pytest.mark.parametrize(
    "frame",
    [pd.DataFrame({"x": [1.5]}), pl.DataFrame({"x": [1.5]}), pl.DataFrame({"x": ["a"]})],
    ids=["pandas", "polars", "polars as it is"],
)
def test_a_column_is_converted_once_however_often_it_is_found(frame):
    columns = FrameColumns(frame, None)

    assert columns["x"] is columns["x"]
    assert columns["x"].values is columns["x"].values


@pytest.mark.parametrize("engine", [pd, pl], ids=["pandas", "polars"])
def test_a_field_is_found_by_exactly_its_name(engine):
    columns = FrameColumns(engine.DataFrame({"x": [1], "^.*$": [2]}), None)

    assert columns["^.*$"].values.to_pylist() == [2]
    assert not any(name in columns for name in ("X", "x ", "*", ""))


@pytest.mark.parametrize("rows", [0, 3])
def test_rows_are_counted_also_without_columns(rows):
    assert FrameColumns(pd.DataFrame(index=range(rows)), None).row_count == rows
    assert FrameColumns(pl.DataFrame({"x": range(rows)}), None).row_count == rows


def test_the_schema_of_the_typed_form_restores_types_and_marks():
    objects = pd.DataFrame({"x": pd.Series([1, 2**70], dtype=object)})
    typed = from_data(objects).schema

    found = FrameColumns(pl.DataFrame({"x": [1, None]}), typed)["x"]

    assert found.field.equals(typed.field("x"), check_metadata=True)
    assert found.values.type == typed.field("x").type


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), ("duplicate_column", ("x",))),
        (pd.DataFrame({" ": [1]}), ("blank_column_name", ("1",))),
        (pl.DataFrame({"x": [1], "": [1]}), ("blank_column_name", ("2",))),
        (pd.DataFrame({7: [1]}), ("column_name_not_text", ("1",))),
        (pl.DataFrame({"a\0": [1]}), ("invalid_text", ("1",))),
    ],
)
def test_names_that_no_rule_could_mean_are_refused(frame, expected):
    assert kinds_and_names(lambda: FrameColumns(frame, None)) == [expected]


def test_a_column_without_a_typed_form_is_refused_without_its_values():
    cells = pd.Series([CANARY, {CANARY}], dtype=object)
    columns = FrameColumns(pd.DataFrame({"x": cells}), None)

    (refusal,) = kinds_and_names(lambda: columns["x"])

    assert refusal == ("unsupported_value", ("x", "2"))


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_columns_that_are_no_longer_needed_give_their_memory_back_at_once(library):
    columns = FrameColumns(library.DataFrame({"x": ["a"], "y": [0.5]}), None)
    gone = weakref.ref(columns)
    assert columns["x"].values.to_pylist() == ["a"]
    assert columns["y"].values.to_pylist() == [0.5]

    gc.disable()
    try:
        del columns
        assert gone() is None
    finally:
        gc.enable()
