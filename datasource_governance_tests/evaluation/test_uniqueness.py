import datetime as dt
import math
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

from datasource_governance.domain.validation import Reason
from datasource_governance.sources.frames import from_data
from datasource_governance_tests.evaluation.judging import judge, rows

CLASHING = pa.StructArray.from_arrays([pa.array([1, 1, 1]), pa.array([2, 3, 2])], ["^.*$", "^.*$"])
RUNS = pa.ListArray.from_arrays(
    pa.array([0, 1, 2, 4], pa.int32()),
    pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int32()), pa.array(["a", "b"])),
)
UNDER_NULL = pa.StructArray.from_arrays(
    [pa.array([1, 2, 1])], ["a"], mask=pa.array([True, True, False])
)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, 2, 1, 1]), (1, 3, 4)),
        (pa.array([2**53, 2**53 + 1, None]), ()),
        (pa.array([2**64 - 1, 2**64 - 2], pa.uint64()), ()),
        (pa.array(["a", "A", "a ", "é", "e\u0301"]), ()),
        (pa.array(["", None, ""]), (1, 3)),
        (pa.array([True, False, True]), (1, 3)),
        (pa.array([0.0, -0.0, 1.0]), (1, 2)),
        (pa.array([-0.0, 0.0], pa.float32()), (1, 2)),
        (pa.array([0.0, -0.0], pa.float16()), (1, 2)),
        (pa.array([math.inf, -math.inf, math.inf]), (1, 3)),
        (pa.array([Decimal("1.500"), Decimal("1.5"), Decimal("1.501")]), (1, 2)),
        (pa.array([Decimal(1), Decimal(1)], pa.decimal256(60, 2)), (1, 2)),
        (pa.array([Decimal(1), Decimal(1)], pa.decimal32(5, 2)), (1, 2)),
        (pa.array([b"a", b"", b"a"]), (1, 3)),
        (pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1, 1, 1)]), (1, 3)),
        (pa.array([dt.date(1, 1, 1), dt.date(1, 1, 2)], pa.date64()), ()),
        (pa.array([2**62, 2**62 + 1, 2**62], pa.timestamp("s")), (1, 3)),
        (pa.array([1, 2, 1], pa.timestamp("ns", "Europe/Berlin")), (1, 3)),
        (pa.array([1, 2, 1], pa.time32("ms")), (1, 3)),
        (pa.array([1, 1], pa.duration("us")), (1, 2)),
        (pa.array([(1, 2, 3), (1, 2, 3)], pa.month_day_nano_interval()), (1, 2)),
        (pa.nulls(3), (1, 2, 3)),
        (pa.nulls(1), ()),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_every_row_of_a_duplicate_group_is_affected(column, expected):
    assert rows(column, "unique") == expected


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([[1], [1], [1, 1], [], [], None]), (1, 2, 4, 5)),
        (pa.array([[1, None], [1], [None, 1]]), ()),
        (pa.array([[0.0], [-0.0], [math.nan], [math.nan], [None]]), (1, 2, 3, 4)),
        (pa.array([[["a"], []], [["a"]], [["a"], []]]), (1, 3)),
        (pa.array([["ab", "c"], ["a", "bc"]]), ()),
        (pa.array([[1, 2], [1, 2], None], pa.list_(pa.int64(), 2)), (1, 2)),
        (pa.array([{"a": 1, "b": None}, {"a": 1, "b": None}, {"a": 1, "b": "x"}, None]), (1, 2)),
        (pa.array([{"a": [{"b": 1}]}, {"a": [{"b": 2}]}, {"a": [{"b": 1}]}]), (1, 3)),
        (pa.array([[("k", 1)], [("k", 2)], [("k", 1)]], pa.map_(pa.string(), pa.int8())), (1, 3)),
        (pa.array([["a"], ["a"]], pa.list_(pa.dictionary(pa.int8(), pa.string()))), (1, 2)),
        (CLASHING, (1, 3)),
        (RUNS, (1, 2)),
        (UNDER_NULL, (1, 2)),
        (pa.array([{}, {}], pa.struct([])), (1, 2)),
        (pa.array([[None], [None]], pa.list_(pa.null())), (1, 2)),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_nested_values_are_compared_by_content(column, expected):
    assert rows(column, "unique") == expected
    shifted = pa.concat_arrays([column.slice(0, 1), column]).slice(1)
    assert rows(shifted, "unique") == expected


def test_kinds_of_a_mixture_are_never_equal_and_numbers_are_equal_by_value():
    cells = [1, 1.0, Decimal("1.00"), True, "1", b"1", None, Decimal("0.1"), 0.1, "0.1"]
    table = from_data(pd.DataFrame({"x": pd.Series(cells, dtype=object)}))

    assert rows(table, "unique") == (1, 2, 3)


@pytest.mark.parametrize(("ignore_nulls", "expected"), [(False, (2, 4)), (True, ())])
def test_nulls_share_a_key_unless_they_are_ignored(ignore_nulls, expected):
    assert rows(pa.array(["a", None, "b", None]), "unique", ignore_nulls=ignore_nulls) == expected


@pytest.mark.parametrize(("ignore_nulls", "expected"), [(False, (1, 2, 3, 4)), (True, (1, 2))])
def test_a_composite_key_with_one_null_part_is_left_out_where_nulls_are_ignored(
    ignore_nulls, expected
):
    table = pa.table({"x": ["a", "a", "b", "b"], "y": [1, 1, None, None]})

    found = judge(table, "unique", fields=["x", "y"], ignore_nulls=ignore_nulls)

    assert (found.reason, found.rows) == (Reason.DUPLICATE, expected)


def test_parts_of_a_composite_key_are_not_joined():
    table = pa.table({"x": ["ab", "a"], "y": ["c", "bc"]})

    assert judge(table, "unique", fields=["x", "y"]).affected == 0


def test_field_names_are_no_patterns():
    table = pa.table({"^.*$": [1, 1], "*": [1, 2], "a": [1, 2]})

    assert judge(table, "unique", fields=["*", "a"]).affected == 0
    assert judge(table, "unique", fields=["^.*$"]).affected == 2


def test_keys_in_many_chunks_are_one_column():
    column = pa.chunked_array([[1, 2], [], [2, 3], [1]], pa.int64())

    assert rows(column, "unique") == (1, 2, 3, 5)
