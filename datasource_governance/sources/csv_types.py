r"""Types of CSV columns, inferred over all rows or declared.

Every type is one or more forms. A form is a pattern that all cells of the column match, and a
conversion that cannot fail for cells that do. Inference takes the first form that fits:

- integer: `-?(0|[1-9]\d*)` up to 76 digits, as int64, uint64 or a marked decimal of scale 0;
- number: JSON syntax with the declared decimal sign, see `_numbers`;
- boolean: `true` and `false` in any case;
- date: an existing `YYYY-MM-DD`, year 1 to 9999;
- datetime: date, `T` or blank, `hh:mm`, perhaps seconds and up to nine digits of a fraction; all
  cells with an offset (`Z`, `+hh`, `+hhmm`, `+hh:mm`), as UTC, or none. Microseconds, or
  nanoseconds where a cell has more than six digits, which reach from 1678 to 2261;
- else string. A column without a value has no type.

Time of day is never inferred, only declared.

Source: SPEC section 3; decisions CSV_INFERENCE, CSV_NULL_WORDS, CSV_DECLARED_STRICT.
"""

from calendar import isleap
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from datasource_governance.domain.schema import DataType
from datasource_governance.sources.objects import (
    MAXIMUM_DECIMAL_DIGITS,
    decimal_type,
    exact_numbers,
    integer_column,
)
from datasource_governance.sources.typed import Column

if TYPE_CHECKING:
    import pyarrow as pa

_SAMPLE = 1000
_LARGEST_SAFE_DIGITS = 18
_SMALLEST_NORMAL = 2.0**-1022

_FOUR_DIGIT_YEAR = "(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
_NANOSECOND_YEAR = "(?:167[89]|16[89][0-9]|1[7-9][0-9]{2}|2[01][0-9]{2}|22[0-5][0-9]|226[01])"
_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_NANOSECOND_LEAP_YEAR = f"(?:{'|'.join(str(year) for year in range(1678, 2262) if isleap(year))})"
_DAY_OF_ANY_YEAR = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_OFFSET = "(?:Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)"


class Form(NamedTuple):
    """A pattern for whole cells and the conversion of a column whose cells all match it."""

    pattern: str
    build: Callable[["pa.ChunkedArray"], Column]


def infer(cells: "pa.ChunkedArray", decimal: str) -> Column:
    """Return the typed column of undeclared cells; text stays what it is."""
    import pyarrow as pa

    if cells.null_count == len(cells):
        return Column(pa.nulls(len(cells)))
    for data_type in _INFERRED:
        for form in _forms_of(data_type, decimal):
            # Most columns fail most forms in the first rows already.
            if _all_match(cells.slice(0, _SAMPLE), form.pattern) and _all_match(
                cells, form.pattern
            ):
                return form.build(cells)
    return Column(cells)


def declared(cells: "pa.ChunkedArray", data_type: DataType, decimal: str) -> Column | list[int]:
    """Return the column in its declared type, or the one-based rows of all cells that do not fit.

    A column of datetimes must be all with or all without an offset; the rows returned are those
    that keep it from the form most cells have.
    """
    if data_type is DataType.STRING:
        return Column(cells)
    misfits: list[list[int]] = []
    for form in _forms_of(data_type, decimal):
        if not (rows := _misfits(cells, form.pattern)):
            return form.build(cells)
        misfits.append(rows)
    return min(misfits, key=len)


def _matches(cells: "pa.ChunkedArray", pattern: str) -> "pa.ChunkedArray":
    import pyarrow.compute as pc

    return pc.match_substring_regex(cells, rf"\A(?:{pattern})\z")


def _all_match(cells: "pa.ChunkedArray", pattern: str) -> bool:
    import pyarrow.compute as pc

    return bool(pc.all(_matches(cells, pattern), min_count=0).as_py())


def _misfits(cells: "pa.ChunkedArray", pattern: str) -> list[int]:
    import pyarrow.compute as pc

    places = pc.indices_nonzero(pc.invert(_matches(cells, pattern)))
    return [int(place) + 1 for place in places.to_pylist()]


_INFERRED: Sequence[DataType] = (
    DataType.INTEGER,
    DataType.NUMBER,
    DataType.BOOLEAN,
    DataType.DATE,
    DataType.DATETIME,
)


def _forms_of(data_type: DataType, decimal: str) -> Sequence[Form]:
    return (_number_form(decimal),) if data_type is DataType.NUMBER else _FORMS[data_type]


def _number_form(decimal: str) -> Form:
    pattern = rf"-?(?:0|[1-9][0-9]*)(?:\{decimal}[0-9]+)?(?:[eE][+-]?[0-9]{{1,9}})?"
    return Form(pattern, partial(_numbers, decimal=decimal))


def _longest(cells: "pa.ChunkedArray") -> int:
    import pyarrow.compute as pc

    return int(pc.max(pc.binary_length(cells)).as_py() or 0)


def _integers(cells: "pa.ChunkedArray") -> Column:
    import pyarrow as pa

    if _longest(cells) <= _LARGEST_SAFE_DIGITS:
        return Column(cells.cast(pa.int64()))
    integers = [None if cell is None else int(cell) for cell in cells.to_pylist()]
    known = [integer for integer in integers if integer is not None]
    return integer_column(integers, min(known), max(known))


def _numbers(cells: "pa.ChunkedArray", decimal: str) -> Column:
    """Type numbers so that different numbers stay different.

    float64 where no cell has more than 15 digits, which a double always tells apart; else decimal
    if 76 digits hold every cell; else float64 up to 17 digits, which is how doubles are written;
    else kind and canonical bytes. A double that would overflow, vanish or be subnormal, which
    loses digits, is none of them.
    """
    import pyarrow.compute as pc

    if decimal != ".":
        cells = pc.replace_substring(cells, decimal, ".")
    for column in (_doubles(cells, 15), _decimals(cells), _doubles(cells, 17)):
        if column is not None:
            return column
    return exact_numbers([cell and Decimal(cell) for cell in cells.to_pylist()])


def _doubles(cells: "pa.ChunkedArray", digits: int) -> Column | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    # Zeros in front do not count as digits.
    if not _all_match(cells, rf"-?(?:0\.0*)?(?:[0-9]\.?){{1,{digits}}}(?:[eE].*)?"):
        return None
    doubles = cells.cast(pa.float64())
    magnitudes = pc.abs(doubles)
    is_normal = pc.and_(pc.is_finite(doubles), pc.greater_equal(magnitudes, _SMALLEST_NORMAL))
    is_zero = _matches(cells, r"-?[0.]+(?:[eE].*)?")
    held = pc.all(pc.or_(is_normal, is_zero), min_count=0).as_py()
    return Column(doubles) if held else None


def _decimals(cells: "pa.ChunkedArray") -> Column | None:
    import pyarrow.compute as pc

    if not _all_match(cells, r"[-0-9.]+"):
        return None
    length = pc.binary_length(cells)
    point = pc.find_substring(cells, ".")
    whole = pc.if_else(pc.less(point, 0), length, point)
    fraction = pc.if_else(pc.less(point, 0), 0, pc.subtract(pc.subtract(length, point), 1))
    kind = decimal_type(pc.max(whole).as_py() or 0, pc.max(fraction).as_py() or 0)
    return None if kind is None else Column(cells.cast(kind))


def _booleans(cells: "pa.ChunkedArray") -> Column:
    import pyarrow.compute as pc

    return Column(pc.equal(pc.ascii_lower(cells), "true"))


def _dates(cells: "pa.ChunkedArray") -> Column:
    import pyarrow as pa

    return Column(cells.cast(pa.date32()))


def _datetimes(cells: "pa.ChunkedArray", unit: str, zone: str | None) -> Column:
    import pyarrow as pa

    return Column(cells.cast(pa.timestamp(unit, tz=zone)))


def _times(cells: "pa.ChunkedArray", unit: str) -> Column:
    import pyarrow as pa
    import pyarrow.compute as pc

    # Arrow reads no time of day from text, only a whole timestamp.
    day, nothing = (pa.scalar(text, pa.large_string()) for text in ("1970-01-01T", ""))
    stamped = pc.binary_join_element_wise(day, cells, nothing)
    return Column(stamped.cast(pa.timestamp(unit)).cast(pa.time64(unit)))


def _date(year: str, leap_year: str) -> str:
    return f"(?:{year}-{_DAY_OF_ANY_YEAR}|{leap_year}-02-29)"


def _time(digits: int) -> str:
    return rf"{_CLOCK}(?::[0-5][0-9](?:\.[0-9]{{1,{digits}}})?)?"


def _datetime_forms() -> Sequence[Form]:
    microseconds = ("us", _date(_FOUR_DIGIT_YEAR, _LEAP_YEAR), _time(6))
    nanoseconds = ("ns", _date(_NANOSECOND_YEAR, _NANOSECOND_LEAP_YEAR), _time(9))
    return tuple(
        Form(f"{date}[T ]{time}{offset}", partial(_datetimes, unit=unit, zone=zone))
        for offset, zone in (("", None), (_OFFSET, "UTC"))
        for unit, date, time in (microseconds, nanoseconds)
    )


_FORMS: Mapping[DataType, Sequence[Form]] = {
    DataType.INTEGER: (Form(rf"-?(?:0|[1-9][0-9]{{0,{MAXIMUM_DECIMAL_DIGITS - 1}}})", _integers),),
    # Not the flag for any case: it would take the long s (U+017F) for an s.
    DataType.BOOLEAN: (Form("[tT][rR][uU][eE]|[fF][aA][lL][sS][eE]", _booleans),),
    DataType.DATE: (Form(_date(_FOUR_DIGIT_YEAR, _LEAP_YEAR), _dates),),
    DataType.DATETIME: _datetime_forms(),
    DataType.TIME: (
        Form(_time(6), partial(_times, unit="us")),
        Form(_time(9), partial(_times, unit="ns")),
    ),
}
