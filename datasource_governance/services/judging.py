"""What an output is judged by: the policies in force and the schema of what is current.

Source: SPEC sections 4, 6 (supplied policies) and 9; facts 4.2.
"""

from dataclasses import dataclass, replace

from datasource_governance.domain.approval_policy import ApprovalPolicy
from datasource_governance.domain.datasource import DatasourceKind
from datasource_governance.domain.policy_version import (
    PolicySource,
    recorded_approval_policy,
    recorded_quality_policy,
)
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.domain.schema import TableSchema
from datasource_governance.domain.schema_diff import compare_schemas
from datasource_governance.domain.target import Governance, Target
from datasource_governance.domain.validation import Validation
from datasource_governance.errors import GuardError
from datasource_governance.ports import UnitOfWork


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingFacts:
    """What an output is judged by; the transaction that stores it checks that it held.

    `times_purged` is how often the object of an artifact had been purged.
    """

    target: Target
    quality_policy: QualityPolicy
    policy_source: PolicySource
    approval_policy: ApprovalPolicy | None
    previous: TableSchema | None
    times_purged: int = 0

    @property
    def approval_required(self) -> bool:
        """Whether a quorum has to let it become current."""
        return self.approval_policy is not None and self.approval_policy.required

    def govern(self, target: Target) -> bool:
        """Tell whether a target is still governed so, whatever became current meanwhile."""
        return _governance(target) == _governance(self.target)

    def compared(self, validation: Validation) -> Validation:
        """Return a validation compared with the schema of what is current."""
        if self.previous is None:
            return validation
        overrides = self.quality_policy.schema_policy
        diff = compare_schemas(self.previous, validation.schema, overrides)
        return replace(validation, schema_diff=diff)


def judging_facts(
    work: UnitOfWork, datasource: str, partition: str, supplied: QualityPolicy | None
) -> JudgingFacts:
    """Return what an output for a datasource is judged by now.

    Raises:
        NotFoundError: for an unknown datasource.
        GuardError: `wrong_kind`, `quality_policy_missing`, or `supplied_policy_refused`.
    """
    governance = work.datasources.governance(datasource, partition)
    _check_kind(governance.target)
    approval = governance.approval_policy
    policy, source = _quality_policy(governance, supplied)
    return JudgingFacts(
        target=governance.target,
        quality_policy=policy,
        policy_source=source,
        approval_policy=None if approval is None else recorded_approval_policy(approval),
        previous=governance.schema,
    )


def _check_kind(target: Target) -> None:
    if target.kind != DatasourceKind.PUBLISHED:
        raise GuardError(
            f"datasource {target.datasource!r} is {target.kind}, and only one of kind "
            f"{DatasourceKind.PUBLISHED} takes publications; deliver to it with: stage create, or "
            "declare another datasource",
            code="wrong_kind",
        )


def _quality_policy(
    governance: Governance, supplied: QualityPolicy | None
) -> tuple[QualityPolicy, PolicySource]:
    name, kept = governance.target.datasource, governance.quality_policy
    if supplied is not None:
        if not governance.target.allow_supplied_policy:
            raise GuardError(
                f"datasource {name!r} takes no policy that comes with an output; leave it out, or "
                "declare governance.allow_supplied_policy and run: datasource apply",
                code="supplied_policy_refused",
            )
        return supplied, PolicySource.SUPPLIED
    if kept is None:
        raise GuardError(
            f"datasource {name!r} has no quality policy, so nothing could be proven; "
            "declare one and run: datasource apply",
            code="quality_policy_missing",
        )
    return recorded_quality_policy(kept), PolicySource.INHERITED


def _governance(target: Target) -> Target:
    """Return a target but for what moves with every publication."""
    return replace(target, current=None, unpartitioned=None, revision=0)


def at_present(work: UnitOfWork, facts: JudgingFacts, target: Target) -> JudgingFacts:
    """Return the facts with what is current now, under the datasource's lock."""
    if target.current == facts.target.current:
        return replace(facts, target=target)
    current = target.current
    previous = None if current is None else work.materializations.schema(current)
    return replace(facts, target=target, previous=previous)
