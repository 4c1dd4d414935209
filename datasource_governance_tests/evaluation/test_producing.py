"""Evidence from our own engine: about the very bytes of a file, or on the producer's word."""

import hashlib
import os
import threading

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datasource_governance import producer_evidence
from datasource_governance.domain.producer_evidence import (
    judge_evidence,
    parse_producer_evidence,
)
from datasource_governance.errors import InvalidArgumentError, UnreadableSourceError
from datasource_governance.evaluation.producing import file_evidence
from datasource_governance_tests.builders import quality_policy, rule
from datasource_governance_tests.domain.artifacts import SHA256, reference

POLICY = quality_policy(
    rule(id="rows"), rule("unique", id="unique", field="id"), rule("not_null", id="n", field="n")
)
TABLE = pa.table({"id": [1, 2, 3], "n": ["zq-canary", "b", "c"]})


@pytest.mark.parametrize("frame", [TABLE, pl.from_arrow(TABLE), pl.from_arrow(TABLE).lazy()])
def test_a_frame_gives_evidence_about_the_artifact_it_is_said_to_be(frame):
    evidence = producer_evidence(POLICY, frame, SHA256)

    assert judge_evidence(evidence, POLICY, reference()) == "accepted"
    assert parse_producer_evidence(evidence.document()) == evidence
    assert "zq-canary" not in str(evidence.document())


@pytest.mark.parametrize("digest", ["", "a" * 63, "A" * 64, f"{'a' * 64}\n"])
def test_what_is_no_digest_is_refused(digest):
    with pytest.raises(InvalidArgumentError):
        producer_evidence(POLICY, TABLE, digest)


@pytest.mark.parametrize("memory_bytes", [2**29, 1000], ids=["in memory", "in batches"])
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.arrows"])
def test_a_file_gives_evidence_about_its_own_bytes(tmp_path, name, memory_bytes):
    path, table = tmp_path / name, pa.concat_tables([TABLE] * 100)
    if name.endswith(".parquet"):
        pq.write_table(table, path)
    else:
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)

    evidence = file_evidence(POLICY, path, memory_bytes=memory_bytes)

    assert evidence.artifact_sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert [(one.id, one.status, one.affected) for one in evidence.results] == [
        ("rows", "passed", None),
        ("unique", "failed", 300),
        ("n", "passed", 0),
    ]


def test_a_file_that_is_no_artifact_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("id\n1\n")
    os.mkfifo(tmp_path / "a.parquet")

    with pytest.raises(InvalidArgumentError):
        file_evidence(POLICY, tmp_path / "a.csv")
    for name in ("a.parquet", "gone.parquet"):
        with pytest.raises(UnreadableSourceError):
            file_evidence(POLICY, tmp_path / name)


def test_a_file_that_changes_after_it_was_hashed_gives_no_evidence(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.concat_tables([TABLE] * 1000), path)
    told = threading.Event()

    def change(_rows):
        told.set()
        os.utime(path, (0, 0))

    with pytest.raises(UnreadableSourceError, match="changed while it was read"):
        file_evidence(POLICY, path, memory_bytes=1000, on_rows=change)
    assert told.is_set()
