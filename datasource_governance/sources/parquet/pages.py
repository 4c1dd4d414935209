"""What the headers of a Parquet file's pages say: how many values, and how large they can become.

The footer tells neither: its sizes are free to lie, and a page that refers to a dictionary may
repeat a long text a million times. Page headers are binding, because Arrow decodes by them. They
are read here, since pyarrow does not show them, and ends the process on damaged column metadata.

Source: SPEC section 3, "Hostile files"; Parquet format, "Thrift definitions"; Thrift compact
protocol.
"""

from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

_Struct = dict[tuple[int, int], Any]
"""The members of a Thrift struct by number and type: one of another type is another member."""

_INT32, _INT64, _LIST, _STRUCT = 5, 6, 9, 12
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = 0, 2, 3
_REFERRING = {2, 8}
_NOT_COMPRESSED = 0
_DELTA_OF_TEXTS = 7
_USUAL_HEADER_BYTES, _LARGEST_HEADER_BYTES = 256, 16 * 1024 * 1024
_FOOTER_END_BYTES = 8


class Chunk(NamedTuple):
    """The pages of one column in one row group."""

    values: int = 0
    """In all pages, with nulls and empty lists."""
    page_bytes: int = 0
    """All pages after decompression."""
    dictionary_values: int = 0
    """Distinct values that pages may refer to."""
    dictionary_bytes: int = 0
    """The dictionary page after decompression."""
    dictionary_position: int = 0
    """Where the dictionary begins in the file."""
    dictionary_stored_bytes: int = 0
    """The dictionary page as it is stored."""
    codec: int = 0
    """How pages are compressed, by the number of the format; 0 is not at all."""
    referring: int = 0
    """Values that refer to the dictionary."""
    written: int = 0
    """Bytes of the pages that write all of their values out."""
    shared: int = 0
    """The most bytes of values of which only the difference to their neighbour is written."""
    widest: int = 0
    """The most bytes that a value, not in the dictionary, takes on the average of its page."""


def chunks_of(file: "pa.NativeFile", size: int, wanted: Container[int]) -> list[dict[int, Chunk]]:
    """Return the wanted columns of each row group, by their position among all leaf columns.

    Raises:
        Exception: of any kind, when the headers are damaged; the caller shields.
    """
    length = int.from_bytes(file.read_at(4, size - _FOOTER_END_BYTES), "little")
    footer = _Reader(file.read_at(length, size - _FOOTER_END_BYTES - length)).struct()
    return [
        {
            place: _chunk(file, column[3, _STRUCT])
            for place, column in enumerate(group[1, _LIST])
            if place in wanted
        }
        for group in footer[4, _LIST]
    ]


def _chunk(file: "pa.NativeFile", column: _Struct) -> Chunk:
    position = column[9, _INT64]
    dictionary = column.get((11, _INT64), 0)
    if 0 < dictionary < position:
        position = dictionary
    found = Chunk(codec=column[4, _INT32])
    # Arrow reads on until it has seen as many values, so nothing that it reads is missed.
    while found.values < column[5, _INT64]:
        header, length = _page_header(file, position)
        found = _with_page(found, header, position + length)
        position += length + header[3, _INT32]
    return found


def _page_header(file: "pa.NativeFile", position: int) -> tuple[_Struct, int]:
    """Return a header and its length."""
    length = _USUAL_HEADER_BYTES
    while True:
        reader = _Reader(file.read_at(length, position))
        try:
            return reader.struct(), reader.position
        except IndexError:
            # Statistics with long texts.
            length *= 4
        if length > _LARGEST_HEADER_BYTES:
            raise ValueError("the header of a page has no end")


def _with_page(chunk: Chunk, header: _Struct, position: int) -> Chunk:
    kind, size, stored = (header[number, _INT32] for number in (1, 2, 3))
    if min(size, stored) < 0:
        raise ValueError("a page has less than nothing")
    if chunk.codec == _NOT_COMPRESSED:
        size = stored
    chunk = chunk._replace(page_bytes=chunk.page_bytes + size)
    if kind == _DICTIONARY_PAGE:
        values = header[7, _STRUCT][1, _INT32]
        return chunk._replace(
            dictionary_values=values,
            dictionary_bytes=size,
            dictionary_position=position,
            dictionary_stored_bytes=stored,
        )
    if kind == _DATA_PAGE:
        return _with_values(
            chunk, header[5, _STRUCT][1, _INT32], header[5, _STRUCT][2, _INT32], size
        )
    if kind == _DATA_PAGE_V2:
        # It may say of itself that it is not compressed.
        size = max(size, stored)
        return _with_values(
            chunk, header[8, _STRUCT][1, _INT32], header[8, _STRUCT][4, _INT32], size
        )
    return chunk


def _with_values(chunk: Chunk, values: int, encoding: int, size: int) -> Chunk:
    if values < 0:
        raise ValueError("a page has less than nothing")
    chunk = chunk._replace(values=chunk.values + values)
    if encoding in _REFERRING:
        return chunk._replace(referring=chunk.referring + values)
    if encoding == _DELTA_OF_TEXTS:
        shared = chunk.shared + values * size
        return chunk._replace(shared=shared, widest=max(chunk.widest, size))
    # Rounded up; a page without values has no average.
    average = -(-size // max(values, 1))
    return chunk._replace(written=chunk.written + size, widest=max(chunk.widest, average))


class _Reader:
    """Reads values in the compact protocol; texts are passed over, since nothing here needs one."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.position = 0

    def struct(self) -> _Struct:
        """Return the members of a struct."""
        members: _Struct = {}
        numbers = set()
        number = 0
        while head := self.byte():
            # As Arrow does it: numbers of members have 16 bits.
            number = (number + (head >> 4)) & 0xFFFF if head >> 4 else self.integer(16)
            if number in numbers:
                raise ValueError("a member is repeated")
            numbers.add(number)
            members[number, head & 15] = _READ[head & 15](self)
        return members

    def elements(self) -> list[Any]:
        head = self.byte()
        count = self.varint() if head >> 4 == 15 else head >> 4  # noqa: PLR2004 - of four bits
        return [self._element(head & 15) for _ in range(count)]

    def pairs(self) -> list[Any]:
        if not (count := self.varint()):
            return []
        kinds = self.byte()
        return [(self._element(kinds >> 4), self._element(kinds & 15)) for _ in range(count)]

    def _element(self, kind: int) -> object:
        return self.byte() if kind <= 2 else _READ[kind](self)  # noqa: PLR2004 - truths

    def integer(self, bits: int) -> int:
        number = self.varint() & ((1 << bits) - 1)
        return (number >> 1) ^ -(number & 1)

    def varint(self) -> int:
        number = shift = 0
        while True:
            byte = self.byte()
            number |= (byte & 127) << shift
            if byte < 128:  # noqa: PLR2004 - the highest bit says that more follow
                return number
            shift += 7
            if shift > 63:  # noqa: PLR2004 - bits of the longest number
                raise ValueError("a number has no end")

    def byte(self) -> int:
        byte = self._content[self.position]
        self.position += 1
        return byte

    def skip(self, count: int) -> None:
        self.position += count
        if self.position > len(self._content):
            raise IndexError


_READ: dict[int, Callable[[_Reader], Any]] = {
    1: lambda _: True,
    2: lambda _: False,
    3: _Reader.byte,
    4: lambda reader: reader.integer(16),
    5: lambda reader: reader.integer(32),
    6: lambda reader: reader.integer(64),
    7: lambda reader: reader.skip(8),
    8: lambda reader: reader.skip(reader.varint()),
    9: _Reader.elements,
    10: _Reader.elements,
    11: _Reader.pairs,
    12: _Reader.struct,
}
