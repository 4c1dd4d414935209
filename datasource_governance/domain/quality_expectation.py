"""What a quality provider is asked: the content rules of a policy, compiled once, in policy order.

Schema rules (`required_fields`, `field`) are no expectations: they are evaluated natively whatever
the provider, because type vocabularies differ from one framework to the next.

Source: SPEC section 14; facts on the quality plugin, 10.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from datasource_governance.domain.canonical import Json, Sha256
from datasource_governance.domain.quality_policy import QualityPolicy, parse_quality_policy
from datasource_governance.domain.rules import (
    NotNullRule,
    RangeRule,
    ReferentialRule,
    RowCountRule,
    Severity,
    UniqueRule,
)

ContentRule = RowCountRule | NotNullRule | UniqueRule | RangeRule | ReferentialRule
"""A rule about rows, which a provider evaluates."""

CONTENT_KINDS = frozenset(
    kind.type for kind in (RowCountRule, NotNullRule, UniqueRule, RangeRule, ReferentialRule)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityExpectation:
    """One content rule of the policy with that hash."""

    rule: ContentRule
    policy_hash: Sha256

    @property
    def id(self) -> str:
        """The rule's id, by which a provider answers."""
        return self.rule.id

    @property
    def kind(self) -> str:
        """The rule's type."""
        return self.rule.type

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the rule names; none for `row_count`."""
        return self.rule.fields

    @property
    def severity(self) -> Severity:
        """What a failure of the rule does."""
        return self.rule.severity


def expectations(policy: QualityPolicy) -> tuple[QualityExpectation, ...]:
    """Return the expectations of a policy, in its order."""
    return tuple(
        QualityExpectation(rule=rule, policy_hash=policy.hash)
        for rule in policy.rules
        if isinstance(rule, ContentRule)
    )


def expectation_document(asked: Sequence[QualityExpectation]) -> dict[str, Json]:
    """Return expectations as a quality policy document, for another process to read."""
    return {"version": "expectations", "rules": [_rule_document(one.rule) for one in asked]}


def read_expectations(document: Json, policy_hash: Sha256) -> tuple[QualityExpectation, ...]:
    """Read what `expectation_document` wrote, of the policy with that hash."""
    policy = parse_quality_policy(document)  # type: ignore[arg-type]  # it refuses all but objects
    return tuple(
        QualityExpectation(rule=rule, policy_hash=policy_hash)
        for rule in policy.rules
        if isinstance(rule, ContentRule)
    )


def _rule_document(rule: ContentRule) -> dict[str, Json]:
    values = {one.name: getattr(rule, one.name) for one in fields(rule)}
    given = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value is not None
    }
    return {**given, "type": rule.type, "severity": str(rule.severity)}
