"""An artifact that is being written: there as a whole in the end, or not at all.

Bytes go to a file under a name of its own. What is not finished is removed, unless it was suspended
or the process was killed; then its checkpoint goes on with it.

Source: SPEC section 10; facts 4.10 and E19.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, cast

from datasource_governance.artifacts.directories import unbuffered
from datasource_governance.artifacts.hashing import HashingFile
from datasource_governance.artifacts.locators import locator_of
from datasource_governance.artifacts.shielding import NOT_KEPT, shielded
from datasource_governance.domain.artifact import StoredArtifact
from datasource_governance.errors import ServiceUnavailableError


@dataclass(frozen=True, slots=True, kw_only=True)
class Partial:
    """The file of an upload: a name in a directory that is open, and its own descriptor."""

    datasource: str
    name: str
    directory: int
    descriptor: int


Keep = Callable[[Partial, StoredArtifact], None]
"""Puts what was written where a backend keeps it, if nothing is there yet."""


class Upload:
    """See ports.artifacts.ArtifactUpload."""

    is_suspended = False

    def __init__(self, partial: Partial, backend: str, keep: Keep) -> None:
        self._partial = partial
        self._backend = backend
        self._keep = keep
        self._file = HashingFile(partial.descriptor)
        shielded(self._file.take_in, NOT_KEPT)

    @property
    def file(self) -> BinaryIO:
        """See ports.artifacts.ArtifactUpload."""
        return cast("BinaryIO", self._file)

    @property
    def position(self) -> int:
        """See ports.artifacts.ArtifactUpload."""
        return self._file.tell()

    @property
    def failure(self) -> ServiceUnavailableError | None:
        """See ports.artifacts.ArtifactUpload."""
        return self._file.failure

    @property
    def checkpoint(self) -> str:
        """See ports.artifacts.ArtifactUpload."""
        return f"{self._partial.datasource}/{self._partial.name}"

    @contextmanager
    def written(self) -> Iterator[BinaryIO]:
        """See ports.artifacts.ArtifactUpload."""
        with unbuffered(os.dup(self._partial.descriptor)) as file:
            file.seek(0)
            yield file

    def suspend(self) -> str:
        """See ports.artifacts.ArtifactUpload."""
        shielded(lambda: os.fsync(self._partial.descriptor), NOT_KEPT)
        self.is_suspended = True
        return self.checkpoint

    def finish(self) -> StoredArtifact:
        """See ports.artifacts.ArtifactUpload."""
        if self.failure is not None:
            raise self.failure
        sha256 = self._file.sha256
        artifact = StoredArtifact(
            backend=self._backend,
            locator=locator_of(self._partial.datasource, sha256),
            sha256=sha256,
            byte_count=self.position,
        )
        shielded(lambda: os.fsync(self._partial.descriptor), NOT_KEPT)
        shielded(lambda: self._keep(self._partial, artifact), NOT_KEPT)
        return artifact
