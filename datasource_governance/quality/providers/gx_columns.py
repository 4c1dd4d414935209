"""Columns in the form that Great Expectations compares exactly, and rules in terms of that form.

Great Expectations leaves comparing to pandas, which rounds integers beside fractions, takes True
for 1 and knows no content of lists. So a series holds one of three things: numbers of one width
(decimals in units of their scale, dates and booleans as the integers that they are kept as), text,
or for everything else the cell's content as text. What a rule permits is written in the same form.

Source: SPEC sections 2.1, 3 and 14; facts on the quality plugin, 8.3 and 8.6.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from datasource_governance.domain.rules import Code, RangeRule, ReferentialRule
from datasource_governance.evaluation import mixtures
from datasource_governance.evaluation.detect import is_kind_struct
from datasource_governance.evaluation.keys import key_of
from datasource_governance.evaluation.number_line import (
    ExactNumbers,
    NumberLine,
    Point,
    number_line,
    numbers_among,
)

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_EXACT_IN_DOUBLES = 1 << 53
_INT64 = 1 << 63


class Interval(NamedTuple):
    """The numbers from `low` to `high`, both included; None where there is no bound."""

    low: Point | None
    high: Point | None


Permitted = Interval | list[object]
"""What a rule permits of the values that are not null; an empty list permits none."""


class GxColumn:
    """One typed column. Its series is null exactly where the column is, and equal where it is."""

    def __init__(self, field: "pa.Field", values: "pa.ChunkedArray") -> None:
        self._field = field
        self._values = values
        self._line = number_line(values)
        self.series = _series(values, self._line)

    def permitted(self, rule: RangeRule | ReferentialRule) -> Permitted:
        """Return what the rule permits, as values of the series.

        A range permits nothing where values are no numbers, a code set nothing where no code is
        of the column's type.
        """
        if is_kind_struct(self._field):
            return self._permitted_cells(rule)
        if isinstance(rule, RangeRule):
            return [] if self._line is None else _interval(self._line, rule)
        return self._permitted_codes(rule.allowed_values)

    def _permitted_codes(self, codes: tuple[Code, ...]) -> list[object]:
        import pyarrow as pa

        if self._line is not None:
            return self._representable(_points(self._line, codes))
        if pa.types.is_boolean(self._field.type):
            return [int(code) for code in codes if isinstance(code, bool)]
        if pa.types.is_large_string(self._field.type):
            return [code for code in codes if isinstance(code, str)]
        return []

    def _representable(self, points: Iterable[Point]) -> list[object]:
        """Return the points as the series holds numbers; beside others pandas would compare slowly.

        A series of doubles holds no integer that a larger one could be rounded to.
        """
        if self.series.dtype.kind == "f":
            return [float(point) for point in points]
        if self.series.dtype.kind == "i":
            return [point for point in points if -_INT64 <= point < _INT64]
        return list(points)

    def _permitted_cells(self, rule: RangeRule | ReferentialRule) -> list[object]:
        """Return the content of the distinct cells that a rule about a mixture permits.

        pandas has no comparison that keeps kinds apart; which cells are which is its business.
        """
        import pyarrow.compute as pc

        keys = key_of(self._values)
        distinct = keys.arg_unique().filter(keys.gather(keys.arg_unique()).is_not_null())
        cells = self._values.take(distinct.to_arrow())
        if isinstance(rule, RangeRule):
            permitted = pc.invert(mixtures.outside(cells, rule))
        else:
            permitted = mixtures.listed(cells, rule.allowed_values)
        return list(_spelled(keys.gather(distinct)).filter(permitted).to_pylist())


def _interval(line: NumberLine, rule: RangeRule) -> Permitted:
    low = None if rule.minimum is None else line.ceiling(line.place(rule.minimum))
    high = None if rule.maximum is None else line.floor(line.place(rule.maximum))
    if low is not None and high is not None and low > high:
        return []
    return Interval(low, high)


def _points(line: NumberLine, codes: tuple[Code, ...]) -> list[Point]:
    """Return the points that are exactly a code; a code between points matches nothing."""
    places = [line.place(number) for number in numbers_among(codes)]
    return [line.floor(place) for place in places if line.floor(place) == place]


def _series(values: "pa.ChunkedArray", line: NumberLine | None) -> "pd.Series[Any]":
    import polars as pl
    import pyarrow as pa

    if isinstance(line, ExactNumbers):
        return _integers(_units(line.column))
    if line is not None:
        return _pandas(line.column)
    if pa.types.is_large_string(values.type):
        return _pandas(values)
    if pa.types.is_null(values.type):
        return _pandas(values.cast(pa.float64()))
    keys = key_of(values)
    if keys.dtype == pl.Binary:
        return _pandas(_spelled(keys))
    return _integers(pa.chunked_array([keys.cast(pl.Int64).to_arrow()]))


def _pandas(column: "pa.ChunkedArray", *, masked: bool = False) -> "pd.Series[Any]":
    """Return a column as pandas keeps it; nulls are NaN, or `masked` beside integers."""
    import pandas as pd
    import pyarrow as pa

    dtypes = {pa.int64(): pd.Int64Dtype()} if masked else {}
    series: pd.Series[Any] = column.to_pandas(types_mapper=dtypes.get)
    return series


def _units(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Return decimals as integers, counted in units of their scale; integers as they are."""
    import pyarrow as pa

    if not pa.types.is_decimal(column.type):
        return column
    whole = pa.decimal128(38, 0) if column.type.bit_width == 128 else pa.decimal256(76, 0)  # noqa: PLR2004 - bits
    return pa.chunked_array([chunk.view(whole) for chunk in column.chunks], whole)


def _integers(numbers: "pa.ChunkedArray") -> "pd.Series[Any]":
    """Return whole numbers in the form that is compared fastest among those that are exact."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    extent = pc.min_max(numbers).as_py()
    low, high = int(extent["min"] or 0), int(extent["max"] or 0)
    if low < -_INT64 or high >= _INT64:
        cells = [None if cell is None else int(cell) for cell in numbers.to_pylist()]
        return pd.Series(cells, dtype=object)
    whole = numbers.cast(pa.int64())
    is_exact_in_doubles = -_EXACT_IN_DOUBLES < low <= high < _EXACT_IN_DOUBLES
    return _pandas(whole, masked=bool(whole.null_count) and not is_exact_in_doubles)


def _spelled(keys: "pl.Series") -> "pa.ChunkedArray":
    """Return the content of cells as text, which unlike bytes has a place in a list of codes."""
    import pyarrow as pa

    return pa.chunked_array([keys.bin.encode("hex").to_arrow()])
