"""Fields, logical types and table schemas.

Source: SPEC sections 3 and 4; acceptance decision LOGICAL_TYPES.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class DataType(StrEnum):
    """The logical types; every width, unit, encoding and time zone of a kind is one type."""

    INTEGER = "integer"
    NUMBER = "number"
    STRING = "string"
    BOOLEAN = "boolean"
    DATE = "date"
    DATETIME = "datetime"
    TIME = "time"
    BINARY = "binary"
    LIST = "list"
    OBJECT = "object"
    UNKNOWN = "unknown"

    def meets(self, contract: "DataType") -> bool:
        """Tell whether a column of this type fulfils a `data_type` contract.

        An integer column meets number; an unknown column meets nothing, not even unknown.
        """
        if self is DataType.UNKNOWN:
            return False
        return self is contract or (self is DataType.INTEGER and contract is DataType.NUMBER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field. `nullable`: nulls are present, or the policy in force declares it nullable."""

    name: str
    type: DataType
    nullable: bool

    def document(self) -> dict[str, object]:
        """Return the JSON form `{name, type, nullable}`."""
        return {"name": self.name, "type": str(self.type), "nullable": self.nullable}


@dataclass(frozen=True, slots=True)
class TableSchema:
    """Fields in column order. Names are distinct and not blank; sources guarantee it."""

    fields: tuple[Field, ...]

    @staticmethod
    def of(fields: Iterable[Field]) -> "TableSchema":
        """Build a schema from any iterable of fields, in order."""
        return TableSchema(tuple(fields))

    def document(self) -> list[dict[str, object]]:
        """Return the JSON form: a list of fields in column order."""
        return [field.document() for field in self.fields]
