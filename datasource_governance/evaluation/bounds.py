"""Range: which values of one typed column lie outside the bounds.

Source: SPEC section 2.1; acceptance decisions FRACTION_BOUND, TYPED_MATCH, BOOL_IS_NUMBER.
"""

import functools
from typing import TYPE_CHECKING

from datasource_governance.domain.quality_policy import Number, RangeRule
from datasource_governance.evaluation import mixtures
from datasource_governance.evaluation.columns import Column
from datasource_governance.evaluation.detect import is_kind_struct
from datasource_governance.evaluation.number_line import NumberLine, number_line

if TYPE_CHECKING:
    import pyarrow as pa


def outside(column: Column, rule: RangeRule) -> "pa.ChunkedArray":
    """Return true where a value lies outside the bounds; what is said of a null does not count.

    Bounds are inclusive and exact at any size; infinities compare. A value that is not a number
    (text, boolean, date, list) is outside.
    """
    import pyarrow.compute as pc

    if is_kind_struct(column.field):
        return mixtures.outside(column.values, rule)
    line = number_line(column.values)
    if line is None:
        return pc.invert(column.nulls())
    below = None if rule.minimum is None else _below(line, rule.minimum)
    above = None if rule.maximum is None else _above(line, rule.maximum)
    sides = [side for side in (below, above) if side is not None]
    return functools.reduce(pc.or_, sides)


def _below(line: NumberLine, minimum: Number) -> "pa.ChunkedArray":
    import pyarrow.compute as pc

    low = line.ceiling(line.place(minimum))
    if low > line.greatest:
        return pc.is_valid(line.column)
    if low <= line.least:
        return pc.is_null(line.column)
    return pc.less(line.column, line.values([low])[0])


def _above(line: NumberLine, maximum: Number) -> "pa.ChunkedArray":
    import pyarrow.compute as pc

    high = line.floor(line.place(maximum))
    if high < line.least:
        return pc.is_valid(line.column)
    if high >= line.greatest:
        return pc.is_null(line.column)
    return pc.greater(line.column, line.values([high])[0])
