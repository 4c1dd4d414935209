r"""Records of strict CSV: RFC 4180 with a declared delimiter, as bytes of UTF-8.

A record ends with `\n`, `\r\n` or `\r` outside quotes, or with the file. A cell that starts with a
quote ends with one, with doubled quotes inside; a quote elsewhere in a cell is text. Blank lines
hold no cells.

The readers of this ecosystem are lenient each in its own way, so strictness is checked here: once
over the quotes of a whole file, at the speed of a regular expression, and record by record only to
name the record that is wrong.

Source: SPEC section 3; decisions CSV_MALFORMED_REFUSED, CSV_RAGGED_REFUSED, CSV_BLANK_LINES.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from datasource_governance.errors import Problem
from datasource_governance.sources.refusal import first_positions


class Record(NamedTuple):
    """The cells of one line, none for a blank line, and the offset behind it."""

    cells: tuple[bytes, ...]
    end: int


class MalformedRecordError(ValueError):
    """A quote is not closed, or text follows a closing quote."""


def records(content: bytes, delimiter: bytes, start: int = 0) -> Iterator[Record]:
    """Yield every record and blank line from an offset on.

    Raises:
        MalformedRecordError: at the record that breaks the rules of quoting.
    """
    cell = _cell(delimiter)
    cells: list[bytes] = []
    while start < len(content) or cells:
        found = cell.match(content, start)
        if found is None:
            raise MalformedRecordError
        quoted, text, end = found.groups()
        cells.append(text if quoted is None else quoted.replace(b'""', b'"'))
        start = found.end()
        if end != delimiter:
            is_blank = len(cells) == 1 and quoted is None and not text
            yield Record(() if is_blank else tuple(cells), start)
            cells = []


def _cell(delimiter: bytes) -> re.Pattern[bytes]:
    d = re.escape(delimiter)
    quoted = rb'"([^"]*+(?:""[^"]*+)*+)"'
    text = rb'((?:[^"\r\n' + d + rb"][^\r\n" + d + rb"]*+)?+)"
    return re.compile(rb"(?:" + quoted + rb"|" + text + rb")(" + d + rb"|\r\n|\n|\r|\Z)")


def is_strictly_quoted(content: bytes, delimiter: bytes, start: int) -> bool:
    """Tell whether every quoted cell from an offset on is closed and nothing follows its quote."""
    if content.find(b'"', start) < 0:
        return True
    run = _run(delimiter)
    while start < len(content):
        found = run.match(content, start)
        if found is None:
            return False
        start = found.end()
    return True


def _run(delimiter: bytes) -> re.Pattern[bytes]:
    """Return the pattern of some cells, quoted strictly, with all that is between them.

    It is bounded and not possessive: before Python 3.11.5 a possessive repeat of alternatives does
    not match all that it should, and an unbounded one keeps a way back for every cell of a file.
    """
    d = re.escape(delimiter)
    quoted = rb"(?<![^\r\n" + d + rb'])"[^"]*+(?:""[^"]*+)*+"(?=[\r\n' + d + rb"]|\Z)"
    quote_as_text = rb"(?<=[^\r\n" + d + rb'])"[^\r\n' + d + rb"]*+"
    return re.compile(rb'(?:[^"]++|' + quoted + rb"|" + quote_as_text + rb"){1,1000}")


def record_problems(content: bytes, delimiter: bytes, start: int, columns: int) -> list[Problem]:
    """Return what is wrong with the records from an offset on, naming them from 1.

    In a file of one column a blank line counts, as it does in the table. What comes after a
    malformed record cannot be told apart any more.
    """
    ragged: list[int] = []
    problems: list[Problem] = []
    number = 0
    try:
        for record in records(content, delimiter, start):
            if record.cells or columns == 1:
                number += 1
            if record.cells and len(record.cells) != columns:
                ragged.append(number)
    except MalformedRecordError:
        message = f"record {number + 1}: a quote is not closed, or text follows a closing quote"
        problems.append(Problem(kind="malformed_csv", message=message, names=(str(number + 1),)))
    if ragged:
        message = (
            f"{len(ragged)} record(s) with more or fewer cells than the header's {columns}, "
            f"first record {ragged[0]}"
        )
        names = first_positions(ragged)
        problems.insert(0, Problem(kind="ragged_row", message=message, names=names))
    return problems
