"""Types of CSV columns, inferred over all rows or declared.

Which forms all cells have is found block by block; then there is one decision, and one conversion
for all blocks, which cannot fail for cells that have the form. Inference takes the first form that
all cells have, else string. A column without a value has no type.

Source: SPEC section 3; decisions CSV_INFERENCE, CSV_NULL_WORDS, CSV_DECLARED_STRICT.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

from datasource_governance.domain.schema import DataType
from datasource_governance.sources.csv.forms import Form, declared_forms, inferred_forms
from datasource_governance.sources.csv.numbers import Spelling, integers, numbers, spelling_of
from datasource_governance.sources.typed import Column

if TYPE_CHECKING:
    import pyarrow as pa

Conversion = Callable[["pa.ChunkedArray"], Column]


class Fit(NamedTuple):
    """What the cells of a column have in common: the forms that all have, in order of choice."""

    forms: tuple[Form, ...]
    has_values: bool = False
    spelling: Spelling = Spelling()

    def with_(self, other: Self) -> "Fit":
        """Return what the cells of two blocks have in common."""
        return Fit(
            tuple(form for form in self.forms if form in other.forms),
            self.has_values or other.has_values,
            self.spelling.with_(other.spelling),
        )


def unread(data_type: DataType | None, decimal: str) -> Fit:
    """Return what is known of a column before its first cell; no type means undeclared."""
    if data_type is None:
        return Fit(inferred_forms(decimal))
    return Fit(declared_forms(data_type, decimal))


def fit_of(cells: "pa.ChunkedArray", candidates: Sequence[Form], decimal: str) -> Fit:
    """Return which of the candidates all cells of a block have."""
    if cells.null_count == len(cells):
        return Fit(tuple(candidates))
    fitting: list[Form] = []
    for form in candidates:
        if form.fits(cells, fitting):
            fitting.append(form)
    types = {form.data_type for form in fitting}
    spelling = Spelling()
    if types & {DataType.INTEGER, DataType.NUMBER}:
        are_integers = DataType.INTEGER in types
        spelling = spelling_of(_pointed(cells, decimal), are_integers=are_integers)
    return Fit(tuple(fitting), has_values=True, spelling=spelling)


def conversion_of(fit: Fit, data_type: DataType | None, decimal: str) -> Conversion | None:
    """Return the conversion of a column, None where cells do not fit the declared type."""
    if data_type is DataType.STRING:
        return Column
    if data_type is None and not fit.has_values:
        return _nothing
    if fit.forms:
        return _conversion(fit.forms[0], fit.spelling, decimal)
    return Column if data_type is None else None


def _conversion(form: Form, spelling: Spelling, decimal: str) -> Conversion:
    match form.data_type:
        case DataType.INTEGER:
            return partial(integers, spelling=spelling)
        case DataType.NUMBER:
            return lambda cells: numbers(_pointed(cells, decimal), spelling)
        case DataType.BOOLEAN:
            return _booleans
        case DataType.DATE:
            return _dates
        case DataType.TIME:
            return partial(_times, unit=form.unit)
        case _:
            return partial(_datetimes, unit=form.unit, zone=form.zone)


def _pointed(cells: "pa.ChunkedArray", decimal: str) -> "pa.ChunkedArray":
    import pyarrow.compute as pc

    return cells if decimal == "." else pc.replace_substring(cells, decimal, ".")


def _nothing(cells: "pa.ChunkedArray") -> Column:
    import pyarrow as pa

    return Column(pa.nulls(len(cells)))


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
