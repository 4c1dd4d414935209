"""The result of one quality policy over one payload. It has no place for a cell value.

Source: SPEC section 5; acceptance decisions ROW_NUMBERS, MISSING_FIELD_FAILS.
"""

from dataclasses import dataclass
from enum import StrEnum

from datasource_governance.domain.canonical import Sha256, canonical_bytes, digest
from datasource_governance.domain.quality_policy import QualityPolicy, Severity
from datasource_governance.domain.quality_provider import (
    EVALUATOR_VERSION,
    ProviderBinding,
    evaluator_version,
)
from datasource_governance.domain.schema import TableSchema
from datasource_governance.domain.schema_diff import Classification, SchemaDiff

FORMAT = "datasource_governance/validation/v1"
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


class Outcome(StrEnum):
    """What may happen to the payload."""

    BLOCKED = "blocked"
    REVIEW = "review"
    READY = "ready"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The complete evidence of one validation. Equal payload, policy and evaluator: equal bytes.

    `left_open` are the rules that only the producer of an artifact can answer for and did not; they
    are told as not evaluated. `provider` evaluated the content rules; without a platform manifest
    it is None, and they were evaluated natively.
    """

    policy_version: str
    policy_hash: Sha256
    rules: tuple[RuleOutcome, ...]
    schema: TableSchema
    schema_diff: SchemaDiff | None
    row_count: int
    byte_count: int
    fingerprint: Sha256
    engine: str
    notices: tuple[str, ...] = ()
    left_open: frozenset[str] = frozenset()
    provider: ProviderBinding | None = None

    @property
    def outcome(self) -> Outcome:
        """Blocked by an error rule or a breaking change; review for any warning; else ready.

        A rule that is left open does not block: somebody has to look.
        """
        not_passed = [rule for rule in self.rules if rule.status is not Status.PASSED]
        classification = self.schema_diff.classification if self.schema_diff else None
        if classification is Classification.BREAKING:
            return Outcome.BLOCKED
        blocking = (rule for rule in not_passed if rule.id not in self.left_open)
        if any(rule.severity is Severity.ERROR for rule in blocking):
            return Outcome.BLOCKED
        if not_passed or classification is Classification.WARNING:
            return Outcome.REVIEW
        return Outcome.READY

    @property
    def rule_counts(self) -> dict[str, dict[str, int]]:
        """Return the number of rules by severity and status."""
        return {
            str(severity): {
                str(status): sum(
                    rule.severity is severity and rule.status is status for rule in self.rules
                )
                for status in Status
            }
            for severity in Severity
        }

    def document(self) -> dict[str, object]:
        """Return the stored form, which is also what `validate --json` prints."""
        return {
            "format": FORMAT,
            "outcome": str(self.outcome),
            "policy": {"version": self.policy_version, "hash": self.policy_hash},
            "rule_counts": self.rule_counts,
            "rules": [rule.document() for rule in self.rules],
            "schema": self.schema.document(),
            "schema_diff": self.schema_diff.document() if self.schema_diff else None,
            "row_count": self.row_count,
            "byte_count": self.byte_count,
            "fingerprint": self.fingerprint,
            "notices": list(self.notices),
            "evaluator": {**self._evaluator(), "engine": self.engine},
        }

    def _evaluator(self) -> dict[str, object]:
        version: dict[str, object] = {"version": EVALUATOR_VERSION}
        if self.provider is None:
            return version
        return {**version, "provider": self.provider.document()}

    @property
    def evaluator_version(self) -> str:
        """What a stage of this validation is bound to."""
        return evaluator_version(self.provider)

    def schema_bytes(self) -> bytes:
        """Return the canonical bytes of the detected schema."""
        return canonical_bytes(self.schema.document())

    def hashed_bytes(self) -> bytes:
        """Return the canonical bytes that are stored and hashed: without the engine's name."""
        document = self.document()
        document["evaluator"] = self._evaluator()
        return canonical_bytes(document)

    @property
    def hash(self) -> Sha256:
        """Digest of `hashed_bytes`."""
        return validation_hash(self.hashed_bytes())


def validation_hash(hashed: bytes) -> Sha256:
    """Return the digest of a validation's `hashed_bytes`."""
    return digest("datasource_governance/validation/v1", hashed)


def assemble(  # noqa: PLR0913 - one argument per fact, all by name
    *,
    policy: QualityPolicy,
    rules: tuple[RuleOutcome, ...],
    schema: TableSchema,
    schema_diff: SchemaDiff | None,
    row_count: int,
    byte_count: int,
    fingerprint: Sha256,
    engine: str,
    notices: tuple[str, ...] = (),
    provider: ProviderBinding | None = None,
) -> Validation:
    """Put a validation together; refuse one in which a rule of the policy has no outcome.

    Raises:
        ValueError: when outcomes and rules are not the same ids in the same order.
    """
    if tuple(rule.id for rule in rules) != tuple(rule.id for rule in policy.rules):
        raise ValueError("every rule of the policy needs exactly one outcome, in policy order")
    return Validation(
        policy_version=policy.version,
        policy_hash=policy.hash,
        rules=rules,
        schema=schema,
        schema_diff=schema_diff,
        row_count=row_count,
        byte_count=byte_count,
        fingerprint=fingerprint,
        engine=engine,
        notices=notices,
        provider=provider,
    )
