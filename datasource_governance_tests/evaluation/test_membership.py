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

BIG = 1378774140726870528


@pytest.mark.parametrize(
    ("column", "codes", "expected"),
    [
        (pa.array([1, 2]), ["1", "2"], (1, 2)),
        (pa.array([1, 0]), [True, False], (1, 2)),
        (pa.array([True, False]), [1, 0], (1, 2)),
        (pa.array([True, False]), [True], (2,)),
        (pa.array(["1", "true"]), [1, True], (1, 2)),
        (pa.array([27.0, 1.5]), [27], (2,)),
        (pa.array([1, 2]), [1.0, 1.5], (2,)),
        (pa.array([BIG, BIG + 1]), [BIG], (2,)),
        (pa.array([2**64 - 1], pa.uint64()), [2**64 - 1], ()),
        (pa.array([1], pa.int8()), [2**64, 300, 1], ()),
        (pa.array([float(2**53)]), [2**53 + 1], (1,)),
        (pa.array([-0.0, 0.0]), [0], ()),
        (pa.array([math.inf]), [10**300], (1,)),
        (pa.array([0.1]), [0.1], ()),
        (pa.array([np.float32(0.1)]), [0.1], ()),
        (pa.array([Decimal("0.07"), Decimal("0.70")]), [0.07], (2,)),
        (pa.array([Decimal("1.00")], pa.decimal128(4, 2)), [1], ()),
        (pa.array([Decimal("1.00")], pa.decimal256(40, 2)), [1, 100000000], ()),
        (pa.array([Decimal("9.9")], pa.decimal32(2, 1)), [9.9, 99], ()),
        (pa.array([Decimal("1.00")], pa.decimal128(3, 2)), [1000, 1.005], (1,)),
        (pa.array(["new", "New", "new ", "é", "e\u0301", ""]), ["new", "é"], (2, 3, 5, 6)),
        (pa.array([dt.date(2024, 1, 1)]), ["2024-01-01"], (1,)),
        (pa.array([b"a"]), ["a"], (1,)),
        (pa.array([["a"]]), ["a"], (1,)),
        (pa.array([{"a": 1}]), [1], (1,)),
    ],
)
def test_codes_match_by_kind_and_value(column, codes, expected):
    assert rows(column, "referential", allowed_values=codes) == expected


def test_the_reason_is_that_a_value_is_not_allowed():
    assert judge(pa.array([1]), "referential", field="x", allowed_values=[2]).reason is (
        Reason.NOT_ALLOWED
    )


@pytest.mark.parametrize(
    ("column", "allow_null", "expected"),
    [
        (pa.array(["a", None, "z"]), False, (2, 3)),
        (pa.array(["a", None, "z"]), True, (3,)),
        (pa.array([math.nan]), False, (1,)),
        (pa.array([math.nan]), True, ()),
        (pa.nulls(1), False, (1,)),
        (pa.nulls(1), True, ()),
        (pa.array([[1], None]), True, (1,)),
    ],
)
def test_a_null_is_no_code_unless_the_rule_allows_it(column, allow_null, expected):
    assert rows(column, "referential", allowed_values=["a"], allow_null=allow_null) == expected


def test_cells_of_a_mixture_match_codes_of_their_own_kind():
    cells = [1, 1.0, Decimal("1.00"), True, "1", 0.1, Decimal("0.1"), None, b"1", dt.date(1, 1, 1)]
    table = from_data(pd.DataFrame({"x": pd.Series(cells, dtype=object)}))

    assert rows(table, "referential", allowed_values=[1]) == (4, 5, 6, 7, 8, 9, 10)
    assert rows(table, "referential", allowed_values=[0.1, "1", True], allow_null=True) == (
        (1, 2, 3, 9, 10)
    )


def test_ten_thousand_codes_are_looked_up():
    column = pa.array([0, 9_999, 10_000])

    assert rows(column, "referential", allowed_values=list(range(10_000))) == (3,)
