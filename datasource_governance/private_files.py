"""Files that only their owner reads, from their first byte: keys, passwords, signed documents.

Source: SPEC sections 16 and 17 (mode 0600).
"""

import os
import tempfile
from pathlib import Path


def create(path: Path, content: bytes) -> bool:
    """Write a new file; return False, and do nothing, where there is one already."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return True


def replace(path: Path, content: bytes) -> None:
    """Write a file, or put another one in its place as a whole: before or after, never between."""
    descriptor, partial = tempfile.mkstemp(dir=path.parent, prefix=path.name)  # of mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(partial).replace(path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
