"""The service levels of a contract: `slaProperties` of the standard, read so that none is guessed.

Source: SPEC section 14; Open Data Contract Standard 3.1, "Service Level Agreement".
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from types import MappingProxyType
from typing import Final

from datasource_governance.domain.canonical import Json
from datasource_governance.domain.contract import ServiceLevels
from datasource_governance.domain.policy_values import Place

_UNITS: Final = MappingProxyType(
    {
        **dict.fromkeys(("d", "day", "days"), timedelta(days=1)),
        **dict.fromkeys(("h", "hr", "hour", "hours"), timedelta(hours=1)),
        **dict.fromkeys(("m", "min", "minute", "minutes"), timedelta(minutes=1)),
        **dict.fromkeys(("s", "sec", "second", "seconds"), timedelta(seconds=1)),
    }
)
_FRESHNESS = frozenset({"latency", "freshness"})
_PERCENT = frozenset({"percent", "%"})
_LARGEST = 100
_LONGEST = timedelta(days=3650)


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One service level: what it is about, its value, and the field that a duration is about."""

    name: str
    duration: timedelta | None = None
    share: float | None = None
    day: date | None = None
    field: str | None = None


@dataclass(frozen=True, slots=True)
class LevelEntry:
    """One entry of `slaProperties`; one that is not checked here is None."""

    expected: str = "an object with property and value"

    def read(self, value: Json, place: Place) -> Level | None:
        """Return the level."""
        if not isinstance(value, dict) or not isinstance(value.get("property"), str):
            return place.refuse(self, value)
        name, given, unit = str(value["property"]), value.get("value"), value.get("unit")
        if name in _FRESHNESS:
            return _freshness(given, unit, value.get("element"), place)
        if name == "availability":
            return _share("availability", given, unit, place)
        if name == "quality":
            return _share("quality", given, unit, place)
        if name in ("endOfSupport", "endOfLife"):
            return _day(name, given, place)
        return None


def _freshness(given: Json, unit: Json, element: Json, place: Place) -> Level | None:
    step = _UNITS.get(unit) if isinstance(unit, str) else None
    if step is None:
        place.at("unit").report("invalid_value", f"expected one of {', '.join(_UNITS)}")
        return None
    number = _number(given, _LONGEST / step, place)
    if number is None:
        return None
    field = element.split(".", 1)[-1] if isinstance(element, str) else None
    return Level(name="freshness", duration=step * number, field=field)


def _share(name: str, given: Json, unit: Json, place: Place) -> Level | None:
    if unit is not None and unit not in _PERCENT:
        place.at("unit").report("invalid_value", "expected percent, or no unit")
        return None
    number = _number(given, _LARGEST, place)
    return None if number is None else Level(name=name, share=number)


def _number(given: Json, largest: float, place: Place) -> float | None:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if isinstance(given, int | float) and is_number and 0 < given <= largest:
        return float(given)
    place.at("value").report("invalid_value", f"expected a number above 0, {largest:g} at most")
    return None


def _day(name: str, given: Json, place: Place) -> Level | None:
    try:
        return Level(name=name, day=date.fromisoformat(given if isinstance(given, str) else ""))
    except ValueError:
        place.at("value").report("invalid_value", "expected a day, 2027-06-30")
    return None


def check_levels(levels: Iterable[Level], place: Place) -> None:
    """Report at `place` what is promised twice, and support that ends after life does."""
    found = [*levels]
    for name, times in Counter(level.name for level in found).items():
        if times > 1:
            place.report("conflicting_keys", f"{name} is promised {times} times", name)
    support, life = day_of(found, "endOfSupport"), day_of(found, "endOfLife")
    if support and life and life < support:
        message = "endOfLife is before endOfSupport"
        place.report("bounds_reversed", message, "endOfSupport", "endOfLife")


def service_levels(levels: Iterable[Level]) -> ServiceLevels:
    """Return the levels that are checked; what is not promised has its default."""
    by_name = {level.name: level for level in levels}
    freshness = by_name.get("freshness")
    shares = {name: by_name[name].share for name in ("availability", "quality") if name in by_name}
    return ServiceLevels(
        freshness=freshness.duration if freshness else None,
        freshness_field=freshness.field if freshness else None,
        **{name: share for name, share in shares.items() if share is not None},
    )


def day_of(levels: Iterable[Level], name: str) -> date | None:
    """Return the day of a level of that name, if there is one."""
    return next((level.day for level in levels if level.name == name), None)
