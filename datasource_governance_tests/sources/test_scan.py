"""Local files are opened as batches by suffix, and their size is known before they are decoded."""

import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.sources.files import read_file
from datasource_governance.sources.scan import decoded_bytes, scan_file
from datasource_governance_tests.sources import test_bombs
from datasource_governance_tests.sources.parquet.test_batches import joined
from datasource_governance_tests.sources.refusals import CANARY, kinds_and_names
from datasource_governance_tests.sources.test_files import write_csv

WRITERS = {
    ".csv": write_csv,
    ".CSV": write_csv,
    ".parquet": pq.write_table,
    ".Parquet": pq.write_table,
    ".arrow": feather.write_feather,
    ".feather": feather.write_feather,
    ".IPC": feather.write_feather,
}
MEASURE = """
import json, pathlib, resource, sys
import pyarrow.compute, pyarrow.parquet
from datasource_governance.errors import UnreadableSourceError
from datasource_governance.sources.scan import scan_file

def seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime

started = seconds()
try:
    kinds = [sum(batch.num_rows for batch in scan_file(sys.argv[1]))]
except UnreadableSourceError as error:
    kinds = [problem.kind for problem in error.problems]
used = seconds() - started
status = pathlib.Path("/proc/self/status").read_text()
peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
json.dump({"kinds": kinds, "seconds": used, "peak": peak}, sys.stdout)
"""


@pytest.mark.parametrize("suffix", WRITERS)
def test_the_suffix_says_the_format_in_any_case(tmp_path, suffix):
    path = tmp_path / f"rows{suffix}"
    WRITERS[suffix](pa.table({"a": [1, 2]}), path)

    batches = scan_file(path)

    assert batches.rows_numbered
    assert joined(batches).equals(read_file(path))
    assert joined(scan_file(str(path))).equals(read_file(path))


def test_csv_options_are_used_for_csv_files(tmp_path):
    (tmp_path / "rows.csv").write_text("a;b\n1,5;2\n")

    batches = scan_file(tmp_path / "rows.csv", CsvOptions(delimiter=";", decimal=","))

    assert joined(batches).to_pylist() == [{"a": 1.5, "b": 2}]


@pytest.mark.parametrize("opened", [scan_file, decoded_bytes])
@pytest.mark.parametrize("name", ["rows", "rows.tsv", "rows.csv.gz", "rows.xlsx"])
def test_other_suffixes_are_refused_unread(tmp_path, name, opened):
    (tmp_path / name).write_text(CANARY)

    assert kinds_and_names(lambda: opened(tmp_path / name)) == [("unknown_format", ())]


@pytest.mark.parametrize("opened", [scan_file, decoded_bytes])
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path, suffix, opened):
    folder = tmp_path / f"folder{suffix}"
    folder.mkdir()

    assert kinds_and_names(lambda: opened(folder)) == [("unreadable", ())]
    assert kinds_and_names(lambda: opened(tmp_path / f"absent{suffix}")) == [("not_found", ())]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_the_size_in_memory_is_estimated_within_a_small_factor(tmp_path, suffix):
    path = tmp_path / f"rows{suffix}"
    WRITERS[suffix](pa.table({"a": [f"{place:030d}x" for place in range(20_000)]}), path)

    assert 0.5 < decoded_bytes(path) / read_file(path).nbytes < 2


def test_an_empty_csv_file_takes_nothing(tmp_path):
    (tmp_path / "rows.csv").write_bytes(b"")

    assert decoded_bytes(tmp_path / "rows.csv") == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bomb", "kind"),
    [
        (test_bombs.many_long_texts, "too_large"),
        (test_bombs.squeezed_zeros, "too_large"),
        (test_bombs.squeezed_text, "malformed_csv"),
        (test_bombs.squeezed_batches, "too_large"),
    ],
)
def test_a_bomb_is_refused_in_a_second_and_300_mb(bomb, kind, tmp_path):
    measured = subprocess.run(
        [sys.executable, "-c", MEASURE, bomb(tmp_path / "bomb")],
        capture_output=True,
        check=True,
        text=True,
    )

    found = json.loads(measured.stdout)
    assert set(found["kinds"]) == {kind}
    assert found["seconds"] < 1
    assert found["peak"] < 300_000_000
