"""The keys of a payload larger than memory, on disk, so that equal ones meet again.

Keys go to partitions by their hash; a partition that is still too large is divided again. The file
has no name, so nobody else can open it, and it is gone when the process is, however that ends.

Source: SPEC section 18, "out of core".
"""

import io
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

ROW = "row"
"""The column that numbers the rows of a stored frame; all others are the key."""
_FAN_OUT = 64
_MAXIMUM_LEVEL = 8
"""A hash of 64 bits has no more than ten digits of 64 to divide by."""

_Stored = tuple[int, int]
"""Offset and length in the file."""
_Place = tuple[int, ...]
"""The digits that the hashes of a partition begin with."""


class Spill:
    """A file of frames, to be closed in the end; each of several rules has a store in it."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`

    def close(self) -> None:
        """Give the disk back."""
        self._file.close()

    def append(self, frame: "pl.DataFrame") -> _Stored:
        """Store a frame and return where: its offset and length in bytes."""
        content = io.BytesIO()
        frame.write_ipc_stream(content)
        offset = self._file.seek(0, io.SEEK_END)
        return offset, self._file.write(content.getbuffer())

    def read(self, offset: int, length: int) -> "pl.DataFrame":
        """Return a stored frame."""
        import polars as pl

        self._file.seek(offset)
        return pl.read_ipc_stream(io.BytesIO(self._file.read(length)))


class KeyStore:
    """The keys of one rule, in partitions of at most about `partition_bytes`."""

    def __init__(self, spill: Spill, partition_bytes: int) -> None:
        self._spill = spill
        self._partition_bytes = partition_bytes
        self._parts: dict[_Place, list[_Stored]] = defaultdict(list)
        self._held: list[pl.DataFrame] = []

    def add(self, frame: "pl.DataFrame") -> None:
        """Store keys with their row numbers, which are higher than all that are here.

        They are held in memory as long as they make one partition.
        """
        self._held.append(frame)
        if self._parts or sum(held.estimated_size() for held in self._held) > self._partition_bytes:
            for held in self._held:
                self._divide(held, ())
            self._held.clear()

    def partitions(self) -> Iterator["pl.DataFrame"]:
        """Yield all keys, equal ones together, in ascending order of rows."""
        import polars as pl

        if self._held:
            yield pl.concat(self._held)
        for group in self._groups(self._small(())):
            yield self._read(group)

    def _small(self, place: _Place) -> Iterator[list[_Stored]]:
        """Yield the parts of every partition below a place; one that is too large is divided."""
        for below in sorted(one for one in self._parts if one[:-1] == place):
            parts = self._parts[below]
            if _size(parts) <= self._partition_bytes or len(below) > _MAXIMUM_LEVEL:
                yield parts
                continue
            for group in self._groups([part] for part in parts):
                self._divide(self._read(group), below)
            yield from self._small(below)

    def _groups(self, pieces: Iterable[list[_Stored]]) -> Iterator[list[_Stored]]:
        """Yield pieces together, as many as make one partition."""
        group: list[_Stored] = []
        for piece in pieces:
            if group and _size(group) + _size(piece) > self._partition_bytes:
                yield group
                group = []
            group = group + piece
        if group:
            yield group

    def _read(self, parts: list[_Stored]) -> "pl.DataFrame":
        import polars as pl

        frame = pl.concat([self._spill.read(*part) for part in parts])
        return frame[frame[ROW].arg_sort()]

    def _divide(self, frame: "pl.DataFrame", place: _Place) -> None:
        import numpy as np

        digits = _digits(frame, len(place))
        order = np.argsort(digits, kind="stable")
        ordered = frame[order]
        ends = np.cumsum(np.bincount(digits, minlength=_FAN_OUT))
        for digit, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            if end > start:
                part = self._spill.append(ordered.slice(int(start), int(end - start)))
                self._parts[(*place, digit)].append(part)


def _size(parts: list[_Stored]) -> int:
    return sum(length for _, length in parts)


def _digits(frame: "pl.DataFrame", level: int) -> "npt.NDArray[np.uint8]":
    """Return the digit of each key's hash at a level."""
    import numpy as np

    hashes = frame.drop(ROW).hash_rows().to_numpy()
    digits: npt.NDArray[np.uint8] = (hashes // np.uint64(_FAN_OUT**level)) % np.uint64(_FAN_OUT)
    return digits.astype(np.uint8)
