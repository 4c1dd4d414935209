"""Files are read by suffix, all of them within limits."""

import os

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.errors import UnreadableSourceError
from datasource_governance.sources.files import read_file
from datasource_governance.sources.limits import Limits
from datasource_governance.sources.refusal import refused
from datasource_governance.sources.stored import stored_file
from datasource_governance_tests.sources.refusals import CANARY, kinds_and_names, refusal_of

TABLE = pa.table({"a": [1, 2]})


def write_csv(table, path):
    path.write_text("\n".join(["a", *map(str, table.column("a").to_pylist())]))


@pytest.mark.parametrize(
    ("suffix", "write"),
    [
        (".csv", write_csv),
        (".CSV", write_csv),
        (".parquet", pq.write_table),
        (".Parquet", pq.write_table),
        (".arrow", feather.write_feather),
        (".feather", feather.write_feather),
        (".IPC", feather.write_feather),
    ],
)
def test_the_suffix_says_the_format_in_any_case(tmp_path, suffix, write):
    path = tmp_path / f"rows{suffix}"
    write(TABLE, path)

    assert read_file(path).to_pylist() == TABLE.to_pylist()
    assert read_file(str(path)).equals(read_file(path))


def test_csv_options_are_used_for_csv_files(tmp_path):
    (tmp_path / "rows.csv").write_text("a;b\n1,5;2\n")

    table = read_file(tmp_path / "rows.csv", CsvOptions(delimiter=";", decimal=","))

    assert table.to_pylist() == [{"a": 1.5, "b": 2}]


@pytest.mark.parametrize("name", ["rows", "rows.tsv", "rows.csv.gz", "rows.xlsx"])
def test_other_suffixes_are_refused_unread(tmp_path, name):
    (tmp_path / name).write_text(CANARY)

    assert kinds_and_names(lambda: read_file(tmp_path / name)) == [("unknown_format", ())]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_a_file_that_cannot_be_read_is_refused_without_its_folder(tmp_path, suffix):
    folder = tmp_path / f"folder{suffix}"
    folder.mkdir()
    pipe = tmp_path / f"pipe{suffix}"
    os.mkfifo(pipe)
    absent = tmp_path / f"absent{suffix}"

    assert kinds_and_names(lambda: read_file(folder)) == [("unreadable", ())]
    assert kinds_and_names(lambda: read_file(pipe)) == [("unreadable", ())]
    assert kinds_and_names(lambda: read_file(absent)) == [("not_found", ())]
    assert kinds_and_names(lambda: read_file(f"nul\0{suffix}")) == [("unreadable", ())]
    assert str(tmp_path) not in str(refusal_of(lambda: read_file(absent)))


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_a_file_is_bounded_by_its_bytes(tmp_path, suffix):
    path = tmp_path / f"rows{suffix}"
    {".csv": write_csv, ".parquet": pq.write_table, ".arrow": feather.write_feather}[suffix](
        TABLE, path
    )
    size = path.stat().st_size

    assert read_file(path, limits=Limits(file_bytes=size)).num_rows == 2
    assert kinds_and_names(lambda: read_file(path, limits=Limits(file_bytes=size - 1))) == [
        ("too_large", ())
    ]


DAMAGED = refused("rows", "malformed", "damaged")


def test_a_file_that_changes_while_it_is_read_is_refused_whatever_else_went_wrong(tmp_path):
    path = tmp_path / "rows.parquet"

    def fail_after_change():
        path.write_text(CANARY * 2)
        raise ValueError(CANARY)

    for read in (lambda: path.write_text(CANARY * 3), fail_after_change):
        path.write_text(CANARY)
        with stored_file(path) as file:
            problems = refusal_of(lambda: file.read(read, DAMAGED))  # noqa: B023 - called at once
        assert [problem.message for problem in problems] == ["the file changed while it was read"]


def test_a_file_that_is_not_the_one_that_was_expected_is_refused(tmp_path):
    path = tmp_path / "rows.parquet"
    path.write_text("x")
    with stored_file(path) as file:
        stamp = file.stamp
        assert file.read(lambda: file.reader().read(), DAMAGED, stamp) == b"x"

    path.write_text("yy")

    with stored_file(path) as file:
        assert kinds_and_names(lambda: file.read(lambda: b"", DAMAGED, stamp)) == [
            ("unreadable", ())
        ]


def test_bytes_in_memory_are_read_as_those_of_a_file():
    with stored_file(b"content") as file:
        assert (file.name, file.size, file.stamp) == ("content", 7, None)
        assert file.read(lambda: file.reader().read_at(3, 1), DAMAGED) == b"ont"


def put(address, content):
    with fsspec.open(address, "wb") as file:
        file.write(content)
    return address


@pytest.fixture
def memory():
    """The file system of fsspec that is in memory, empty."""
    yield "memory://"
    fsspec.filesystem("memory").store.clear()


def test_an_address_is_read_like_the_file_that_is_there(tmp_path, memory):
    path = tmp_path / "rows.parquet"
    pq.write_table(TABLE, path)

    assert read_file(f"file://{path}").equals(read_file(path))
    assert read_file(put(f"{memory}rows.parquet", path.read_bytes())).equals(read_file(path))


def test_csv_options_and_limits_are_those_of_the_file_behind_an_address(memory):
    address = put(f"{memory}folder/Rows.CSV", b"a;b\n1,5;2\n")
    options = CsvOptions(delimiter=";", decimal=",")

    assert read_file(address, options).to_pylist() == [{"a": 1.5, "b": 2}]
    for limits in (Limits(file_bytes=9), Limits(columns=1)):
        with pytest.raises(UnreadableSourceError) as refusal:
            read_file(address, options, limits)
        assert [problem.kind for problem in refusal.value.problems] == ["too_large"]


def test_the_refusal_of_an_address_names_the_file_and_nothing_that_may_be_secret(memory):
    addresses = [
        f"{memory}{CANARY}/absent.csv",
        f"{memory}{CANARY}/rows.xlsx",
        f"nothing://user:{CANARY}@host/rows.csv",
        f"nothing://user:{CANARY}@rows.csv",
        f"http://127.0.0.1:1/{CANARY}/rows.csv?token={CANARY}#{CANARY}",
    ]

    kinds = [kinds_and_names(lambda: read_file(one)) for one in addresses]  # noqa: B023 - called at once

    assert [kind for ((kind, _),) in kinds] == [
        "not_found",
        "unknown_format",
        "unreadable",
        "unreadable",
        # As fsspec says of a server that does not answer.
        "not_found",
    ]


def test_a_malformed_file_behind_an_address_is_refused_by_its_name(memory):
    address = put(f"{memory}rows.csv", f"a\n{CANARY},1\n".encode())

    with pytest.raises(UnreadableSourceError, match=r"^rows\.csv has 1 problem") as refusal:
        read_file(address)
    assert [(one.kind, one.names) for one in refusal.value.problems] == [("ragged_row", ("1",))]
