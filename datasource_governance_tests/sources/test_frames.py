"""Frames of every library become the same typed table."""

import datetime as dt
import math
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from datasource_governance.errors import InvalidArgumentError
from datasource_governance.sources.frames import from_data
from datasource_governance_tests.sources.refusals import CANARY, kinds_and_names

NOT_UTF8 = pa.Array.from_buffers(
    pa.string(), 1, [None, pa.array([0, 2], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xfe")]
)
BACKWARDS = pa.Array.from_buffers(
    pa.list_(pa.int64()),
    3,
    [None, pa.array([0, 2, 1, 2], pa.int32()).buffers()[1]],
    children=[pa.array([1, 2])],
)
NOON = dt.datetime(2024, 1, 1, 12)  # noqa: DTZ001 - a local time
TAGGED = pa.struct([("kind", pa.large_string()), ("value", pa.large_binary())])


def typed(*values, dtype=object):
    """Type one pandas column; return its Arrow type, mark and values."""
    table = from_data(pd.DataFrame({"v": pd.Series(list(values), dtype=dtype)}))
    field = table.schema.field("v")
    mark = (field.metadata or {}).get(b"datasource_governance")
    return field.type, mark, table.column("v").to_pylist()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, np.int8(2)], pa.int64()),
        ([2**63], pa.uint64()),
        ([1.5, 2], pa.float64()),
        ([2**53, 0.5], pa.float64()),
        ([math.inf], pa.float64()),
        ([Decimal("1.10"), 2], pa.decimal128(3, 2)),
        ([Decimal("1E+3")], pa.decimal128(4, 0)),
        ([Decimal("1.5"), Decimal(10**40)], pa.decimal256(42, 1)),
        ([True, False], pa.bool_()),
        (["a", ""], pa.large_string()),
        ([b"a"], pa.large_binary()),
        ([dt.date(1, 1, 1)], pa.date32()),
        ([dt.time(12)], pa.time64("us")),
        ([NOON], pa.timestamp("us")),
        ([pd.Timestamp("2024-01-01 00:00:00.000000001")], pa.timestamp("ns")),
        ([NOON.replace(tzinfo=dt.UTC)], pa.timestamp("us", "UTC")),
        ([[1], [2.5]], pa.large_list(pa.float64())),
        ([[1], []], pa.large_list(pa.int64())),
        ([{"a": 1}, {"b": "x"}], pa.struct([("a", pa.int64()), ("b", pa.large_string())])),
        ([{}], pa.struct([])),
    ],
)
def test_an_object_column_has_the_one_type_of_its_values(values, expected):
    assert typed(*values, None)[0] == expected
    assert typed(*values, None)[1:] == (None, pa.array([*values, None], expected).to_pylist())


@pytest.mark.parametrize(
    ("values", "mark"),
    [
        ([2**53 + 1, 0.5], b"number"),
        ([Decimal("0.50"), 0.5], b"number"),
        ([Decimal("Infinity")], b"number"),
        ([10**76], b"number"),
        ([1, True, "1"], b"mixed"),
        ([NOON, dt.date(2024, 1, 1)], b"mixed"),
        ([NOON, NOON.replace(tzinfo=dt.UTC)], b"mixed"),
        ([[1], {"a": 1}], b"mixed"),
        ([{str(key): 1} for key in range(257)], b"mixed"),
    ],
)
def test_a_mixture_is_kept_as_kind_and_canonical_bytes(values, mark):
    kind, found, cells = typed(*values, None)

    assert (kind, found) == (TAGGED, mark)
    assert cells[-1] is None
    assert len({(cell["kind"], cell["value"]) for cell in cells[:-1]}) == len(
        values if mark == b"mixed" else set(values)
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**64, pa.decimal128(38, 0)),
        (-(2**63) - 1, pa.decimal128(38, 0)),
        (10**38, pa.decimal256(76, 0)),
        (10**76 - 1, pa.decimal256(76, 0)),
    ],
)
def test_integers_beyond_64_bits_are_marked_decimals(value, expected):
    assert typed(value, None) == (expected, b"integer", [Decimal(value), None])


@pytest.mark.parametrize("values", [[], [None, pd.NA, pd.NaT, math.nan, Decimal("nan")]])
def test_an_object_column_without_a_value_has_no_type(values):
    assert typed(*values) == (pa.null(), None, [None] * len(values))


def test_all_missing_markers_are_null_and_the_empty_text_is_not():
    assert typed("a", None, pd.NA, math.nan, pd.NaT, "")[2] == ["a", None, None, None, None, ""]


def test_empty_dicts_and_lists_are_values():
    assert typed({}, None, {})[2] == [{}, None, {}]
    assert typed([], None, [])[2] == [[], None, []]


def test_members_that_do_not_agree_stay_apart_inside_the_list():
    kind, mark, cells = typed([1, "1"], [None])

    assert (kind, mark) == (pa.large_list(TAGGED), None)
    assert [member["kind"] for member in cells[0]] == ["number", "string"]
    assert cells[1] == [None]


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([1], "int8", pa.int8()),
        ([1.5, None], "float32", pa.float32()),
        ([1.5], "float16", pa.float16()),
        ([True], "bool", pa.bool_()),
        ([1, None], "Int64", pa.int64()),
        ([1.5, None], "Float64", pa.float64()),
        ([True, None], "boolean", pa.bool_()),
        (["a", None], "str", pa.large_string()),
        ([None], "string", pa.large_string()),
        (["9999-12-31"], "datetime64[s]", pa.timestamp("s")),
        ([1], "timedelta64[ns]", pa.duration("ns")),
        ([NOON], "datetime64[us, UTC]", pa.timestamp("us", "UTC")),
        ([1.5, None], "Sparse[float]", pa.float64()),
        ([None], pd.ArrowDtype(pa.date32()), pa.date32()),
        ([None], pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())), pa.large_string()),
        (["a", None], "category", pa.large_string()),
        ([5, None], "category", pa.int64()),
        ([None], pd.CategoricalDtype(pd.Index(["a"])), pa.large_string()),
        ([1, None], pd.CategoricalDtype(pd.Index([1, "x"], dtype=object)), pa.int64()),
    ],
)
def test_a_typed_column_keeps_the_type_it_declares(values, dtype, expected):
    found, _, cells = typed(*values, dtype=dtype)

    assert found == expected
    assert [cell is None for cell in cells] == [value is None for value in values]


def test_rows_are_positions_whatever_the_index_says():
    frame = pd.DataFrame({"v": [1, 2, 3]}, index=[2, 2, 0])

    assert from_data(frame).to_pylist() == [{"v": 1}, {"v": 2}, {"v": 3}]


def test_column_labels_must_be_texts_once_each():
    frame = pd.DataFrame([[1, 2, 3, 4]], columns=[0, "a", "a", " "])

    assert kinds_and_names(lambda: from_data(frame)) == [
        ("column_name_not_text", ("1",)),
        ("blank_column_name", ("4",)),
        ("duplicate_column", ("a",)),
    ]


def test_values_of_no_kind_are_refused_by_field_and_row():
    values = pd.Series([1, {CANARY}, "\ud800" + CANARY, [object()]], dtype=object)

    assert kinds_and_names(lambda: from_data(pd.DataFrame({"v": values}))) == [
        ("unsupported_value", ("v", "2", "3", "4"))
    ]


@pytest.mark.parametrize(
    ("column", "kind"),
    [([1j], "unsupported_type"), (pd.period_range("2024", periods=1), "extension_type")],
)
def test_types_without_an_arrow_equivalent_are_refused_by_field(column, kind):
    assert kinds_and_names(lambda: from_data(pd.DataFrame({"v": column}))) == [(kind, ("v",))]


def test_polars_and_arrow_give_the_table_that_pandas_gives():
    columns = {"i": [1, None], "s": ["a", None], "f": [1.5, math.nan], "b": [True, None]}
    arrow = pa.table(columns)

    expected = from_data(arrow)

    assert expected.column("f").to_pylist() == [1.5, None]
    for data in (
        arrow.to_pandas(types_mapper=pd.ArrowDtype),
        pl.from_arrow(arrow),
        pl.from_arrow(arrow).lazy(),
        arrow.to_batches()[0],
    ):
        assert from_data(data).equals(expected, check_metadata=True)


def test_polars_types_that_arrow_lacks_are_read_by_value():
    frame = pl.DataFrame(
        {"o": [1, "x"], "i": [2**100, 1], "e": ["x", "y"]},
        schema={"o": pl.Object, "i": pl.Int128, "e": pl.Enum(["x", "y"])},
    )

    table = from_data(frame)

    assert [field.metadata for field in table.schema] == [
        {b"datasource_governance": b"mixed"},
        {b"datasource_governance": b"integer"},
        None,
    ]
    assert table.column("i").to_pylist() == [Decimal(2**100), Decimal(1)]


def test_a_lazy_query_that_fails_says_nothing_of_the_values():
    query = pl.LazyFrame({"v": [CANARY]}).select(pl.col("v").str.to_integer())

    assert kinds_and_names(lambda: from_data(query)) == [("unreadable", ())]


def test_every_field_with_bytes_that_its_type_does_not_allow_is_refused_by_name():
    table = pa.table(
        {"good": ["a"] * 3, "text": pa.concat_arrays([NOT_UTF8] * 3), "list": BACKWARDS}
    )

    refused = [("invalid_encoding", ("text",)), ("invalid_encoding", ("list",))]

    assert kinds_and_names(lambda: from_data(table)) == refused
    assert kinds_and_names(lambda: from_data(table.to_batches()[0])) == refused


@pytest.mark.parametrize(
    "take",
    [
        lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
        pl.from_arrow,
        lambda table: pl.from_arrow(table).lazy(),
        lambda table: table.set_column(0, "v", table.column("v").dictionary_encode()),
    ],
    ids=["pandas", "polars", "lazy", "dictionary"],
)
def test_text_that_is_not_utf8_is_refused_in_whatever_took_it(take):
    data = take(pa.table({"v": NOT_UTF8}))

    assert kinds_and_names(lambda: from_data(data)) == [("invalid_encoding", ("v",))]


def test_other_data_is_not_accepted():
    with pytest.raises(InvalidArgumentError):
        from_data([{"v": CANARY}])


def test_no_library_is_loaded_to_find_that_data_is_not_its_own():
    program = (
        "import sys, pyarrow as pa; from datasource_governance.sources.frames import from_data; "
        "from_data(pa.table({'a': [1]})); sys.exit('polars' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
