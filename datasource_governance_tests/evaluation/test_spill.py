import os
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import polars as pl
import polars.testing
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasource_governance.evaluation.spill import ROW, KeyStore, Spill

CELLS = st.sampled_from([None, b"", b"\0", b"a", b"ab", b"x" * 300])
FRAMES = st.lists(st.lists(st.tuples(CELLS, st.sampled_from([None, 0, 1, 2])), max_size=8))
FRAME_BYTES = 2_000
"""More than a stored frame of one short key takes, and less than two."""


def keys_of(cells, rows_before=0):
    """Return a frame of keys of two parts, with their row numbers."""
    frame = pl.DataFrame(cells, schema={"0": pl.Binary, "1": pl.Int64}, orient="row")
    return numbered(frame, rows_before)


def numbered(keys, rows_before=0):
    first = rows_before + 1
    rows = pl.int_range(first, first + keys.height, dtype=pl.Int64)
    return keys.with_columns(rows.alias(ROW))


def size_of(spill):
    """Return the bytes that are in the file: the next frame comes behind them."""
    return spill.append(pl.DataFrame())[0]


def in_order(frames):
    return pl.concat(frames).sort(ROW)


def test_frames_come_back_as_they_were_in_any_order():
    frames = [
        keys_of([(b"a", 1), (None, None), (b"", 0)]),
        keys_of([]),
        keys_of([(b"\0" * 1000, -(2**63))], rows_before=2**40),
        numbered(pl.DataFrame({"0": pl.Series([True, None])})),
    ]
    with closing(Spill()) as spill:
        places = [spill.append(frame) for frame in frames]

        for place, frame in reversed(list(zip(places, frames, strict=True))):
            polars.testing.assert_frame_equal(spill.read(*place), frame)


def test_the_file_has_no_name_and_its_disk_is_given_back(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = unnamed_files()

    with closing(Spill()) as spill:
        spill.append(keys_of([(b"a", 1)]))
        assert list(tmp_path.iterdir()) == []
        assert len(unnamed_files() - before) == 1

    assert unnamed_files() == before


def unnamed_files():
    """Return the files without a name that this process holds open, by device and number."""
    found = set()
    for entry in Path("/dev/fd").iterdir():
        try:
            status = os.fstat(int(entry.name))
        except OSError:
            continue
        if status.st_nlink == 0:
            found.add((status.st_dev, status.st_ino))
    return found


@settings(max_examples=60)
@given(FRAMES, st.sampled_from([0, FRAME_BYTES, 5 * FRAME_BYTES, 10**6]))
def test_every_key_comes_back_once_with_its_equals_and_in_order_of_rows(batches, partition_bytes):
    frames, rows = [keys_of([])], 0
    for batch in batches:
        frames.append(keys_of(batch, rows))
        rows += len(batch)
    with closing(Spill()) as spill:
        store = KeyStore(spill, partition_bytes)
        for frame in frames:
            store.add(frame)

        partitions = list(store.partitions())

    polars.testing.assert_frame_equal(in_order([keys_of([]), *partitions]), pl.concat(frames))
    assert all(partition[ROW].is_sorted() for partition in partitions)
    homes = [set(partition.drop(ROW).iter_rows()) for partition in partitions]
    assert sum(map(len, homes)) == len(set().union(*homes))


def test_keys_that_make_one_partition_stay_in_memory():
    frame = keys_of([(b"a", 1)] * 100)
    with closing(Spill()) as spill:
        store = KeyStore(spill, 2 * frame.estimated_size())
        store.add(frame)
        store.add(keys_of([(b"a", 1)] * 100, rows_before=100))

        (partition,) = store.partitions()

        assert partition.height == 200
        assert size_of(spill) == 0


def test_one_byte_more_and_all_keys_go_to_disk():
    frame = keys_of([(b"a", 1)] * 100)
    with closing(Spill()) as spill:
        store = KeyStore(spill, 2 * frame.estimated_size() - 1)
        store.add(frame)
        store.add(keys_of([(b"a", 1)] * 100, rows_before=100))

        assert in_order(store.partitions()).height == 200
        assert size_of(spill) > 0


@pytest.mark.parametrize("partition_bytes", [50_000, 400_000])
def test_partitions_have_the_size_that_is_asked_for_and_the_order_of_rows(partition_bytes):
    keys = pl.DataFrame({"0": pl.Series(range(100_000), dtype=pl.Int64)})
    with closing(Spill()) as spill:
        store = KeyStore(spill, partition_bytes)
        store.add(numbered(keys))

        partitions = list(store.partitions())

    assert all(partition[ROW].is_sorted() for partition in partitions)
    sizes = [partition.estimated_size() for partition in partitions]
    assert max(sizes) <= partition_bytes
    # Small ones are read together: two neighbours never fit into one.
    assert len(sizes) <= 2 * sum(sizes) / partition_bytes + 2


def test_keys_take_their_size_on_disk_and_the_row_numbers():
    texts = [f"a key of some length, number {number:011}".encode() for number in range(50_000)]
    views = 16
    with closing(Spill()) as spill:
        store = KeyStore(spill, 10**6)
        store.add(numbered(pl.DataFrame({"0": texts})))

        written = size_of(spill)

    keys_and_rows = sum(map(len, texts)) + (views + 8) * len(texts)
    assert keys_and_rows < written < 1.1 * keys_and_rows


def test_a_partition_that_is_too_large_is_divided_by_further_digits_of_the_hash():
    keys = pl.DataFrame({"0": pl.Series(range(600_000), dtype=pl.Int64)})
    hashes = keys.hash_rows().to_numpy()
    alike = keys.filter(pl.Series(hashes % np.uint64(64**2) == hashes[0] % np.uint64(64**2)))
    assert alike.height > 100
    with closing(Spill()) as spill:
        store = KeyStore(spill, FRAME_BYTES)
        store.add(numbered(alike))

        partitions = list(store.partitions())

    assert len(partitions) > 1
    assert in_order(partitions)["0"].to_list() == alike["0"].to_list()


def test_one_key_that_is_larger_than_a_partition_is_one_partition():
    with closing(Spill()) as spill:
        store = KeyStore(spill, 100)
        for start in range(0, 1000, 100):
            store.add(keys_of([(b"a", 1)] * 100, rows_before=start))

        (partition,) = store.partitions()

    assert partition[ROW].to_list() == list(range(1, 1001))


def test_two_stores_share_a_file_and_nothing_in_it():
    with closing(Spill()) as spill:
        stores = [KeyStore(spill, 0), KeyStore(spill, 0)]
        for start in range(0, 9, 3):
            for store, key in zip(stores, (b"a", b"b"), strict=True):
                store.add(keys_of([(key, start)] * 3, rows_before=start))

        found = [in_order(store.partitions()) for store in stores]

    assert [set(frame["0"]) for frame in found] == [{b"a"}, {b"b"}]
    assert [frame[ROW].to_list() for frame in found] == [list(range(1, 10))] * 2


def test_a_store_without_keys_has_no_partitions():
    with closing(Spill()) as spill:
        assert list(KeyStore(spill, 0).partitions()) == []


SPILL_AND_WAIT = """
import os, pathlib, sys
import pyarrow as pa
from datasource_governance.evaluation.streaming import validate_batches
from datasource_governance_tests.builders import quality_policy, rule

def unnamed_bytes():
    total = 0
    for entry in list(pathlib.Path("/dev/fd").iterdir()):
        try:
            status = os.fstat(int(entry.name))
        except OSError:
            continue
        total += status.st_size if status.st_nlink == 0 else 0
    return total

class Batches:
    rows_numbered = True
    schema = pa.schema([("x", pa.large_string())])

    def __iter__(self):
        yield pa.table([[f"zq-canary-7 {row}" for row in range(10_000)]], schema=self.schema)
        print(unnamed_bytes(), flush=True)
        sys.stdin.read()

validate_batches(quality_policy(rule("unique", field="x")), Batches(), memory_bytes=0)
"""


@pytest.mark.slow
def test_keys_on_disk_have_no_name_and_are_gone_with_a_killed_process(tmp_path):
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    child = subprocess.Popen(
        [sys.executable, "-c", SPILL_AND_WAIT],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with child:
        written = int(child.stdout.readline())
        beside = list(tmp_path.rglob("*"))
        child.kill()

    assert written > 10_000 * len("zq-canary-7 0")
    assert beside == []
    assert list(tmp_path.rglob("*")) == []
