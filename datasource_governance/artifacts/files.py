"""The files of a tenant in a directory of this machine: artifacts, and uploads that go on.

Source: SPEC section 10; facts 4.10, E19 and T-13.
"""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from datasource_governance.artifacts.directories import BEGIN, GO_ON, directory, open_regular
from datasource_governance.artifacts.locators import (
    checked_name,
    checked_partial,
    is_name,
    is_object_name,
    partial_name,
)
from datasource_governance.artifacts.shielding import NOT_KEPT, shielded
from datasource_governance.artifacts.upload import Keep, Partial, Upload
from datasource_governance.domain.artifact import KeptObject
from datasource_governance.errors import NotFoundError, ServiceUnavailableError


class TenantFiles:
    """Files at `<root>/<tenant>/<datasource>/<name>`."""

    def __init__(self, root: Path, tenant: str) -> None:
        self._root = root
        self._tenant = checked_name("tenant", tenant)

    @contextmanager
    def upload(
        self, datasource: str, checkpoint: str | None, backend: str, keep: Keep
    ) -> Iterator[Upload]:
        """Begin an upload, or go on with one; remove its file in the end unless it is suspended.

        Raises:
            InvalidArgumentError: it is no id of a datasource, or no checkpoint of an upload to it.
            NotFoundError: there is no such upload any more.
            ServiceUnavailableError: nothing can be written; code `busy` when somebody else does.
        """
        with ExitStack() as opened:
            partial = shielded(lambda: self._opened(opened, datasource, checkpoint), NOT_KEPT)
            upload = Upload(partial, backend, keep)
            try:
                yield upload
            finally:
                if not upload.is_suspended:
                    _remove(partial)

    def open(self, datasource: str, name: str) -> int:
        """Open a file for reading and return its descriptor.

        Raises:
            OSError: it is not there, no regular file, or may not be read.
        """
        with directory(self._root, self._tenant, datasource) as here:
            return open_regular(name, here)

    def path_of(self, partial: Partial) -> Path:
        """Return the path of an upload's file, for stores that take nothing else."""
        return self._root / self._tenant / partial.datasource / partial.name

    def delete(self, datasource: str, name: str) -> bool:
        """Remove a file; return whether it was there.

        Raises:
            OSError: it may not be removed.
        """
        try:
            with directory(self._root, self._tenant, datasource) as here:
                os.unlink(name, dir_fd=here)
                os.fsync(here)
        except FileNotFoundError:
            return False
        return True

    def check_there(self) -> None:
        """Refuse to tell what is gone from where nothing was ever kept.

        Raises:
            OSError: the tenant's directory is missing.
        """
        with directory(self._root, self._tenant):
            pass

    def kept(self) -> list[KeptObject]:
        """Return every file that a locator can name, in order of locators.

        Raises:
            OSError: a directory may not be read.
        """
        try:
            with directory(self._root, self._tenant) as here, os.scandir(here) as entries:
                directories = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return []
        datasources = sorted(filter(is_name, directories))
        return [one for datasource in datasources for one in self._kept_of(datasource)]

    def _kept_of(self, datasource: str) -> list[KeptObject]:
        found = []
        with directory(self._root, self._tenant, datasource) as here, os.scandir(here) as entries:
            for entry in entries:
                if not is_object_name(entry.name) or not entry.is_file(follow_symlinks=False):
                    continue
                # What is finished meanwhile is removed under its first name.
                with contextlib.suppress(FileNotFoundError):
                    found.append(_kept(datasource, entry))
        return sorted(found, key=lambda one: one.locator)

    def _opened(self, opened: ExitStack, datasource: str, checkpoint: str | None) -> Partial:
        checked_name("datasource", datasource)
        goes_on = checkpoint is not None
        name = partial_name(secrets.token_hex(16))
        if checkpoint is not None:
            name = checked_partial(checkpoint, datasource)
        place = directory(self._root, self._tenant, datasource, make=not goes_on)
        descriptor = None
        with contextlib.suppress(FileNotFoundError):
            here = opened.enter_context(place)
            descriptor = open_regular(name, here, GO_ON if goes_on else BEGIN)
            opened.callback(os.close, descriptor)
            _lock(descriptor)
            return Partial(datasource=datasource, name=name, directory=here, descriptor=descriptor)
        raise NotFoundError("there is no upload to go on with; begin a new one")


def _lock(descriptor: int) -> None:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    raise ServiceUnavailableError("somebody else goes on with this upload", code="busy")


def _remove(partial: Partial) -> None:
    # Without permission it stays, and is listed among what nobody needs.
    with contextlib.suppress(OSError):
        os.unlink(partial.name, dir_fd=partial.directory)
        os.fsync(partial.directory)


def _kept(datasource: str, entry: "os.DirEntry[str]") -> KeptObject:
    status = entry.stat(follow_symlinks=False)
    return KeptObject(
        locator=f"{datasource}/{entry.name}",
        byte_count=status.st_size,
        changed_at=datetime.fromtimestamp(status.st_mtime, UTC),
    )
