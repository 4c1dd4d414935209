"""The table that a contract is about, and its fields, as the standard describes them.

Source: SPEC section 14; Open Data Contract Standard 3.1, "Schema".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from datasource_governance.domain.canonical import Json
from datasource_governance.domain.contract_quality import Promise, Property, QualityEntry
from datasource_governance.domain.policy_keys import FIELD_NAME, Key, Record
from datasource_governance.domain.policy_values import Flag, ListOf, Place
from datasource_governance.domain.schema import DataType

_TYPES: Final = MappingProxyType(
    {
        "string": DataType.STRING,
        "date": DataType.DATE,
        "timestamp": DataType.DATETIME,
        "time": DataType.TIME,
        "number": DataType.NUMBER,
        "integer": DataType.INTEGER,
        "object": DataType.OBJECT,
        "array": DataType.LIST,
        "boolean": DataType.BOOLEAN,
        "map": DataType.OBJECT,
        "vector": DataType.LIST,
    }
)
LOGICAL_TYPES: Final = MappingProxyType(
    {data_type: name for name, data_type in reversed([*_TYPES.items()])}
)
"""What the standard calls our types; it has no word for `binary` and `unknown`."""


class _LogicalType:
    """A logical type of the standard."""

    expected = f"one of {', '.join(_TYPES)}"

    def read(self, value: Json, place: Place) -> DataType | None:
        found = _TYPES.get(value) if isinstance(value, str) else None
        return found or place.refuse(self, value)


class _Options:
    """The options of a logical type."""

    expected = "an object of options"

    def read(self, value: Json, place: Place) -> Mapping[str, Json] | None:
        return value if isinstance(value, dict) else place.refuse(self, value)


class _Position:
    """The place of a field in the primary key; the standard's -1 is none."""

    expected = "an integer"

    def read(self, value: Json, place: Place) -> int | None:
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return value if isinstance(value, int) and is_number else place.refuse(self, value)


_QUALITY = ListOf(item=QualityEntry(), expected="a list of quality checks")
_PROPERTY: Record[dict[str, Any]] = Record(
    keys=(
        Key("name", FIELD_NAME, required=True),
        Key("logicalType", _LogicalType(), default=DataType.UNKNOWN),
        Key("required", Flag(), default=False),
        Key("unique", Flag(), default=False),
        Key("primaryKey", Flag(), default=False),
        Key("primaryKeyPosition", _Position(), default=-1),
        Key("logicalTypeOptions", _Options(), default=MappingProxyType({})),
        Key("quality", _QUALITY, default=()),
    ),
    build=dict[str, Any],
    is_open=True,
    named_by="name",
)


class _Property:
    """One field, which knows where it stands."""

    expected = "an object"

    def read(self, value: Json, place: Place) -> Property | None:
        found = _PROPERTY.read(value, place)
        if found is None:
            return None
        return Property(
            name=found["name"],
            type=found["logicalType"],
            required=found["required"],
            unique=found["unique"],
            primary_key=found["primaryKey"],
            position=found["primaryKeyPosition"],
            options=found["logicalTypeOptions"],
            quality=found["quality"],
            pointer=place.pointer,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """The table: its fields in order, and what is promised of all of it."""

    properties: tuple[Property, ...]
    quality: tuple[Promise, ...]


TABLE: Final[Record[Described]] = Record(
    keys=(
        Key(
            "properties",
            ListOf(
                item=_Property(),
                expected="a list of fields",
                repeated="invalid_value",
                distinct_by="name",
            ),
            default=(),
        ),
        Key("quality", _QUALITY, default=()),
    ),
    build=Described,
    is_open=True,
)
"""An entry of a contract's `schema`."""
