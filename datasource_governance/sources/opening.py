"""Open a regular file, and tell later whether it is still the same.

Source: SPEC section 3, "Hostile files".
"""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from datasource_governance.errors import UnreadableSourceError
from datasource_governance.sources.refusal import refused

Stamp = tuple[int, int, int, int]
"""Device, inode, bytes and nanosecond of the last change: another file has another one."""


def opened(path: Path) -> BinaryIO:
    """Open a regular file for reading.

    Raises:
        UnreadableSourceError: kinds `not_found`; `unreadable` for a directory, a device, a file
            without permission. They name the last part of the path.
    """
    kind, message = "unreadable", "not a regular file"
    try:
        # Before opening: to open a pipe is to wait for its writer.
        if stat.S_ISREG(path.stat().st_mode):
            return path.open("rb")
    except FileNotFoundError:
        kind, message = "not_found", "no such file"
    except (OSError, ValueError):
        message = "the file cannot be opened or read"
    raise refused(path.name, kind, message)


def stamp_of(file: BinaryIO) -> Stamp:
    """Return what tells an open file from others and from itself at another time."""
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def changed(name: str) -> UnreadableSourceError:
    """Return the refusal of a file that is not what it was."""
    return refused(name, "unreadable", "the file changed while it was read")
