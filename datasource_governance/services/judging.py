"""What an output is judged by: the policies in force and the schema of what is current.

Source: SPEC sections 4, 6 (supplied policies) and 9; facts 4.2.
"""

from dataclasses import dataclass, replace

from datasource_governance.domain.approval_policy import ApprovalPolicy
from datasource_governance.domain.datasource import DatasourceKind
from datasource_governance.domain.policy_version import (
    PolicyKind,
    PolicySource,
    recorded_approval_policy,
    recorded_quality_policy,
)
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.domain.schema import TableSchema
from datasource_governance.domain.schema_diff import compare_schemas
from datasource_governance.domain.target import Target
from datasource_governance.domain.validation import Validation
from datasource_governance.errors import GuardError
from datasource_governance.ports import UnitOfWork


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingFacts:
    """What an output is judged by; the transaction that stores it checks that it held."""

    target: Target
    quality_policy: QualityPolicy
    policy_source: PolicySource
    approval_policy: ApprovalPolicy | None
    previous: TableSchema | None

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
    target = work.datasources.get(datasource, partition)
    _check_kind(target)
    name, approval = target.datasource, None
    if target.approval_policy_hash is not None:
        kept = work.datasources.policy(name, PolicyKind.APPROVAL, target.approval_policy_hash)
        approval = recorded_approval_policy(kept)
    policy, source = _quality_policy(work, target, supplied)
    return JudgingFacts(
        target=target,
        quality_policy=policy,
        policy_source=source,
        approval_policy=approval,
        previous=_current_schema(work, target),
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
    work: UnitOfWork, target: Target, supplied: QualityPolicy | None
) -> tuple[QualityPolicy, PolicySource]:
    name = target.datasource
    if supplied is not None:
        if not target.allow_supplied_policy:
            raise GuardError(
                f"datasource {name!r} takes no policy that comes with an output; leave it out, or "
                "declare governance.allow_supplied_policy and run: datasource apply",
                code="supplied_policy_refused",
            )
        return supplied, PolicySource.SUPPLIED
    if target.quality_policy_hash is None:
        raise GuardError(
            f"datasource {name!r} has no quality policy, so nothing could be proven; "
            "declare one and run: datasource apply",
            code="quality_policy_missing",
        )
    kept = work.datasources.policy(name, PolicyKind.QUALITY, target.quality_policy_hash)
    return recorded_quality_policy(kept), PolicySource.INHERITED


def _current_schema(work: UnitOfWork, target: Target) -> TableSchema | None:
    return None if target.current is None else work.materializations.schema(target.current)


def _governance(target: Target) -> Target:
    """Return a target but for what moves with every publication."""
    return replace(target, current=None, unpartitioned=None, revision=0)


def at_present(work: UnitOfWork, facts: JudgingFacts, target: Target) -> JudgingFacts:
    """Return the facts with what is current now, under the datasource's lock."""
    if target.current == facts.target.current:
        return replace(facts, target=target)
    return replace(facts, target=target, previous=_current_schema(work, target))
