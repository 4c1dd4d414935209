"""Parquet files are bounded before they are decoded, and damage is noticed."""

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasource_governance.sources.limits import Limits
from datasource_governance.sources.parquet.read import read_parquet
from datasource_governance_tests.sources.refusals import (
    CANARY,
    assert_read_or_refused,
    kinds_and_names,
)

PLAIN = {
    "compression": "none",
    "use_dictionary": False,
    "write_page_checksum": True,
    "write_statistics": False,
}


def parquet(table, **options):
    target = io.BytesIO()
    pq.write_table(table, target, **options)
    return target.getvalue()


def repeated(text, count):
    return pa.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int32), pa.array([text]))


def test_a_table_comes_back_in_the_typed_form():
    table = pa.table(
        {
            "a.b": ["x", None],
            "i": pa.array([1, None], pa.uint8()),
            "l": [["u", "u"], None],
            "s": [{"k": "v", "m": ["q"]}, None],
            "m": pa.array([[("k", "v")], None], pa.map_(pa.string(), pa.string())),
        }
    )

    result = read_parquet(parquet(table))

    assert result.schema.field("a.b").type == pa.large_string()
    assert result.schema.field("s").type.field("m").type.value_type == pa.string()
    assert result.to_pylist() == table.to_pylist()


@pytest.mark.parametrize("rows", [0, 1, 2**20, 2**20 + 1])
def test_rows_keep_their_order_across_row_groups_and_batches(rows):
    numbers = pa.array(np.arange(rows))
    table = pa.table({"i": numbers, "s": numbers.cast(pa.large_string())})

    result = read_parquet(parquet(table, row_group_size=700_000))

    assert result.equals(table)


def test_categories_written_by_pandas_are_decoded():
    target = io.BytesIO()
    pd.DataFrame({"c": pd.Categorical(["a", None])}).to_parquet(target)

    assert read_parquet(target.getvalue()).column("c").to_pylist() == ["a", None]


def test_a_file_without_columns_is_read():
    assert read_parquet(parquet(pa.table({}))).num_columns == 0


def test_one_changed_byte_in_a_page_is_noticed():
    content = parquet(pa.table({"s": [CANARY, "x"]}), **PLAIN)
    place = content.index(CANARY.encode())

    changed = content[:place] + b"Z" + content[place + 1 :]

    assert kinds_and_names(lambda: read_parquet(changed)) == [("malformed_parquet", ())]


@pytest.mark.parametrize("content", [b"", b"PAR1", CANARY.encode(), b"PAR1" * 10])
def test_bytes_that_are_no_parquet_are_refused(content):
    assert kinds_and_names(lambda: read_parquet(content)) == [("malformed_parquet", ())]


@settings(max_examples=50)
@given(st.data())
def test_a_damaged_file_is_read_or_refused_but_never_quoted(data):
    content = bytearray(parquet(pa.table({"s": [CANARY] * 3, "i": [1, 2, 3]}), **PLAIN))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))

    assert_read_or_refused(lambda: read_parquet(bytes(content)))


@pytest.mark.parametrize(
    "column",
    [
        repeated("x" * 1_000_000, 100_000),
        pa.ListArray.from_arrays(
            np.arange(50_001, dtype=np.int32), repeated("x" * 1_000_000, 50_000)
        ),
    ],
)
def test_one_text_repeated_into_gigabytes_is_refused_before_it_is_decoded(column):
    content = parquet(pa.table({"s": column}))
    assert len(content) < 100_000

    assert kinds_and_names(lambda: read_parquet(content)) == [("too_large", ())]


def test_rows_times_width_is_bounded_by_the_header():
    content = parquet(pa.table({"i": pa.array(np.zeros(1001, dtype=np.int64))}))
    validity = 1001 // 8 + 1

    assert read_parquet(content, Limits(table_bytes=8008 + validity)).num_rows == 1001
    assert kinds_and_names(lambda: read_parquet(content, Limits(table_bytes=8007))) == [
        ("too_large", ())
    ]


def test_the_ratio_of_compression_is_bounded_for_large_files_only():
    zeros = pa.table({"s": ["0" * 1000] * 1000})
    content = parquet(zeros, compression="zstd", use_dictionary=False)

    assert read_parquet(content).num_rows == 1000
    assert kinds_and_names(lambda: read_parquet(content, Limits(ratio_free_bytes=1000))) == [
        ("too_large", ())
    ]


def test_columns_are_counted_before_they_are_read():
    content = parquet(pa.table({f"c{place}": [1] for place in range(4)}))

    assert read_parquet(content, Limits(columns=4)).num_columns == 4
    assert kinds_and_names(lambda: read_parquet(content, Limits(columns=3))) == [("too_large", ())]


def test_nesting_is_bounded_at_16():
    array = pa.array([1])
    for _ in range(16):
        array = pa.ListArray.from_arrays([0, 1], array)
    deeper = pa.ListArray.from_arrays([0, 1], array)

    assert read_parquet(parquet(pa.table({"a": array}))).num_rows == 1
    content = parquet(pa.table({"a": deeper}))
    assert kinds_and_names(lambda: read_parquet(content)) == [("too_large", ("a",))]


def test_extension_types_are_refused():
    content = parquet(pa.table({"u": pa.array([bytes(16)], pa.uuid())}))

    assert kinds_and_names(lambda: read_parquet(content)) == [("extension_type", ("u",))]
