"""Hold an object's bytes against its reference, all of them, in one pass and in bounded memory.

Source: SPEC section 10 ("streamed checksum, size"); facts T-14.
"""

import hashlib
from typing import Final, Protocol

from datasource_governance.domain.artifact import StoredArtifact, tampered

CHUNK_BYTES: Final = 1024 * 1024


class Readable(Protocol):
    """What bytes are read from, as `io.RawIOBase.read`."""

    def read(self, size: int, /) -> bytes:
        """Return up to so many bytes, none at the end."""
        ...


class Writable(Protocol):
    """What bytes are written to."""

    def write(self, data: bytes, /) -> object:
        """Write them."""
        ...


def check_bytes(file: Readable, artifact: StoredArtifact, copy: Writable | None = None) -> None:
    """Read a file to its end; write what was read to `copy`, if there is one.

    Of a file that is longer than it should be no more than a chunk is read, or copied, beyond that.

    Raises:
        GuardError: code `artifact_tampered`, unless size and digest are the artifact's.
    """
    state, count = hashlib.sha256(), 0
    while count <= artifact.byte_count and (chunk := file.read(CHUNK_BYTES)):
        state.update(chunk)
        count += len(chunk)
        if copy is not None:
            copy.write(chunk)
    if count != artifact.byte_count:
        raise tampered(artifact.locator, "it has another size")
    if state.hexdigest() != artifact.sha256:
        raise tampered(artifact.locator, "it has other bytes")
