"""A file that is read more than once and must be the same every time.

Source: SPEC section 3, "Hostile files".
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from datasource_governance.errors import UnreadableSourceError
from datasource_governance.sources.opening import changed, opened, stamp_of
from datasource_governance.sources.refusal import refused


class StableFile:
    """A regular file in chunks, as often as it takes.

    It is open only while it is read. Which file it is, its size and the time it was last written
    are compared before and after every reading.

    Raises:
        UnreadableSourceError: kinds `not_found`; `unreadable` for a directory, a device, a file
            without permission, a file that changed; `too_large`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self.name = self._path.name
        with opened(self._path) as file:
            self._stamp = stamp_of(file)
            self.size = os.fstat(file.fileno()).st_size

    def changed(self) -> UnreadableSourceError:
        """Return the refusal of a file that is not what it was."""
        return changed(self.name)

    def chunks(self, size: int) -> Iterator[bytes]:
        """Yield the bytes of the file from its beginning, `size` at a time."""
        with opened(self._path) as file:
            self._check(file)
            while chunk := self._read(file, size):
                yield chunk
            self._check(file)

    def _check(self, file: BinaryIO) -> None:
        if stamp_of(file) != self._stamp:
            raise self.changed()

    def _read(self, file: BinaryIO, size: int) -> bytes:
        try:
            return file.read(size)
        except OSError:
            pass
        raise refused(self.name, "unreadable", "the file cannot be opened or read")
