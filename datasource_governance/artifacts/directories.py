"""Directories below a root, entered one name at a time and never through a link.

A path is looked up anew each time that it is used, and what it means may have been changed in
between. A directory that is open stays the same one, whatever happens to its name.

Source: facts E19, 4.10 and T-13.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, cast

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY
GO_ON = os.O_RDWR
BEGIN = os.O_RDWR | os.O_CREAT | os.O_EXCL
"""How a file is opened: to read it, to write behind what it has, to make it."""


class IrregularFileError(OSError):
    """Something else than a regular file has the name."""


def unbuffered(descriptor: int) -> BinaryIO:
    """Return the file of a descriptor, which it closes in the end.

    Another process that is handed the descriptor moves the place at which it is read, of which a
    buffer would know nothing.
    """
    return cast("BinaryIO", os.fdopen(descriptor, "rb", buffering=0))


@contextmanager
def directory(root: Path, *names: str, make: bool = False) -> Iterator[int]:
    """Open a directory below a root for the time of a block.

    The root itself is of the configuration, and may be a link. With `make` whatever is missing is
    made, and what is below the root for its owner only.

    Raises:
        OSError: it is not there, no directory, a link, or may not be opened.
    """
    if make:
        root.mkdir(parents=True, exist_ok=True)
    with ExitStack() as opened:
        here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        opened.callback(os.close, here)
        for name in names:
            if make:
                _make(name, here)
            here = os.open(name, _DIRECTORY, dir_fd=here)
            opened.callback(os.close, here)
        yield here


def _make(name: str, parent: int) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent)
        os.fsync(parent)


def open_regular(name: str, parent: int, how: int = READ) -> int:
    """Open a regular file of a directory and return its descriptor; links are not followed.

    Raises:
        IrregularFileError: it is a link, a pipe, or anything else.
        OSError: it is not there, or may not be opened.
    """
    # A pipe in the place of a file would otherwise be waited for.
    flags = how | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, 0o600, dir_fd=parent)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO, errno.EISDIR}:
            raise IrregularFileError from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise IrregularFileError
    return descriptor
