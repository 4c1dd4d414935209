"""A store elsewhere: what it says of a failure stays there; what it did not take is none."""

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from datasource_governance.artifacts.remote import RemoteArtifacts
from datasource_governance.composition import Application, read_settings
from datasource_governance.errors import GuardError, InvalidArgumentError, ServiceUnavailableError
from datasource_governance_tests.artifacts.places import CONTENT, DATASOURCE, TENANT, Place, stored


@pytest.mark.parametrize(
    "address",
    ["nothing://user:secret@host/path", "s3://user:secret@/"],
)
def test_a_store_that_cannot_be_reached_is_refused_without_its_address(tmp_path, address):
    place = Place(RemoteArtifacts(address, TENANT, tmp_path), None)

    for step in (
        place.put,
        lambda: place.read(stored(CONTENT, place.backend.name)),
        lambda: place.backend.delete(stored(CONTENT).locator),
    ):
        with pytest.raises((ServiceUnavailableError, GuardError)) as refused:
            step()
        assert "secret" not in str(refused.value)
        assert refused.value.__context__ is None
    assert list(tmp_path.rglob("partial-*")) == []


def test_an_object_of_which_the_store_took_less_is_refused_and_removed(memory, monkeypatch):
    def half(self, local, path, **_options):
        with open(local, "rb") as file:  # noqa: PTH123 - as fsspec does it
            self.pipe_file(path, file.read(10))

    monkeypatch.setattr(MemoryFileSystem, "put_file", half)

    with pytest.raises(GuardError) as refused:
        memory.put()

    assert refused.value.code == "artifact_tampered"
    assert memory.locators() == []


def test_a_store_that_fails_half_way_leaves_nothing_here(memory, monkeypatch):
    def fail(self, local, path, **_options):
        raise RuntimeError(f"secret {local} {path}")

    monkeypatch.setattr(MemoryFileSystem, "put_file", fail)

    with pytest.raises(ServiceUnavailableError, match=r"not kept: RuntimeError$"):
        memory.put()

    assert memory.locators() == []


def test_where_the_bucket_is_missing_nothing_is_taken_for_deleted(bucket):
    import s3fs

    artifact = bucket.put()
    s3fs.S3FileSystem().rm(bucket.root, recursive=True)

    with pytest.raises(ServiceUnavailableError, match="was not deleted") as refused:
        bucket.backend.delete(artifact.locator)

    assert refused.value.__context__ is None


def test_an_upload_to_a_store_goes_on_in_another_process(memory, tmp_path):
    with memory.backend.begin(DATASOURCE) as upload:
        upload.file.write(CONTENT[:7])
        checkpoint = upload.suspend()
    other = RemoteArtifacts(f"memory:/{memory.root}", TENANT, tmp_path / "uploads")

    with other.begin(DATASOURCE, checkpoint) as upload:
        upload.file.write(CONTENT[upload.position :])
        artifact = upload.finish()

    assert memory.read(artifact) == CONTENT


def test_a_copy_that_is_read_has_no_name(memory, tmp_path):
    artifact = memory.put()

    with memory.backend.open(DATASOURCE, artifact) as file:
        assert file.read() == CONTENT
        assert [path for path in (tmp_path / "uploads").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("configured", "expected"),
    [
        ({}, "local"),
        ({"GOVERNANCE_ARTIFACTS": "elsewhere"}, "local"),
        ({"GOVERNANCE_ARTIFACTS": "file:///elsewhere"}, "local"),
        ({"GOVERNANCE_ARTIFACTS": "memory://store"}, "memory"),
        ({"GOVERNANCE_ARTIFACTS": "s3://bucket/prefix"}, "s3"),
    ],
)
def test_the_configuration_tells_where_artifacts_are_kept(tmp_path, configured, expected):
    settings = read_settings({"GOVERNANCE_STATE": str(tmp_path), **configured})

    assert Application(settings).artifacts().name == expected


@pytest.mark.parametrize("address", ["simplecache::s3://bucket/x", "zip://x::memory://y", "S3://b"])
def test_an_address_has_one_protocol(tmp_path, address):
    with pytest.raises(InvalidArgumentError):
        RemoteArtifacts(address, TENANT, tmp_path)


def test_artifacts_are_kept_in_the_state_directory_unless_told_otherwise(tmp_path):
    application = Application(read_settings({"GOVERNANCE_STATE": str(tmp_path)}))

    artifact = Place(application.artifacts(), None).put()

    assert (tmp_path / "artifacts" / "default" / artifact.locator).is_file()
