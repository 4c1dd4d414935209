"""No room, no permission, another object in the place of the one that was verified.

Whatever it is: the publication is refused, no table has a new row, and no file is left.
"""

import errno
import os
import resource
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest

from datasource_governance.domain.artifact import parse_artifact_reference
from datasource_governance.services.outputs import ArtifactOutput
from datasource_governance_tests.publishing import declare_published
from datasource_governance_tests.world import TWO_ROWS, World

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

NOBODY = 65534
ONE_APPROVAL = {"version": "v1", "required": True, "separation_of_duties": False}
# Too many to be kept inline, and more bytes as a file than the limit allows.
MANY_ROWS = pa.table({"id": np.random.default_rng(1).permutation(2**17)})
FEW_BYTES = 2**16
OTHER = b"other bytes of somebody else"


@pytest.fixture
def corner(own_corner) -> World:
    declare_published(own_corner)
    return own_corner


def publish(world: World, data):
    """Publish under the key of a producer that the world has to itself."""
    return world.publish(data, producer=world.datasource)


def folder(world: World):
    """Return where the artifacts of the world's datasource are."""
    settings = world.application.settings
    return settings.state / "artifacts" / settings.tenant / world.datasource


def files(world: World):
    return sorted(path.name for path in folder(world).iterdir())


def path_of(world: World, reference):
    return folder(world) / reference.sha256


def swap(path):
    """Put other bytes in the place of an object, as a whole file."""
    other = path.with_name("other")
    other.write_bytes(OTHER)
    other.rename(path)


def write_into(path):
    """Write other bytes into the very file that is there."""
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.write(OTHER)


def remove(path):
    path.unlink()


# --- No room --------------------------------------------------------------------------------------


def test_a_file_that_may_not_grow_is_refused_and_leaves_nothing(corner):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FEW_BYTES, hard))
    try:
        with corner.refuses("service_unavailable"):
            publish(corner, MANY_ROWS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert files(corner) == []
    made = publish(corner, MANY_ROWS)
    assert not made.replayed
    assert files(corner) == [made.materialization.payload_sha256]


@pytest.mark.parametrize(
    ("step", "number"),
    [
        ("pwrite", errno.ENOSPC),
        ("pwrite", errno.EIO),
        ("fsync", errno.EDQUOT),
        ("fsync", errno.EIO),
        ("link", errno.ENOSPC),
    ],
)
def test_a_disk_that_fails_at_any_step_is_refused_and_leaves_nothing(
    corner, monkeypatch, step, number
):
    folder(corner).mkdir(parents=True, exist_ok=True)

    def fail(*_arguments, **_named):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched, corner.refuses("service_unavailable"):
        patched.setattr(os, step, fail)
        corner.store_artifact()

    assert files(corner) == []


# --- No permission --------------------------------------------------------------------------------


@contextmanager
def powerless(path):
    """Be somebody who may do nothing with a file or folder: root becomes nobody."""
    mode = path.stat().st_mode
    path.chmod(0o400 if path.is_file() else 0o500)
    if os.geteuid() == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if os.getuid() == 0:
            os.seteuid(0)
        path.chmod(mode)


def test_permission_that_is_lost_before_an_upload_leaves_nothing(corner):
    folder(corner).mkdir(parents=True, exist_ok=True)

    with powerless(folder(corner)), corner.refuses("service_unavailable"):
        publish(corner, MANY_ROWS)

    assert files(corner) == []
    assert not publish(corner, MANY_ROWS).replayed


def test_permission_that_is_lost_before_verification_refuses_the_publication(corner):
    reference = corner.store_artifact()

    with powerless(folder(corner)), corner.refuses("service_unavailable"):
        if os.getuid() != 0:
            folder(corner).chmod(0)
        publish(corner, reference)

    assert files(corner) == [reference.sha256]
    assert not publish(corner, reference).replayed


# --- Another object -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "code"),
    [(swap, "artifact_tampered"), (write_into, "artifact_tampered"), (remove, "artifact_missing")],
)
def test_an_object_that_changes_after_it_was_verified_is_not_published(
    corner, monkeypatch, change, code
):
    reference = corner.store_artifact()
    path = path_of(corner, reference)
    examine = ArtifactOutput.examine

    def examine_and_change(self, *facts, **named):
        examined = examine(self, *facts, **named)
        change(path)
        return examined

    with monkeypatch.context() as patched, corner.refuses(code):
        patched.setattr(ArtifactOutput, "examine", examine_and_change)
        publish(corner, reference)


def test_an_object_that_is_touched_by_nobody_is_published_after_any_wait(corner, monkeypatch):
    """The control: only what was changed is refused."""
    reference = corner.store_artifact()
    examine = ArtifactOutput.examine

    def examine_and_store_again(self, *facts, **named):
        examined = examine(self, *facts, **named)
        corner.store_artifact()  # the same bytes, which are there already
        return examined

    monkeypatch.setattr(ArtifactOutput, "examine", examine_and_store_again)

    assert not publish(corner, reference).replayed


def test_an_object_that_changes_after_its_publication_is_neither_read_nor_promoted(own_corner):
    declare_published(own_corner, approval=ONE_APPROVAL)
    made = publish(own_corner, own_corner.store_artifact(TWO_ROWS))
    with own_corner.application.work() as work:
        stage = work.stages.get(made.stage)
    own_corner.decide("approver-1", stage)
    reference = parse_artifact_reference(made.materialization.artifact)
    swap(path_of(own_corner, reference))

    with own_corner.refuses("artifact_tampered"):
        own_corner.promote(stage)
    backend = own_corner.application.artifacts()
    with own_corner.refuses("artifact_tampered"), backend.open(own_corner.datasource, reference):
        pass
