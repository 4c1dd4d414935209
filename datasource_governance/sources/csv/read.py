"""CSV files, read strictly and by declaration into the typed form.

A file is read in blocks of whole records. A first pass finds everything that may refuse it, and how
its columns are typed; only then are cells converted, either those that were kept in memory, or in a
second pass for a file that need not fit there. An empty cell, quoted or not, is null in every
column; no word is.

Source: SPEC section 3; decisions CSV_EMPTY, CSV_BLANK_LINES, CSV_ENCODING_STRICT,
CSV_DECLARED_STRICT.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.errors import Problem, UnreadableSourceError
from datasource_governance.sources.batches import DEFAULT_BATCH_BYTES
from datasource_governance.sources.csv.blocks import Block, blocks
from datasource_governance.sources.csv.file import StableFile
from datasource_governance.sources.csv.records import header_of, split
from datasource_governance.sources.csv.survey import Survey, misfit_problems
from datasource_governance.sources.csv.text import SMALLEST_CHUNK, Text
from datasource_governance.sources.csv.threads import in_order
from datasource_governance.sources.csv.types import Conversion
from datasource_governance.sources.limits import (
    DEFAULT_LIMITS,
    MEBIBYTE,
    Limits,
    Source,
    check,
    column_problems,
    read_bounded,
    size_problems,
)
from datasource_governance.sources.refusal import refused, shielded
from datasource_governance.sources.typed import name_problems, table_of

if TYPE_CHECKING:
    import pyarrow as pa

    Cells = list[pa.ChunkedArray]

DEFAULT_OPTIONS = CsvOptions()

_BLOCK_BYTES = 4 * MEBIBYTE
"""What is split at a time: little enough for the caches of a processor."""
_BLOCKS_PER_BATCH = 8
"""Blocks are in several stages and threads at a time, and are more as cells than as text."""
_LONGEST_RECORD = 64 * MEBIBYTE
_LONGEST_RECORD_IN_MEMORY = 1024 * MEBIBYTE


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
    file = _Csv(name, partial(_chunks_of, stored), options, _LONGEST_RECORD_IN_MEMORY)
    return shielded(lambda: _read(file, limits), _unreadable(name))


class CsvBatches:
    """A CSV file in the typed form that need not fit into memory; see `batches.Batches`.

    Its rows, types and marks are those of `read_csv`; limits on bytes are those of
    `Limits.streaming`, for a file of any size. Memory is a small multiple of `batch_bytes`,
    or of the longest record; one that is longer than both 64 MiB and `batch_bytes` is refused.

    Raises:
        UnreadableSourceError: when made, as `read_csv`; when iterated, kind `unreadable` if the
            file is not what it was.
    """

    rows_numbered = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        options: CsvOptions = DEFAULT_OPTIONS,
        limits: Limits = DEFAULT_LIMITS,
        batch_bytes: int = DEFAULT_BATCH_BYTES,
    ) -> None:
        self._stored = StableFile(path)
        streaming = limits.streaming(self._stored.size)
        self._batch_bytes = batch_bytes
        chunk = max(SMALLEST_CHUNK, min(_BLOCK_BYTES, batch_bytes // _BLOCKS_PER_BATCH))
        longest = max(_LONGEST_RECORD, batch_bytes)
        name = self._stored.name
        self._file = _Csv(name, partial(self._stored.chunks, chunk), options, longest)
        self._plan, _ = shielded(
            lambda: _surveyed(self._file, streaming, keeps_cells=False), _unreadable(name)
        )

    @property
    def schema(self) -> "pa.Schema":
        """The fields of the typed form, with their marks."""
        return self._plan.schema

    def __iter__(self) -> Iterator["pa.Table"]:
        """Yield the rows in order; no batch is empty."""
        tables = self._tables()
        changed = self._stored.changed()
        while (table := shielded(lambda: next(tables, None), changed)) is not None:
            yield table

    def _tables(self) -> Iterator["pa.Table"]:
        import pyarrow as pa

        gathered: list[pa.Table] = []
        for table in self._plan.tables_of(self._file):
            gathered.append(table)
            if sum(part.nbytes for part in gathered) >= self._batch_bytes:
                yield pa.concat_tables(gathered)
                gathered = []
        if gathered:
            yield pa.concat_tables(gathered)


@dataclass(frozen=True)
class _Csv:
    """A file, how it is written, and the longest record it may have, in bytes."""

    name: str
    chunks: Callable[[], Iterable[bytes]]
    options: CsvOptions
    longest: int

    @property
    def delimiter(self) -> bytes:
        return self.options.delimiter.encode()

    def text(self) -> Text:
        return Text(self.name, self.chunks(), self.options.encoding, self.delimiter)

    def opened(self, chunks: Iterator[bytes]) -> tuple[list[str] | Problem, Iterator[Block]]:
        return header_of(blocks(chunks, self.delimiter, self.longest), self.delimiter)

    def contents(self) -> Iterator[bytes]:
        """Yield the blocks behind the header of a file that was found to be sound."""
        chunks = iter(self.text())
        _, body = self.opened(chunks)
        for block in body:
            if block.fault:
                raise ValueError("the file is not sound any more")
            yield block.content
        _exhaust(chunks)

    def split(self, content: bytes, columns: int) -> "Cells":
        cells = split(content, self.delimiter, columns)
        if cells is None:
            raise ValueError("records are refused that were not ragged before")
        return cells


class _Plan:
    """How the columns of a file are typed, and how many rows it has."""

    def __init__(self, conversions: dict[str, Conversion], rows: int) -> None:
        import pyarrow as pa

        self._conversions = conversions
        self._rows = rows
        self.schema = self.table(
            [pa.chunked_array([], pa.large_string())] * len(conversions)
        ).schema

    def table(self, cells: "Cells") -> "pa.Table":
        """Return the rows of a block in the typed form."""
        pairs = zip(self._conversions.values(), cells, strict=True)
        return table_of(list(self._conversions), [convert(column) for convert, column in pairs])

    def tables_of(self, file: _Csv) -> Iterator["pa.Table"]:
        """Yield the rows of a file that is read once more."""
        columns = len(self._conversions)
        read = in_order(lambda content: self.table(file.split(content, columns)), file.contents())
        return self._trimmed(read)

    def tables_of_kept(self, kept: Sequence["Cells"]) -> Iterator["pa.Table"]:
        """Yield the rows of cells that were kept in memory."""
        return self._trimmed(in_order(self.table, kept))

    def _trimmed(self, tables: Iterable["pa.Table"]) -> Iterator["pa.Table"]:
        """Yield tables without the blank lines behind the last row, and no empty one."""
        left = self._rows
        for table in tables:
            if rows := table.slice(0, left):
                yield rows
                left -= len(rows)
        if left:
            raise ValueError("there are fewer rows than before")


def _read(file: _Csv, limits: Limits) -> "pa.Table":
    import pyarrow as pa

    plan, kept = _surveyed(file, limits, keeps_cells=True)
    return pa.concat_tables([plan.schema.empty_table(), *plan.tables_of_kept(kept)])


def _surveyed(file: _Csv, limits: Limits, *, keeps_cells: bool) -> tuple[_Plan, list["Cells"]]:
    """Read a file once, and refuse it for all that is wrong with it."""
    text = file.text()
    chunks = iter(text)
    header, body = file.opened(chunks)
    if isinstance(header, Problem):
        _exhaust(chunks)
        raise UnreadableSourceError(file.name, [header])
    missing = [_missing(field) for field in file.options.types if field not in header]
    problems = [*name_problems(header), *missing, *column_problems(len(header), limits)]
    survey = Survey(header, file.options, keeps_cells=keeps_cells)
    if not problems:
        survey.read(takewhile(lambda _: text.size <= limits.table_bytes, body))
    _exhaust(chunks)
    check(file.name, [*problems, *size_problems(text.size, limits)])
    check(file.name, survey.record_problems())
    conversions = survey.conversions()
    unfit = [name for name, conversion in conversions.items() if conversion is None]
    if unfit:
        cells = survey.kept or (file.split(content, len(header)) for content in file.contents())
        check(file.name, misfit_problems(unfit, header, file.options, cells))
    fit = {name: conversion for name, conversion in conversions.items() if conversion is not None}
    return _Plan(fit, survey.rows), survey.kept


def _missing(field: str) -> Problem:
    message = f"the declared field {field!r} is not in the header"
    return Problem(kind="missing_field", message=message, names=(field,))


def _exhaust(chunks: Iterator[bytes]) -> None:
    """Read to the end: what is not of the encoding, or too much, is found there, too."""
    for _ in chunks:
        pass


def _chunks_of(stored: bytes) -> Iterator[bytes]:
    return (stored[start : start + _BLOCK_BYTES] for start in range(0, len(stored), _BLOCK_BYTES))


def _unreadable(name: str) -> UnreadableSourceError:
    return refused(name, "malformed_csv", "the records could not be read")
