"""Decisions about a stage and where they stand at an instant.

A decision is bound to the stage's fingerprint, both policy hashes and the base. Counted are
unexpired approvals of distinct actors who still have authority. One reject closes a stage. At the
very instant of expiry a decision no longer counts.

Source: SPEC section 7; acceptance decisions EXPIRY_EDGE and APPROVAL_BINDING.
"""

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from datasource_governance.domain.actor import UNATTESTED, ActorId
from datasource_governance.domain.approval_policy import ApprovalPolicy
from datasource_governance.domain.attestation import reason_hash
from datasource_governance.domain.canonical import Json, Sha256
from datasource_governance.domain.stage import Stage, StageState, check_live
from datasource_governance.domain.target import Target
from datasource_governance.errors import GuardError

MAXIMUM_REASON_CHARACTERS = 2000
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""NUL and lone surrogates, which neither canonical JSON nor Postgres takes."""


class Verdict(StrEnum):
    """What an actor decides."""

    APPROVE = "approve"
    REJECT = "reject"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Exactly what is decided about; the hashes that an actor reviewed."""

    datasource: str
    stage: str
    stage_fingerprint: Sha256
    quality_policy_hash: Sha256
    approval_policy_hash: Sha256 | None
    base: str | None

    def document(self) -> dict[str, Json]:
        """Return the JSON form that is signed and kept."""
        return {
            "datasource": self.datasource,
            "stage": self.stage,
            "stage_fingerprint": self.stage_fingerprint,
            "quality_policy_hash": self.quality_policy_hash,
            "approval_policy_hash": self.approval_policy_hash,
            "base": self.base,
        }


def subject_of(stage: Stage, tenant: str) -> Subject:
    """Return what a decision about this stage is bound to."""
    return Subject(
        datasource=stage.datasource,
        stage=stage.id,
        stage_fingerprint=stage.fingerprint(tenant),
        quality_policy_hash=stage.quality_policy_hash,
        approval_policy_hash=stage.approval_policy_hash,
        base=stage.base,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One actor's decision. The reason stays in the governance tables; its hash may leave them."""

    id: str
    subject: Subject
    actor: ActorId
    grant_id: str
    verdict: Verdict
    reason: str
    attestation_id: str
    decided_at: datetime
    expires_at: datetime | None

    def is_live(self, now: datetime) -> bool:
        """Tell whether it still counts; at `expires_at` it no longer does."""
        return self.expires_at is None or now < self.expires_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """Where an approval stands at one instant. A value, not an exception."""

    required: int
    approvals: tuple[Decision, ...]
    rejections: tuple[Decision, ...]
    not_counted: tuple[tuple[str, str], ...]

    @property
    def met(self) -> bool:
        """Enough approvals and no rejection."""
        return not self.rejections and len(self.approvals) >= self.required

    @property
    def missing(self) -> int:
        """How many approvals are still needed, 0 or more."""
        return max(0, self.required - len(self.approvals))

    def document(self) -> dict[str, object]:
        """Return the snapshot kept in a materialization's provenance; no reason, only its hash."""
        return {
            "required": self.required,
            "approvals": [_snapshot(decision) for decision in self.approvals],
            "not_counted": [
                {"decision": decision, "why": why} for decision, why in self.not_counted
            ],
        }


def _snapshot(decision: Decision) -> dict[str, object]:
    return {
        "decision": decision.id,
        "actor": decision.actor,
        "authority": decision.grant_id,
        "reason_hash": reason_hash(decision.reason),
        "attestation": decision.attestation_id,
        "decided_at": decision.decided_at.isoformat(),
        "expires_at": decision.expires_at.isoformat() if decision.expires_at else None,
    }


def tally(
    policy: ApprovalPolicy,
    subject: Subject,
    decisions: Iterable[Decision],
    *,
    creator: ActorId,
    authorised: AbstractSet[ActorId],
    now: datetime,
) -> Quorum:
    """Count the decisions that hold now; say of every other one why it does not.

    `authorised` are the actors who have the authority to decide at this instant. Approvals are
    ordered by instant, then actor, so that equal facts make equal snapshots.
    """
    approvals: dict[ActorId, Decision] = {}
    rejections: list[Decision] = []
    not_counted: list[tuple[str, str]] = []
    for decision in sorted(decisions, key=lambda one: (one.decided_at, one.actor, one.id)):
        why = _why_not(policy, subject, decision, creator=creator, authorised=authorised, now=now)
        if decision.verdict is Verdict.REJECT:
            rejections.append(decision)
        elif why is None and decision.actor in approvals:
            not_counted.append((decision.id, "second decision of one actor"))
        elif why is None:
            approvals[decision.actor] = decision
        else:
            not_counted.append((decision.id, why))
    return Quorum(
        required=policy.required_approvals,
        approvals=tuple(approvals.values()),
        rejections=tuple(rejections),
        not_counted=tuple(not_counted),
    )


def _why_not(
    policy: ApprovalPolicy,
    subject: Subject,
    decision: Decision,
    *,
    creator: ActorId,
    authorised: AbstractSet[ActorId],
    now: datetime,
) -> str | None:
    if decision.subject != subject:
        return "bound to another subject"
    if not decision.is_live(now):
        return "expired"
    if policy.separation_of_duties and decision.actor == creator:
        return "creator under separation of duties"
    if decision.actor not in authorised:
        return "authority withdrawn"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRequest:
    """What an actor asks to have recorded, after the attestation was verified."""

    id: str
    verdict: Verdict
    actor: ActorId
    grant_id: str
    reason: str
    attestation_id: str
    subject: Subject


def decide(  # noqa: PLR0913 - the facts of a decision, all by name
    request: DecisionRequest,
    stage: Stage,
    *,
    target: Target,
    policy: ApprovalPolicy | None,
    earlier: Iterable[Decision],
    tenant: str,
    now: datetime,
) -> Decision:
    """Return the decision to record, or refuse it.

    Raises:
        GuardError: `reason_missing`, `not_awaiting_approval`, `stage_outdated`, `creator_unknown`,
            `creator_cannot_approve`, `already_approved`.
    """
    check_reason(request.reason)
    bound = check_open(stage, target, policy)
    if request.subject != subject_of(stage, tenant):
        raise GuardError(
            f"the hashes that were reviewed are not those of stage {stage.id}; look again",
            code="stage_outdated",
            stage=stage.id,
        )
    _check_actor(request.actor, stage, bound, earlier, now)
    hours = bound.expires_after_hours
    return Decision(
        id=request.id,
        subject=request.subject,
        actor=request.actor,
        grant_id=request.grant_id,
        verdict=request.verdict,
        reason=request.reason,
        attestation_id=request.attestation_id,
        decided_at=now,
        expires_at=None if hours is None else now + timedelta(hours=hours),
    )


def check_may_decide(
    actor: ActorId,
    stage: Stage,
    *,
    target: Target,
    policy: ApprovalPolicy | None,
    earlier: Iterable[Decision],
    now: datetime,
) -> None:
    """Refuse an actor whose decision about a stage, as it stands, would be refused now.

    What a decision brings with it is not looked at: reason, reviewed hashes, authority.

    Raises:
        GuardError: `not_awaiting_approval`, `stage_outdated`, `creator_unknown`,
            `creator_cannot_approve`, `already_approved`.
    """
    _check_actor(actor, stage, check_open(stage, target, policy), earlier, now)


def check_reason(reason: str, of: str = "a decision") -> None:
    """Refuse a blank reason, one over 2,000 characters, and one that cannot be stored.

    Raises:
        GuardError: code `reason_missing`.
    """
    storable = len(reason) <= MAXIMUM_REASON_CHARACTERS and not _UNSTORABLE.search(reason)
    if not reason.strip() or not storable:
        raise GuardError(
            f"{of} needs a reason of 1 to {MAXIMUM_REASON_CHARACTERS} characters",
            code="reason_missing",
        )


def check_open(stage: Stage, target: Target, policy: ApprovalPolicy | None) -> ApprovalPolicy:
    """Return the policy under which a stage waits for decisions.

    Raises:
        GuardError: `not_awaiting_approval` or `stage_outdated`.
    """
    if stage.state is not StageState.AWAITING_APPROVAL or policy is None:
        raise GuardError(
            f"stage {stage.id} is {stage.state}, not awaiting approval; nothing can be decided",
            code="not_awaiting_approval",
            stage=stage.id,
            state=str(stage.state),
        )
    check_live(stage, target)
    return policy


def _check_actor(
    actor: ActorId,
    stage: Stage,
    policy: ApprovalPolicy,
    earlier: Iterable[Decision],
    now: datetime,
) -> None:
    _check_separation(policy, stage, actor)
    _check_first(actor, earlier, now)


def _check_separation(policy: ApprovalPolicy, stage: Stage, actor: ActorId) -> None:
    if not policy.separation_of_duties:
        return
    if stage.creator == UNATTESTED:
        again = "publish it again under a new key" if stage.publication else "create it again"
        raise GuardError(
            f"nobody is proven to have created stage {stage.id}, so nobody can be told apart from "
            f"its creator; {again}, signed, or in a run that somebody launched who signed in",
            code="creator_unknown",
            stage=stage.id,
        )
    if stage.creator == actor:
        raise GuardError(
            f"actor {actor!r} created stage {stage.id} and cannot decide about it",
            code="creator_cannot_approve",
            stage=stage.id,
            actor=actor,
        )


def _check_first(actor: ActorId, earlier: Iterable[Decision], now: datetime) -> None:
    if any(decision.actor == actor and decision.is_live(now) for decision in earlier):
        raise GuardError(
            f"actor {actor!r} has already decided; an actor counts once until the decision expires",
            code="already_approved",
            actor=actor,
        )
