"""A file as it is stored: read by position through one descriptor, and watched while it is read.

Files are never mapped into memory: one that is cut short meanwhile would kill the process.

Source: SPEC section 3, "Hostile files".
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from datasource_governance.errors import UnreadableSourceError
from datasource_governance.sources.limits import Source
from datasource_governance.sources.opening import Stamp, changed, opened, stamp_of
from datasource_governance.sources.refusal import shielded

if TYPE_CHECKING:
    import pyarrow as pa

Result = TypeVar("Result")


class StoredFile:
    """The bytes of a source that is open, by path or in memory."""

    name: str
    """For messages; the last part of the path."""
    size: int
    """In bytes, when it was opened."""
    stamp: Stamp | None
    """What the file was when it was opened; None for bytes, which do not change."""

    def __init__(self, name: str, content: bytes | BinaryIO) -> None:
        self.name = name
        self._content = content
        self.stamp = None if isinstance(content, bytes) else stamp_of(content)
        self.size = (
            len(content) if isinstance(content, bytes) else os.fstat(content.fileno()).st_size
        )

    def reader(self) -> "pa.NativeFile":
        """Return a reader of the bytes, which leaves the file open when it is closed or lost."""
        import pyarrow as pa

        if isinstance(self._content, bytes):
            return pa.BufferReader(self._content)
        return pa.PythonFile(self._content, mode="r")

    def read(
        self,
        read: Callable[[], Result],
        otherwise: UnreadableSourceError,
        stamp: Stamp | None = None,
    ) -> Result:
        """Return what `read` returns, if the file stayed what it was when it was opened.

        Given a stamp, also if the file was that one when it was opened.

        Raises:
            UnreadableSourceError: kind `unreadable` when the file changed, whatever else went
                wrong; else as `shielded`.
        """
        outcome: Result | UnreadableSourceError
        try:
            outcome = shielded(read, otherwise)
        except UnreadableSourceError as error:
            outcome = error
        if not self._is_unchanged(stamp):
            outcome = changed(self.name)
        if isinstance(outcome, UnreadableSourceError):
            raise outcome
        return outcome

    def _is_unchanged(self, stamp: Stamp | None) -> bool:
        if isinstance(self._content, bytes):
            return True
        before = stamp or self.stamp
        return before is not None and before.still_holds(stamp_of(self._content))


@contextmanager
def stored_file(source: Source | BinaryIO) -> Iterator[StoredFile]:
    """Open a source for the time of a block; a file that is open already stays so.

    Raises:
        UnreadableSourceError: kinds `not_found`; `unreadable` for a directory, a device, a file
            without permission.
    """
    if isinstance(source, bytes):
        yield StoredFile("content", source)
        return
    if not isinstance(source, (str, os.PathLike)):
        yield StoredFile("content", source)
        return
    with opened(Path(source)) as file:
        yield StoredFile(Path(source).name, file)
