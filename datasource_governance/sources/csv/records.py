r"""Records of strict CSV: RFC 4180 with a declared delimiter, as bytes of UTF-8.

Arrow's reader splits records into texts, which it does exactly as RFC 4180 says once quoting is
known to be strict. Record by record they are read here only for the header, and to name the records
that Arrow refuses. Blank lines hold no cells.

Source: SPEC section 3; decisions CSV_EMPTY, CSV_RAGGED_REFUSED, CSV_BLANK_LINES.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from datasource_governance.errors import Problem
from datasource_governance.sources.csv.blocks import Block
from datasource_governance.sources.refusal import MAXIMUM_POSITIONS_LISTED

if TYPE_CHECKING:
    import pyarrow as pa

_BYTE_ORDER_MARK = "\ufeff".encode()
_LINE_END = re.compile(rb"\r\n|\n|\r")


class Record(NamedTuple):
    """The cells of one line, none for a blank line, and the offset behind it."""

    cells: tuple[bytes, ...]
    end: int


class Positions:
    """One-based positions, counted all and kept as far as a problem may list them."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[int] = []

    def add(self, positions: Iterable[int], before: int) -> None:
        """Add positions that are counted from behind `before` others, in order."""
        for position in positions:
            self.count += 1
            if len(self.first) < MAXIMUM_POSITIONS_LISTED:
                self.first.append(before + position)


def records(content: bytes, delimiter: bytes) -> Iterator[Record]:
    """Yield every record and blank line of strictly quoted lines, the last with its end, too."""
    cells: list[bytes] = []
    for found in _cell(delimiter).finditer(content):
        quoted, text, end = found.groups()
        cells.append(text if quoted is None else quoted.replace(b'""', b'"'))
        if end != delimiter:
            is_blank = len(cells) == 1 and quoted is None and not text
            yield Record(() if is_blank else tuple(cells), found.end())
            cells = []


def _cell(delimiter: bytes) -> re.Pattern[bytes]:
    d = re.escape(delimiter)
    quoted = rb'"([^"]*+(?:""[^"]*+)*+)"'
    text = rb'((?:[^"\r\n' + d + rb"][^\r\n" + d + rb"]*+)?+)"
    return re.compile(rb"(?:" + quoted + rb"|" + text + rb")(" + d + rb"|\r\n|\n|\r)")


def ragged_records(content: bytes, delimiter: bytes, columns: int) -> tuple[int, list[int]]:
    """Return the number of records, and which from 1 have more or fewer cells than columns.

    In a file of one column a blank line counts, as it does in the table.
    """
    ragged: list[int] = []
    number = count = 0
    for found in _cell(delimiter).finditer(content):
        quoted, text, end = found.groups()
        count += 1
        if end == delimiter:
            continue
        is_blank = count == 1 and quoted is None and not text
        number += not is_blank or columns == 1
        if count != columns and not is_blank:
            ragged.append(number)
        count = 0
    return number, ragged


def split(content: bytes, delimiter: bytes, columns: int) -> list["pa.ChunkedArray"] | None:
    """Return the cells of each column as text, empty ones as null; None for ragged records.

    In a file of one column every blank line is a null.
    """
    import pyarrow as pa
    from pyarrow import csv

    if not content:
        return [pa.chunked_array([], pa.large_string())] * columns
    if content.startswith(_BYTE_ORDER_MARK):
        # Arrow takes off one mark; inside a file it belongs to the cell.
        content = _BYTE_ORDER_MARK + content
    places = [str(place) for place in range(columns)]
    try:
        table = csv.read_csv(
            pa.BufferReader(content),
            # One block, so that no record lies across the border of two.
            read_options=csv.ReadOptions(
                column_names=places, block_size=len(content), use_threads=False
            ),
            parse_options=csv.ParseOptions(
                delimiter=delimiter.decode(),
                newlines_in_values=True,
                ignore_empty_lines=columns > 1,
            ),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(places, pa.large_string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
                check_utf8=False,
            ),
        )
    except pa.ArrowInvalid:
        # It quotes the line. Which records are ragged is found apart from it.
        return None
    return list(table.columns)


def blank_lines_at_end(content: bytes) -> int:
    """Return how many lines behind the last record are blank; all, where there is none."""
    end = len(content.rstrip(b"\r\n"))
    lines = len(_LINE_END.findall(content, end))
    return lines - 1 if end else lines


def header_of(
    blocks: Iterator[Block], delimiter: bytes
) -> tuple[list[str] | Problem, Iterator[Block]]:
    """Return the cells of the first line that is not blank, and the blocks behind it."""
    for block in blocks:
        if block.fault:
            problem = Problem(kind="malformed_csv", message=f"header: {block.fault}")
            return problem, iter(())
        for record in records(block.content, delimiter):
            if record.cells:
                rest = Block(block.content[record.end :])
                return [cell.decode() for cell in record.cells], chain([rest], blocks)
    message = "no header; a CSV file names its fields in the first record"
    return Problem(kind="no_header", message=message), iter(())
