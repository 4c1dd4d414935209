"""Referential: which values of one typed column are in the code set.

Source: SPEC section 2.1; acceptance decisions TYPED_MATCH, REF_NUMBERS, NAMES_EXACT.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from datasource_governance.domain.quality_policy import Code, Number
from datasource_governance.evaluation import mixtures
from datasource_governance.evaluation.columns import Column
from datasource_governance.evaluation.detect import is_kind_struct
from datasource_governance.evaluation.number_line import NumberLine, number_line, numbers_among

if TYPE_CHECKING:
    import pyarrow as pa


def listed(column: Column, codes: tuple[Code, ...]) -> "pa.Array | pa.ChunkedArray":
    """Return true where a value is one of the codes; what is said of a null does not count.

    Text matches text by code points, numbers match numbers by value, booleans match booleans; no
    code matches a date, a list or anything else that JSON cannot spell.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if is_kind_struct(column.field):
        return mixtures.listed(column.values, codes)
    if pa.types.is_large_string(column.field.type):
        return column.texts_among([code for code in codes if isinstance(code, str)])
    line = number_line(column.values)
    if line is not None:
        return line.among(_points(line, numbers_among(codes)))
    if not pa.types.is_boolean(column.field.type):
        return column.nulls()
    alike = [code for code in codes if isinstance(code, bool)]
    return pc.is_in(column.values, value_set=pa.array(alike, pa.bool_()))


def _points(line: NumberLine, numbers: Iterable[Number]) -> list[int | float]:
    """Return the points that are exactly a code; a code between points matches nothing."""
    places = (line.place(number) for number in numbers)
    return [
        line.floor(place)
        for place in places
        if line.floor(place) == place and line.least <= place <= line.greatest
    ]
