"""The validation of an artifact whose rows the producer has evaluated.

What names, types and the number of rows tell is evaluated here, whatever the producer says. Of the
other rules his results are taken as far as his evidence is bound to this artifact and policy; those
that nobody answered for are left open.

Source: SPEC section 10; acceptance decision PUBLISH_EVIDENCE.
"""

from collections.abc import Mapping
from dataclasses import replace

from datasource_governance.domain.artifact import ArtifactReference
from datasource_governance.domain.producer_evidence import (
    Judgement,
    ProducerEvidence,
    ResultStatus,
    RuleResult,
)
from datasource_governance.domain.quality_policy import QualityPolicy, Rule
from datasource_governance.domain.schema import TableSchema
from datasource_governance.domain.validation import (
    Reason,
    RuleOutcome,
    Status,
    Validation,
    assemble,
)

ENGINE = "producer"


def artifact_validation(
    policy: QualityPolicy,
    reference: ArtifactReference,
    certain: Mapping[str, RuleOutcome],
    evidence: ProducerEvidence | None,
    judgement: Judgement,
) -> Validation:
    """Return the validation of an artifact that was verified; there is no earlier schema in it.

    Args:
        policy: The policy that the evidence was judged under.
        reference: What is in the artifact.
        certain: The outcomes, by rule id, that need no look at the rows.
        evidence: What the producer found, if he said so.
        judgement: What that is worth.
    """
    is_bound = evidence is not None and judgement is not Judgement.UNBOUND
    results = {one.id: one for one in evidence.results} if evidence and is_bound else {}
    rules = tuple(
        certain.get(rule.id) or _reported(rule, results.get(rule.id)) for rule in policy.rules
    )
    validation = assemble(
        policy=policy,
        rules=rules,
        schema=_permitting(reference.schema, policy),
        schema_diff=None,
        row_count=reference.row_count,
        byte_count=reference.byte_count,
        fingerprint=reference.sha256,
        engine=ENGINE,
    )
    unanswered = {
        rule.id for rule in rules if rule.id not in certain and not _is_answer(results.get(rule.id))
    }
    return replace(validation, left_open=frozenset(unanswered))


def _is_answer(result: RuleResult | None) -> bool:
    return result is not None and result.status is not ResultStatus.DEFERRED


def _reported(rule: Rule, result: RuleResult | None) -> RuleOutcome:
    """Return the outcome that a producer reports; he says neither which rows nor why."""
    outcome = RuleOutcome(
        id=rule.id,
        type=rule.type,
        severity=rule.severity,
        status=Status.ERROR,
        fields=rule.fields,
        reason=Reason.NOT_EVALUATED,
    )
    if result is None or result.status in {ResultStatus.DEFERRED, ResultStatus.ERROR}:
        return outcome
    return replace(outcome, status=Status(result.status), affected=result.affected, reason=None)


def _permitting(schema: TableSchema, policy: QualityPolicy) -> TableSchema:
    """Return a schema in which fields may be null, too, that the policy declares so."""
    return TableSchema.of(
        replace(field, nullable=field.nullable or policy.permits_null(field.name))
        for field in schema.fields
    )
