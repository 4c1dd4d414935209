"""Open files by their media type: read, read in part, and described by themselves."""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datasource_governance.domain.artifact import MediaType
from datasource_governance.errors import InvalidArgumentError, UnreadableSourceError
from datasource_governance.sources.open_files import (
    decoded_bytes_of,
    media_type_of,
    read_footer,
    read_open,
    scan_open,
)

TABLE = pa.table({"id": range(1000), "text": ["a", None] * 500, "x": [1.5, float("nan")] * 500})


def write(path, media_type, table=TABLE):
    if media_type is MediaType.PARQUET:
        pq.write_table(table, path, row_group_size=300)
        return
    new = pa.ipc.new_file if media_type is MediaType.ARROW_FILE else pa.ipc.new_stream
    with new(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=300)


@pytest.fixture(params=MediaType)
def media_type(request):
    return request.param


@pytest.fixture
def file(tmp_path, media_type):
    """An open file whose name is gone."""
    path = tmp_path / "nameless"
    write(path, media_type)
    with path.open("rb") as file:
        path.unlink()
        yield file


def joined(batches):
    return pa.concat_tables([batches.schema.empty_table(), *batches])


def test_a_file_is_read_at_once_as_in_batches_however_often(file, media_type):
    whole = read_open(file, media_type)
    batches = scan_open(file, media_type, 1000)

    assert whole["id"].to_pylist() == TABLE["id"].to_pylist()
    assert whole["x"].null_count == 500
    for _ in range(2):
        assert joined(batches).equals(whole)
    assert not file.closed


def test_some_columns_are_read_in_the_order_they_are_asked_for(file, media_type):
    whole = read_open(file, media_type)

    for columns in (["x", "id"], ["text"]):
        batches = scan_open(file, media_type, 1000, columns)
        assert batches.schema.names == columns
        assert joined(batches).equals(whole.select(columns))


def test_its_size_in_memory_is_estimated(file, media_type):
    assert 8000 < decoded_bytes_of(file, media_type) < 100_000


def test_a_file_tells_its_fields_rows_and_nulls(file, media_type):
    found = read_footer(file, media_type)

    assert found.schema.names == ["id", "text", "x"]
    assert found.row_count == 1000
    assert found.with_nulls >= {"text"}
    assert found.without_nulls >= {"id"}
    # A Parquet footer does not count NaN, which is null.
    assert ("x" in found.with_nulls) is (media_type is not MediaType.PARQUET)


def test_an_arrow_file_and_a_stream_are_not_taken_for_each_other(tmp_path):
    path = tmp_path / "rows"
    for written, called in (
        (MediaType.ARROW_FILE, MediaType.ARROW_STREAM),
        (MediaType.ARROW_STREAM, MediaType.ARROW_FILE),
        (MediaType.PARQUET, MediaType.ARROW_FILE),
        (MediaType.PARQUET, MediaType.ARROW_STREAM),
        (MediaType.ARROW_FILE, MediaType.PARQUET),
    ):
        write(path, written)
        with path.open("rb") as file, pytest.raises(UnreadableSourceError) as refused:
            read_footer(file, called)
        kind = "malformed_parquet" if called is MediaType.PARQUET else "malformed_arrow"
        assert [one.kind for one in refused.value.problems] == [kind]


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, media_type):
    path = tmp_path / "rows"
    write(path, media_type)
    with path.open("rb") as file:
        batches = scan_open(file, media_type, 1000)
        os.utime(path, (0, 0))

        with pytest.raises(UnreadableSourceError, match="changed while it was read"):
            list(batches)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.parquet", MediaType.PARQUET),
        ("A.PARQUET", MediaType.PARQUET),
        ("a.arrow", MediaType.ARROW_FILE),
        ("a.feather", MediaType.ARROW_FILE),
        ("a.ipc", MediaType.ARROW_FILE),
        ("a.arrows", MediaType.ARROW_STREAM),
    ],
)
def test_a_name_tells_the_media_type_by_its_suffix(name, expected):
    assert media_type_of(name) is expected


@pytest.mark.parametrize("name", ["a.csv", "a.pkl", "a.parquet.gz", "parquet", ""])
def test_any_other_name_is_refused(name):
    with pytest.raises(InvalidArgumentError):
        media_type_of(name)
