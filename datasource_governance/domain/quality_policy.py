"""Quality policies: one frozen class per rule type, read strictly, hashed as authored.

Source: SPEC section 2, 2.1 and 2.4; acceptance decision POLICY_STRICT.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.schema import DataType
from datasource_governance.domain.schema_diff import Change, Classification


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
    """The declared contract of one field: its logical type, whether nulls are permitted, or both."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityPolicy:
    """A quality policy as authored. `canonical` are the bytes that are hashed and kept."""

    version: str
    rules: tuple[Rule, ...]
    schema_policy: Mapping[Change, Classification]
    canonical: bytes
    hash: Sha256

    def permits_null(self, field: str) -> bool:
        """Tell whether a `field` rule declares the field nullable (SPEC section 4)."""
        return any(
            isinstance(rule, FieldRule) and rule.field == field and rule.nullable is True
            for rule in self.rules
        )


NO_OVERRIDES: Mapping[Change, Classification] = MappingProxyType({})


def parse_quality_policy(document: str | bytes | Mapping[str, object]) -> QualityPolicy:
    """Read a quality policy from JSON text, bytes or an already strictly parsed object.

    Raises:
        InvalidPolicyError: with every problem at once, each with its JSON pointer.
    """
    raise NotImplementedError
