"""A file that is hashed while it is written, so that nobody has to read it again for that.

Source: SPEC section 10 ("streamed checksum").
"""

import hashlib
import io
import os

from typing_extensions import Buffer, override

from datasource_governance.artifacts.checking import CHUNK_BYTES
from datasource_governance.artifacts.shielding import NOT_KEPT, shielded
from datasource_governance.domain.canonical import Sha256
from datasource_governance.errors import ServiceUnavailableError


class HashingFile(io.RawIOBase):
    """A file to write to from its beginning to its end.

    It has no descriptor to show, so that no writer goes past it, and closing it does nothing.
    """

    failure: ServiceUnavailableError | None = None
    """Why not everything was taken, if it was not."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._state = hashlib.sha256()
        self._position = 0

    def take_in(self) -> None:
        """Read what is there already, so that writing goes on behind it."""
        while chunk := os.read(self._descriptor, CHUNK_BYTES):
            self._count(chunk)

    @property
    def sha256(self) -> Sha256:
        """Digest of everything so far."""
        return Sha256(self._state.hexdigest())

    @override
    def writable(self) -> bool:
        return True

    @override
    def tell(self) -> int:
        return self._position

    @override
    def write(self, data: Buffer, /) -> int:
        """Write all of the bytes.

        Raises:
            ServiceUnavailableError: the disk is full, or the file may not grow. Writers make errors
                of their own of it, hence `failure`.
        """
        taken = memoryview(data).cast("B")
        try:
            shielded(lambda: self._write_at(taken, self._position), NOT_KEPT)
        except ServiceUnavailableError as error:
            # Another one, because this one's traceback holds the bytes.
            self.failure = ServiceUnavailableError(str(error))
            raise
        self._count(taken)
        return len(taken)

    def _write_at(self, data: memoryview, position: int) -> None:
        while data:
            written = os.pwrite(self._descriptor, data, position)
            data, position = data[written:], position + written

    def _count(self, taken: Buffer) -> None:
        self._state.update(taken)
        self._position += memoryview(taken).nbytes
