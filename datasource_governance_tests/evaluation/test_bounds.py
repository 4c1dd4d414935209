import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from datasource_governance.domain.validation import Reason
from datasource_governance.sources.frames import from_data
from datasource_governance_tests.evaluation.judging import judge, rows

EDGE = 2**53
SINGLE = float(np.float32(0.1))
NOT_NUMBERS = [
    pa.array(["5"]),
    pa.array([True]),
    pa.array([b"5"]),
    pa.array([dt.date(2024, 1, 1)]),
    pa.array([[5]]),
    pa.array([{"a": 5}]),
    pa.array([dt.timedelta(seconds=5)]),
]


@pytest.mark.parametrize(
    ("column", "keys", "expected"),
    [
        (pa.array([0, 1, 3, 4]), {"minimum": 1, "maximum": 3}, (1, 4)),
        (pa.array([2, 3]), {"minimum": 2.5}, (1,)),
        (pa.array([2, 3]), {"maximum": 2.5}, (2,)),
        (pa.array([EDGE, EDGE + 1]), {"maximum": EDGE}, (2,)),
        (pa.array([EDGE, EDGE + 1]), {"minimum": EDGE + 1}, (1,)),
        (pa.array([2**63, 2**64 - 1], pa.uint64()), {"minimum": 2**64 - 1}, (1,)),
        (pa.array([0, 2**64 - 1], pa.uint64()), {"minimum": -1, "maximum": 2**64}, ()),
        (pa.array([0, 1], pa.uint64()), {"maximum": -1}, (1, 2)),
        (pa.array([-128, 127], pa.int8()), {"minimum": -1000, "maximum": 1000}, ()),
        (pa.array([-128, 127], pa.int8()), {"minimum": 128}, (1, 2)),
        (pa.array([-128, 127], pa.int8()), {"maximum": -129}, (1, 2)),
        (pa.array([-128, 127], pa.int8()), {"minimum": -127, "maximum": 126}, (1, 2)),
        (pa.array([-128, 127], pa.int8()), {"minimum": -128, "maximum": 127}, ()),
        (pa.array([1], pa.int64()), {"minimum": 10**60}, (1,)),
    ],
)
def test_integers_are_exact_at_any_size(column, keys, expected):
    assert rows(column, "range", **keys) == expected


@pytest.mark.parametrize(
    ("column", "keys", "expected"),
    [
        (pa.array([0.1, 0.1 + 2**-54]), {"maximum": 0.1}, (2,)),
        (pa.array([0.1]), {"minimum": 0.1}, ()),
        (pa.array([float(EDGE), float(EDGE + 2)]), {"minimum": EDGE + 1}, (1,)),
        (pa.array([float(EDGE), float(EDGE + 2)]), {"maximum": EDGE + 1}, (2,)),
        (pa.array([SINGLE], pa.float32()), {"minimum": 0.1, "maximum": 0.1}, ()),
        (pa.array([16777216.0], pa.float32()), {"minimum": 16777217}, (1,)),
        (pa.array([np.float16(0.1)], pa.float16()), {"minimum": 0.1, "maximum": 0.1}, ()),
        (pa.array([np.float16(65504)], pa.float16()), {"minimum": 70000.5}, (1,)),
        (pa.array([math.inf, -math.inf, 5.0]), {"minimum": 0}, (2,)),
        (pa.array([math.inf, -math.inf, 5.0]), {"maximum": 10**300}, (1,)),
        (pa.array([-0.0]), {"minimum": 0, "maximum": 0}, ()),
    ],
)
def test_floats_meet_fractions_at_their_precision_and_whole_numbers_exactly(column, keys, expected):
    assert rows(column, "range", **keys) == expected


@pytest.mark.parametrize(
    ("decimals", "arrow_type", "keys", "expected"),
    [
        (["0.10", "0.09"], pa.decimal128(10, 2), {"minimum": 0.1}, (2,)),
        (["0.30", "0.31"], pa.decimal128(10, 2), {"maximum": 0.3}, (2,)),
        (["0.10", "0.11"], pa.decimal128(10, 2), {"minimum": 0.105}, (1,)),
        (["0.10", "0.11"], pa.decimal128(10, 2), {"maximum": 0.105}, (2,)),
        (["9.99"], pa.decimal128(3, 2), {"minimum": -100, "maximum": 100}, ()),
        (["9.99"], pa.decimal128(3, 2), {"minimum": 10}, (1,)),
        (["9.99"], pa.decimal128(3, 2), {"maximum": -10}, (1,)),
        (["123456789012345679"], pa.decimal128(20, 0), {"maximum": 123456789012345678}, (1,)),
        (["1" + "0" * 59], pa.decimal256(70, 3), {"minimum": 10**59}, ()),
        (["1" + "0" * 59], pa.decimal256(70, 3), {"minimum": 10**59 + 1}, (1,)),
        (["0.5"], pa.decimal32(5, 1), {"minimum": 0.6}, (1,)),
        (["1E+3"], pa.decimal128(5, -2), {"maximum": 999}, (1,)),
    ],
)
def test_decimals_meet_the_decimal_text_of_the_bound(decimals, arrow_type, keys, expected):
    column = pa.array([Decimal(one) for one in decimals], arrow_type)

    assert rows(column, "range", **keys) == expected


@pytest.mark.parametrize("column", NOT_NUMBERS, ids=lambda column: str(column.type))
def test_a_value_that_is_no_number_is_out_of_range(column):
    found = judge(column, "range", field="x", minimum=-(10**9), maximum=10**9)

    assert (found.reason, found.affected, found.rows) == (Reason.OUT_OF_RANGE, 1, (1,))


@pytest.mark.parametrize(
    ("column", "allow_null", "expected"),
    [
        (pa.array([None, 1, -1]), False, (1, 3)),
        (pa.array([None, 1, -1]), True, (3,)),
        (pa.array([math.nan, None, -1.0]), False, (1, 2, 3)),
        (pa.array([math.nan, None, -1.0]), True, (3,)),
        (pa.array([None, "a"]), True, (2,)),
        (pa.nulls(2), False, (1, 2)),
        (pa.nulls(2), True, ()),
        (pa.array([None], pa.int8()), False, (1,)),
    ],
)
def test_a_null_violates_unless_the_rule_allows_it(column, allow_null, expected):
    assert rows(column, "range", minimum=0, allow_null=allow_null) == expected


def test_numbers_of_a_mixture_are_compared_and_all_else_violates():
    cells = [1, "1", True, 0.1, Decimal("0.1"), math.inf, None, 2**70, b"1", -5]
    table = from_data(pd.DataFrame({"x": pd.Series(cells, dtype=object)}))

    assert rows(table, "range", minimum=0.1, maximum=2**70) == (2, 3, 6, 7, 9, 10)
    assert rows(table, "range", maximum=0.1, allow_null=True) == (1, 2, 3, 6, 8, 9)


def test_the_largest_integers_of_an_object_column_are_exact():
    cells = [2**64, 2**64 + 1, -(2**70)]
    table = from_data(pd.DataFrame({"x": pd.Series(cells, dtype=object)}))

    assert rows(table, "range", minimum=-(2**70), maximum=2**64) == (2,)
