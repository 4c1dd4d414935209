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
from datasource_governance.domain.quality_score import QualityScore, ScoreLevel
from datasource_governance.domain.rule_outcome import (
    MAXIMUM_ROWS_LISTED,
    Reason,
    RuleOutcome,
    Status,
)
from datasource_governance.domain.schema import TableSchema
from datasource_governance.domain.schema_diff import Classification, SchemaDiff

__all__ = [
    "FORMAT",
    "MAXIMUM_ROWS_LISTED",
    "Outcome",
    "Reason",
    "RuleOutcome",
    "Status",
    "Validation",
    "assemble",
    "validation_hash",
]

FORMAT = "datasource_governance/validation/v1"


class Outcome(StrEnum):
    """What may happen to the payload."""

    BLOCKED = "blocked"
    REVIEW = "review"
    READY = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The complete evidence of one validation. Equal payload, policy and evaluator: equal bytes.

    `left_open` are the rules that only the producer of an artifact can answer for and did not; they
    are told as not evaluated. `provider` evaluated the content rules; without a platform manifest
    it is None, and they were evaluated natively, without a `score`. Where `score_gates`, the score
    is part of the outcome.
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
    score: QualityScore | None = None
    score_gates: bool = False

    @property
    def outcome(self) -> Outcome:
        """Blocked by an error rule, a breaking change or the score; review for any warning.

        A rule that is left open does not block: somebody has to look.
        """
        level = self.score.level if self.score and self.score_gates else ScoreLevel.OK
        not_passed = [rule for rule in self.rules if rule.status is not Status.PASSED]
        classification = self.schema_diff.classification if self.schema_diff else None
        if classification is Classification.BREAKING:
            return Outcome.BLOCKED
        blocking = (rule for rule in not_passed if rule.id not in self.left_open)
        if level is ScoreLevel.BLOCKED or any(one.severity is Severity.ERROR for one in blocking):
            return Outcome.BLOCKED
        if level is ScoreLevel.WARN or not_passed or classification is Classification.WARNING:
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
            **self._score(),
            "evaluator": {**self._evaluator(), "engine": self.engine},
        }

    def _score(self) -> dict[str, object]:
        if self.score is None:
            return {}
        return {"score": {**self.score.document(), "gates": self.score_gates}}

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
    )
