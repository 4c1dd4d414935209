"""The text of a CSV file: bytes of the declared encoding, chunk by chunk, as UTF-8.

Source: SPEC section 3; decision CSV_ENCODING_STRICT.
"""

import codecs
import sys
from collections.abc import Iterable, Iterator

from datasource_governance.sources.refusal import refused

SMALLEST_CHUNK = 16
"""Bytes that the first chunk of a file has at least, if the file does: room for what marks it."""

_BYTE_ORDER_MARK = "\ufeff"
_ARCHIVES = (b"\x1f\x8b", b"PK\x03\x04")
_BYTES_PER_CELL = 9
"""What even a null costs as text: an eight-byte offset and, rounded up, a bit of validity."""
_UNMARKED = {
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
}
"""Encodings whose decoder wants a mark where there are chunks, but not for a whole text."""


class Text:
    """The text of a file in chunks of UTF-8, without its byte order mark.

    Iterated once, by one or more that share the iterator. `size` is what the cells seen so far
    take in memory, in bytes.

    Raises:
        UnreadableSourceError: kinds `invalid_encoding` (names the encoding), `malformed_csv` for a
            compressed file.
    """

    def __init__(self, name: str, chunks: Iterable[bytes], encoding: str, delimiter: bytes) -> None:
        self._name = name
        self._chunks = iter(chunks)
        self._encoding = encoding
        self._signs = (*delimiter, *b"\r\n")
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        """Yield chunks; none is empty."""
        first = next(self._chunks, b"")
        if first.startswith(_ARCHIVES):
            message = "the file is compressed; store it as plain text"
            raise refused(self._name, "malformed_csv", message)
        decoder = codecs.getincrementaldecoder(_with_byte_order(self._encoding, first))()
        is_start = True
        for chunk, is_last in _marked_last(first, self._chunks):
            content = _as_utf8(decoder, chunk, is_start=is_start, is_last=is_last)
            if content is None:
                message = f"the file is not {self._encoding} text"
                raise refused(self._name, "invalid_encoding", message, self._encoding)
            text, is_start = content
            if text:
                self.size += self._size_of(text)
                yield text

    def _size_of(self, text: bytes) -> int:
        import numpy as np

        codes = np.frombuffer(text, np.uint8)
        cells = sum(int(np.count_nonzero(codes == sign)) for sign in self._signs)
        return len(text) + cells * _BYTES_PER_CELL


def _with_byte_order(encoding: str, start: bytes) -> str:
    name = codecs.lookup(encoding).name
    if name not in _UNMARKED or start.startswith(_UNMARKED[name]):
        return encoding
    return f"{name}-{sys.byteorder[0]}e"


def _marked_last(first: bytes, others: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield chunks, then an empty one that is marked as the last."""
    yield first, False
    for chunk in others:
        yield chunk, False
    yield b"", True


def _as_utf8(
    decoder: codecs.IncrementalDecoder, chunk: bytes, *, is_start: bool, is_last: bool
) -> tuple[bytes, bool] | None:
    """Return what is decoded and whether the text still has to start; None for what is no text."""
    try:
        text = decoder.decode(chunk, is_last)
        # NUL is no text; it is what UTF-16 looks like to a reader of single bytes.
        if "\0" in text:
            return None
        begun = text.removeprefix(_BYTE_ORDER_MARK) if is_start else text
        return begun.encode(), is_start and not text
    except UnicodeError:
        return None
