"""Range and membership over object columns of several kinds, by value.

The cells are structs of a kind and canonical bytes. Numbers in them come from sources of different
precision, so a fraction of the policy meets each number at its own: one whose denominator is a
power of two is what a float holds and meets the nearest double; any other was a decimal and meets
the decimal text. Work is done once per distinct value.

Source: SPEC section 3; acceptance decisions TYPED_MATCH, FRACTION_BOUND.
"""

import functools
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from datasource_governance.domain.quality_policy import Code, Number, RangeRule
from datasource_governance.evaluation.number_line import as_written
from datasource_governance.sources.cells import NUMBER, canonical_cell, number_from_canonical

if TYPE_CHECKING:
    import pyarrow as pa

_KIND, _VALUE = 0, 1


def outside(column: "pa.ChunkedArray", rule: RangeRule) -> "pa.ChunkedArray":
    """Return true where a cell is a number outside the bounds, or not a number at all."""
    import pyarrow.compute as pc

    is_number = pc.equal(pc.struct_field(column, [_KIND]), NUMBER)
    numbers = pc.unique(pc.struct_field(column, [_VALUE]).filter(is_number)).to_pylist()
    within = [number for number in numbers if _is_within(number_from_canonical(number), rule)]
    return pc.invert(_among(column, NUMBER, within))


def _is_within(number: Fraction | float, rule: RangeRule) -> bool:
    if rule.minimum is not None and number < _meeting(number, rule.minimum):
        return False
    return rule.maximum is None or number <= _meeting(number, rule.maximum)


def _meeting(number: Fraction | float, bound: Number) -> Fraction:
    is_a_floats = isinstance(number, float) or number.denominator.bit_count() == 1
    return Fraction(bound) if is_a_floats else as_written(bound)


def listed(column: "pa.ChunkedArray", codes: tuple[Code, ...]) -> "pa.ChunkedArray":
    """Return true where a cell is one of the codes, of the same kind and equal by value."""
    import pyarrow.compute as pc

    spellings: dict[str, list[bytes]] = defaultdict(list)
    for code in codes:
        kind, spelling = canonical_cell(code)
        spellings[kind].append(spelling)
        if isinstance(code, float):
            spellings[kind].append(canonical_cell(Decimal(repr(code)))[1])
    matches = (_among(column, kind, values) for kind, values in spellings.items())
    return functools.reduce(pc.or_, matches)


def _among(column: "pa.ChunkedArray", kind: str, values: list[bytes]) -> "pa.ChunkedArray":
    import pyarrow as pa
    import pyarrow.compute as pc

    same_kind = pc.equal(pc.struct_field(column, [_KIND]), kind)
    value = pc.struct_field(column, [_VALUE])
    return pc.and_(same_kind, pc.is_in(value, value_set=pa.array(values, value.type)))
