"""Small files that would fill a machine are refused in process: in a second and 300 MB.

Each is read in a fresh interpreter, so that what is measured is of that reading alone; the start
and the imports, which every file pays, do not count as time.
"""

import gzip
import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

MEASURE = """
import json, pathlib, resource, sys
import pyarrow.compute, pyarrow.parquet
from datasource_governance.errors import UnreadableSourceError
from datasource_governance.sources.files import read_file

def seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime

started = seconds()
try:
    kinds = [read_file(sys.argv[1]).num_rows]
except UnreadableSourceError as error:
    kinds = [problem.kind for problem in error.problems]
used = seconds() - started
# Not ru_maxrss, which a process takes over from the one that started it.
status = pathlib.Path("/proc/self/status").read_text()
peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
json.dump({"kinds": kinds, "seconds": used, "peak": peak}, sys.stdout)
"""


def many_long_texts(path):
    """50 million rows of a kilobyte: 50 GB in some 8 MB, and the header promises no more."""
    rows = 1_000_000
    bits = np.random.default_rng(1).integers(0, 2, rows // 4, dtype=np.int32).repeat(4)
    texts = pa.DictionaryArray.from_arrays(bits, pa.array(["x" * 1000, "y" * 1000]))
    table = pa.table({"text": texts})
    with pq.ParquetWriter(path.with_suffix(".parquet"), table.schema, compression="zstd") as writer:
        for _ in range(50):
            writer.write_table(table)
    return path.with_suffix(".parquet")


def squeezed_zeros(path):
    """Pages that decompress ten thousand times: 800 MB of zeros."""
    zeros = pa.table({"zero": pa.array(np.zeros(10_000_000, dtype=np.int64))})
    options = {"use_dictionary": False, "compression": "zstd", "compression_level": 19}
    with pq.ParquetWriter(path.with_suffix(".parquet"), zeros.schema, **options) as writer:
        for _ in range(10):
            writer.write_table(zeros)
    return path.with_suffix(".parquet")


def squeezed_text(path):
    """200 MB of text in 200 kB, by the name of a CSV file."""
    content = gzip.compress(b"a,b\n" + b"0,0\n" * 50_000_000, compresslevel=9)
    return written(path.with_suffix(".csv"), content)


def squeezed_batches(path):
    """An Arrow stream whose buffers decompress to 8 GB."""
    zeros = pa.record_batch({"zero": pa.array(np.zeros(10_000_000, dtype=np.int64))})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(path.with_suffix(".arrow"), zeros.schema, options=options) as writer:
        for _ in range(100):
            writer.write_batch(zeros)
    return path.with_suffix(".arrow")


def written(path, content):
    path.write_bytes(content)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bomb", "kind"),
    [
        (many_long_texts, "too_large"),
        (squeezed_zeros, "too_large"),
        (squeezed_text, "malformed_csv"),
        (squeezed_batches, "too_large"),
    ],
)
def test_a_bomb_is_refused_in_a_second_and_300_mb(bomb, kind, tmp_path):
    path = bomb(tmp_path / "bomb")
    assert path.stat().st_size < 10_000_000

    measured = subprocess.run(
        [sys.executable, "-c", MEASURE, path], capture_output=True, check=True, text=True
    )

    found = json.loads(measured.stdout)
    assert set(found["kinds"]) == {kind}
    assert found["seconds"] < 1
    assert found["peak"] < 300_000_000
