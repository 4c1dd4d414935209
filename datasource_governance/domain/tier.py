"""The tiers of data, and what a platform asks of each.

Source: SPEC section 14; facts on the quality plugin, 1.4, 3 and 10.4; ADR-0044.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from datasource_governance.domain.canonical import Json
from datasource_governance.domain.policy_values import Place
from datasource_governance.domain.test_types import TEST_TYPES, canonical_test_type

_WHOLE = 100


class Tier(StrEnum):
    """How far data is refined. A name that is none of them is a problem, not the lowest tier."""

    BRONZE = "bronze"
    SILVER = "silver"
    GOLD = "gold"


class Enforcement(StrEnum):
    """What a violated gate does: nothing, warn, or refuse."""

    OFF = "off"
    WARN = "warn"
    STRICT = "strict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What a tier needs: the share of its fields with a test, 0 to 1, and types of tests."""

    min_test_coverage: float
    required_tests: tuple[str, ...]

    def document(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {
            "min_test_coverage": self.min_test_coverage,
            "required_tests": list(self.required_tests),
        }


DEFAULT_GATES: Final[Mapping[Tier, Gate]] = MappingProxyType(
    {
        Tier.BRONZE: Gate(min_test_coverage=0.5, required_tests=()),
        Tier.SILVER: Gate(min_test_coverage=0.8, required_tests=("not_null", "unique")),
        Tier.GOLD: Gate(
            min_test_coverage=1.0, required_tests=("not_null", "relationships", "unique")
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """What one datasource need not have until a day, that day included: a test, or one on a field.

    Exactly one of `test` and `field` is not None.
    """

    datasource: str
    test: str | None
    field: str | None
    reason: str
    approved_by: str
    expires: date

    def is_expired(self, today: date) -> bool:
        """Tell whether its last day is over."""
        return today > self.expires

    def document(self) -> dict[str, Json]:
        """Return the JSON form."""
        lifted = {"field": self.field} if self.test is None else {"test": self.test}
        return {
            "datasource": self.datasource,
            **lifted,
            "reason": self.reason,
            "approved_by": self.approved_by,
            "expires": self.expires.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class Share:
    """A share of a whole: a text in percent, or a number from 0 to 1; `1` is all of it."""

    expected: str = 'a share such as "80%" or 0.8'

    def read(self, value: Json, place: Place) -> float | None:
        """Return the fraction, the nearest double; hint at what a number above 1 may mean."""
        share = _percent(value) if isinstance(value, str) else _fraction(value)
        if share is not None and 0 <= share <= 1:
            return share
        if share is not None and share > 1 and not isinstance(value, str):
            meant = f'"{value}%"' if share <= _WHOLE else "at most 1"
            message = f"expected {self.expected}, got {value}; write {meant}"
            place.report("invalid_value", message)
            return None
        return place.refuse(self, value)


def _percent(text: str) -> float | None:
    number = text.removesuffix("%")
    is_percent = text.endswith("%") and number.isascii() and number.replace(".", "", 1).isdigit()
    return float(Decimal(number) / _WHOLE) if is_percent else None


def _fraction(value: Json) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number else None  # type: ignore[arg-type]  # told by is_number


@dataclass(frozen=True, slots=True)
class RequiredTest:
    """The name of a type of test, in any framework's word for it."""

    expected: str = f"one of {', '.join(sorted(TEST_TYPES))}, or another framework's name for it"

    def read(self, value: Json, place: Place) -> str | None:
        """Return the canonical name."""
        name = canonical_test_type(value) if isinstance(value, str) else None
        return name if name in TEST_TYPES else place.refuse(self, value)


@dataclass(frozen=True, slots=True)
class Day:
    """A day of the calendar, as ISO 8601 spells it."""

    expected: str = "a day, as in 2027-03-31"

    def read(self, value: Json, place: Place) -> date | None:
        """Return the day."""
        try:
            day = date.fromisoformat(value) if isinstance(value, str) else None
        except ValueError:
            day = None
        # The interpreter also reads 20270331 and 2027-W13-3.
        return day if day is not None and day.isoformat() == value else place.refuse(self, value)
