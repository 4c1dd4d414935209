"""The rules of a contract: what ODCS says of quality, as rules of a quality policy, and back.

What no rule can say is not dropped: it is told, with where it stands.

Source: SPEC section 14; Open Data Contract Standard 3.1, "Data quality".
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from datasource_governance.domain.canonical import Json
from datasource_governance.domain.policy_values import Place
from datasource_governance.domain.schema import DataType
from datasource_governance.errors import Problem

UNSUPPORTED: Final = "unsupported"
"""Kind of the problem of a promise that nothing here can check."""
_WARNINGS = frozenset({"info", "low", "medium", "minor", "warn", "warning"})
_NONE_OF: Final = MappingProxyType(
    {"nullValues": "not_null", "missingValues": "not_null", "duplicateValues": "unique"}
)
_OPERATORS: Final = (
    "mustBe",
    "mustNotBe",
    "mustBeGreaterThan",
    "mustBeGreaterOrEqualTo",
    "mustBeLessThan",
    "mustBeLessOrEqualTo",
    "mustBeBetween",
    "mustNotBeBetween",
)
_DESCRIPTIVE = frozenset({"timezone", "defaultTimezone"})
"""Options of a type that promise nothing that could be checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A rule without its fields and id, or why there is none.

    `name` is what its author calls it. `fields` are those that it names itself. `pointer` is where
    it stands.
    """

    rule: Mapping[str, Json] | None = None
    pointer: str = ""
    name: str | None = None
    fields: tuple[str, ...] = ()
    refused: Problem | None = None


@dataclass(frozen=True, slots=True)
class QualityEntry:
    """One entry of a list `quality`; a text promises nothing and is None."""

    expected: str = "an object"

    def read(self, value: Json, place: Place) -> Promise | None:
        """Return the promise, also of one that cannot be checked."""
        if not isinstance(value, dict):
            return place.refuse(self, value)
        kind = value.get("type", "library")
        if kind == "text":
            return None
        metric = value.get("metric", value.get("rule"))
        what = f"quality of type {kind}, metric {metric},"
        if kind != "library":
            return _refused(place, what, "only library metrics are")
        name, severity = value.get("id", value.get("name")), value.get("severity")
        is_warning = isinstance(severity, str) and severity.lower() in _WARNINGS
        found = _rule(metric, value)
        if found is None:
            return _refused(place, what, "what is, is that there are none, and how many rows")
        rule, fields = found
        return Promise(
            rule={**rule, "severity": "warning" if is_warning else "error"},
            pointer=place.pointer,
            name=name if isinstance(name, str) else None,
            fields=fields,
        )


def _refused(place: Place, what: str, why: str) -> Promise:
    message = f"{what} cannot be checked: {why}"
    return Promise(refused=Problem(kind=UNSUPPORTED, pointer=place.pointer, message=message))


def _rule(
    metric: Json, entry: Mapping[str, Json]
) -> tuple[Mapping[str, Json], tuple[str, ...]] | None:
    given = [name for name in _OPERATORS if name in entry]
    if len(given) != 1:
        return None
    operator, value = given[0], entry[given[0]]
    arguments = entry.get("arguments")
    named = arguments if isinstance(arguments, dict) else {}
    listed = named.get("properties")
    fields = tuple(map(str, listed)) if isinstance(listed, list) else ()
    if metric == "rowCount":
        bounds = None if "unit" in entry and entry["unit"] != "rows" else _bounds(operator, value)
        return None if bounds is None else ({"type": "row_count", **bounds}, ())
    if operator != "mustBe" or isinstance(value, bool) or value != 0:
        return None
    if metric in _NONE_OF and (metric != "missingValues" or set(named) <= {"properties"}):
        unique: dict[str, Json] = {"ignore_nulls": True} if metric == "duplicateValues" else {}
        return {"type": _NONE_OF[str(metric)], **unique}, fields
    codes = named.get("validValues")
    if metric == "invalidValues" and isinstance(codes, list) and set(named) == {"validValues"}:
        return {"type": "referential", "allowed_values": codes, "allow_null": True}, ()
    return None


def _bounds(operator: str, value: Json) -> dict[str, Json] | None:
    """Return the inclusive bounds of a number of rows; of one that is no integer there are none."""
    pair = value if isinstance(value, list) else [value]
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in pair):
        return None
    numbers: list[Any] = [*pair]
    if operator == "mustBeBetween":
        return {"minimum": numbers[0], "maximum": numbers[1]} if len(numbers) == 2 else None  # noqa: PLR2004 - a pair
    least = {"mustBe": 0, "mustBeGreaterOrEqualTo": 0, "mustBeGreaterThan": 1}
    most = {"mustBe": 0, "mustBeLessOrEqualTo": 0, "mustBeLessThan": -1}
    bounds: dict[str, Json] = {}
    if operator in least:
        bounds["minimum"] = numbers[0] + least[operator]
    if operator in most:
        bounds["maximum"] = numbers[0] + most[operator]
    return bounds or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One field of a contract, with everything that is promised of it.

    `pointer` is where it stands; `options` are those of its logical type.
    """

    name: str
    type: DataType
    required: bool
    unique: bool
    primary_key: bool
    position: int
    options: Mapping[str, Json]
    quality: tuple[Promise, ...]
    pointer: str


def promised_rules(
    properties: Iterable[Property], table: Iterable[Promise]
) -> tuple[list[dict[str, Json]], list[Problem]]:
    """Return the rules of a contract about rows, and what is promised and cannot be checked.

    Ids are made of names: `<field>.required`, or what the author calls a rule.
    """
    fields = [*properties]
    named = [
        *(found for field in fields for found in _of_field(field)),
        *_key(fields),
        *((one.name or "rows", _of_table(one), one.fields) for one in table),
    ]
    refused = [promise.refused for _, promise, _ in named if promise.refused is not None]
    rules: list[dict[str, Json]] = []
    taken: dict[str, int] = {}
    for name, promise, about in named:
        if promise.rule is None:
            continue
        taken[name] = taken.get(name, 0) + 1
        rule_id = name if taken[name] == 1 else f"{name}.{taken[name]}"
        rules.append({"id": rule_id, **promise.rule, **_about(promise.rule, about)})
    return rules, refused


def _of_table(promise: Promise) -> Promise:
    """Return a promise about a table, refused if it is about fields and names none."""
    if promise.rule is None or promise.fields or promise.rule["type"] == "row_count":
        return promise
    message = "it names no fields: give arguments.properties, or promise it of a property"
    return Promise(refused=Problem(kind=UNSUPPORTED, pointer=promise.pointer, message=message))


def _about(rule: Mapping[str, Json], fields: tuple[str, ...]) -> dict[str, Json]:
    if rule["type"] == "row_count":
        return {}
    return {"field": fields[0]} if len(fields) == 1 else {"fields": [*fields]}


def _of_field(field: Property) -> Iterator[tuple[str, Promise, tuple[str, ...]]]:
    own = (field.name,)
    if field.required:
        yield f"{field.name}.required", Promise(rule={"type": "not_null", "severity": "error"}), own
    if field.unique and not field.primary_key:
        # In SQL, and so in the standard, nulls are no duplicates of each other.
        unique: dict[str, Json] = {"type": "unique", "ignore_nulls": True, "severity": "error"}
        yield f"{field.name}.unique", Promise(rule=unique), own
    yield from ((f"{field.name}.options", one, own) for one in _options(field))
    for promise in field.quality:
        kind = promise.rule["type"] if promise.rule else "quality"
        yield promise.name or f"{field.name}.{kind}", promise, promise.fields or own


def _options(field: Property) -> Iterator[Promise]:
    """Yield the rules of a type's options; bounds of numbers are ranges, of others nothing is."""
    bounds: dict[str, Json] = {
        name: field.options[name] for name in ("minimum", "maximum") if name in field.options
    }
    is_number = field.type in (DataType.INTEGER, DataType.NUMBER) and all(
        isinstance(one, int | float) and not isinstance(one, bool) for one in bounds.values()
    )
    if bounds and is_number:
        yield Promise(
            rule={"type": "range", **bounds, "allow_null": True, "severity": "error"},
        )
    left = set(field.options) - _DESCRIPTIVE - (set(bounds) if is_number else set())
    for name in sorted(left):
        yield Promise(
            refused=Problem(
                kind=UNSUPPORTED,
                pointer=f"{field.pointer}/logicalTypeOptions/{name}",
                names=(field.name,),
                message=f"option {name} of a field of type {field.type} cannot be checked",
            )
        )


def _key(fields: Iterable[Property]) -> Iterator[tuple[str, Promise, tuple[str, ...]]]:
    parts = sorted(
        (one for one in fields if one.primary_key), key=lambda one: (one.position, one.name)
    )
    names = tuple(one.name for one in parts)
    if not names:
        return
    missing = tuple(one.name for one in parts if not one.required)
    if missing:
        yield (
            "primary_key.required",
            Promise(rule={"type": "not_null", "severity": "error"}),
            missing,
        )
    unique: dict[str, Json] = {"type": "unique", "severity": "error"}
    yield "primary_key.unique", Promise(rule=unique), names
