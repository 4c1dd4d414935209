"""The numbers that a column can hold, as ordered points on which a policy's numbers are placed.

Comparing happens between values of the column's own type, so nothing is rounded on the way: a bound
between two points moves to the next point inward, which changes no verdict. Before that a fraction
is taken at the column's precision (whole numbers never are): decimal text for decimals and
integers, the nearest double, single or half for floats.

Source: SPEC section 2.1; acceptance decisions FRACTION_BOUND, REF_NUMBERS.
"""

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from datasource_governance.domain.quality_policy import Code, Number
from datasource_governance.evaluation.physical import as_type

if TYPE_CHECKING:
    import pyarrow as pa

Point = int | float
"""An unscaled integer for integer and decimal columns, a double for float columns."""


def as_written(number: Number) -> Fraction:
    """Return the number that its shortest decimal text spells: 0.1 is one tenth."""
    return Fraction(number) if isinstance(number, int) else Fraction(Decimal(repr(number)))


def numbers_among(codes: Iterable[Code]) -> list[Number]:
    """Return the numbers of a code set; a boolean is not one."""
    return [code for code in codes if isinstance(code, (int, float)) and not isinstance(code, bool)]


class ExactNumbers:
    """Integer and decimal columns: the points are integers, counted in units of the scale."""

    def __init__(self, column: "pa.ChunkedArray") -> None:
        import pyarrow as pa

        kind = column.type
        if pa.types.is_decimal(kind):
            # Arrow compares and looks up only the two wide decimals, and those without a negative
            # scale; 76 digits hold every other one.
            if kind.scale < 0 or kind.bit_width < 128:  # noqa: PLR2004 - bits
                column = column.cast(pa.decimal256(76, max(kind.scale, 0)))
            self._scale: int = column.type.scale
            self.greatest = 10**column.type.precision - 1
            self.least = -self.greatest
        else:
            signed = pa.types.is_signed_integer(kind)
            self._scale = 0
            self.greatest = (1 << kind.bit_width - signed) - 1
            self.least = -self.greatest - 1 if signed else 0
        self._units = Fraction(10) ** self._scale
        self.column = column

    def place(self, number: Number) -> Fraction:
        """Return where the number lies, in units of the scale; perhaps between two points."""
        return as_written(number) * self._units

    def ceiling(self, place: Fraction) -> Point:
        """Return the first point at or after the place."""
        return math.ceil(place)

    def floor(self, place: Fraction) -> Point:
        """Return the last point at or before the place."""
        return math.floor(place)

    def among(self, points: Iterable[Point]) -> "pa.ChunkedArray":
        """Return true where the column has one of the points."""
        import pyarrow.compute as pc

        return pc.is_in(self.column, value_set=self.values(points))

    def values(self, points: Iterable[Point]) -> "pa.Array":
        """Return the points as values of the column's type."""
        import pyarrow as pa

        if pa.types.is_decimal(self.column.type):
            return pa.array([self._decimal(int(point)) for point in points], self.column.type)
        return pa.array(list(points), self.column.type)

    def _decimal(self, point: int) -> Decimal:
        # Arithmetic would round to the context's 28 digits; this constructor is exact.
        return Decimal((int(point < 0), tuple(map(int, str(abs(point)))), -self._scale))


class FloatNumbers:
    """Float columns of any width: the points are doubles, which hold every narrower float."""

    least = -math.inf
    greatest = math.inf

    def __init__(self, column: "pa.ChunkedArray") -> None:
        import pyarrow as pa

        self._bits = column.type.bit_width
        self.column = as_type(column, pa.float64())

    def place(self, number: Number) -> Fraction:
        """Return the number itself where it is whole, else its nearest value of this width."""
        if isinstance(number, int) or number.is_integer():
            return Fraction(number)
        return Fraction(self._nearest(number))

    def _nearest(self, fraction: float) -> float:
        import numpy as np

        with np.errstate(over="ignore", under="ignore"):
            nearest = float(np.array(fraction, f"f{self._bits // 8}"))
        return fraction if math.isinf(nearest) else nearest

    def ceiling(self, place: Fraction) -> Point:
        """Return the first double at or after the place."""
        nearest = float(place)
        return nearest if nearest >= place else math.nextafter(nearest, math.inf)

    def floor(self, place: Fraction) -> Point:
        """Return the last double at or before the place."""
        nearest = float(place)
        return nearest if nearest <= place else math.nextafter(nearest, -math.inf)

    def among(self, points: Iterable[Point]) -> "pa.ChunkedArray":
        """Return true where the column has one of the points."""
        import pyarrow.compute as pc

        # By their bits: adding zero makes -0.0 the same point as 0.0.
        return pc.is_in(pc.add(self.column, 0.0), value_set=self.values(points))

    def values(self, points: Iterable[Point]) -> "pa.Array":
        """Return the points as doubles."""
        import pyarrow as pa

        return pa.array(list(points), pa.float64())


NumberLine = ExactNumbers | FloatNumbers


def number_line(column: "pa.ChunkedArray") -> NumberLine | None:
    """Return the number line of a column, or None where its values are not numbers."""
    import pyarrow as pa

    if pa.types.is_integer(column.type) or pa.types.is_decimal(column.type):
        return ExactNumbers(column)
    if pa.types.is_floating(column.type):
        return FloatNumbers(column)
    return None
