"""A file as it is stored: read by position through one descriptor, and watched while it is read.

Files are never mapped into memory: one that is cut short meanwhile would kill the process.

Source: SPEC section 3, "Hostile files".
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

from datasource_governance.errors import UnreadableSourceError
from datasource_governance.sources.limits import TOO_LARGE, Limits, Source
from datasource_governance.sources.refusal import refused, shielded

if TYPE_CHECKING:
    import pyarrow as pa

Result = TypeVar("Result")
Stamp = tuple[int, int, int, int]
"""Device, inode, bytes and nanosecond of the last change: another file has another one."""


class StoredFile:
    """The bytes of a source that is open, by path or in memory."""

    name: str
    """For messages; the last part of the path."""
    size: int
    """In bytes, when it was opened."""
    stamp: Stamp | None
    """What the file was when it was opened; None for bytes, which do not change."""

    def __init__(self, name: str, content: bytes | IO[bytes]) -> None:
        self.name = name
        self._content = content
        self.stamp = None if isinstance(content, bytes) else _stamp(content)
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
            outcome = refused(self.name, "unreadable", "the file changed while it was read")
        if isinstance(outcome, UnreadableSourceError):
            raise outcome
        return outcome

    def _is_unchanged(self, stamp: Stamp | None) -> bool:
        if isinstance(self._content, bytes):
            return True
        return _stamp(self._content) == self.stamp == (stamp or self.stamp)


def _stamp(file: IO[bytes]) -> Stamp:
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@contextmanager
def stored_file(source: Source) -> Iterator[StoredFile]:
    """Open a source for the time of a block.

    Raises:
        UnreadableSourceError: kinds `not_found`; `unreadable` for a directory, a device, a file
            without permission.
    """
    if isinstance(source, bytes):
        yield StoredFile("content", source)
        return
    name = Path(source).name
    with _opened(Path(source), name) as file:
        yield StoredFile(name, file)


def check_file_bytes(file: StoredFile, limits: Limits) -> None:
    """Refuse a file that is larger than the limit, as kind `too_large`."""
    if file.size > limits.file_bytes:
        raise refused(file.name, TOO_LARGE, f"more than {limits.file_bytes} bytes")


def _opened(path: Path, name: str) -> IO[bytes]:
    kind, message = "unreadable", "not a regular file"
    try:
        # Before opening: to open a pipe is to wait for its writer.
        if stat.S_ISREG(path.stat().st_mode):
            return path.open("rb")
    except FileNotFoundError:
        kind, message = "not_found", "no such file"
    except (OSError, ValueError):
        message = "the file cannot be opened or read"
    raise refused(name, kind, message)
