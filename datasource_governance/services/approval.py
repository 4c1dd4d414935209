"""Record an actor's decision about a stage.

Source: SPEC section 7.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from datasource_governance.domain.actor import Grant, Role
from datasource_governance.domain.approval import (
    Decision,
    DecisionRequest,
    Quorum,
    Subject,
    Verdict,
    check_reason,
    decide,
    subject_of,
    tally,
)
from datasource_governance.domain.approval_policy import ApprovalPolicy
from datasource_governance.domain.attestation import Attestation, reason_hash
from datasource_governance.domain.policy_version import PolicyKind, recorded_approval_policy
from datasource_governance.domain.stage import Stage, StageState
from datasource_governance.domain.subjects import decision_action, decision_subject
from datasource_governance.errors import NotFoundError
from datasource_governance.ports import UnitOfWork
from datasource_governance.services.attesting import attest, authorise
from datasource_governance.services.recording import record


@dataclass(frozen=True, slots=True, kw_only=True)
class AttestedDecision:
    """A verdict, its reason, the hashes that were reviewed, and the proof of who decided."""

    verdict: Verdict
    reason: str
    subject: Subject
    attestation: Attestation


def decide_stage(work: UnitOfWork, request: AttestedDecision) -> Decision:
    """Record one decision. One reject closes the stage; a quorum changes no state.

    Raises:
        NotFoundError: for an unknown stage or datasource.
        GuardError: with the codes of `domain.approval.decide`, of attestations, `not_authorised`.
    """
    check_reason(request.reason)
    with work:
        partition = work.stages.get(request.subject.stage).partition
        target = work.datasources.get_for_update(request.subject.datasource, partition)
        stage = work.stages.get_for_update(request.subject.stage)
        if stage.datasource != target.datasource:
            raise NotFoundError(f"datasource {target.datasource!r} has no stage {stage.id!r}")
        now = work.now()
        actor = attest(
            work,
            request.attestation,
            action=decision_action(request.verdict),
            subject=decision_subject(request.subject, request.reason),
            now=now,
        )
        grant = authorise(work, actor, Role.APPROVER, target.datasource)
        decision = decide(
            DecisionRequest(
                id=work.new_id(),
                verdict=request.verdict,
                actor=actor,
                grant_id=grant.id,
                reason=request.reason,
                attestation_id=request.attestation.id,
                subject=request.subject,
            ),
            stage,
            target=target,
            policy=approval_policy_of(work, stage),
            earlier=work.decisions.about(stage.id),
            tenant=work.tenant,
            now=now,
        )
        work.decisions.add(decision)
        if decision.verdict is Verdict.REJECT:
            work.stages.change_state(stage, StageState.REJECTED)
        _record(work, decision)
        work.commit()
    return decision


def approval_policy_of(work: UnitOfWork, stage: Stage) -> ApprovalPolicy | None:
    """Return the approval policy that a stage is bound to."""
    if stage.approval_policy_hash is None:
        return None
    kept = work.datasources.policy(
        stage.datasource, PolicyKind.APPROVAL, stage.approval_policy_hash
    )
    return recorded_approval_policy(kept)


def quorum_of(work: UnitOfWork, stage: Stage) -> Quorum | None:
    """Return where the decisions about a stage stand now; None where none are required."""
    return quorum_at(work, stage, work.now())


def quorum_at(work: UnitOfWork, stage: Stage, now: datetime) -> Quorum | None:
    """Return where they stand at `now`, the one instant of a promotion."""
    policy = approval_policy_of(work, stage)
    if policy is None or not stage.approval_required:
        return None
    decisions = work.decisions.about(stage.id)
    return tally_at(work, stage, policy, decisions, work.authority.grants(), now)


def tally_at(
    work: UnitOfWork,
    stage: Stage,
    policy: ApprovalPolicy,
    decisions: Collection[Decision],
    grants: Collection[Grant],
    now: datetime,
) -> Quorum:
    """Return where these decisions about a stage stand, under grants that were read."""
    return tally(
        policy,
        subject_of(stage, work.tenant),
        decisions,
        creator=stage.creator,
        authorised=frozenset(
            grant.actor for grant in grants if grant.covers(Role.APPROVER, stage.datasource)
        ),
        now=now,
    )


def _record(work: UnitOfWork, decision: Decision) -> None:
    facts = {
        **decision.subject.document(),
        "decision": decision.id,
        "verdict": str(decision.verdict),
        "actor": decision.actor,
        "authority": decision.grant_id,
        "reason_hash": reason_hash(decision.reason),
        "expires_at": decision.expires_at.isoformat() if decision.expires_at else None,
    }
    record(
        work,
        decision.subject.datasource,
        "stage.decided",
        subject=decision.subject.stage,
        facts=facts,
        at=decision.decided_at,
    )
