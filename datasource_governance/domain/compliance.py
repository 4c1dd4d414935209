"""How far a contract was kept, and whether that gets better: compliance and trend.

Source: SPEC section 14; facts on the contract monitor, 6.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from fractions import Fraction

_TREND_POINTS = Fraction(2)
"""So many percentage points a day make a trend."""


class Trend(StrEnum):
    """Where the compliance of days goes."""

    IMPROVING = "improving"
    STEADY = "steady"
    DEGRADING = "degrading"


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """The checks of one day (UTC), of which there is one at least, by how they ended."""

    day: date
    passed: int
    failed: int
    errors: int

    @property
    def checks(self) -> int:
        """All checks of the day."""
        return self.passed + self.failed + self.errors

    @property
    def compliance(self) -> Fraction:
        """The percentage of checks that passed; one that could not be evaluated did not."""
        return Fraction(100 * self.passed, self.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compliance:
    """How far one promise was kept. `percent` is None where nothing was checked."""

    days: tuple[Day, ...]

    @property
    def checks(self) -> int:
        """All checks."""
        return sum(day.checks for day in self.days)

    @property
    def passed(self) -> int:
        """Those that passed."""
        return sum(day.passed for day in self.days)

    @property
    def percent(self) -> float | None:
        """The percentage of checks that passed."""
        return float(Fraction(100 * self.passed, self.checks)) if self.checks else None

    @property
    def slope(self) -> float:
        """How many percentage points a day the compliance of days rises, by least squares."""
        return float(_slope(self.days))

    @property
    def trend(self) -> Trend:
        """What the slope means: 2 points a day or more are a trend, up or down."""
        slope = _slope(self.days)
        if slope >= _TREND_POINTS:
            return Trend.IMPROVING
        return Trend.DEGRADING if slope <= -_TREND_POINTS else Trend.STEADY


def _slope(days: Sequence[Day]) -> Fraction:
    """Return the slope of the line that fits best; of fewer than two days there is none, 0."""
    places = [Fraction(day.day.toordinal()) for day in days]
    if len(places) < 2:  # noqa: PLR2004 - a line needs two points
        return Fraction(0)
    heights = [day.compliance for day in days]
    middle, level = _mean(places), _mean(heights)
    spread = sum(((place - middle) * (place - middle) for place in places), Fraction(0))
    pairs = zip(places, heights, strict=True)
    return sum(((x - middle) * (y - level) for x, y in pairs), Fraction(0)) / spread


def _mean(numbers: Sequence[Fraction]) -> Fraction:
    return sum(numbers, Fraction(0)) / len(numbers)
