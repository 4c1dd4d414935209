"""Numbers in CSV cells: measured block by block, so that one type holds them all exactly.

Source: SPEC section 3; decision CSV_INFERENCE.
"""

from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple, Self

from datasource_governance.sources.csv.forms import all_match, matches
from datasource_governance.sources.objects import decimal_type, exact_numbers, integer_column
from datasource_governance.sources.typed import Column

if TYPE_CHECKING:
    import pyarrow as pa

_LONGEST_SURELY_NORMAL = 300
"""Characters of a number without exponent that is certainly neither infinite nor subnormal."""
_SMALLEST_NORMAL = 2.0**-1022
_DIGITS_ALWAYS_TOLD_APART = 15
_DIGITS_OF_A_DOUBLE = 17
_MORE_DIGITS = 18


class Spelling(NamedTuple):
    """How the numbers of a column are written. Every member is a maximum over the cells."""

    longest: int = 0
    """Characters."""
    highest: int = 0
    """Of integers; at least 0, as is `lowest_negated`."""
    lowest_negated: int = 0
    digits: int = 0
    """Digits that count, those in front being no zeros: up to 15, up to 17, or more."""
    is_abnormal: bool = False
    """Whether a cell overflows, vanishes or is subnormal, which loses digits, as a double."""
    has_exponent: bool = False
    whole: int = 0
    """Characters before the decimal sign, of cells without exponent."""
    fraction: int = 0
    """Digits behind the decimal sign, of cells without exponent."""

    def with_(self, other: Self) -> "Spelling":
        """Return how the numbers of two blocks are written."""
        return Spelling._make(map(max, self, other))


def spelling_of(cells: "pa.ChunkedArray", *, are_integers: bool) -> Spelling:
    """Measure cells that are all numbers with a decimal point."""
    import pyarrow.compute as pc

    longest = pc.max(pc.binary_length(cells)).as_py() or 0
    digits = _digits(cells, longest)
    if are_integers:
        lowest, highest = _bounds(cells)
        return Spelling(longest, max(highest, 0), max(-lowest, 0), digits, whole=longest)
    has_exponent = not all_match(cells, r"[-0-9.]+")
    whole, fraction = (0, 0) if has_exponent else _places(cells)
    is_abnormal = (has_exponent or longest > _LONGEST_SURELY_NORMAL) and not (
        digits <= _DIGITS_OF_A_DOUBLE and _are_normal(cells)
    )
    return Spelling(
        longest,
        digits=digits,
        is_abnormal=is_abnormal,
        has_exponent=has_exponent,
        whole=whole,
        fraction=fraction,
    )


def _digits(cells: "pa.ChunkedArray", longest: int) -> int:
    for digits in (_DIGITS_ALWAYS_TOLD_APART, _DIGITS_OF_A_DOUBLE):
        pattern = rf"-?(?:0\.0*)?(?:[0-9]\.?){{1,{digits}}}(?:[eE].*)?"
        if longest <= digits or all_match(cells, pattern):
            return digits
    return _MORE_DIGITS


def _bounds(cells: "pa.ChunkedArray") -> tuple[int, int]:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        bounds = pc.min_max(cells.cast(pa.int64())).as_py()
    except pa.ArrowInvalid:
        integers = [int(cell) for cell in cells.drop_null().to_pylist()]
        return min(integers), max(integers)
    return bounds["min"], bounds["max"]


def _are_normal(cells: "pa.ChunkedArray") -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    doubles = cells.cast(pa.float64())
    magnitudes = pc.abs(doubles)
    is_normal = pc.and_(pc.is_finite(doubles), pc.greater_equal(magnitudes, _SMALLEST_NORMAL))
    is_zero = matches(cells, r"-?[0.]+(?:[eE].*)?")
    return bool(pc.all(pc.or_(is_normal, is_zero), min_count=0).as_py())


def _places(cells: "pa.ChunkedArray") -> tuple[int, int]:
    """Return the most characters before and behind the decimal point."""
    import pyarrow.compute as pc

    length = pc.binary_length(cells)
    point = pc.find_substring(cells, ".")
    whole = pc.if_else(pc.less(point, 0), length, point)
    fraction = pc.if_else(pc.less(point, 0), 0, pc.subtract(pc.subtract(length, point), 1))
    return pc.max(whole).as_py() or 0, pc.max(fraction).as_py() or 0


def integers(cells: "pa.ChunkedArray", spelling: Spelling) -> Column:
    """Return integers as int64, uint64 or a marked decimal of scale 0."""
    import pyarrow as pa

    lowest, highest = -spelling.lowest_negated, spelling.highest
    if lowest >= -(2**63) and highest < 2**63:
        return Column(cells.cast(pa.int64()))
    known = [None if cell is None else int(cell) for cell in cells.to_pylist()]
    return integer_column(known, lowest, highest)


def numbers(cells: "pa.ChunkedArray", spelling: Spelling) -> Column:
    """Type numbers so that different numbers stay different.

    float64 where no cell has more than 15 digits, which a double always tells apart; else decimal
    if 76 digits hold every cell; else float64 up to 17 digits, which is how doubles are written;
    else kind and canonical bytes. A double that would overflow, vanish or be subnormal, which
    loses digits, is none of them.
    """
    import pyarrow as pa

    decimal = decimal_type(spelling.whole, spelling.fraction)
    if spelling.has_exponent:
        decimal = None
    if not spelling.is_abnormal:
        if spelling.digits <= _DIGITS_ALWAYS_TOLD_APART:
            return Column(cells.cast(pa.float64()))
        if decimal is None and spelling.digits <= _DIGITS_OF_A_DOUBLE:
            return Column(cells.cast(pa.float64()))
    if decimal is not None:
        return Column(cells.cast(decimal))
    return exact_numbers([cell and Decimal(cell) for cell in cells.to_pylist()])
