"""An open file that stays open for as long as somebody may want to read it again.

Source: SPEC section 10 ("what is read is what was verified").
"""

import io
import os
import weakref
from typing import BinaryIO, cast

from typing_extensions import Buffer, override

from datasource_governance.sources.opening import changed, stamp_of


class KeptOpen:
    """A regular file, whatever becomes of its name; closed when nobody refers to it any more.

    Its views are files of their own to who reads them: each has its own place in it, so that
    several may be read at once.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._descriptor = os.dup(file.fileno())
        self._stamp = stamp_of(file)
        weakref.finalize(self, os.close, self._descriptor)

    def view(self) -> BinaryIO:
        """Return a file to read from the beginning.

        Raises:
            UnreadableSourceError: kind `unreadable`, if the file is not what it was at first.
        """
        view = cast("BinaryIO", _View(self, self._descriptor))
        if not self._stamp.still_holds(stamp_of(view)):
            raise changed("the file")
        return view


class _View(io.RawIOBase):
    def __init__(self, kept: KeptOpen, descriptor: int) -> None:
        super().__init__()
        self._kept = kept
        self._descriptor = descriptor
        self._place = 0

    @override
    def fileno(self) -> int:
        return self._descriptor

    @override
    def readable(self) -> bool:
        return True

    @override
    def seekable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Buffer, /) -> int:
        read = os.preadv(self._descriptor, [buffer], self._place)
        self._place += read
        return read

    @override
    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place}.get(whence)
        self._place = offset + (os.fstat(self._descriptor).st_size if start is None else start)
        return self._place

    @override
    def tell(self) -> int:
        return self._place
