"""Artifacts as files below one directory of this machine, or of a file system that it has mounted.

A file appears by a link, as a whole and only where nothing is, and is never written to again. What
is read is what was verified: one open file.

Source: SPEC section 10; facts 4.10, E19, T-13 and T-14.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO

from datasource_governance.artifacts.checking import check_bytes
from datasource_governance.artifacts.directories import IrregularFileError, unbuffered
from datasource_governance.artifacts.files import TenantFiles
from datasource_governance.artifacts.locators import check_reference, names_of
from datasource_governance.artifacts.shielding import NOT_DELETED, NOT_LISTED, UNREADABLE, shielded
from datasource_governance.artifacts.upload import Partial, Upload
from datasource_governance.domain.artifact import KeptObject, StoredArtifact, missing, tampered
from datasource_governance.sources.opening import stamp_of


class LocalArtifacts:
    """See ports.artifacts.ArtifactBackend."""

    name = "local"

    def __init__(self, root: Path, tenant: str) -> None:
        self._files = TenantFiles(root, tenant)

    def begin(
        self, datasource: str, checkpoint: str | None = None
    ) -> AbstractContextManager[Upload]:
        """See ports.artifacts.ArtifactBackend."""
        return self._files.upload(datasource, checkpoint, self.name, self._keep)

    @contextmanager
    def open(self, datasource: str, artifact: StoredArtifact) -> Iterator[BinaryIO]:
        """See ports.artifacts.ArtifactBackend."""
        check_reference(self.name, datasource, artifact)
        descriptor = shielded(lambda: self._opened(artifact), UNREADABLE)
        with unbuffered(descriptor) as file:
            before = stamp_of(file)
            shielded(lambda: check_bytes(file, artifact), UNREADABLE)
            file.seek(0)
            yield file
            if not before.still_holds(stamp_of(file)):
                raise tampered(artifact.locator, "it changed while it was read")

    def version(self, datasource: str, artifact: StoredArtifact) -> str:
        """See ports.artifacts.ArtifactBackend."""
        check_reference(self.name, datasource, artifact)
        with unbuffered(shielded(lambda: self._opened(artifact), UNREADABLE)) as file:
            stamp = stamp_of(file)
        # Without what changes when the upload of the same bytes by somebody else ends.
        return f"{stamp.device}-{stamp.inode}-{stamp.size}-{stamp.modified}"

    def delete(self, locator: str) -> bool:
        """See ports.artifacts.ArtifactBackend."""
        names = names_of(locator)
        return shielded(lambda: self._deleted(*names), NOT_DELETED)

    def _deleted(self, datasource: str, name: str) -> bool:
        # A folder that is not mounted has lost nothing.
        self._files.check_there()
        return self._files.delete(datasource, name)

    def kept(self) -> Iterator[KeptObject]:
        """See ports.artifacts.ArtifactBackend."""
        return iter(shielded(self._files.kept, NOT_LISTED))

    def _opened(self, artifact: StoredArtifact) -> int:
        try:
            return self._files.open(*names_of(artifact.locator))
        except FileNotFoundError:
            refusal = missing(artifact.locator)
        except (IrregularFileError, NotADirectoryError):
            refusal = tampered(artifact.locator, "it is no regular file")
        raise refusal

    def _keep(self, partial: Partial, artifact: StoredArtifact) -> None:
        os.fchmod(partial.descriptor, stat.S_IRUSR)
        if not _link(partial, artifact.sha256):
            with self.open(partial.datasource, artifact):
                pass
        os.fsync(partial.directory)


def _link(partial: Partial, name: str) -> bool:
    """Give a file another name in its directory; return False where the name is taken."""
    here = partial.directory
    try:
        os.link(partial.name, name, src_dir_fd=here, dst_dir_fd=here, follow_symlinks=False)
    except FileExistsError:
        return False
    return True
