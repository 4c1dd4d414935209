"""A receiver that keeps events as lines of a file.

Source: SPEC section 13.
"""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from datasource_governance.domain.event import Event
from datasource_governance.receivers.subscription import unavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """Appends one line of canonical JSON for each event and waits until the disk has it.

    The file is its owner's alone, and is made when there is none; its folder is not.
    """

    path: Path

    def deliver(self, event: Event) -> None:
        """Append an event.

        Raises:
            ServiceUnavailableError: when the file cannot be written to.
        """
        reason = None
        try:
            self._append(event.body + b"\n")
        except OSError as error:
            reason = error.strerror
        if reason is not None:
            raise unavailable(f"its file cannot be written to: {reason}")

    def _append(self, line: bytes) -> None:
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            # Two deliverers may have something to write, each of another datasource.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            file.write(line if _is_whole(descriptor) else b"\n" + line)
            file.flush()
            os.fsync(descriptor)


def _is_whole(descriptor: int) -> bool:
    """Tell whether a file ends with a line's end; a crash may have cut the last line short."""
    size = os.fstat(descriptor).st_size
    return size == 0 or os.pread(descriptor, 1, size - 1) == b"\n"
