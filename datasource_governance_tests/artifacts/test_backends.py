"""What every backend promises: put once, found by digest, given out as what it was put as."""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from datasource_governance.artifacts.checking import CHUNK_BYTES
from datasource_governance.errors import (
    GuardError,
    InvalidArgumentError,
    NotFoundError,
    ServiceUnavailableError,
)
from datasource_governance_tests.artifacts.hostile import LOCATORS
from datasource_governance_tests.artifacts.places import CONTENT, DATASOURCE, stored


@pytest.mark.parametrize(
    "content", [b"", b"x", CONTENT, bytes(2 * CHUNK_BYTES + 1)], ids=["none", "one", "some", "many"]
)
def test_what_was_put_is_read_and_named_by_its_digest(place, content):
    artifact = place.put(content)

    assert artifact == stored(content, place.backend.name)
    assert place.read(artifact) == content
    assert place.locators() == [artifact.locator]


def test_the_same_bytes_are_put_once(place):
    assert place.put() == place.put()
    assert len(place.locators()) == 1


def test_datasources_have_objects_of_their_own(place):
    mine, other = place.put(), place.put(datasource="customers")

    assert mine.locator != other.locator
    with pytest.raises(GuardError) as refused:
        place.read(other)
    assert refused.value.code == "artifact_foreign"


def test_an_upload_that_fails_leaves_nothing(place):
    with (  # noqa: PT012 - the block is what fails
        pytest.raises(ZeroDivisionError),
        place.backend.begin(DATASOURCE) as upload,
    ):
        upload.file.write(CONTENT)
        raise ZeroDivisionError

    assert place.locators() == []


def test_an_upload_that_is_not_finished_leaves_nothing(place):
    with place.backend.begin(DATASOURCE) as upload:
        upload.file.write(CONTENT)

    assert place.locators() == []


def test_an_upload_is_not_to_be_seen_before_it_is_finished(place):
    with place.backend.begin(DATASOURCE) as upload:
        upload.file.write(CONTENT)
        with pytest.raises(GuardError) as refused:
            place.read(stored(CONTENT, place.backend.name))

    assert refused.value.code == "artifact_missing"


@pytest.mark.parametrize("other", [CONTENT[:-1], CONTENT + b"x", CONTENT[:-1] + b"x", b""])
def test_an_object_that_was_swapped_is_refused_without_a_byte_of_it(place, other):
    artifact = place.put()
    place.overwrite(artifact, other)

    with pytest.raises(GuardError) as refused:
        place.read(artifact)

    assert refused.value.code == "artifact_tampered"
    assert refused.value.__context__ is None


def test_nothing_is_put_over_an_object_that_was_swapped(place):
    artifact = place.put()
    place.overwrite(artifact, b"other")

    with pytest.raises(GuardError) as refused:
        place.put()

    assert refused.value.code == "artifact_tampered"
    assert refused.value.__context__ is None
    with pytest.raises(GuardError):
        place.read(artifact)
    assert place.locators() == [artifact.locator]


def test_what_is_read_stays_what_was_verified_when_the_object_is_swapped(place):
    artifact = place.put()

    with place.backend.open(DATASOURCE, artifact) as file:
        place.overwrite(artifact, b"other")
        assert file.read() == CONTENT


def test_a_version_changes_with_the_object_and_with_nothing_else(place):
    artifact = place.put()
    before = place.backend.version(DATASOURCE, artifact)

    assert place.read(artifact) == CONTENT
    assert place.put() == artifact
    assert place.backend.version(DATASOURCE, artifact) == before
    place.overwrite(artifact, CONTENT[::-1])
    assert place.backend.version(DATASOURCE, artifact) != before


def test_a_missing_object_is_told_from_a_foreign_reference(place):
    gone = stored(b"never put", place.backend.name)
    for artifact, code in (
        (gone, "artifact_missing"),
        (replace(gone, backend="elsewhere"), "artifact_foreign"),
        (replace(gone, sha256="0" * 64), "artifact_foreign"),
        (replace(gone, locator=f"{DATASOURCE}/partial-{'0' * 32}"), "artifact_foreign"),
    ):
        for look in (place.read, lambda one: place.backend.version(DATASOURCE, one)):
            with pytest.raises(GuardError) as refused:
                look(artifact)
            assert refused.value.code == code


def test_hostile_locators_are_refused_before_anything_is_touched(place):
    artifact = stored(CONTENT, place.backend.name)
    codes = set()
    for locator in LOCATORS:
        with pytest.raises(GuardError) as read:
            place.read(replace(artifact, locator=locator))
        with pytest.raises(GuardError) as deleted:
            place.backend.delete(locator)
        codes |= {read.value.code, deleted.value.code}
        assert locator not in str(read.value) or len(locator) < 3

    assert codes == {"artifact_foreign"}
    assert place.locators() == []


@pytest.mark.parametrize("name", ["", "..", "a/b", "A", "a" * 64, "a\n", "ä", "a\0", "memory://a"])
def test_a_datasource_is_named_by_an_id(place, name):
    with pytest.raises(InvalidArgumentError), place.backend.begin(name):
        pass


def test_an_upload_goes_on_after_it_was_suspended(place):
    with place.backend.begin(DATASOURCE) as upload:
        upload.file.write(CONTENT[:1000])
        checkpoint = upload.suspend()
    assert place.locators() == [checkpoint]

    with place.backend.begin(DATASOURCE, checkpoint) as upload:
        assert upload.position == upload.file.tell() == 1000
        upload.file.write(CONTENT[1000:])
        artifact = upload.finish()

    assert artifact == stored(CONTENT, place.backend.name)
    assert place.locators() == [artifact.locator]


def test_a_checkpoint_goes_on_once_and_for_its_own_datasource_only(place):
    with place.backend.begin(DATASOURCE) as upload:
        checkpoint = upload.checkpoint

    for named, error in (
        (checkpoint, NotFoundError),
        (checkpoint.replace(DATASOURCE, "customers"), InvalidArgumentError),
        (f"{DATASOURCE}/{'0' * 64}", InvalidArgumentError),
        *((locator, InvalidArgumentError) for locator in LOCATORS),
    ):
        with pytest.raises(error), place.backend.begin(DATASOURCE, named):
            pass


def test_an_upload_belongs_to_one_at_a_time(place):
    with place.backend.begin(DATASOURCE) as upload:
        upload.file.write(CONTENT)
        with (
            pytest.raises(ServiceUnavailableError) as refused,
            place.backend.begin(DATASOURCE, upload.checkpoint),
        ):
            pass
        artifact = upload.finish()

    assert refused.value.code == "busy"
    assert place.read(artifact) == CONTENT


def test_what_was_written_can_be_looked_at_before_it_is_finished(place):
    with place.backend.begin(DATASOURCE) as upload:
        upload.file.write(CONTENT[:10])
        with upload.written() as file:
            assert file.read() == CONTENT[:10]
        upload.file.write(CONTENT[10:])
        artifact = upload.finish()

    assert artifact.sha256 == hashlib.sha256(CONTENT).hexdigest()


def test_an_object_is_deleted_once(place):
    artifact = place.put()

    assert place.backend.delete(artifact.locator)
    assert not place.backend.delete(artifact.locator)
    assert place.locators() == []


def test_an_unfinished_upload_is_deleted_by_its_checkpoint(place):
    with place.backend.begin(DATASOURCE) as upload:
        checkpoint = upload.suspend()

    assert place.backend.delete(checkpoint)
    assert place.locators() == []


def test_everything_is_listed_with_its_size_and_age(place):
    place.put(b"one")
    place.put(b"two", datasource="customers")

    kept = list(place.backend.kept())

    assert sorted(one.locator.partition("/")[0] for one in kept) == ["customers", "orders"]
    assert [one.byte_count for one in kept] == [3, 3]
    now = datetime.now(UTC)
    assert all(abs(now - one.changed_at) < timedelta(minutes=5) for one in kept)


def test_a_store_without_anything_is_listed_as_empty(place):
    assert place.locators() == []
