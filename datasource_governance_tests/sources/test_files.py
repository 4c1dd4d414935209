"""Files are read by suffix, all of them within limits."""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.sources.files import read_file
from datasource_governance.sources.limits import Limits
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
