"""A directory of this machine, in the hands of somebody who swaps links, and without room."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from resource import RLIM_INFINITY, RLIMIT_FSIZE, getrlimit, setrlimit

import pytest

from datasource_governance.artifacts.directories import directory
from datasource_governance.artifacts.local import LocalArtifacts
from datasource_governance.domain.artifact import orphans
from datasource_governance.errors import GuardError, ServiceUnavailableError
from datasource_governance_tests.artifacts.places import CONTENT, DATASOURCE, TENANT, stored

NOBODY = 65534
WRITE_A_MEBIBYTE = """
import sys
from pathlib import Path
from datasource_governance.artifacts.local import LocalArtifacts

with LocalArtifacts(Path(sys.argv[1]), "acme").begin("orders") as upload:
    print(upload.checkpoint, flush=True)
    for _ in range(16):
        upload.file.write(bytes(65_536))
    {end}
"""


@pytest.fixture
def folder(local):
    """Where the objects of the datasource are, with one in it."""
    local.put()
    return local.root / TENANT / DATASOURCE


def codes_of(place, artifact):
    with pytest.raises(GuardError) as refused:
        place.read(artifact)
    return refused.value.code


def test_objects_are_for_their_owner_only_and_not_to_be_written_to(local, folder):
    (path,) = folder.iterdir()

    assert path.stat().st_mode & 0o777 == 0o400
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_link_in_the_place_of_an_object_is_not_followed(local, folder, tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(CONTENT)
    (path,) = folder.iterdir()
    path.unlink()
    path.symlink_to(outside)

    assert codes_of(local, stored(CONTENT)) == "artifact_tampered"
    assert local.locators() == []
    assert local.backend.delete(stored(CONTENT).locator)
    assert outside.read_bytes() == CONTENT


@pytest.mark.parametrize("depth", [0, 1], ids=["datasource", "tenant"])
def test_a_link_in_the_place_of_a_directory_is_not_followed(local, folder, tmp_path, depth):
    linked = [folder, folder.parent][depth]
    linked.rename(tmp_path / "elsewhere")
    linked.symlink_to(tmp_path / "elsewhere")

    assert codes_of(local, stored(CONTENT)) == "artifact_tampered"
    with pytest.raises(ServiceUnavailableError):
        local.put(b"more")
    with pytest.raises(ServiceUnavailableError):
        local.backend.delete(stored(CONTENT).locator)


def test_where_the_folder_is_not_mounted_nothing_is_taken_for_deleted(local, folder):
    folder.parent.rename(folder.parent.with_name("unmounted"))

    with pytest.raises(ServiceUnavailableError, match="was not deleted"):
        local.backend.delete(stored(CONTENT).locator)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "directory"])
def test_what_is_no_file_is_refused_and_not_waited_for(local, folder, make):
    (path,) = folder.iterdir()
    path.unlink()
    make(path)

    assert codes_of(local, stored(CONTENT)) == "artifact_tampered"
    assert local.locators() == []


@pytest.mark.slow
def test_nothing_outside_is_read_while_somebody_swaps_links_a_thousand_times(
    local, folder, tmp_path
):
    bait = tmp_path / "bait"
    bait.mkdir()
    (bait / stored(CONTENT).sha256).write_bytes(b"bait")
    aside, done = tmp_path / "aside", threading.Event()

    def swap():
        while not done.is_set():
            folder.rename(aside)
            folder.symlink_to(bait)
            folder.unlink()
            aside.rename(folder)

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen = set()
    try:
        for _ in range(1000):
            try:
                seen.add(local.read(stored(CONTENT)))
            except GuardError as refused:
                seen.add(refused.code)
    finally:
        done.set()
        swapping.join()

    assert seen <= {CONTENT, "artifact_missing", "artifact_tampered"}


def test_an_object_that_changes_while_it_is_read_is_refused_in_the_end(local, folder):
    (path,) = folder.iterdir()

    with (  # noqa: PT012 - the block is what is refused
        pytest.raises(GuardError) as refused,
        local.backend.open(DATASOURCE, stored(CONTENT)) as file,
    ):
        path.chmod(0o600)
        with path.open("r+b") as same:
            same.write(b"other")
        assert file.read()

    assert refused.value.code == "artifact_tampered"


def test_many_put_the_same_at_once_and_one_object_is_there(local):
    with ThreadPoolExecutor(8) as pool:
        artifacts = set(pool.map(lambda _: local.put(), range(32)))

    assert artifacts == {stored(CONTENT)}
    assert local.locators() == [stored(CONTENT).locator]


def test_a_file_that_may_not_grow_is_refused_and_nothing_is_left(local):
    soft, hard = getrlimit(RLIMIT_FSIZE)
    assert soft == RLIM_INFINITY or soft > 2**20
    setrlimit(RLIMIT_FSIZE, (2**20, hard))
    try:
        with pytest.raises(ServiceUnavailableError, match="File too large") as refused:
            local.put(bytes(2**20 + 1))
    finally:
        setrlimit(RLIMIT_FSIZE, (soft, hard))

    assert refused.value.__context__ is None
    assert local.locators() == []
    assert list((local.root / TENANT / DATASOURCE).iterdir()) == []


def test_a_full_disk_is_refused_and_nothing_is_left(tmp_path):
    (tmp_path / "disk").mkdir()
    script = tmp_path / "script.py"
    script.write_text(WRITE_A_MEBIBYTE.format(end="upload.finish()"))
    # In a mount namespace of its own, for which nobody needs to be root.
    command = (
        f"mount -t tmpfs -o size=256k none {tmp_path}/disk && "
        f"{sys.executable} {script} {tmp_path}/disk/artifacts; "
        f"find {tmp_path}/disk -type f | wc -l"
    )

    ended = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", command],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "No space left on device" in ended.stderr, ended.stderr
    assert "ServiceUnavailableError" in ended.stderr
    assert ended.stdout.splitlines()[-1].strip() == "0"


class Powerless:
    """Somebody who may do nothing: root becomes nobody, all others lose the directory."""

    def __init__(self, folder):
        self._folder = folder

    def __enter__(self):
        self._folder.chmod(0o500)
        if os.geteuid() == 0:
            os.seteuid(NOBODY)

    def __exit__(self, *_failure):
        if os.getuid() == 0:
            os.seteuid(0)
        self._folder.chmod(0o700)


def test_permission_that_is_lost_before_the_upload_leaves_nothing(local, folder):
    with Powerless(folder), pytest.raises(ServiceUnavailableError, match="Permission denied"):
        local.put(b"more")

    assert local.locators() == [stored(CONTENT).locator]


def test_permission_that_is_lost_during_the_upload_leaves_no_object(local, folder):
    with (  # noqa: PT012 - permission goes in the middle
        pytest.raises(ServiceUnavailableError, match=r"not permitted|Permission denied"),
        local.backend.begin(DATASOURCE) as upload,
    ):
        upload.file.write(b"more")
        with Powerless(folder):
            upload.finish()

    assert local.locators() == [stored(CONTENT).locator]


def test_an_object_that_may_not_be_read_is_refused_as_that(local, folder):
    (path,) = folder.iterdir()
    path.chmod(0)
    with (
        Powerless(folder),
        pytest.raises(ServiceUnavailableError, match="Permission denied"),
    ):
        local.read(stored(CONTENT))


def test_an_upload_goes_on_after_its_process_was_killed(local, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(WRITE_A_MEBIBYTE.format(end="import os; os.kill(os.getpid(), 9)"))
    ended = subprocess.run(
        [sys.executable, script, local.root], capture_output=True, text=True, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    checkpoint = ended.stdout.strip()
    assert local.locators() == [checkpoint]

    with local.backend.begin(DATASOURCE, checkpoint) as upload:
        assert upload.position == 2**20
        upload.file.write(b"the rest")
        artifact = upload.finish()

    assert artifact == stored(bytes(2**20) + b"the rest")
    assert local.locators() == [artifact.locator]


def test_orphans_are_what_no_reference_names_and_is_old_enough(local):
    referenced, orphan = local.put(b"referenced"), local.put(b"orphan")
    with local.backend.begin(DATASOURCE) as upload:
        unfinished = upload.suspend()
    kept, soon = list(local.backend.kept()), datetime.now(UTC) + timedelta(hours=1)

    found = orphans(kept, {referenced.locator}, before=soon)

    assert {one.locator for one in found} == {orphan.locator, unfinished}
    assert orphans(kept, set(), before=min(one.changed_at for one in kept)) == ()


def test_a_directory_that_is_open_stays_itself_whatever_has_its_name(tmp_path):
    (tmp_path / "a").mkdir()

    with directory(tmp_path, "a") as here:
        (tmp_path / "a").rename(tmp_path / "b")
        (tmp_path / "a").symlink_to("/")
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))

    assert (tmp_path / "b" / "file").is_file()


def test_tenants_do_not_see_each_other(local):
    artifact = local.put()
    other = LocalArtifacts(local.root, "other")

    with pytest.raises(GuardError) as refused, other.open(DATASOURCE, artifact):
        pass

    assert refused.value.code == "artifact_missing"
    assert list(other.kept()) == []
