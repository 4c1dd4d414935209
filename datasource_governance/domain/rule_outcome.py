"""What became of one rule over one payload. It has no place for a cell value.

Source: SPEC section 5; acceptance decisions ROW_NUMBERS, MISSING_FIELD_FAILS.
"""

from dataclasses import dataclass
from enum import StrEnum

from datasource_governance.domain.rules import Severity

MAXIMUM_ROWS_LISTED = 25


class Status(StrEnum):
    """How a rule ended. `ERROR`: it could not be evaluated, which never counts as passed."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"


class Reason(StrEnum):
    """Why a rule did not pass."""

    MISSING_FIELD = "missing_field"
    TYPE_MISMATCH = "type_mismatch"
    NULLABILITY = "nullability"
    NULL = "null"
    ROW_COUNT = "row_count"
    DUPLICATE = "duplicate"
    OUT_OF_RANGE = "out_of_range"
    NOT_ALLOWED = "not_allowed"
    NOT_EVALUATED = "not_evaluated"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOutcome:
    """What one rule found.

    `affected` is exact and uncapped; `rows` are the lowest 25 one-based positions, ascending. Both
    are None where rows are not what it is about: `row_count`, `required_fields`, a missing field, a
    wrong type, not evaluated. `fields` are the names concerned: the missing ones where fields are
    missing, else the rule's own.
    """

    id: str
    type: str
    severity: Severity
    status: Status
    fields: tuple[str, ...]
    affected: int | None = None
    rows: tuple[int, ...] | None = None
    reason: Reason | None = None

    @property
    def truncated(self) -> bool:
        """Whether more rows are affected than are listed, where rows are listed at all."""
        if self.affected is None or self.rows is None:
            return False
        return self.affected > len(self.rows)

    def document(self) -> dict[str, object]:
        """Return the JSON form of SPEC section 5."""
        return {
            "id": self.id,
            "type": self.type,
            "severity": str(self.severity),
            "status": str(self.status),
            "fields": list(self.fields),
            "affected": self.affected,
            "rows": None if self.rows is None else list(self.rows),
            "truncated": self.truncated,
            "reason": None if self.reason is None else str(self.reason),
        }
