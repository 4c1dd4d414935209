r"""Forms of CSV cells: patterns that all cells of a column match or do not.

- integer: `-?(0|[1-9]\d*)` up to 76 digits;
- number: JSON syntax with the declared decimal sign;
- boolean: `true` and `false` in any case;
- date: an existing `YYYY-MM-DD`, year 1 to 9999;
- datetime: date, `T` or blank, `hh:mm`, perhaps seconds and up to nine digits of a fraction; all
  cells with an offset (`Z`, `+hh`, `+hhmm`, `+hh:mm`), as UTC, or none. Microseconds, or
  nanoseconds where a cell has more than six digits, which reach from 1678 to 2261;
- time of day, likewise. It is never inferred, only declared.

Source: SPEC section 3; decisions CSV_INFERENCE, CSV_NULL_WORDS, CSV_DECLARED_STRICT.
"""

from calendar import isleap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from datasource_governance.domain.schema import DataType
from datasource_governance.sources.objects import MAXIMUM_DECIMAL_DIGITS

if TYPE_CHECKING:
    import pyarrow as pa

_SAMPLE = 1000

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
    """A pattern for whole cells of one type; `unit` and `zone` tell apart the forms of a type.

    Cells that match the `narrower` form match this one, too, if they are texts in `between`: from
    the first on and before the second. That is tested faster than the pattern.
    """

    data_type: DataType
    pattern: str
    unit: str = ""
    zone: str | None = None
    narrower: "Form | None" = None
    between: tuple[str, str] | None = None

    def fits(self, cells: "pa.ChunkedArray", fitting: Sequence["Form"]) -> bool:
        """Tell whether all cells have this form; of those before it, `fitting` are the ones."""
        if self.narrower not in fitting:
            # Most columns fail most forms in the first rows already.
            return all_match(cells.slice(0, _SAMPLE), self.pattern) and all_match(
                cells, self.pattern
            )
        return self.between is None or _are_between(cells, *self.between)

    def misfits(self, cells: "pa.ChunkedArray") -> list[int]:
        """Return the one-based rows of all cells that do not have this form."""
        import pyarrow.compute as pc

        places = pc.indices_nonzero(pc.invert(matches(cells, self.pattern)))
        return [int(place) + 1 for place in places.to_pylist()]


def matches(cells: "pa.ChunkedArray", pattern: str) -> "pa.ChunkedArray":
    """Return which whole cells match a pattern, null for null."""
    import pyarrow.compute as pc

    return pc.match_substring_regex(cells, rf"\A(?:{pattern})\z")


def all_match(cells: "pa.ChunkedArray", pattern: str) -> bool:
    """Tell whether every whole cell that is not null matches a pattern."""
    import pyarrow.compute as pc

    return bool(pc.all(matches(cells, pattern), min_count=0).as_py())


def _are_between(cells: "pa.ChunkedArray", start: str, stop: str) -> bool:
    import pyarrow.compute as pc

    bounds = pc.min_max(cells).as_py()
    return bounds["min"] is None or (bounds["min"] >= start and bounds["max"] < stop)


def inferred_forms(decimal: str) -> tuple[Form, ...]:
    """Return the forms of undeclared columns: the first one that all cells have is theirs."""
    inferred = (DataType.INTEGER, DataType.NUMBER, DataType.BOOLEAN, DataType.DATE)
    types = (*inferred, DataType.DATETIME)
    return tuple(form for data_type in types for form in declared_forms(data_type, decimal))


def declared_forms(data_type: DataType, decimal: str) -> tuple[Form, ...]:
    """Return the forms of a declared column, none for text, which has any."""
    return (_number(decimal),) if data_type is DataType.NUMBER else _FORMS.get(data_type, ())


def _number(decimal: str) -> Form:
    pattern = rf"-?(?:0|[1-9][0-9]*)(?:\{decimal}[0-9]+)?(?:[eE][+-]?[0-9]{{1,9}})?"
    return Form(DataType.NUMBER, pattern, narrower=_INTEGER)


def _date(year: str, leap_year: str) -> str:
    return f"(?:{year}-{_DAY_OF_ANY_YEAR}|{leap_year}-02-29)"


def _time(digits: int) -> str:
    return rf"{_CLOCK}(?::[0-5][0-9](?:\.[0-9]{{1,{digits}}})?)?"


def _datetimes(offset: str, zone: str | None) -> tuple[Form, Form]:
    date, nanosecond_date = (
        _date(_FOUR_DIGIT_YEAR, _LEAP_YEAR),
        _date(_NANOSECOND_YEAR, _NANOSECOND_LEAP_YEAR),
    )
    microseconds = Form(DataType.DATETIME, f"{date}[T ]{_time(6)}{offset}", "us", zone)
    nanoseconds = f"{nanosecond_date}[T ]{_time(9)}{offset}"
    years = ("1678", "2262")
    return microseconds, Form(DataType.DATETIME, nanoseconds, "ns", zone, microseconds, years)


_INTEGER = Form(DataType.INTEGER, rf"-?(?:0|[1-9][0-9]{{0,{MAXIMUM_DECIMAL_DIGITS - 1}}})")
_TIME = Form(DataType.TIME, _time(6), "us")
_FORMS: Mapping[DataType, tuple[Form, ...]] = {
    DataType.INTEGER: (_INTEGER,),
    # Not the flag for any case: it would take the long s (U+017F) for an s.
    DataType.BOOLEAN: (Form(DataType.BOOLEAN, "[tT][rR][uU][eE]|[fF][aA][lL][sS][eE]"),),
    DataType.DATE: (Form(DataType.DATE, _date(_FOUR_DIGIT_YEAR, _LEAP_YEAR)),),
    DataType.DATETIME: (*_datetimes("", None), *_datetimes(_OFFSET, "UTC")),
    DataType.TIME: (_TIME, Form(DataType.TIME, _time(9), "ns", narrower=_TIME)),
}
