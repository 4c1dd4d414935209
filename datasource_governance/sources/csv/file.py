"""A file that is read more than once and must be the same every time.

Source: SPEC section 3, "Hostile files".
"""

import os
from collections.abc import Iterator
from pathlib import Path

from datasource_governance.errors import UnreadableSourceError
from datasource_governance.sources.opening import changed
from datasource_governance.sources.refusal import refused
from datasource_governance.sources.stored import stored_file


class StableFile:
    """A regular file in chunks, as often as it takes.

    It is open only while it is read. Which file it is, its size and the time it was last written
    are compared at every step of every reading.

    Raises:
        UnreadableSourceError: kinds `not_found`; `unreadable` for a directory, a device, a file
            without permission, a file that changed; `too_large`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        with stored_file(self._path) as file:
            self.name, self.size, self._stamp = file.name, file.size, file.stamp

    def changed(self) -> UnreadableSourceError:
        """Return the refusal of a file that is not what it was."""
        return changed(self.name)

    def chunks(self, size: int) -> Iterator[bytes]:
        """Yield the bytes of the file from its beginning, `size` at a time."""
        otherwise = refused(self.name, "unreadable", "the file cannot be opened or read")
        with stored_file(self._path) as file:
            reader = file.reader()
            while chunk := file.read(lambda: reader.read(size), otherwise, self._stamp):
                yield chunk
