"""What writers of tables write is hashed while they write it, and none goes past the hash."""

import hashlib
import io

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datasource_governance_tests.artifacts.places import DATASOURCE

FRAME = pl.DataFrame({"id": range(5000), "text": ["some", None] * 2500})


def write_arrow_file(file):
    table = FRAME.to_arrow()
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def write_by_pandas(file):
    pd.DataFrame({"id": range(10)}).to_parquet(file)


def write_in_row_groups(file):
    table = FRAME.to_arrow()
    with pq.ParquetWriter(file, table.schema) as writer:
        for start in range(0, len(table), 1000):
            writer.write_table(table.slice(start, 1000))


WRITERS = {
    "Polars": FRAME.write_parquet,
    "a Polars query": FRAME.lazy().sink_parquet,
    "Polars, Arrow file": FRAME.write_ipc,
    "Polars, Arrow stream": FRAME.write_ipc_stream,
    "pyarrow": lambda file: pq.write_table(FRAME.to_arrow(), file),
    "pyarrow, in row groups": write_in_row_groups,
    "pyarrow, Arrow file": write_arrow_file,
    "pandas": write_by_pandas,
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_writer_of_tables_writes_what_is_hashed(local, write):
    with local.backend.begin(DATASOURCE) as upload:
        write(upload.file)
        artifact = upload.finish()

    content = local.read(artifact)
    assert content
    assert hashlib.sha256(content).hexdigest() == artifact.sha256


def test_a_file_has_no_descriptor_to_write_to_and_cannot_be_read_or_moved_in(local):
    with local.backend.begin(DATASOURCE) as upload:
        for refused in (
            upload.file.fileno,
            lambda: upload.file.seek(0),
            upload.file.truncate,
        ):
            with pytest.raises(io.UnsupportedOperation):
                refused()

        assert upload.file.writable()
        assert not upload.file.seekable()
        assert not upload.file.readable()


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview, pa.py_buffer])
def test_bytes_of_any_form_are_counted(local, form):
    with local.backend.begin(DATASOURCE) as upload:
        assert upload.file.write(form(b"12345")) == 5
        assert upload.file.tell() == upload.position == 5


def test_values_wider_than_a_byte_are_counted_in_bytes(local):
    with local.backend.begin(DATASOURCE) as upload:
        assert upload.file.write(memoryview(bytearray(16)).cast("q")) == 16
        assert upload.position == 16
