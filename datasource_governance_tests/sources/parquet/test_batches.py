"""Parquet in batches is Parquet read at once: the same rows, types, marks and refusals."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasource_governance.sources.limits import Limits
from datasource_governance.sources.parquet.read import (
    ParquetBatches,
    decoded_parquet_bytes,
    read_parquet,
)
from datasource_governance_tests.evaluation.test_against_reference import TYPED
from datasource_governance_tests.sources.parquet.test_read import parquet, repeated
from datasource_governance_tests.sources.refusals import (
    CANARY,
    assert_read_or_refused,
    kinds_and_names,
)

MARK = b"datasource_governance"
TAGGED = pa.struct([("kind", pa.large_string()), ("value", pa.large_binary())])


def written(folder, content):
    path = folder / "rows.parquet"
    path.write_bytes(content)
    return path


def joined(batches):
    tables = list(batches)
    assert all(table.schema.equals(batches.schema, check_metadata=True) for table in tables)
    return pa.concat_tables([batches.schema.empty_table(), *tables])


def assert_same(path, batch_bytes=1000):
    batches = ParquetBatches(path, batch_bytes=batch_bytes)
    whole = read_parquet(path)

    assert batches.schema.equals(whole.schema, check_metadata=True)
    for _ in range(2):
        # As text, in which NaN within a list is equal to itself, and negative zero is not zero.
        assert repr(joined(batches).to_pylist()) == repr(whole.to_pylist())
    return batches


def marked(name, cells, mark, kind=TAGGED):
    field = pa.field(name, kind, metadata={MARK: mark})
    return pa.table([pa.array(cells, kind)], schema=pa.schema([field]))


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"data_page_version": "2.0"}])
@pytest.mark.parametrize("kind", TYPED)
def test_every_type_comes_back_in_batches_as_at_once(tmp_path, kind, options):
    arrow_type, _, _, pool = TYPED[kind]
    column = pa.array([None, *pool] * 100, arrow_type)
    content = parquet(pa.table({"c": column}), row_group_size=70, data_page_size=100, **options)

    assert_same(written(tmp_path, content))


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
def test_nested_texts_and_every_codec_come_back_in_batches_as_at_once(tmp_path, codec):
    texts = ["short", "", "x" * 300, None, "nul \0\0\0 within"] * 50
    table = pa.table(
        {
            "s": texts,
            "l": [[text, None] if place % 3 else [] for place, text in enumerate(texts)],
            "o": [{"a": text, "b": [text]} for text in texts],
            "m": pa.array([[("k", text)] for text in texts], pa.map_(pa.string(), pa.string())),
            "c": pa.array(texts).dictionary_encode(),
            "b": pa.array([None if text is None else text.encode() for text in texts]),
            "o.a": texts,
        }
    )

    assert_same(written(tmp_path, parquet(table, row_group_size=40, compression=codec)))


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"])
def test_every_encoding_of_texts_comes_back_in_batches_as_at_once(tmp_path, encoding):
    table = pa.table({"s": [f"a common beginning {place}" for place in range(1000)]})
    options = {"use_dictionary": False, "column_encoding": {"s": encoding}}

    assert_same(written(tmp_path, parquet(table, data_page_size=500, **options)))


def test_a_file_without_rows_and_one_without_columns_have_no_rows_in_batches(tmp_path):
    assert_same(written(tmp_path, parquet(pa.table({"s": pa.array([], pa.string())}))))
    assert_same(written(tmp_path, parquet(pa.table({}))))


@settings(max_examples=40)
@given(
    st.lists(st.one_of(st.none(), st.text(max_size=4), st.just("w" * 300)), max_size=60),
    st.integers(1, 60),
    st.integers(1, 500),
    st.sampled_from(["1.0", "2.0"]),
)
def test_no_division_into_groups_pages_and_batches_changes_the_rows(
    tmp_path_factory, texts, group_rows, batch_bytes, version
):
    column = pa.array(texts, pa.string())
    content = parquet(
        pa.table({"s": column, "i": pa.array(range(len(texts)), pa.int64())}),
        row_group_size=group_rows,
        data_page_version=version,
        data_page_size=64,
        dictionary_pagesize_limit=100,
    )

    assert_same(written(tmp_path_factory.mktemp("rows"), content), batch_bytes)


@pytest.mark.parametrize("use_dictionary", [True, False])
def test_a_batch_has_about_the_bytes_that_were_asked_for_in_a_row_group_of_any_size(
    tmp_path, use_dictionary
):
    texts = pa.array([f"{place % 997:0100d}" for place in range(100_000)])
    content = parquet(pa.table({"s": texts}), row_group_size=100_000, use_dictionary=use_dictionary)

    sizes = [batch.nbytes for batch in assert_same(written(tmp_path, content), batch_bytes=100_000)]

    assert len(sizes) > 50
    assert max(sizes) < 250_000


def test_one_long_text_that_is_often_repeated_makes_batches_of_few_rows(tmp_path):
    path = written(tmp_path, parquet(pa.table({"s": repeated("x" * 100_000, 1000)})))

    rows = [batch.num_rows for batch in ParquetBatches(path, batch_bytes=1_000_000)]

    assert sum(rows) == 1000
    assert max(rows) < 20


def test_a_mark_is_kept_when_all_rows_bear_it_out(tmp_path):
    cells = [{"kind": "number", "value": b"1"}, None] * 50
    path = written(tmp_path, parquet(marked("n", cells, b"number"), row_group_size=7))

    assert assert_same(path, 100).schema.field("n").metadata == {MARK: b"number"}


def test_a_mark_that_one_row_belies_is_dropped_in_every_batch(tmp_path):
    cells = [*[{"kind": "number", "value": b"1"}] * 50, {"kind": "number", "value": b"01"}]
    table = marked("n", cells, b"number").append_column("s", pa.array(["x"] * 51))
    path = written(tmp_path, parquet(table, row_group_size=7))

    assert assert_same(path, 100).schema.field("n").metadata is None


def test_huge_integers_keep_their_mark(tmp_path):
    table = marked("i", [2**64, None], b"integer", pa.decimal128(38, 0))

    assert assert_same(written(tmp_path, parquet(table))).schema.field("i").metadata


@pytest.mark.parametrize(
    "table",
    [
        pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]),
        pa.table({" ": [1]}),
        pa.table({"u": pa.array([bytes(16)], pa.uuid())}),
        pa.table({"s": repeated("x" * 1_000_000, 100_000)}),
    ],
)
def test_what_is_refused_at_once_is_refused_when_batches_are_made(tmp_path, table):
    path = written(tmp_path, parquet(table))

    assert kinds_and_names(lambda: ParquetBatches(path)) == kinds_and_names(
        lambda: read_parquet(path)
    )


def test_columns_and_nesting_are_bounded_when_batches_are_made(tmp_path):
    path = written(tmp_path, parquet(pa.table({"a": [[1]], "b": [1]})))

    limits = Limits(columns=1, nesting=0)

    assert kinds_and_names(lambda: ParquetBatches(path, limits)) == [
        ("too_large", ()),
        ("too_large", ("a",)),
    ]


def test_a_file_may_be_larger_than_the_limits_on_memory_when_it_is_read_in_batches(tmp_path):
    table = pa.table({"i": np.random.default_rng(1).integers(0, 2**62, 10_000)})
    path = written(tmp_path, parquet(table))
    limits = Limits(file_bytes=1000, table_bytes=1000)

    assert joined(ParquetBatches(path, limits)).equals(table)
    assert kinds_and_names(lambda: read_parquet(path, limits)) == [("too_large", ())]


def test_decoded_texts_are_bounded_by_what_the_file_may_decompress_to(tmp_path):
    path = written(tmp_path, parquet(pa.table({"s": repeated("x" * 10_000, 10_000)})))
    free = Limits(table_bytes=1000)

    assert path.stat().st_size * free.compression_ratio < 100_000_000
    assert kinds_and_names(lambda: ParquetBatches(path, free)) == [("too_large", ())]


def test_a_list_of_a_thousand_million_numbers_is_refused_though_it_is_one_row(tmp_path):
    zeros = np.zeros(5_000_000, dtype=np.int64)
    table = pa.table({"l": pa.ListArray.from_arrays([0, len(zeros)], pa.array(zeros))})
    content = parquet(table)
    limits = Limits(table_bytes=39_999_999)

    assert read_parquet(content).num_rows == 1
    assert kinds_and_names(lambda: read_parquet(content, limits)) == [("too_large", ())]


def test_texts_of_which_only_differences_are_written_are_counted_as_they_are_decoded(tmp_path):
    content = parquet(
        pa.table({"s": ["x" * 10_000] * 10_000}),
        use_dictionary=False,
        column_encoding={"s": "DELTA_BYTE_ARRAY"},
    )
    limits = Limits(table_bytes=10_000_000)
    path = written(tmp_path, content)

    batches = ParquetBatches(path, limits, batch_bytes=1_000_000)

    assert kinds_and_names(lambda: read_parquet(content, limits)) == [("too_large", ())]
    assert kinds_and_names(lambda: list(batches)) == [("too_large", ())]


def test_a_file_that_changed_since_is_refused(tmp_path):
    path = written(tmp_path, parquet(pa.table({"s": [CANARY]})))
    batches = ParquetBatches(path)

    written(tmp_path, parquet(pa.table({"s": [CANARY, CANARY]})))

    assert kinds_and_names(lambda: list(batches)) == [("unreadable", ())]


def test_a_file_that_is_replaced_by_an_equal_one_is_refused(tmp_path):
    content = parquet(pa.table({"s": [CANARY]}))
    path = written(tmp_path, content)
    batches = ParquetBatches(path)

    other = tmp_path / "other"
    other.write_bytes(content)
    other.replace(path)

    assert kinds_and_names(lambda: list(batches)) == [("unreadable", ())]


def test_a_file_that_is_cut_short_while_it_is_read_is_refused_as_changed(tmp_path):
    table = pa.table({"s": [f"{CANARY}{place}" for place in range(10_000)]})
    path = written(tmp_path, parquet(table, row_group_size=100))
    rows = iter(ParquetBatches(path, batch_bytes=1000))
    next(rows)

    with path.open("r+b") as file:
        file.truncate(100)

    assert kinds_and_names(lambda: list(rows)) == [("unreadable", ())]


def test_a_file_that_is_gone_is_refused_as_such(tmp_path):
    path = written(tmp_path, parquet(pa.table({"s": ["x"]})))
    batches = ParquetBatches(path)

    path.unlink()

    assert kinds_and_names(lambda: list(batches)) == [("not_found", ())]


def test_batches_that_are_not_read_to_their_end_leave_no_file_open(tmp_path):
    path = written(tmp_path, parquet(pa.table({"i": range(1000)}), row_group_size=10))
    rows = iter(ParquetBatches(path, batch_bytes=100))

    assert next(rows).num_rows > 0
    del rows


@settings(max_examples=60)
@given(st.data())
def test_a_damaged_file_is_read_or_refused_in_batches_but_never_quoted(tmp_path_factory, data):
    table = pa.table({"s": [CANARY, "x"] * 3, "l": [[CANARY]] * 6, "i": range(6)})
    content = bytearray(parquet(table, write_page_checksum=True))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    path = written(tmp_path_factory.mktemp("damaged"), bytes(content))

    assert_read_or_refused(lambda: list(ParquetBatches(path, batch_bytes=100)))
    assert_read_or_refused(lambda: decoded_parquet_bytes(path))


@pytest.mark.parametrize("use_dictionary", [True, False])
def test_the_size_of_the_table_is_estimated_from_headers(tmp_path, use_dictionary):
    table = pa.table(
        {
            "s": [f"{place % 500:050d}" for place in range(50_000)],
            "i": range(50_000),
            "l": [[place, place] for place in range(50_000)],
        }
    )
    path = written(tmp_path, parquet(table, use_dictionary=use_dictionary))

    estimated = decoded_parquet_bytes(path)

    assert 0.8 < estimated / read_parquet(path).nbytes < 1.3
