"""Compare two schemas and classify every change.

Source: SPEC section 4; acceptance decision SCHEMA_KEYS.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from datasource_governance.domain.schema import DataType, Field, TableSchema


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


DEFAULTS: Mapping[Change, Classification] = MappingProxyType(
    {
        Change.FIELD_ADDED_NULLABLE: Classification.COMPATIBLE,
        Change.FIELD_ADDED_REQUIRED: Classification.WARNING,
        Change.FIELD_REMOVED: Classification.BREAKING,
        Change.TYPE_WIDENED: Classification.COMPATIBLE,
        Change.TYPE_CHANGED: Classification.BREAKING,
        Change.NULLABILITY_RELAXED: Classification.BREAKING,
        Change.NULLABILITY_TIGHTENED: Classification.COMPATIBLE,
        Change.FIELD_ORDER_CHANGED: Classification.WARNING,
    }
)
"""What a change means where `schema_policy` does not say otherwise."""

_RANK = {classification: rank for rank, classification in enumerate(Classification)}

_Found = tuple[str | None, Change, object, object]


def compare_schemas(
    previous: TableSchema, current: TableSchema, overrides: Mapping[Change, Classification]
) -> SchemaDiff:
    """Compare fields by exact name; a rename is a removal and an addition.

    `before` and `after` are `{type, nullable}` of a field or None where it is absent, the types or
    nullabilities that differ, or for a changed order the names present on both sides, in the order
    of each. No change is compatible.
    """
    classes = {**DEFAULTS, **overrides}
    changes = [
        FieldChange(
            field=field, change=change, before=before, after=after, classification=classes[change]
        )
        for field, change, before, after in _changes(previous, current)
    ]
    changes.sort(key=lambda one: (one.field is not None, one.field or "", one.change))
    highest = max(
        (one.classification for one in changes),
        key=lambda classification: _RANK[classification],
        default=Classification.COMPATIBLE,
    )
    return SchemaDiff(classification=highest, changes=tuple(changes))


def _changes(previous: TableSchema, current: TableSchema) -> Iterator[_Found]:
    before = {field.name: field for field in previous.fields}
    after = {field.name: field for field in current.fields}
    for name in before.keys() - after.keys():
        yield name, Change.FIELD_REMOVED, _contract(before[name]), None
    for name in after.keys() - before.keys():
        yield name, _addition(after[name]), None, _contract(after[name])
    for name in before.keys() & after.keys():
        yield from _field_changes(before[name], after[name])

    old_order = [name for name in before if name in after]
    new_order = [name for name in after if name in before]
    if old_order != new_order:
        yield None, Change.FIELD_ORDER_CHANGED, old_order, new_order


def _field_changes(before: Field, after: Field) -> Iterator[_Found]:
    if before.type is not after.type:
        change = Change.TYPE_WIDENED if _widens(before.type, after.type) else Change.TYPE_CHANGED
        yield before.name, change, str(before.type), str(after.type)
    if before.nullable is not after.nullable:
        relaxed = after.nullable
        change = Change.NULLABILITY_RELAXED if relaxed else Change.NULLABILITY_TIGHTENED
        yield before.name, change, before.nullable, after.nullable


def _widens(before: DataType, after: DataType) -> bool:
    if before is DataType.UNKNOWN:
        return True
    return before is DataType.INTEGER and after is DataType.NUMBER


def _addition(field: Field) -> Change:
    return Change.FIELD_ADDED_NULLABLE if field.nullable else Change.FIELD_ADDED_REQUIRED


def _contract(field: Field) -> dict[str, object]:
    return {"type": str(field.type), "nullable": field.nullable}
