"""A CSV file in batches is the file that `read_csv` reads, refusals included."""

import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.errors import UnreadableSourceError
from datasource_governance.sources.csv.read import CsvBatches, read_csv
from datasource_governance.sources.limits import DEFAULT_LIMITS, Limits
from datasource_governance_tests.sources.refusals import (
    CANARY,
    assert_says_nothing,
    kinds_and_names,
    refusal_of,
)

TINY = 1
"""Fewer bytes than a batch can have: every block is a record, or two."""
COLUMNS = [
    ["1", "-5", "0", "", "9223372036854775807", "18446744073709551615", "9" * 40, "-0"],
    ["1", "2.5", "", "1e3", "0.30000000000000004", "123456789012345.6", "1e400", "-7"],
    ["2,5", "1", "3,25e4", ""],
    ["true", "FALSE", "", "yes"],
    ["2024-02-29", "0001-01-01", "", "2023-02-29"],
    ["2024-01-01T00:00", "1500-01-01 00:00", "2024-01-01T00:00:00.123456789", ""],
    ["2024-01-01T00:00Z", "2024-01-01T02:00+02:00", "2024-01-01T00:00", ""],
    ["12:00", "23:59:59.123456", "12:00:01.1234567", ""],
    ["x", "", 'say ""so""', "a\r\nb", "é", "\ufeff", "5' pipe"],
]
DAMAGE = ["", "\r", '5" pipe', '"x"y', '"open', "1,2,3,4"]
DECLARED = ["integer", "number", "boolean", "date", "datetime", "time", "string"]


def as_written(cell, *, is_quoted):
    """Quote a cell that asks for it, and others; quotes inside are doubled already."""
    return f'"{cell}"' if is_quoted or set(cell) & set(',"\r\n') else cell


@st.composite
def files(draw):
    """Draw text of columns of one kind each, some cells quoted, some lines blank or damaged."""
    kinds = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=3))
    rows = draw(st.lists(st.tuples(*map(st.sampled_from, kinds)), max_size=12))
    lines = [",".join(["a", "b", "c"][: len(kinds)])]
    quoted = st.booleans()
    lines += [",".join(as_written(cell, is_quoted=draw(quoted)) for cell in row) for row in rows]
    if draw(st.integers(0, 3)) == 0:
        place = draw(st.integers(0, len(lines)))
        lines.insert(place, draw(st.sampled_from(DAMAGE)))
    line_end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    return line_end.join(lines) + draw(st.sampled_from(["", line_end, 3 * line_end]))


def batches(content, options=None, limits=DEFAULT_LIMITS, batch_bytes=TINY):
    """Return all batches of a file with this content as one table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "content"
        path.write_bytes(content)
        source = CsvBatches(path, options or CsvOptions(), limits, batch_bytes)
        tables = list(source)
    assert all(table.schema.equals(source.schema, check_metadata=True) for table in tables)
    assert all(table.num_rows for table in tables)
    return pa.concat_tables([source.schema.empty_table(), *tables])


def outcome(read):
    """Return the table, or what it is refused for, word for word."""
    try:
        return read()
    except UnreadableSourceError as error:
        assert_says_nothing(error)
        return [(problem.kind, problem.message, problem.names) for problem in error.problems]


def are_same(found, expected):
    if isinstance(found, list) or isinstance(expected, list):
        return found == expected
    return found.equals(expected, check_metadata=True)


@given(
    text=files(),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1", "shift_jis"]),
    decimal=st.sampled_from([".", ","]),
    types=st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(DECLARED), max_size=2),
    batch_bytes=st.sampled_from([TINY, 200, 1000]),
)
def test_batches_are_the_table_or_the_refusal_of_read_csv(
    text, encoding, decimal, types, batch_bytes
):
    options = CsvOptions(encoding=encoding, decimal=decimal, types=types)
    content = text.encode(encoding, "replace")

    found = outcome(lambda: batches(content, options, batch_bytes=batch_bytes))

    assert are_same(found, outcome(lambda: read_csv(content, options)))


@given(st.text(st.sampled_from('"",,\r\n xé;1'), max_size=60), st.integers(0, 400))
def test_any_text_is_read_or_refused_as_by_read_csv(text, table_bytes):
    content = text.encode()
    # Without what a large file may become, the limits are those on a file in memory.
    limits = Limits(table_bytes=table_bytes, compression_ratio=0)

    found = outcome(lambda: batches(content, limits=limits))

    assert are_same(found, outcome(lambda: read_csv(content, limits=limits)))


@pytest.mark.parametrize("content", [b"", b"\n\n", b"a", b"a,b\r\n", b"a\n\n\n", b'"a\n'])
def test_files_without_records_are_read_or_refused_as_by_read_csv(content):
    assert are_same(outcome(lambda: batches(content)), outcome(lambda: read_csv(content)))


def test_a_cell_of_the_last_block_decides_the_type_of_the_first():
    cells = [str(number) for number in range(100)]

    assert batches("\n".join(["a", *cells, "1.5"]).encode()).schema.types == [pa.float64()]
    assert batches("\n".join(["a", *cells, "x"]).encode())["a"].to_pylist() == [*cells, "x"]


def test_bounds_of_integers_are_those_of_all_blocks():
    content = "\n".join(["a", "-5", *["1"] * 40, "18446744073709551615"]).encode()

    assert batches(content).schema.types == [pa.decimal128(38, 0)]
    assert batches(content).equals(read_csv(content))


def test_misfits_are_counted_and_named_over_all_blocks():
    content = "\n".join(["a", *["1", CANARY] * 40]).encode()
    options = CsvOptions(types={"a": "integer"})

    (problem,) = refusal_of(lambda: batches(content, options))

    assert "40 cell(s) do not fit, first in row 2" in problem.message
    assert problem.names == ("a", *(str(row) for row in range(2, 52, 2)))


def test_ragged_records_are_counted_and_named_over_all_blocks_with_the_malformed_one():
    content = "\n".join(["a,b", *["1,2", CANARY] * 40, f'"{CANARY}"x', "1"]).encode()

    ragged, malformed = refusal_of(lambda: batches(content))

    assert ragged.message.startswith("40 record(s)")
    assert ragged.names == tuple(str(record) for record in range(2, 52, 2))
    assert (malformed.kind, malformed.names) == ("malformed_csv", ("81",))


def test_bytes_that_are_no_text_behind_a_malformed_record_refuse_the_encoding():
    content = b'a\n"x"y\n' + b"1\n" * 100 + b"\xff\n"

    assert kinds_and_names(lambda: batches(content)) == [("invalid_encoding", ("utf-8",))]


def test_a_record_longer_than_a_batch_is_read():
    content = b'a,b\n1,"' + b"x\n" * 5000 + b'"\n2,y\n'

    assert batches(content).equals(read_csv(content))


def test_a_mark_inside_a_file_belongs_to_the_cell():
    content = "a,b\n\ufeffx,1\n\ufeffy,2\n".encode()

    assert read_csv(content)["a"].to_pylist() == ["\ufeffx", "\ufeffy"]
    assert batches(content)["a"].to_pylist() == ["\ufeffx", "\ufeffy"]


def test_a_batch_is_about_as_large_as_asked_for(tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("a\n" + "".join(f"{number}\n" for number in range(20_000)))

    sizes = [table.nbytes for table in CsvBatches(path, batch_bytes=16_000)]

    assert 160_000 <= sum(sizes) < 170_000
    assert all(16_000 <= size < 24_000 for size in sizes[:-1])


def test_batches_can_be_read_as_often_as_it_takes(tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("a\n1\n2\n")
    source = CsvBatches(path)

    assert [table["a"].to_pylist() for table in [*source, *source]] == [[1, 2], [1, 2]]
    assert source.rows_numbered


@pytest.mark.parametrize("content", ["a\n1\n2\n3\n", "a\nx\n", "a\n", ""])
def test_a_file_that_is_written_after_it_was_surveyed_is_refused(tmp_path, content):
    path = tmp_path / "numbers.csv"
    path.write_text("a\n1\n2\n")
    source = CsvBatches(path)
    path.write_text(content)

    (problem,) = refusal_of(lambda: list(source))

    assert problem.kind == "unreadable"
    assert problem.message == "the file changed while it was read"


def test_a_file_that_is_put_in_the_place_of_the_surveyed_one_is_refused(tmp_path):
    path, other = tmp_path / "numbers.csv", tmp_path / "other.csv"
    path.write_text("a\n1\n")
    other.write_text("a\n2\n")
    source = CsvBatches(path)
    written = path.stat()
    os.utime(other, ns=(written.st_atime_ns, written.st_mtime_ns))
    other.replace(path)

    assert kinds_and_names(lambda: list(source)) == [("unreadable", ())]


def test_a_file_that_is_written_while_it_is_iterated_is_refused(tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("a\n" + "1\n" * 5000)
    tables = iter(CsvBatches(path, batch_bytes=TINY))
    next(tables)
    with path.open("a") as file:
        file.write("2\n")

    assert kinds_and_names(lambda: list(tables)) == [("unreadable", ())]


def test_a_file_may_have_any_size(tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("a\n1\n")

    (batch,) = CsvBatches(path, limits=Limits(file_bytes=3, table_bytes=3))

    assert batch.to_pylist() == [{"a": 1}]


def test_what_is_no_regular_file_is_refused_before_it_is_read(tmp_path):
    assert kinds_and_names(lambda: CsvBatches(tmp_path)) == [("unreadable", ())]
    assert kinds_and_names(lambda: CsvBatches(tmp_path / "none.csv")) == [("not_found", ())]
