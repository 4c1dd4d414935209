"""Arrow IPC files and streams are bounded by the headers of their batches."""

import io

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasource_governance.sources.arrow_ipc import read_arrow
from datasource_governance.sources.frames import from_data
from datasource_governance.sources.limits import Limits
from datasource_governance_tests.sources.refusals import (
    CANARY,
    assert_read_or_refused,
    kinds_and_names,
)

FORMS = [
    (form, compression) for form in ("file", "stream") for compression in (None, "zstd", "lz4")
]


def ipc(table, form="stream", compression=None, batch_rows=None):
    target = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with getattr(pa.ipc, f"new_{form}")(target, table.schema, options=options) as writer:
        writer.write_table(table, batch_rows)
    return target.getvalue()


@pytest.mark.parametrize(("form", "compression"), FORMS)
def test_files_and_streams_come_back_in_the_typed_form(form, compression):
    table = pa.table(
        {
            "i": [1, None, 3],
            "s": ["x", None, "z" * 100],
            "d": pa.array(["u", "u", None]).dictionary_encode(),
            "l": [[{"k": "v"}], None, []],
            "n": pa.nulls(3),
            "b": pa.array([b"x", None, b"y"], pa.binary_view()),
        }
    )

    result = read_arrow(ipc(table, form, compression, batch_rows=2))

    assert result.schema.field("d").type == pa.large_string()
    assert result.to_pylist() == table.to_pylist()


def test_marks_survive_storing_and_reading():
    table = from_data(pa.table({"a": [1]})).append_column(
        pa.field("m", pa.decimal128(38, 0), metadata={b"datasource_governance": b"integer"}),
        pa.array([1], pa.decimal128(38, 0)),
    )

    assert read_arrow(ipc(table, compression="zstd")).equals(table, check_metadata=True)


@pytest.mark.parametrize("content", [b"", b"ARROW1\0\0", b"FEA1" + CANARY.encode(), b"\xff" * 64])
def test_bytes_that_are_no_arrow_are_refused(content):
    assert kinds_and_names(lambda: read_arrow(content)) == [("malformed_arrow", ())]


@settings(max_examples=50)
@given(st.data())
def test_a_damaged_file_is_read_or_refused_but_never_quoted(data):
    content = bytearray(ipc(pa.table({"s": [CANARY] * 3, "i": [1, 2, 3]}), "file", "zstd"))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))

    assert_read_or_refused(lambda: read_arrow(bytes(content)))


def test_text_that_is_not_utf8_is_refused():
    text = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff")]
    )

    assert kinds_and_names(lambda: read_arrow(ipc(pa.table({"s": text})))) == [
        ("malformed_arrow", ())
    ]


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_the_size_of_all_buffers_is_bounded_exactly(compression):
    # 100 values of 8 bytes, and one byte more for each as the price of a row.
    content = ipc(pa.table({"i": np.arange(100)}), compression=compression)

    assert read_arrow(content, Limits(table_bytes=900 + 8)).num_rows == 100
    assert kinds_and_names(lambda: read_arrow(content, Limits(table_bytes=899))) == [
        ("too_large", ())
    ]


def test_one_text_repeated_into_gigabytes_is_refused_before_it_is_decoded():
    levels = pa.array(["x" * 1_000_000])
    column = pa.DictionaryArray.from_arrays(np.zeros(100_000, dtype=np.int32), levels)

    assert kinds_and_names(
        lambda: read_arrow(ipc(pa.table({"s": column}), compression="zstd"))
    ) == [("too_large", ())]


def test_two_thousand_million_nulls_in_no_bytes_are_refused():
    content = ipc(pa.table({"n": pa.nulls(2**31 - 1)}))

    assert kinds_and_names(lambda: read_arrow(content)) == [("too_large", ())]


def test_columns_and_nesting_are_bounded():
    table = pa.table({"a": [[1]], "b": [2]})

    problems = kinds_and_names(lambda: read_arrow(ipc(table), Limits(columns=1, nesting=0)))

    assert problems == [("too_large", ()), ("too_large", ("a",))]


def test_extension_types_are_refused():
    content = ipc(pa.table({"u": pa.array([bytes(16)], pa.uuid())}))

    assert kinds_and_names(lambda: read_arrow(content)) == [("extension_type", ("u",))]
