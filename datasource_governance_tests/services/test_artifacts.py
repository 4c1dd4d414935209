"""Artifacts taken in and opened again: complete references, and nothing left of a failure."""

from dataclasses import replace

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datasource_governance.artifacts.local import LocalArtifacts
from datasource_governance.domain.artifact import MediaType, datasource_fingerprint
from datasource_governance.errors import (
    GuardError,
    InvalidArgumentError,
    ServiceUnavailableError,
    UnreadableSourceError,
)
from datasource_governance.evaluation.artifacts import ArtifactReader
from datasource_governance.services.artifacts import (
    ArtifactRequest,
    store_artifact,
    verified_artifact,
)
from datasource_governance_tests.builders import schema

CANARY = "zq-canary-stored"
FRAME = pl.DataFrame({"id": [1, 2, 3], "text": [CANARY, None, "c"], "x": [1.0, float("nan"), 2.0]})
READER = ArtifactReader()


def write_arrow_file(file):
    table = FRAME.to_arrow()
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


@pytest.fixture
def backend(tmp_path):
    return LocalArtifacts(tmp_path / "artifacts", "acme")


def request(**facts):
    return ArtifactRequest(
        **{
            "tenant": "acme",
            "datasource": "orders",
            "media_type": MediaType.PARQUET,
            **facts,
        }
    )


def stored(backend, write=FRAME.write_parquet, **facts):
    return store_artifact(backend, READER, request(**facts), write)


def opened(backend, reference, tenant="acme", datasource="orders"):
    return verified_artifact(backend, READER, reference, tenant=tenant, datasource=datasource)


def code_of(backend, reference, **whose):
    with pytest.raises(GuardError) as refused, opened(backend, reference, **whose):
        pass
    assert refused.value.__context__ is None
    return refused.value.code


def assert_nothing_left(backend):
    assert list(backend.kept()) == []


@pytest.mark.parametrize(
    ("media_type", "write"),
    [
        (MediaType.PARQUET, FRAME.write_parquet),
        (MediaType.PARQUET, FRAME.lazy().sink_parquet),
        (MediaType.ARROW_FILE, write_arrow_file),
        (MediaType.ARROW_STREAM, FRAME.write_ipc_stream),
    ],
)
def test_what_a_frame_writes_becomes_an_artifact_with_a_complete_reference(
    backend, media_type, write
):
    reference = stored(backend, write, media_type=media_type, resume_checkpoint="page 7")

    nan = "number" if media_type is MediaType.PARQUET else "number?"
    fields = schema(id="integer", text="string?", x=nan)
    assert reference.schema == fields
    assert (reference.row_count, reference.media_type) == (3, media_type)
    assert reference.datasource_fingerprint == datasource_fingerprint("acme", "orders", fields)
    assert reference.resume_checkpoint == "page 7"
    assert [one.byte_count for one in backend.kept()] == [reference.byte_count]
    with opened(backend, reference) as verified:
        assert verified.description.row_count == 3
        assert len(verified.file.read()) == reference.byte_count


def test_the_producer_may_know_more_of_nulls_than_the_file_tells(backend):
    known = schema(id="integer?", text="string?", x="number?")

    assert stored(backend, schema=known).schema == known


@pytest.mark.parametrize(
    "claimed",
    [
        schema(id="integer", text="string", x="number"),
        schema(id="number", text="string?", x="number"),
        schema(text="string?", id="integer", x="number"),
        schema(id="integer", text="string?"),
    ],
)
def test_a_schema_that_is_not_the_files_is_refused_and_nothing_is_left(backend, claimed):
    with pytest.raises(InvalidArgumentError):
        stored(backend, schema=claimed)

    assert_nothing_left(backend)


def test_what_is_no_file_of_the_media_type_is_refused_and_nothing_is_left(backend):
    for write in (lambda file: file.write(CANARY.encode()), lambda _file: None, write_arrow_file):
        with pytest.raises(UnreadableSourceError) as refused:
            stored(backend, write)
        assert CANARY not in str(refused.value)

    assert_nothing_left(backend)


def test_an_error_of_the_producers_own_is_his_and_nothing_is_left(backend):
    def fail(file):
        file.write(b"half")
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        stored(backend, fail)

    assert_nothing_left(backend)


@pytest.mark.parametrize(
    "write",
    [
        FRAME.write_parquet,
        lambda file: pq.write_table(FRAME.to_arrow(), file),
        FRAME.lazy().sink_parquet,
    ],
    ids=["Polars", "pyarrow", "a Polars query"],
)
def test_a_full_disk_is_told_as_that_whatever_the_writer_makes_of_it(backend, write):
    def write_to_a_full_disk(file):
        file._descriptor = full.fileno()
        write(file)

    with (
        open("/dev/full", "wb", buffering=0) as full,  # noqa: PTH123 - a device
        pytest.raises(ServiceUnavailableError, match="No space left on device") as refused,
    ):
        stored(backend, write_to_a_full_disk)

    assert refused.value.__context__ is None
    assert refused.value.__cause__ is None
    assert_nothing_left(backend)


def test_a_writer_that_swallows_the_failure_does_not_make_an_artifact(backend):
    def write(file):
        file._descriptor = full.fileno()
        try:
            file.write(b"more")
        except ServiceUnavailableError:
            pass

    with (
        open("/dev/full", "wb", buffering=0) as full,  # noqa: PTH123 - a device
        pytest.raises(ServiceUnavailableError),
    ):
        stored(backend, write)

    assert_nothing_left(backend)


def test_an_interrupted_copy_goes_on_where_the_file_ends(backend, tmp_path):
    FRAME.write_parquet(tmp_path / "made.parquet")
    content = (tmp_path / "made.parquet").read_bytes()
    with backend.begin("orders") as upload:
        upload.file.write(content[:100])
        checkpoint = upload.suspend()

    reference = stored(
        backend, lambda file: file.write(content[file.tell() :]), checkpoint=checkpoint
    )

    assert reference.byte_count == len(content)
    assert [one.locator for one in backend.kept()] == [reference.locator]


def test_a_reference_serves_its_own_datasource_and_tenant_only(backend):
    reference = stored(backend)

    assert code_of(backend, reference, datasource="customers") == "artifact_foreign"
    assert code_of(backend, reference, tenant="other") == "artifact_foreign"
    forged = replace(
        reference,
        datasource_fingerprint=datasource_fingerprint("acme", "customers", reference.schema),
    )
    assert code_of(backend, forged, datasource="customers") == "artifact_foreign"


def with_schema(reference, fields):
    fingerprint = datasource_fingerprint("acme", "orders", fields)
    return replace(reference, schema=fields, datasource_fingerprint=fingerprint)


def test_a_reference_that_says_otherwise_than_the_footer_is_refused(backend):
    reference = stored(backend)

    for altered in (
        replace(reference, row_count=4),
        with_schema(reference, schema(id="integer", text="string", x="number")),
        with_schema(reference, schema(id="string", text="string?", x="number")),
    ):
        assert code_of(backend, altered) == "artifact_tampered"


def test_a_reference_of_another_media_type_is_refused(backend):
    reference = replace(stored(backend), media_type=MediaType.ARROW_FILE)

    with pytest.raises(UnreadableSourceError), opened(backend, reference):
        pass


def test_an_object_that_was_swapped_after_it_was_verified_is_refused_on_read(backend, tmp_path):
    reference = stored(backend)
    path = tmp_path / "artifacts" / "acme" / reference.locator
    with opened(backend, reference) as verified:
        before = verified.file.read()
        pq.write_table(pa.table({"id": [9]}), tmp_path / "other")
        (tmp_path / "other").replace(path)
        verified.file.seek(0)
        assert verified.file.read() == before

    assert code_of(backend, reference) == "artifact_tampered"
