"""The first pass over the records of a CSV file: what refuses them, and how columns are typed.

Blocks are independent of one another, so threads examine them and what they find is put together
in order: rows are counted on, and a column keeps the forms that the cells of every block have.

Source: SPEC section 3; decisions CSV_RAGGED_REFUSED, CSV_BLANK_LINES, CSV_DECLARED_STRICT.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.domain.schema import DataType
from datasource_governance.errors import Problem
from datasource_governance.sources.csv.blocks import Block
from datasource_governance.sources.csv.forms import Form, declared_forms
from datasource_governance.sources.csv.records import (
    Positions,
    blank_lines_at_end,
    ragged_records,
    split,
)
from datasource_governance.sources.csv.threads import in_order
from datasource_governance.sources.csv.types import Conversion, Fit, conversion_of, fit_of, unread
from datasource_governance.sources.refusal import first_positions

if TYPE_CHECKING:
    import pyarrow as pa

    Cells = list[pa.ChunkedArray]


class _Examined(NamedTuple):
    """What is found in a block; neither cells nor fits where records are ragged."""

    rows: int
    last_row: int = 0
    ragged: Sequence[int] = ()
    cells: "Cells" = []  # noqa: RUF012 - never changed
    fits: Sequence[Fit] = ()


class Survey:
    """What is known of the records behind a header after the blocks so far.

    `rows` counts records up to the last one that is no blank line: behind it, blank lines are no
    records in a file of one column either. `kept` has the cells of every block as text, if they are
    to stay in memory so that no second pass is needed.
    """

    def __init__(self, header: Sequence[str], options: CsvOptions, *, keeps_cells: bool) -> None:
        self.rows = 0
        self.kept: list[Cells] = []
        self._header = header
        self._options = options
        self._keeps_cells = keeps_cells
        self._delimiter = options.delimiter.encode()
        self._types = [options.types.get(name) for name in header]
        self._fits = [unread(data_type, options.decimal) for data_type in self._types]
        self._seen = 0
        self._ragged = Positions()
        self._faults: list[str] = []

    def read(self, blocks: Iterable[Block]) -> None:
        """Examine blocks, in order; a fault is the last of them."""
        for examined in in_order(self._examined, self._sound(blocks)):
            self._add(examined)

    def _sound(self, blocks: Iterable[Block]) -> Iterator[bytes]:
        for block in blocks:
            if block.fault:
                self._faults.append(block.fault)
            else:
                yield block.content

    def _examined(self, content: bytes) -> _Examined:
        columns = len(self._header)
        cells = split(content, self._delimiter, columns)
        if cells is None:
            rows, ragged = ragged_records(content, self._delimiter, columns)
            if not ragged:
                raise ValueError("records are refused that are not ragged")
            return _Examined(rows, ragged=ragged)
        # Forms that earlier blocks ruled out need no look; a few more cost time and change nothing.
        fits = [
            fit_of(column, fit.forms, self._options.decimal)
            for column, fit in zip(cells, self._fits, strict=True)
        ]
        rows = len(cells[0])
        blank = blank_lines_at_end(content) if columns == 1 else 0
        return _Examined(rows, rows - blank, cells=cells, fits=fits)

    def _add(self, examined: _Examined) -> None:
        self._ragged.add(examined.ragged, self._seen)
        if examined.last_row:
            self.rows = self._seen + examined.last_row
        self._seen += examined.rows
        if not examined.ragged:
            pairs = zip(self._fits, examined.fits, strict=True)
            self._fits = [before.with_(fit) for before, fit in pairs]
            if self._keeps_cells:
                self.kept.append(examined.cells)

    def record_problems(self) -> list[Problem]:
        """Return what is wrong with records, naming them from 1.

        What comes after a malformed record cannot be told apart any more.
        """
        problems = []
        if count := self._ragged.count:
            message = (
                f"{count} record(s) with more or fewer cells than the header's "
                f"{len(self._header)}, first record {self._ragged.first[0]}"
            )
            names = first_positions(self._ragged.first)
            problems.append(Problem(kind="ragged_row", message=message, names=names))
        for fault in self._faults:
            number = str(self._seen + 1)
            message = f"record {number}: {fault}"
            problems.append(Problem(kind="malformed_csv", message=message, names=(number,)))
        return problems

    def conversions(self) -> dict[str, Conversion | None]:
        """Return the conversion of every field, None where cells do not fit the declared type."""
        decimal = self._options.decimal
        return {
            name: conversion_of(fit, data_type, decimal)
            for name, fit, data_type in zip(self._header, self._fits, self._types, strict=True)
        }


def misfit_problems(
    unfit: Sequence[str], header: Sequence[str], options: CsvOptions, blocks: Iterable["Cells"]
) -> list[Problem]:
    """Return for fields with cells that do not fit their declared type which ones these are.

    A column of datetimes must be all with or all without an offset; the rows named are those that
    keep it from the form most cells have.
    """
    columns = {header.index(name): _misfits(name, options) for name in unfit}
    seen = 0
    for cells in blocks:
        for place, misfits in columns.items():
            for form, rows in misfits.items():
                rows.add(form.misfits(cells[place]), seen)
        seen += len(cells[0])
    return [
        _misfit(header[place], options.types[header[place]], min(misfits.values(), key=_count))
        for place, misfits in columns.items()
    ]


def _misfits(field: str, options: CsvOptions) -> dict[Form, Positions]:
    return {form: Positions() for form in declared_forms(options.types[field], options.decimal)}


def _count(positions: Positions) -> int:
    return positions.count


def _misfit(field: str, data_type: DataType, rows: Positions) -> Problem:
    message = (
        f"field {field!r} is declared {data_type}; {rows.count} cell(s) do not fit, "
        f"first in row {rows.first[0]}"
    )
    names = (field, *first_positions(rows.first))
    return Problem(kind="value_not_of_declared_type", message=message, names=names)
