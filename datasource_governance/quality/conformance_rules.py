"""The rules that the conformance suite asks about its edge data, of all seven types.

They go from field to field and back, so that answers in another order than the questions show; and
there are several of one type about one field, so that answers for one another show too.

Source: SPEC section 2.1; facts on the quality plugin, 9 numbers 2 and 12, and 10.7.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from datasource_governance.domain.canonical import Json
from datasource_governance.quality.conformance_data import MIXED, ODD_NAMES, ROW_COUNT

_EXACT: Final = 1 << 53
_INT64: Final = 1 << 63
_CODES: Final[list[Json]] = [
    *(True, 1, "1", "true", 0.1, 0.3, -5, 27, _EXACT + 1, _INT64 - 1, _INT64, 10**37),
    *("", "it's", 'say "no"', "{brace} {{ 1 }}", "100% %s %(a)s", "2024-02-29"),
    *("${env.HOME} $1 :name", "back\\slash \\' {% endraw %}", "é", "ss", "a", "😀", 16777217),
]
_BOUNDS: Final[tuple[Mapping[str, int | float], ...]] = (
    {"minimum": 0.1, "maximum": 27},
    {"minimum": -_EXACT, "maximum": _EXACT + 1},
    {"minimum": _EXACT + 2, "maximum": 2 * _INT64 - 1},
    {"minimum": -_INT64 + 1, "maximum": 0.3},
    {"maximum": 1.7976931348623157e308},
)
_FIELDS: Final = (
    *("integer", "double", "flag", "text", "large integer", "day", "single", "unicode", "huge"),
    *("moment", "decimal", "nothing", MIXED),
)


def edge_rules(*, empty: bool) -> list[Mapping[str, Json]]:
    """Return the rules about the rows, or the fewer ones about none, as a policy says them."""
    named = _few_rules() if empty else _all_rules()
    return [{**rule, "id": name} for name, rule in named]


_Named = tuple[str, dict[str, Json]]


def _all_rules() -> Iterator[_Named]:
    yield from _row_counts(ROW_COUNT)
    yield from _schema_rules()
    for kind in (_unique, _referential):
        for field in _FIELDS:
            yield from kind(field)
    for field in ("text", "unicode", "flag", "day", "moment", "nothing", "integer", MIXED):
        yield from _range(field)
    for place, bounds in enumerate(_BOUNDS):
        for field in ("double", "large integer", "single", "huge", "decimal"):
            of: dict[str, Json] = {"field": field, "type": "range", "allow_null": bool(place % 2)}
            yield f"{field} bounds {place}", {**of, **bounds}
    for field in ("double", "single", "text", MIXED, "nothing"):
        yield f"{field} not_null", {"type": "not_null", "field": field}
    yield from _odd_names()
    yield from _composite("left", "right")
    yield from _composite("flag", "double")
    yield from _composite("flag", "day", "left")
    yield from _missing()


def _few_rules() -> Iterator[_Named]:
    yield from _row_counts(0)
    yield from _schema_rules()
    for field in ("double", "text"):
        for kind in (_unique, _referential, _range):
            yield from kind(field)
    yield from _composite("flag", "day", "left")
    yield from _missing()


def _row_counts(rows: int) -> Iterator[_Named]:
    yield "row_count exact", {"type": "row_count", "minimum": rows, "maximum": rows}
    yield "row_count too few", {"type": "row_count", "minimum": rows + 1}
    if rows:
        of: dict[str, Json] = {"type": "row_count", "severity": "warning"}
        yield "row_count too many", {**of, "maximum": rows - 1}


def _schema_rules() -> Iterator[_Named]:
    yield "required_fields", {"type": "required_fields", "fields": [*ODD_NAMES]}
    yield "required_fields missing", {"type": "required_fields", "fields": ["text", "absent"]}
    yield "field met", {"type": "field", "field": "huge", "data_type": "number", "nullable": True}
    yield "field other type", {"type": "field", "field": "text", "data_type": "integer"}
    yield "field nulls", {"type": "field", "field": "day", "nullable": False}


def _unique(field: str) -> Iterator[_Named]:
    of: dict[str, Json] = {"type": "unique", "field": field}
    yield f"{field} unique", of
    yield f"{field} unique, nulls ignored", {**of, "ignore_nulls": True}


def _referential(field: str) -> Iterator[_Named]:
    of: dict[str, Json] = {"type": "referential", "field": field}
    yield f"{field} referential", {**of, "allowed_values": _CODES}
    few: list[Json] = ["1", 2]
    yield f"{field} referential, nulls allowed", {**of, "allowed_values": few, "allow_null": True}


def _range(field: str) -> Iterator[_Named]:
    of: dict[str, Json] = {"type": "range", "field": field, "minimum": -5, "maximum": 27}
    yield f"{field} range", of
    yield f"{field} range, nulls allowed", {**of, "allow_null": True, "severity": "warning"}


def _odd_names() -> Iterator[_Named]:
    for field in ODD_NAMES:
        of: dict[str, Json] = {"type": "referential", "field": field}
        codes: list[Json] = ["1", 11, "é"]
        yield f"odd name {field} referential", {**of, "allowed_values": codes}
    yield "odd names not_null", {"type": "not_null", "fields": [*ODD_NAMES[1:4]]}
    yield "odd names unique", {"type": "unique", "fields": [*ODD_NAMES]}
    yield "odd id \"'{{ 1 }}{% raw %}${a}%s:b\\", {"type": "not_null", "field": ODD_NAMES[1]}


def _composite(*fields: str) -> Iterator[_Named]:
    of: dict[str, Json] = {"fields": [*fields]}
    named = " and ".join(fields)
    yield f"{named} unique", {**of, "type": "unique"}
    yield f"{named} unique, nulls ignored", {**of, "type": "unique", "ignore_nulls": True}
    yield f"{named} not_null", {**of, "type": "not_null"}


def _missing() -> Iterator[_Named]:
    of: dict[str, Json] = {"field": "absent"}
    yield "missing not_null", {"type": "not_null", "fields": ["left", "absent"]}
    yield "missing unique", {**of, "type": "unique"}
    yield "missing range", {**of, "type": "range", "minimum": 0, "severity": "warning"}
    yield "missing referential", {**of, "type": "referential", "allowed_values": [1]}
