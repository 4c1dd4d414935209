"""What a producer says that the rules of a policy found in an artifact, and what that is worth.

Evidence is bound to the exact bytes of the artifact and to the complete policy. It is judged under
the policy in force; whatever it does not answer for this artifact and this policy counts as not
known, never as passed.

Source: SPEC section 10; acceptance decision PUBLISH_EVIDENCE; facts I-067 and I-068.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from datasource_governance.domain.artifact import DIGEST, StoredArtifact
from datasource_governance.domain.canonical import (
    MAXIMUM_EXACT_INTEGER,
    Sha256,
    canonical_bytes,
    digest,
)
from datasource_governance.domain.policy_keys import (
    MAXIMUM_ID_CHARACTERS,
    Key,
    Record,
    Tag,
    read_document,
)
from datasource_governance.domain.policy_values import Choice, ListOf, Text, Whole
from datasource_governance.domain.quality_policy import (
    MAXIMUM_RULES,
    RULE_ID,
    FieldRule,
    QualityPolicy,
    RequiredFieldsRule,
    RowCountRule,
    Rule,
    Severity,
)
from datasource_governance.domain.quality_provider import EVALUATOR_VERSION
from datasource_governance.domain.validation import Validation

FORMAT = "datasource_governance/producer_evidence/v1"
OUR_EVALUATOR = f"datasource_governance {EVALUATOR_VERSION}"
"""How evidence names this package's own engine."""


class ResultStatus(StrEnum):
    """How a rule ended at the producer's. Only `PASSED` is a pass.

    `ERROR`: it could not be evaluated, which counts as a failure here, as in a validation.
    `DEFERRED`: the producer leaves it to a review.
    """

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    DEFERRED = "deferred"


class Judgement(StrEnum):
    """What evidence is worth for one artifact under one policy.

    `ACCEPTED` and `WARNINGS` let the artifact become current, `FAILED` rejects it, and with all
    others somebody has to look.
    """

    ACCEPTED = "accepted"
    WARNINGS = "warnings"
    FAILED = "failed"
    MISSING = "missing"
    DEFERRED = "deferred"
    PARTIAL = "partial"
    UNBOUND = "unbound"

    @property
    def needs_review(self) -> bool:
        """Whether it leaves open if the rules hold."""
        return self not in {Judgement.ACCEPTED, Judgement.WARNINGS, Judgement.FAILED}


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """What one rule found; `affected` is the exact number of rows, where it is about rows."""

    id: str
    status: ResultStatus
    affected: int | None = None

    def document(self) -> dict[str, object]:
        """Return the JSON form."""
        counted = {} if self.affected is None else {"affected": self.affected}
        return {"id": self.id, "status": str(self.status), **counted}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerEvidence:
    """The results of a policy over an artifact. It has no place for a cell value.

    `evaluator` names what evaluated the rules, and its version.
    """

    artifact_sha256: Sha256
    policy_hash: Sha256
    evaluator: str
    results: tuple[RuleResult, ...]

    def document(self) -> dict[str, object]:
        """Return the JSON form that a producer sends."""
        return {
            "format": FORMAT,
            "artifact_sha256": self.artifact_sha256,
            "policy_hash": self.policy_hash,
            "evaluator": self.evaluator,
            "results": [result.document() for result in self.results],
        }

    @property
    def hash(self) -> Sha256:
        """Digest of the canonical bytes of the document."""
        return evidence_hash(canonical_bytes(self.document()))


def evidence_hash(kept: bytes) -> Sha256:
    """Return the hash of evidence whose document has these canonical bytes."""
    return digest(FORMAT, kept)


def evidence_of(validation: Validation, artifact_sha256: Sha256) -> ProducerEvidence:
    """Return the evidence that a validation by this package is, about an artifact of its payload.

    That the artifact holds just what was validated is the caller's word.
    """
    results = tuple(
        RuleResult(id=rule.id, status=ResultStatus(rule.status), affected=rule.affected)
        for rule in validation.rules
    )
    return ProducerEvidence(
        artifact_sha256=artifact_sha256,
        policy_hash=validation.policy_hash,
        evaluator=OUR_EVALUATOR,
        results=results,
    )


def needs_content(rule: Rule) -> bool:
    """Tell whether a rule can pass only after somebody has read the rows.

    The others are about names, types and the number of rows, which a footer tells.
    """
    if isinstance(rule, FieldRule):
        return rule.nullable is False
    return not isinstance(rule, (RowCountRule, RequiredFieldsRule))


def judge_evidence(
    evidence: ProducerEvidence | None,
    policy: QualityPolicy,
    artifact: StoredArtifact,
    known: Collection[str] = (),
) -> Judgement:
    """Return what evidence is worth for an artifact, under the policy in force.

    The rules in `known` were evaluated here, and need no result of the producer.

    The first of these that applies: unbound (another artifact or policy, or a rule that the policy
    has not), failed (an error rule failed or could not be evaluated), partial (a rule of the policy
    has no result), deferred, warnings, accepted. Without any evidence it is missing, unless no rule
    of the policy needs one.
    """
    if evidence is None:
        unknown = (rule for rule in policy.rules if rule.id not in known)
        return Judgement.MISSING if any(map(needs_content, unknown)) else Judgement.ACCEPTED
    given = {result.id: result.status for result in evidence.results}
    severities = {rule.id: rule.severity for rule in policy.rules}
    if not _is_bound(evidence, policy, artifact) or not severities.keys() >= given.keys():
        return Judgement.UNBOUND
    not_passed = {
        severities[rule]
        for rule, status in given.items()
        if status in {ResultStatus.FAILED, ResultStatus.ERROR}
    }
    found = (
        (Severity.ERROR in not_passed, Judgement.FAILED),
        (not severities.keys() <= {*given, *known}, Judgement.PARTIAL),
        (ResultStatus.DEFERRED in given.values(), Judgement.DEFERRED),
        (Severity.WARNING in not_passed, Judgement.WARNINGS),
    )
    return next((judgement for applies, judgement in found if applies), Judgement.ACCEPTED)


def _is_bound(evidence: ProducerEvidence, policy: QualityPolicy, artifact: StoredArtifact) -> bool:
    return (evidence.artifact_sha256, evidence.policy_hash) == (artifact.sha256, policy.hash)


def parse_producer_evidence(document: object) -> ProducerEvidence:
    """Read evidence from JSON text, bytes or an already parsed object.

    Raises:
        InvalidPolicyError: with every problem at once; two results of one rule are one.
    """
    return read_document(PRODUCER_EVIDENCE, document, what="producer evidence")


_RESULT = Record(
    keys=(
        RULE_ID,
        Key(
            "status",
            Choice(ResultStatus),
            required=True,
            meaning="How the rule ended; an error is a rule that could not be evaluated.",
        ),
        Key(
            "affected",
            Whole(minimum=0, maximum=MAXIMUM_EXACT_INTEGER),
            meaning="How many rows violate the rule, where it is about rows.",
        ),
    ),
    build=RuleResult,
    named_by=RULE_ID.name,
)
PRODUCER_EVIDENCE = Record(
    keys=(
        Key("format", Tag((FORMAT,), "invalid_value"), required=True, meaning="This format."),
        Key("artifact_sha256", DIGEST, required=True, meaning="Of the artifact's bytes."),
        Key("policy_hash", DIGEST, required=True, meaning="Of the complete quality policy."),
        Key(
            "evaluator",
            Text(
                expected=f"a printable text of 1 to {MAXIMUM_ID_CHARACTERS} characters, not blank",
                maximum=MAXIMUM_ID_CHARACTERS,
            ),
            required=True,
            meaning="What evaluated the rules, and its version.",
        ),
        Key(
            "results",
            ListOf(
                item=_RESULT,
                expected=f"a list of at most {MAXIMUM_RULES} results, one for each rule",
                maximum=MAXIMUM_RULES,
                repeated="duplicate_rule_id",
                distinct_by=RULE_ID.name,
            ),
            required=True,
            meaning="One result for every rule of the policy.",
        ),
    ),
    build=lambda format, **given: ProducerEvidence(**given),  # noqa: A006, ARG005 - the key's name
)
"""The keys of producer evidence."""
