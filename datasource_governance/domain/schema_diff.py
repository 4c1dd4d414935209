"""Compare two schemas and classify every change.

Source: SPEC section 4; acceptance decision SCHEMA_KEYS.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from datasource_governance.domain.schema import TableSchema


class Change(StrEnum):
    """The kinds of change; also the keys of `schema_policy`."""

    FIELD_ADDED_NULLABLE = "field_added_nullable"
    FIELD_ADDED_REQUIRED = "field_added_required"
    FIELD_REMOVED = "field_removed"
    TYPE_WIDENED = "type_widened"
    TYPE_CHANGED = "type_changed"
    NULLABILITY_RELAXED = "nullability_relaxed"
    NULLABILITY_TIGHTENED = "nullability_tightened"
    FIELD_ORDER_CHANGED = "field_order_changed"


class Classification(StrEnum):
    """What a change means for promotion, from harmless to blocking."""

    COMPATIBLE = "compatible"
    WARNING = "warning"
    BREAKING = "breaking"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """One change. `field` is None only for a changed order. `before`/`after` are JSON values."""

    field: str | None
    change: Change
    before: object
    after: object
    classification: Classification

    def document(self) -> dict[str, object]:
        """Return the JSON form of SPEC section 5."""
        return {
            "field": self.field,
            "change": str(self.change),
            "before": self.before,
            "after": self.after,
            "classification": str(self.classification),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDiff:
    """Every change, sorted by field (None first) and change; the highest class of them."""

    classification: Classification
    changes: tuple[FieldChange, ...]

    def document(self) -> dict[str, object]:
        """Return the JSON form of SPEC section 5."""
        return {
            "classification": str(self.classification),
            "changes": [change.document() for change in self.changes],
        }


def compare_schemas(
    previous: TableSchema, current: TableSchema, overrides: Mapping[Change, Classification]
) -> SchemaDiff:
    """Compare fields by exact name; a rename is a removal and an addition."""
    raise NotImplementedError
