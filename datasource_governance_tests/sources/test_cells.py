"""Cells of object columns are equal exactly when kind and canonical bytes are."""

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasource_governance.sources.cells import (
    UnsupportedCellError,
    canonical_cell,
    is_canonical_number,
    number_from_canonical,
    plain,
)

NUMBERS = st.one_of(
    st.integers(-(10**40), 10**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30),
)


def cell(value):
    return canonical_cell(plain(value))


@given(NUMBERS, NUMBERS)
def test_numbers_have_equal_bytes_exactly_when_they_are_equal(one, other):
    assert (cell(one) == cell(other)) == (Fraction(one) == Fraction(other))


@given(NUMBERS)
def test_a_canonical_number_is_read_back_exactly(number):
    _, spelling = cell(number)

    assert is_canonical_number(spelling)
    assert number_from_canonical(spelling) == Fraction(number)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 1.0, Decimal("1.00"), np.int8(1), np.float32(1)], ("number", b"1")),
        ([0.5, Decimal("0.50")], ("number", b"0.5")),
        ([0, -0.0, Decimal("-0.00")], ("number", b"0")),
        ([100, 1e2], ("number", b"1E+2")),
        ([math.inf, Decimal("Infinity")], ("number", b"inf")),
        ([True, np.bool_(True)], ("boolean", b"true")),
        (["1", np.str_("1")], ("string", b"1")),
        ([b"1", bytearray(b"1"), memoryview(b"1")], ("binary", b"1")),
        ([dt.date(2024, 1, 2)], ("date", b"2024-01-02")),
        ([dt.time(1, 2)], ("time", b"01:02:00.000000")),
        ([pd.Timestamp(1), np.datetime64(1, "ns")], ("datetime", b"1")),
        (
            [
                dt.datetime(1970, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
                pd.Timestamp(0, tz="America/New_York"),
            ],
            ("datetime", b"0Z"),
        ),
        ([[1, "a"], (1.0, "a"), np.array([1, "a"], object)], None),
        ([{"b": [b"x"], "a": None}, {"a": math.nan, "b": (b"x",)}], None),
    ],
)
def test_equal_values_of_different_classes_are_one_cell(values, expected):
    cells = {cell(value) for value in values}

    assert len(cells) == 1
    assert expected is None or cells == {expected}


def test_different_values_are_different_cells():
    values = [1, True, "1", b"1", [1], ["1"], [[1]], {"a": 1}, {"a": "1"}, {"1": "a"}, [None], []]

    assert len({cell(value) for value in values}) == len(values)


@pytest.mark.parametrize(
    "value",
    [None, math.nan, np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT"), Decimal("sNaN")],
)
def test_every_missing_marker_is_no_value(value):
    assert plain(value) is None


@pytest.mark.parametrize(
    "value",
    [
        object(),
        1j,
        {1},
        {1: 2},
        "\ud800",
        {"\ud800": 1},
        dt.timedelta(1),
        dt.time(1, tzinfo=dt.UTC),
    ],
)
def test_values_of_no_kind_are_refused(value):
    for nested in (value, [value], {"a": [value]}):
        with pytest.raises(UnsupportedCellError) as error:
            plain(nested)
        assert error.value.args == ()


def test_nesting_ends_at_16():
    value = 1
    for _ in range(15):
        value = [value]

    assert canonical_cell(plain(value))[0] == "list"
    with pytest.raises(UnsupportedCellError):
        plain([value])


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        (b"1E+999999999", Fraction(10) ** 400),
        (b"-1E+999999999", -(Fraction(10) ** 400)),
        (b"1E-999999999", Fraction(1, 10**400)),
        (b"inf", math.inf),
        (b"-inf", -math.inf),
    ],
)
def test_numbers_beyond_every_bound_are_read_at_the_limit(spelling, expected):
    assert number_from_canonical(spelling) == expected


@pytest.mark.parametrize("spelling", [b"", b"x", b"nan", b"\xff"])
def test_bytes_that_are_no_number_are_refused(spelling):
    with pytest.raises(ValueError, match=r"^not a canonical number$") as error:
        number_from_canonical(spelling)
    assert error.value.__cause__ is None


@pytest.mark.parametrize("spelling", [b"1.0", b"+1", b"01", b"1e2", b" 1", b"-0", b"nan", b"x"])
def test_any_other_spelling_is_not_canonical(spelling):
    assert not is_canonical_number(spelling)
