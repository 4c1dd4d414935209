"""The headers of pages tell how many values there are and what they can become."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasource_governance.sources.parquet.dictionaries import longest_texts
from datasource_governance.sources.parquet.pages import chunks_of
from datasource_governance_tests.sources.parquet.test_read import parquet


def chunks(content, wanted=(0,)):
    return chunks_of(pa.BufferReader(content), len(content), wanted)


def texts(values, **options):
    return parquet(pa.table({"s": pa.array(values, pa.string())}), **options)


def test_values_that_refer_to_a_dictionary_are_told_from_those_that_are_written_out():
    (chunk,) = (group[0] for group in chunks(texts(["abc", None, "abc"])))

    assert (chunk.values, chunk.referring, chunk.dictionary_values) == (3, 3, 1)
    assert chunk.dictionary_bytes == 4 + len("abc")
    assert chunk.written == chunk.shared == 0


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_that_are_written_out_take_no_more_than_their_bytes(version):
    content = texts(["abc"] * 100, use_dictionary=False, data_page_version=version)

    (chunk,) = (group[0] for group in chunks(content))

    assert (chunk.values, chunk.referring) == (100, 0)
    assert 700 <= chunk.written <= 750
    assert chunk.widest == 8


def test_a_value_of_which_only_the_difference_is_written_may_have_the_bytes_of_its_page():
    options = {"use_dictionary": False, "column_encoding": {"s": "DELTA_BYTE_ARRAY"}}

    (chunk,) = (group[0] for group in chunks(texts(["abc" * 100] * 100, **options)))

    assert chunk.widest >= 300
    assert chunk.shared == 100 * chunk.widest


def test_only_the_wanted_columns_of_every_row_group_are_looked_at():
    content = parquet(pa.table({"a": [1, 2, 3], "l": [[1, 2], [], [3]]}), row_group_size=2)

    assert [{place: c.values for place, c in group.items()} for group in chunks(content, {1})] == [
        {1: 3},
        {1: 1},
    ]


def test_long_statistics_in_the_header_of_a_page_are_passed_over():
    content = texts(["x" * 5000, "y" * 5000], write_page_index=False)

    assert chunks(content)[0][0].values == 2


@settings(max_examples=60)
@given(
    st.lists(st.one_of(st.none(), st.text(max_size=3), st.text(min_size=254, max_size=300))),
    st.sampled_from(["none", "snappy", "gzip", "zstd", "brotli", "lz4"]),
)
def test_the_longest_text_of_a_dictionary_is_never_underestimated(values, codec):
    content = texts(values, compression=codec)
    found = chunks(content)
    longest = max((len(value.encode()) for value in values if value is not None), default=0)

    with pq.ParquetFile(io.BytesIO(content), read_dictionary=["s"]) as file:
        reader = pa.BufferReader(content)
        for group, columns in enumerate(found):
            bound = longest_texts(reader, file, group, {0: "s"}, columns)[0]
            assert bound == longest or (bound > longest and None in values)


def test_a_text_that_looks_like_many_short_ones_is_not_taken_for_them():
    hidden = b"\x01\0\0\0a" * 1000
    content = parquet(pa.table({"s": pa.array([hidden, b"b"])}))

    with pq.ParquetFile(io.BytesIO(content), read_dictionary=["s"]) as file:
        bound = longest_texts(pa.BufferReader(content), file, 0, {0: "s"}, chunks(content)[0])

    assert bound == {0: 5000}
