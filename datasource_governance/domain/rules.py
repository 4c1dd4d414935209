"""The rules of a quality policy: one frozen class per type, with nothing in them but what is asked.

Source: SPEC section 2.1.
"""

from dataclasses import dataclass
from enum import StrEnum

from datasource_governance.domain.schema import DataType


class Severity(StrEnum):
    """What a failure of a rule does: an error blocks promotion, a warning needs review."""

    ERROR = "error"
    WARNING = "warning"


Number = int | float
"""A bound: integers are exact at any size, fractions are the nearest double."""

Code = bool | int | float | str
"""A member of a code set. `True`, `1` and `"1"` are three codes; `1` and `1.0` are one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCountRule:
    """Bounds on the number of rows, both inclusive; at least one is given."""

    id: str
    severity: Severity
    minimum: int | None
    maximum: int | None
    type = "row_count"
    fields = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredFieldsRule:
    """Fields that must exist in the detected schema."""

    id: str
    severity: Severity
    fields: tuple[str, ...]
    type = "required_fields"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRule:
    """The declared contract of one field: its logical type, whether it permits nulls, or both."""

    id: str
    severity: Severity
    field: str
    data_type: DataType | None
    nullable: bool | None
    type = "field"

    @property
    def fields(self) -> tuple[str, ...]:
        """The one field, as every rule names its fields."""
        return (self.field,)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotNullRule:
    """No nulls in any of the fields; a row counts once however many of them are null."""

    id: str
    severity: Severity
    fields: tuple[str, ...]
    type = "not_null"


@dataclass(frozen=True, slots=True, kw_only=True)
class UniqueRule:
    """No two rows share the key. With `ignore_nulls` a row with any null part is left out."""

    id: str
    severity: Severity
    fields: tuple[str, ...]
    ignore_nulls: bool
    type = "unique"


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRule:
    """Numeric bounds, inclusive; at least one is given. A null violates unless `allow_null`."""

    id: str
    severity: Severity
    field: str
    minimum: Number | None
    maximum: Number | None
    allow_null: bool
    type = "range"

    @property
    def fields(self) -> tuple[str, ...]:
        """The one field, as every rule names its fields."""
        return (self.field,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferentialRule:
    """Membership in a bounded code set. A null violates unless `allow_null`."""

    id: str
    severity: Severity
    field: str
    allowed_values: tuple[Code, ...]
    allow_null: bool
    type = "referential"

    @property
    def fields(self) -> tuple[str, ...]:
        """The one field, as every rule names its fields."""
        return (self.field,)


Rule = (
    RowCountRule
    | RequiredFieldsRule
    | FieldRule
    | NotNullRule
    | UniqueRule
    | RangeRule
    | ReferentialRule
)
