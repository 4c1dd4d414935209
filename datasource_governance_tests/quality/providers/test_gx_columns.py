"""What is handed to Great Expectations: pandas compares it as the typed form is compared."""

import datetime as dt
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

from datasource_governance.domain.rules import RangeRule, ReferentialRule, Severity
from datasource_governance.quality.providers.gx_columns import GxColumn, Interval
from datasource_governance.sources.frames import from_data

BEYOND = 2**53 + 1
"""The first whole number that a double cannot hold."""


def column(values, kind=None):
    return column_of(pa.table({"x": pa.array(values, kind)}))


def column_of(data):
    table = from_data(data)
    return GxColumn(table.schema.field(0), table.column(0))


def mixture(*cells):
    return column_of(pd.DataFrame({"x": pd.Series(cells, dtype=object)}))


def between(minimum=None, maximum=None):
    return RangeRule(
        id="r",
        severity=Severity.ERROR,
        field="x",
        minimum=minimum,
        maximum=maximum,
        allow_null=False,
    )


def among(*codes):
    return ReferentialRule(
        id="r", severity=Severity.ERROR, field="x", allowed_values=codes, allow_null=False
    )


@pytest.mark.parametrize(
    ("values", "kind", "dtype"),
    [
        ([1, 2], pa.int8(), "int64"),
        ([1, None], pa.int64(), "float64"),
        ([2**53 - 1, None], pa.int64(), "float64"),
        ([2**53, None], pa.int64(), "Int64"),
        ([-(2**53), None], pa.int64(), "Int64"),
        ([2**63 - 1, -(2**63)], pa.int64(), "int64"),
        ([2**63, None], pa.uint64(), "object"),
        ([Decimal("0.1"), None], pa.decimal128(38, 1), "float64"),
        ([Decimal("9" * 37)], pa.decimal128(38, 1), "object"),
        ([True, None], pa.bool_(), "float64"),
        ([dt.date(1, 1, 1), dt.date(9999, 12, 31)], pa.date32(), "int64"),
        ([0.5, None], pa.float16(), "float64"),
        (["a", None], pa.string(), "str"),
        ([b"\xff", None], pa.binary(), "str"),
        ([[1], None], pa.list_(pa.int8()), "str"),
        ([None], pa.null(), "float64"),
    ],
)
def test_numbers_are_arrays_of_one_width_unless_that_would_round_them(values, kind, dtype):
    series = column(values, kind).series

    assert series.dtype == dtype
    assert series.isna().tolist() == [value is None for value in values]


@pytest.mark.parametrize(
    ("repeated", "other", "kind"),
    [
        (BEYOND, BEYOND - 1, pa.int64()),
        (2**64 - 1, 2**64 - 2, pa.uint64()),
        (Decimal("9" * 38), Decimal("9" * 37 + "8"), pa.decimal128(38, 0)),
        (Decimal("9" * 75 + ".9"), Decimal("9" * 75 + ".8"), pa.decimal256(76, 1)),
        ("a\0", "a", pa.string()),
        ("\u00e9", "e\u0301", pa.string()),
        (b"1", b"1\0", pa.binary()),
        ([None], [], pa.list_(pa.int8())),
        ({"a": None}, {"a": 0}, pa.struct([("a", pa.int8())])),
        (dt.datetime(1, 1, 1), dt.datetime(1, 1, 1, 0, 0, 0, 1), pa.timestamp("us")),  # noqa: DTZ001 - a local time
    ],
)
def test_values_repeat_exactly_where_they_are_equal_and_nulls_repeat_nulls(repeated, other, kind):
    series = column([repeated, None, other, repeated, None], kind).series

    assert series.duplicated(keep=False).tolist() == [True, True, False, True, True]


def test_negative_zero_repeats_zero_and_is_one_of_its_codes():
    zeros = column([0.0, -0.0])

    assert zeros.series.duplicated().tolist() == [False, True]
    assert zeros.series.isin(zeros.permitted(among(0))).all()


@pytest.mark.parametrize(
    ("values", "kind", "rule", "permitted"),
    [
        ([1], pa.int8(), between(0.5, 2.5), Interval(1, 2)),
        ([1], pa.int64(), between(minimum=BEYOND), Interval(BEYOND, None)),
        ([1], pa.int64(), between(1.2, 1.8), []),
        ([Decimal("0.10")], pa.decimal128(5, 2), between(0.1, 0.255), Interval(10, 25)),
        ([0.5], pa.float64(), between(maximum=1), Interval(None, 1.0)),
        (["5"], pa.string(), between(minimum=0), []),
        ([True], pa.bool_(), between(minimum=0), []),
        ([dt.date(2026, 1, 1)], pa.date32(), between(minimum=0), []),
        ([None], pa.null(), between(minimum=0), []),
    ],
)
def test_a_range_is_the_numbers_of_the_column_within_it(values, kind, rule, permitted):
    assert column(values, kind).permitted(rule) == permitted


@pytest.mark.parametrize(
    ("values", "kind", "permitted"),
    [
        ([1], pa.int64(), [1, BEYOND]),
        ([1, None], pa.int64(), [1.0, float(BEYOND - 1), 1e300]),
        ([Decimal("1.5")], pa.decimal128(3, 1), [10, 15, BEYOND * 10]),
        ([2**63], pa.uint64(), [1, BEYOND, 10**300]),
        ([0.5], pa.float64(), [1.0, 1.5, 1e300]),
        ([True], pa.bool_(), [1]),
        (["a"], pa.string(), ["1", "true"]),
        ([dt.date(2026, 1, 1)], pa.date32(), []),
        ([b"1"], pa.binary(), []),
        ([["1"]], pa.list_(pa.string()), []),
    ],
)
def test_codes_are_those_of_the_type_of_the_column(values, kind, permitted):
    codes = (True, "1", "true", 1, 1.5, BEYOND, 1e300)

    assert column(values, kind).permitted(among(*codes)) == permitted


def test_a_code_that_a_double_would_round_to_a_value_does_not_match_it():
    numbers = column([2**53 - 1, None])

    assert not numbers.series.isin(numbers.permitted(among(BEYOND, 2**53))).any()


@pytest.mark.parametrize(
    ("rule", "places"),
    [
        (among(1), [0, 3]),
        (among(True), [1]),
        (among("1"), [2]),
        (among(2**70), [4]),
        (between(minimum=1, maximum=2), [0, 3]),
        (between(minimum=2**70), [4]),
        (between(maximum=0), []),
    ],
)
def test_in_a_mixture_kinds_are_kept_apart_and_numbers_are_numbers(rule, places):
    cells = mixture(1, True, "1", Decimal("1.0"), 2**70, dt.date(2026, 1, 1), None)

    permitted = cells.series.isin(cells.permitted(rule))

    assert [place for place, is_permitted in enumerate(permitted) if is_permitted] == places


def test_columns_without_rows_have_series_without_rows():
    assert len(column([], pa.decimal128(5, 2)).series) == 0
    assert len(column([], pa.list_(pa.int8())).series) == 0
