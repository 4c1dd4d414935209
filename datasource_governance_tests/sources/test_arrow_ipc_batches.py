"""Arrow IPC in batches is Arrow IPC read at once: the same rows, types, marks and refusals."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasource_governance.sources.arrow_ipc import (
    ArrowBatches,
    decoded_arrow_bytes,
    read_arrow,
)
from datasource_governance.sources.limits import Limits
from datasource_governance_tests.evaluation.test_against_reference import TYPED
from datasource_governance_tests.sources.parquet.test_batches import MARK, joined, marked
from datasource_governance_tests.sources.refusals import (
    CANARY,
    assert_read_or_refused,
    kinds_and_names,
)
from datasource_governance_tests.sources.test_arrow_ipc import FORMS, ipc


def written(folder, content):
    path = folder / "rows.arrow"
    path.write_bytes(content)
    return path


def assert_same(path, batch_bytes=1000):
    batches = ArrowBatches(path, batch_bytes=batch_bytes)
    whole = read_arrow(path)

    assert batches.schema.equals(whole.schema, check_metadata=True)
    for _ in range(2):
        assert repr(joined(batches).to_pylist()) == repr(whole.to_pylist())
    return batches


@pytest.mark.parametrize(("form", "compression"), FORMS)
def test_every_type_comes_back_in_batches_as_at_once(tmp_path, form, compression):
    table = pa.table(
        {
            kind: pa.array([None, *[pool[place % len(pool)] for place in range(99)]], arrow_type)
            for kind, (arrow_type, _, _, pool) in TYPED.items()
        }
    )

    for batch_rows in (7, 100):
        assert_same(written(tmp_path, ipc(table, form, compression, batch_rows)), 1000)


@pytest.mark.parametrize("form", ["file", "stream"])
def test_dictionaries_that_change_and_nested_texts_come_back_in_batches_as_at_once(tmp_path, form):
    texts = [f"text {place}" for place in range(50)]
    table = pa.table(
        {
            "d": pa.array(texts).dictionary_encode(),
            "v": pa.array(texts, pa.string_view()),
            "l": [[{"k": text}] for text in texts],
            "r": pa.RunEndEncodedArray.from_arrays([20, 50], ["x", "y"]),
        }
    )

    assert_same(written(tmp_path, ipc(table, form, batch_rows=9)), 100)


@pytest.mark.parametrize("form", ["file", "stream"])
def test_a_file_without_rows_and_one_without_columns_have_no_rows_in_batches(tmp_path, form):
    assert_same(written(tmp_path, ipc(pa.table({"s": pa.array([], pa.string())}), form)))
    assert_same(written(tmp_path, ipc(pa.table({}), form)))


@settings(max_examples=40)
@given(
    st.lists(st.one_of(st.none(), st.text(max_size=4), st.just("w" * 300)), max_size=60),
    st.integers(1, 60),
    st.integers(1, 500),
)
def test_no_division_into_batches_changes_the_rows(tmp_path_factory, texts, rows, batch_bytes):
    column = pa.array(texts, pa.string())
    table = pa.table({"s": column, "d": column.dictionary_encode()})

    assert_same(written(tmp_path_factory.mktemp("rows"), ipc(table, batch_rows=rows)), batch_bytes)


def test_a_record_batch_of_any_size_is_divided_into_batches_of_about_the_bytes_asked_for(tmp_path):
    levels = pa.array(["x" * 1000, "y"])
    bits = np.zeros(10_000, dtype=np.int32)
    bits[5000:] = 1
    table = pa.table({"s": pa.DictionaryArray.from_arrays(bits, levels)})

    sizes = [batch.nbytes for batch in assert_same(written(tmp_path, ipc(table)), 100_000)]

    assert len(sizes) > 25
    assert max(sizes) < 250_000


@pytest.mark.parametrize(("last", "kept"), [(b"2", True), (b"02", False)])
def test_a_mark_is_kept_in_every_batch_or_in_none(tmp_path, last, kept):
    cells = [*[{"kind": "number", "value": b"1"}] * 50, {"kind": "number", "value": last}]
    table = pa.table({"s": ["x"] * 51}).append_column(
        marked("n", cells, b"number").field(0), marked("n", cells, b"number").column(0)
    )

    batches = assert_same(written(tmp_path, ipc(table, batch_rows=7)), 100)

    assert batches.schema.field("n").metadata == ({MARK: b"number"} if kept else None)


@pytest.mark.parametrize(
    "table",
    [
        lambda: pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]),
        lambda: pa.table({"u": pa.array([bytes(16)], pa.uuid())}),
        lambda: pa.table({"n": pa.nulls(2**31 - 1)}),  # which takes a second and much memory
    ],
    ids=["one name twice", "an unknown type", "too many rows"],
)
def test_what_is_refused_at_once_is_refused_when_batches_are_made(tmp_path, table):
    path = written(tmp_path, ipc(table()))

    assert kinds_and_names(lambda: ArrowBatches(path)) == kinds_and_names(lambda: read_arrow(path))


def test_one_text_repeated_into_gigabytes_is_refused_before_it_is_decoded(tmp_path):
    levels = pa.array(["x" * 1_000_000])
    column = pa.DictionaryArray.from_arrays(np.zeros(100_000, dtype=np.int32), levels)
    path = written(tmp_path, ipc(pa.table({"s": column}), compression="zstd"))

    batches = ArrowBatches(path)

    assert kinds_and_names(lambda: list(batches)) == [("too_large", ())]


def test_a_file_may_be_larger_than_the_limits_on_memory_when_it_is_read_in_batches(tmp_path):
    table = pa.table({"i": np.random.default_rng(1).integers(0, 2**62, 10_000)})
    path = written(tmp_path, ipc(table))
    limits = Limits(file_bytes=1000, table_bytes=1000)

    assert joined(ArrowBatches(path, limits)).equals(table)
    assert kinds_and_names(lambda: read_arrow(path, limits)) == [("too_large", ())]


@pytest.mark.parametrize("size", [-1, -(2**31)])
def test_a_negative_size_of_a_header_is_refused(size):
    content = b"\xff\xff\xff\xff" + size.to_bytes(4, "little", signed=True) + bytes(64)

    assert kinds_and_names(lambda: read_arrow(content)) == [("malformed_arrow", ())]


def test_a_file_that_changed_since_is_refused(tmp_path):
    path = written(tmp_path, ipc(pa.table({"s": [CANARY]})))
    batches = ArrowBatches(path)

    written(tmp_path, ipc(pa.table({"s": [CANARY, CANARY]})))

    assert kinds_and_names(lambda: list(batches)) == [("unreadable", ())]


def test_a_file_that_is_cut_short_while_it_is_read_is_refused_as_changed(tmp_path):
    table = pa.table({"s": [f"{CANARY}{place}" for place in range(10_000)]})
    path = written(tmp_path, ipc(table, batch_rows=100))
    rows = iter(ArrowBatches(path, batch_bytes=1000))
    next(rows)

    with path.open("r+b") as file:
        file.truncate(100)

    assert kinds_and_names(lambda: list(rows)) == [("unreadable", ())]


@settings(max_examples=60)
@given(st.data(), st.sampled_from(FORMS))
def test_a_damaged_file_is_read_or_refused_in_batches_but_never_quoted(
    tmp_path_factory, data, form
):
    content = bytearray(ipc(pa.table({"s": [CANARY] * 3, "i": [1, 2, 3]}), *form))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    path = written(tmp_path_factory.mktemp("damaged"), bytes(content))

    assert_read_or_refused(lambda: list(ArrowBatches(path, batch_bytes=10)))
    assert_read_or_refused(lambda: decoded_arrow_bytes(path))


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_the_size_of_the_table_is_what_the_headers_promise(tmp_path, compression):
    table = pa.table({"i": range(10_000)})

    size = decoded_arrow_bytes(written(tmp_path, ipc(table, compression=compression)))

    # A byte for each row as the price of a row.
    assert size == table.nbytes + 10_000
