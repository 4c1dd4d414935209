"""Bring a declaration into force: the datasource, its settings, its policies as new versions.

Source: SPEC section 15 ("Loading reads only declarations … `datasource apply` records them").
"""

from dataclasses import dataclass, replace
from datetime import datetime

from datasource_governance.domain.actor import ActorId, Role
from datasource_governance.domain.approval_policy import ApprovalPolicy
from datasource_governance.domain.attestation import Action, Attestation
from datasource_governance.domain.contract import Contract
from datasource_governance.domain.datasource import Datasource
from datasource_governance.domain.policy_version import PolicyKind, PolicyVersion
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.domain.quality_provider import EVALUATOR_VERSION, beside_native
from datasource_governance.domain.retention_policy import RetentionPolicy
from datasource_governance.domain.subjects import apply_subject
from datasource_governance.domain.target import Target, beside_none
from datasource_governance.errors import GuardError
from datasource_governance.ports import UnitOfWork
from datasource_governance.services.attesting import attest, authorise
from datasource_governance.services.contracts import check_contract_versions, watch_contracts
from datasource_governance.services.recording import record

_Recorded = QualityPolicy | ApprovalPolicy | RetentionPolicy | Contract


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The datasource as it stands after applying, and whether anything changed."""

    target: Target
    changed: bool


def apply_datasource(
    work: UnitOfWork,
    declaration: Datasource,
    attestation: Attestation,
    evaluator_version: str = EVALUATOR_VERSION,
) -> Applied:
    """Record a declaration, and who evaluates. Applying what is in force already writes nothing.

    A policy change writes nothing on stages: those bound to another policy become outdated.

    Raises:
        GuardError: `not_authorised`, an attestation's codes, `kind_changed` or
            `contract_version_too_low`.
    """
    with work:
        before = work.datasources.find(declaration.id)
        now = work.now()
        after = _declared(declaration, before, evaluator_version, now)
        if after == before:
            return Applied(target=after, changed=False)
        author = attest(
            work,
            attestation,
            action=Action.DATASOURCE_APPLY,
            subject=apply_subject(declaration, evaluator_version),
            now=now,
        )
        authorise(work, author, Role.ADMINISTRATOR, declaration.id if before else None)
        check_contract_versions(work, before, declaration.contracts)
        if before is None:
            work.datasources.add(after)
        else:
            work.datasources.change(after, revision=before.revision)
        for version in _versions(declaration, attestation.id, now):
            work.datasources.add_policy(version)
        if after.contracts or (before and before.contracts):
            watch_contracts(work, declaration.id, declaration.contracts, now)
        _record(work, after, author, now)
        work.commit()
    return Applied(target=after, changed=True)


def _declared(
    declaration: Datasource, before: Target | None, evaluator_version: str, now: datetime
) -> Target:
    if before is not None and before.kind != declaration.kind:
        raise GuardError(
            f"datasource {declaration.id!r} is {before.kind} and cannot become {declaration.kind}; "
            "declare another datasource",
            code="kind_changed",
        )
    base = before or Target(
        datasource=declaration.id,
        kind=declaration.kind,
        quality_policy_hash=None,
        approval_policy_hash=None,
        retention_policy_hash=None,
        promotion="manual",
        current=None,
        revision=0,
        created_at=now,
    )
    quality, approval = declaration.quality_policy, declaration.approval_policy
    retention = declaration.retention_policy
    return replace(
        base,
        quality_policy_hash=quality.hash if quality else None,
        approval_policy_hash=approval.hash if approval else None,
        retention_policy_hash=retention.hash if retention else None,
        promotion=declaration.promote,
        artifact_evaluation=declaration.artifact_evaluation,
        allow_supplied_policy=declaration.allow_supplied_policy,
        evaluator_version=evaluator_version,
        contracts=tuple(sorted((one.id, one.hash) for one in declaration.contracts)),
    )


def _versions(declaration: Datasource, attestation_id: str, now: datetime) -> list[PolicyVersion]:
    policies: list[tuple[PolicyKind, _Recorded | None]] = [
        (PolicyKind.QUALITY, declaration.quality_policy),
        (PolicyKind.APPROVAL, declaration.approval_policy),
        (PolicyKind.RETENTION, declaration.retention_policy),
        *((PolicyKind.CONTRACT, contract) for contract in declaration.contracts),
    ]
    return [
        PolicyVersion(
            datasource=declaration.id,
            kind=kind,
            hash=policy.hash,
            version=policy.version,
            document=policy.canonical,
            attestation_id=attestation_id,
            created_at=now,
        )
        for kind, policy in policies
        if policy is not None
    ]


def _record(work: UnitOfWork, target: Target, author: ActorId, now: datetime) -> None:
    facts = {
        "quality_policy_hash": target.quality_policy_hash,
        "approval_policy_hash": target.approval_policy_hash,
        "retention_policy_hash": target.retention_policy_hash,
        "promotion": target.promotion,
        "artifact_evaluation": target.artifact_evaluation,
        "allow_supplied_policy": target.allow_supplied_policy,
        **beside_native(target.evaluator_version),
        **beside_none(target.contracts),
        "author": author,
    }
    record(
        work,
        target.datasource,
        "governance.applied",
        subject=target.datasource,
        facts=facts,
        at=now,
    )
