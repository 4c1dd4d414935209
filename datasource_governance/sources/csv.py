"""CSV files, read strictly and by declaration into the typed form.

The file is checked and its header read here; Arrow's reader then splits the records into texts,
which it does exactly as RFC 4180 says once quoting is known to be strict; types are a matter of
`csv_types`. An empty cell, quoted or not, is null in every column; no word is.

Source: SPEC section 3; decisions CSV_EMPTY, CSV_BLANK_LINES, CSV_ENCODING_STRICT,
CSV_DECLARED_STRICT.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.domain.schema import DataType
from datasource_governance.errors import Problem, UnreadableSourceError
from datasource_governance.sources.csv_records import (
    MalformedRecordError,
    is_strictly_quoted,
    record_problems,
    records,
)
from datasource_governance.sources.csv_types import declared, infer
from datasource_governance.sources.limits import (
    DEFAULT_LIMITS,
    Limits,
    Source,
    check,
    column_problems,
    read_bounded,
    size_problems,
)
from datasource_governance.sources.refusal import first_positions, refused, shielded
from datasource_governance.sources.typed import Column, name_problems, table_of

if TYPE_CHECKING:
    import pyarrow as pa

_BYTE_ORDER_MARK = "\ufeff".encode()
_ARCHIVES = (b"\x1f\x8b", b"PK\x03\x04")
_LARGEST_BLOCK = 2**31 - 1
_BYTES_PER_CELL = 9
"""What even a null costs as text: an eight-byte offset and, rounded up, a bit of validity."""


DEFAULT_OPTIONS = CsvOptions()


def read_csv(
    source: Source, options: CsvOptions = DEFAULT_OPTIONS, limits: Limits = DEFAULT_LIMITS
) -> "pa.Table":
    """Read a CSV file, by path or as bytes, into the typed form.

    Raises:
        UnreadableSourceError: kinds `invalid_encoding` (names the encoding), `no_header`,
            `duplicate_column`, `blank_column_name`, `ragged_row` and `malformed_csv` (name records
            from 1), `missing_field`, `value_not_of_declared_type` (names field, then rows),
            `too_large`, `not_found`, `unreadable`. No cell is quoted, nothing is chained.
    """
    name, stored = read_bounded(source, limits)
    otherwise = refused(name, "malformed_csv", "the records could not be read")
    return shielded(lambda: _read(name, stored, options, limits), otherwise)


def _read(name: str, stored: bytes, options: CsvOptions, limits: Limits) -> "pa.Table":
    if stored.startswith(_ARCHIVES):
        raise refused(name, "malformed_csv", "the file is compressed; store it as plain text")
    content = _as_utf8(name, stored, options.encoding)
    delimiter = options.delimiter.encode()
    header, start = _header(name, content, delimiter)
    cells = content.count(delimiter) + content.count(b"\n") + content.count(b"\r")
    size = len(content) + cells * _BYTES_PER_CELL
    check(
        name,
        [
            *name_problems(header),
            *(_missing(field) for field in options.types if field not in header),
            *column_problems(len(header), limits),
            *size_problems(size, limits),
        ],
    )
    columns = _split(name, content, delimiter, start, len(header))
    return table_of(header, _typed(name, dict(zip(header, columns, strict=True)), options))


def _missing(field: str) -> Problem:
    message = f"the declared field {field!r} is not in the header"
    return Problem(kind="missing_field", message=message, names=(field,))


def _as_utf8(name: str, stored: bytes, encoding: str) -> bytes:
    """Return the text of the file as UTF-8 without its byte order mark."""
    try:
        text = stored.decode(encoding)
        # NUL is no text; it is what UTF-16 looks like to a reader of single bytes.
        content = None if "\0" in text else text.encode()
    except UnicodeError:
        content = None
    if content is None:
        raise refused(name, "invalid_encoding", f"the file is not {encoding} text", encoding)
    return content.removeprefix(_BYTE_ORDER_MARK)


def _header(name: str, content: bytes, delimiter: bytes) -> tuple[list[str], int]:
    """Return the cells of the first line that is not blank, and where the records begin."""
    try:
        for record in records(content, delimiter):
            if record.cells:
                return [cell.decode() for cell in record.cells], record.end
        kind, message = "no_header", "no header; a CSV file names its fields in the first record"
    except MalformedRecordError:
        kind = "malformed_csv"
        message = "header: a quote is not closed, or text follows a closing quote"
    raise refused(name, kind, message)


def _split(
    name: str, content: bytes, delimiter: bytes, start: int, columns: int
) -> list["pa.ChunkedArray"]:
    """Return the cells of each column as text, empty ones as null."""
    import pyarrow as pa

    # Blank lines behind the last record are none, but in a one-column file those before it are.
    end = len(content.rstrip(b"\r\n"))
    if end <= start:
        return [pa.chunked_array([], pa.large_string())] * columns
    if is_strictly_quoted(content, delimiter, start):
        body = pa.py_buffer(content).slice(start, end - start)
        try:
            return _arrow_split(body, delimiter.decode(), columns)
        except pa.ArrowException:
            # It quotes the line. What is wrong with which record is found below.
            pass
    problems = record_problems(content, delimiter, start, columns)
    unknown = Problem(kind="malformed_csv", message="a record is too long to be read")
    raise UnreadableSourceError(name, problems or [unknown])


def _arrow_split(body: "pa.Buffer", delimiter: str, columns: int) -> list["pa.ChunkedArray"]:
    import pyarrow as pa
    from pyarrow import csv

    places = [str(place) for place in range(columns)]
    table = csv.read_csv(
        pa.BufferReader(body),
        # One block, so that no record lies across the border of two.
        read_options=csv.ReadOptions(
            column_names=places, block_size=min(body.size, _LARGEST_BLOCK)
        ),
        parse_options=csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=columns > 1
        ),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(places, pa.large_string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
            check_utf8=False,
        ),
    )
    return list(table.columns)


def _typed(
    name: str, columns: Mapping[str, "pa.ChunkedArray"], options: CsvOptions
) -> list[Column]:
    typed: list[Column] = []
    problems: list[Problem] = []
    for name_of_field, cells in columns.items():
        if (data_type := options.types.get(name_of_field)) is None:
            typed.append(infer(cells, options.decimal))
            continue
        fitted = declared(cells, data_type, options.decimal)
        if isinstance(fitted, Column):
            typed.append(fitted)
        else:
            problems.append(_misfit(name_of_field, data_type, fitted))
    check(name, problems)
    return typed


def _misfit(field: str, data_type: DataType, rows: list[int]) -> Problem:
    message = (
        f"field {field!r} is declared {data_type}; {len(rows)} cell(s) do not fit, "
        f"first in row {rows[0]}"
    )
    names = (field, *first_positions(rows))
    return Problem(kind="value_not_of_declared_type", message=message, names=names)
