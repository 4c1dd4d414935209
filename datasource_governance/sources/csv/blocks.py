r"""Text of a CSV file, cut into blocks of whole records.

A record ends with `\n`, `\r\n` or `\r` outside quotes, or with the file. A cell that starts with a
quote ends with one, with doubled quotes inside; a quote elsewhere in a cell is text. The readers of
this ecosystem are lenient each in its own way, so strictness is checked here, where borders are
sought: what is in a block is strictly quoted.

Most files have quotes only around cells. Then every second quote is followed by the end of a cell
or is doubled, and a line end is a border where the number of quotes before it is even: that is
tested for all quotes at once. Only a file with other quotes is scanned line by line.

Source: SPEC section 3; decision CSV_MALFORMED_REFUSED.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Offsets = npt.NDArray[np.intp]

_QUOTE = b'"'
_MISQUOTED = "a quote is not closed, or text follows a closing quote"


class Block(NamedTuple):
    """Whole records, each with its line end; or what is wrong with the record that is next."""

    content: bytes
    fault: str | None = None


def blocks(chunks: Iterable[bytes], delimiter: bytes, longest: int) -> Iterator[Block]:
    """Cut chunks of UTF-8 at the borders of records; a block with a fault is the last one.

    A record of more than `longest` bytes is a fault, so that an open quote does not take a whole
    file to memory. No more chunks are asked for after a fault.
    """
    rest = b""
    wanted = 0
    for chunk in chunks:
        rest += chunk
        if len(rest) < wanted:
            continue
        if end := _border(rest, delimiter):
            yield Block(rest[:end])
            rest, wanted = rest[end:], 0
        elif fault := _fault(rest, delimiter, longest):
            yield Block(b"", fault)
            return
        else:
            # Twice as much every time, or a long record would be searched from its start too often.
            wanted = min(2 * len(rest), longest + 1)
    yield from _last(rest, delimiter)


def _last(rest: bytes, delimiter: bytes) -> Iterator[Block]:
    if not rest:
        return
    # After a carriage return this makes one line end, not two.
    whole = rest if rest.endswith(b"\n") else rest + b"\n"
    if end := _border(whole, delimiter):
        yield Block(whole[:end])
    if end < len(whole):
        yield Block(b"", _MISQUOTED)


def _fault(record: bytes, delimiter: bytes, longest: int) -> str | None:
    """Return what is wrong with a record that has no end yet, None if it may still get one."""
    if not _are_around_cells(record, _quotes_of(record), delimiter):
        _, stop = _scanned(record, delimiter)
        if _misquoted(delimiter).match(record, stop):
            return _MISQUOTED
    if len(record) > longest:
        return f"longer than {longest} bytes, or a quote is not closed"
    return None


def _border(content: bytes, delimiter: bytes) -> int:
    """Return the offset behind the last record that is complete and strictly quoted, or 0."""
    if _QUOTE not in content:
        return _behind_line_end(content)
    quotes = _quotes_of(content)
    if _are_around_cells(content, quotes, delimiter):
        return _even_border(content, quotes)
    border, _ = _scanned(content, delimiter)
    return border


def _behind_line_end(content: bytes) -> int:
    # A carriage return at the very end may be half of a line end.
    carriage_return = content.rfind(b"\r", 0, len(content) - 1)
    return max(content.rfind(b"\n"), carriage_return) + 1


def _quotes_of(content: bytes) -> "Offsets":
    import numpy as np

    return np.flatnonzero(np.frombuffer(content, np.uint8) == ord(_QUOTE))


def _even_border(content: bytes, quotes: "Offsets") -> int:
    """Return the offset behind the last line end that an even number of quotes is before, or 0."""
    import numpy as np

    codes = np.frombuffer(content, np.uint8)
    is_line_feed = codes == ord("\n")
    is_line_end = is_line_feed.copy()
    is_line_end[:-1] |= (codes[:-1] == ord("\r")) & ~is_line_feed[1:]
    line_ends = np.flatnonzero(is_line_end)
    outside = line_ends[np.searchsorted(quotes, line_ends) % 2 == 0]
    return int(outside[-1]) + 1 if len(outside) else 0


def _are_around_cells(content: bytes, quotes: "Offsets", delimiter: bytes) -> bool:
    """Tell whether quotes open and close cells by turns, or are doubled inside them.

    A closing quote at the very end is one; what comes next may tell otherwise.
    """
    import numpy as np

    if not len(quotes):
        return True
    codes = np.frombuffer(content, np.uint8)
    ends_cell = np.zeros(256, np.bool_)
    ends_cell[[*delimiter, *b"\r\n"]] = True
    opening, closing = quotes[::2], quotes[1::2]
    paired = len(opening) - 1
    is_doubled = opening[1:] == closing[:paired] + 1
    opens = ends_cell[codes[opening - 1]]
    opens[0] |= opening[0] == 0
    opens[1:] |= is_doubled
    is_last = closing == len(codes) - 1
    closes = is_last | ends_cell[codes[np.where(is_last, 0, closing + 1)]]
    closes[:paired] |= is_doubled
    return bool(opens.all() and closes.all())


def _scanned(content: bytes, delimiter: bytes) -> tuple[int, int]:
    """Return the border, and the offset up to which everything is strictly quoted."""
    run = _run(delimiter)
    border = stop = 0
    while found := run.match(content, stop):
        stop = found.end()
        border = max(border, found.end("line_end"))
    return border, stop


@lru_cache(maxsize=8)
def _run(delimiter: bytes) -> re.Pattern[bytes]:
    """Return the pattern of some cells, quoted strictly, with all that is between them.

    It is bounded and not possessive: before Python 3.11.5 a possessive repeat of alternatives does
    not match all that it should, and an unbounded one keeps a way back for every cell of a file.
    """
    d = re.escape(delimiter)
    line_end = rb"(?P<line_end>\r\n|\n|\r(?!\Z))"
    quoted = _quoted(delimiter) + rb"(?=[\r\n" + d + rb"])"
    quote_as_text = rb"(?<=[^\r\n" + d + rb'])"[^\r\n' + d + rb"]*+"
    tokens = (rb'[^"\r\n]++', line_end, quoted, quote_as_text)
    return re.compile(rb"(?:" + rb"|".join(tokens) + rb"){1,1000}")


@lru_cache(maxsize=8)
def _misquoted(delimiter: bytes) -> re.Pattern[bytes]:
    """Return the pattern of a quoted cell with text behind its closing quote."""
    return re.compile(_quoted(delimiter) + rb'[^"\r\n' + re.escape(delimiter) + rb"]")


def _quoted(delimiter: bytes) -> bytes:
    return rb"(?<![^\r\n" + re.escape(delimiter) + rb'])"[^"]*+(?:""[^"]*+)*+"'
