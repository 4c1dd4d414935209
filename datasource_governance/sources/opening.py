"""Open a regular file, and tell later whether it is still the same.

Source: SPEC section 3, "Hostile files".
"""

import os
import stat
from pathlib import Path
from typing import BinaryIO, NamedTuple

from datasource_governance.errors import UnreadableSourceError
from datasource_governance.sources.refusal import refused


class Stamp(NamedTuple):
    """What tells a file from others and from itself at another time.

    `modified` is the nanosecond in which it was written to, as whoever owns it may set it;
    `changed` is the one in which that or anything else about it was changed, which nobody sets.
    """

    device: int
    inode: int
    size: int
    modified: int
    changed: int
    names: int

    def still_holds(self, now: "Stamp") -> bool:
        """Tell whether a file is what it was; a name that it lost since does not count.

        A finished upload loses the name that it had meanwhile, and an object that is deleted or
        replaced is still read by who has it open.
        """
        return self[:4] == now[:4] and (self.changed == now.changed or now.names < self.names)


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
    """Return the stamp of an open file."""
    status = os.fstat(file.fileno())
    return Stamp(
        device=status.st_dev,
        inode=status.st_ino,
        size=status.st_size,
        modified=status.st_mtime_ns,
        changed=status.st_ctime_ns,
        names=status.st_nlink,
    )


def changed(name: str) -> UnreadableSourceError:
    """Return the refusal of a file that is not what it was."""
    return refused(name, "unreadable", "the file changed while it was read")
