"""A key is equal exactly where cells are equal by content, whatever the layout of their column."""

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasource_governance.evaluation.keys import key_of

LEAVES = [
    (pa.int8(), [0, 1, -1]),
    (pa.uint64(), [0, 2**64 - 1]),
    (pa.float64(), [0.0, -0.0, math.nan, -math.nan, 1.5]),
    (pa.float16(), [np.float16(0.0), np.float16(-0.0), np.float16(1.5)]),
    (pa.bool_(), [True, False]),
    (pa.string(), ["", "\0", "a", "ab", "b"]),
    (pa.string_view(), ["", "a", "a text that is too long for a view"]),
    (pa.large_binary(), [b"", b"\0", b"\1\0\0\0\0\0\0\0\0"]),
    (pa.binary(2), [b"\0\0", b"\0\1"]),
    (pa.date32(), [dt.date(1, 1, 1), dt.date(1970, 1, 1)]),
    (pa.time64("us"), [dt.time(0), dt.time(12)]),
    (pa.duration("s"), [dt.timedelta(0), dt.timedelta(1)]),
    (pa.decimal128(5, 2), [Decimal("1.50"), Decimal("1.51")]),
    (pa.decimal256(60, 0), [Decimal(10) ** 50, Decimal(1)]),
]
ENCODED = (pa.dictionary(pa.int8(), pa.string()), ["", "a", "b"])
"""Only inside of cells: the typed form has no dictionaries at the top."""


def with_nulls(pool):
    return st.one_of(st.none(), st.sampled_from(pool))


def nested(inner):
    """Draw types whose cells hold cells of other types, with what their cells are drawn from."""
    list_types = (pa.list_, pa.large_list, pa.list_view, pa.large_list_view)
    lists = st.tuples(st.sampled_from(list_types), inner).map(
        lambda drawn: (drawn[0](drawn[1][0]), optional(st.lists(drawn[1][1], max_size=3)))
    )
    pairs = inner.map(
        lambda one: (pa.list_(one[0], 2), optional(st.lists(one[1], min_size=2, max_size=2)))
    )
    maps = inner.map(
        lambda one: (
            pa.map_(pa.string(), one[0]),
            optional(st.lists(st.tuples(st.sampled_from(["", "a"]), one[1]), max_size=2)),
        )
    )
    structs = st.lists(inner, max_size=3).map(
        lambda parts: (
            pa.struct([(str(place), kind) for place, (kind, _) in enumerate(parts)]),
            optional(
                st.fixed_dictionaries({str(place): cell for place, (_, cell) in enumerate(parts)})
            ),
        )
    )
    return st.one_of(lists, pairs, maps, structs)


def optional(cells):
    return st.one_of(st.none(), cells)


INNERMOST = st.sampled_from([*LEAVES, ENCODED]).map(lambda one: (one[0], with_nulls(one[1])))
FLAT = st.sampled_from([*LEAVES, (pa.null(), [None])]).map(lambda one: (one[0], with_nulls(one[1])))
NESTED = nested(st.recursive(INNERMOST, nested, max_leaves=4))


def two_columns(types):
    """Draw a type and the cells of two columns of it."""
    return types.flatmap(
        lambda one: st.tuples(
            st.just(one[0]), st.lists(one[1], max_size=6), st.lists(one[1], max_size=6)
        )
    )


def canonical(cell):
    """Return what equal cells have in common, and no two different ones of one type."""
    if isinstance(cell, dict):
        return ("struct", *((name, canonical(part)) for name, part in sorted(cell.items())))
    if isinstance(cell, (list, tuple)):
        return ("list", *map(canonical, cell))
    if isinstance(cell, (float, np.floating)) and math.isnan(cell):
        return "nan"
    return cell


def cut(cells, kind, place):
    """Return a column in two chunks, of which each is a slice from the middle of another array."""
    chunks = [cells[:place], cells[place:]]
    arrays = [
        pa.array([*cells[:1], *chunk, *cells[:1]], kind, from_pandas=False) for chunk in chunks
    ]
    starts = min(len(cells), 1)
    return pa.chunked_array(
        [array.slice(starts, len(chunk)) for array, chunk in zip(arrays, chunks, strict=True)], kind
    )


def assert_keys_are_equal_where_cells_are(kind, cells, others, place):
    keys = key_of(cut(cells, kind, place))
    other_keys = key_of(pa.chunked_array([pa.array(others, kind, from_pandas=False)], kind))

    assert keys.dtype == other_keys.dtype
    assert (len(keys), len(other_keys)) == (len(cells), len(others))
    for cell, key in zip(cells, keys, strict=True):
        assert (key is None) == (cell is None)
        for other, other_key in zip(others, other_keys, strict=True):
            equal = canonical(cell) == canonical(other)
            assert (canonical(key) == canonical(other_key)) == equal, (cell, other)


@settings(max_examples=300)
@given(two_columns(NESTED), st.integers(0, 6))
def test_nested_cells_of_two_columns_have_one_key_exactly_where_their_content_is_equal(
    drawn, place
):
    assert_keys_are_equal_where_cells_are(*drawn, place)


@settings(max_examples=150)
@given(two_columns(FLAT), st.integers(0, 6))
def test_flat_cells_of_two_columns_have_one_key_exactly_where_they_are_equal(drawn, place):
    assert_keys_are_equal_where_cells_are(*drawn, place)


def distinct(array):
    """Return for every cell which number its key has, in order of appearance, or None."""
    numbers = {}
    return [
        None if key is None else numbers.setdefault(key, len(numbers))
        for key in key_of(pa.chunked_array([array]))
    ]


RUNS = pa.RunEndEncodedArray.from_arrays(
    pa.array([2, 4, 5], pa.int32()), pa.array(["a", None, "a"])
)
MASK = pa.array([True, False, False, True])
HIDDEN = [
    pa.ListArray.from_arrays(
        pa.array([0, 2, 3, 4, 6], pa.int32()), pa.array([1, 2, 3, 3, 4, 5]), mask=MASK
    ),
    pa.FixedSizeListArray.from_arrays(pa.array([1, 2, 3, 4, 3, 4, 5, 6]), 2, mask=MASK),
    pa.StructArray.from_arrays([pa.array([1, 2, 2, 3])], ["a"], mask=MASK),
]


@pytest.mark.parametrize("column", HIDDEN, ids=lambda column: str(column.type))
def test_what_lies_under_a_null_is_part_of_no_key(column):
    assert distinct(column) == [None, 0, 0, None]
    inside = pa.StructArray.from_arrays([column], ["inside"])
    assert distinct(inside) == [0, 1, 1, 0]


def test_runs_are_cells_like_others():
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4, 5], pa.int32()), RUNS)

    assert distinct(lists) == [0, 0, 1, 1, 0]


def test_a_null_inside_and_no_cell_at_all_are_different_content():
    kind = pa.list_(pa.struct([("a", pa.string())]))
    cells = [[], [None], [{"a": None}], [{"a": ""}], None, [None, None]]

    assert distinct(pa.array(cells, kind)) == [0, 1, 2, 3, None, 4]


def test_cells_of_the_null_type_differ_by_their_number():
    kind = pa.list_(pa.struct([("a", pa.null())]))
    cells = [[], [None], [{"a": None}], [None], [None, None], None]

    assert distinct(pa.array(cells, kind)) == [0, 1, 2, 1, 3, None]


def test_bytes_that_look_like_two_cells_are_one():
    framed = "\1" + "\1" + "\0" * 7 + "b"
    cells = [["a", "b"], ["a" + framed], ["ab"], ["a", "", "b"]]

    assert distinct(pa.array(cells)) == [0, 1, 2, 3]


@pytest.mark.parametrize("rows", [0, 3])
def test_a_column_of_the_null_type_has_a_null_key_in_every_row(rows):
    assert key_of(pa.chunked_array([pa.nulls(rows)])).to_list() == [None] * rows


@pytest.mark.parametrize("kind", [pa.int8(), pa.large_string(), pa.null(), pa.list_(pa.int8())])
def test_a_column_without_chunks_has_no_keys(kind):
    empty = key_of(pa.chunked_array([], kind))

    assert len(empty) == 0
    assert empty.dtype == key_of(pa.chunked_array([pa.nulls(1, kind)])).dtype
