"""Make an approved stage the current materialization, in one transaction.

Source: SPEC section 8.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from datasource_governance.domain.actor import Role
from datasource_governance.domain.approval import Decision, Quorum, subject_of
from datasource_governance.domain.artifact import parse_artifact_reference
from datasource_governance.domain.attestation import Action, Attestation, is_signed
from datasource_governance.domain.evidence import check_unbroken, datasource_chain
from datasource_governance.domain.launch import RunLaunch
from datasource_governance.domain.materialization import (
    Materialization,
    Promoter,
    Promotion,
    check_promotable,
    materialize,
)
from datasource_governance.domain.stage import OPEN_STATES, Stage, StageState
from datasource_governance.domain.subjects import promotion_subject, states_decision
from datasource_governance.domain.target import Target
from datasource_governance.errors import GuardError
from datasource_governance.ports import UnitOfWork
from datasource_governance.ports.artifacts import ArtifactBackend
from datasource_governance.services.approval import quorum_at
from datasource_governance.services.attesting import attest, authorise
from datasource_governance.services.launching import launcher_of
from datasource_governance.services.recording import record
from datasource_governance.services.superseding import supersede_open


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionRequest:
    """A stage to promote, by an operator who signs it, or who is proved to have launched the run.

    With neither it is promoted by `system`.
    """

    stage: str
    attestation: Attestation | None = None
    launch: RunLaunch | None = None


def promote_stage(
    work: UnitOfWork, artifacts: ArtifactBackend, request: PromotionRequest
) -> Promotion:
    """Promote a stage. Promoting it again returns the same materialization and writes nothing.

    An artifact is verified again, before anything is locked, and referred to without a copy.

    Raises:
        NotFoundError: for an unknown stage.
        GuardError: with the codes of `check_promotable`, `evidence_chain_broken`, those of
            artifacts, or an attestation's.
        ServiceUnavailableError: also when an artifact's store cannot be read.
    """
    with work:
        found = work.stages.get(request.stage)
    if found.artifact is not None and found.state in OPEN_STATES:
        _verify_artifact(artifacts, found.datasource, found.artifact)
    with work:
        target = work.datasources.get_for_update(found.datasource, found.partition)
        stage = work.stages.get_for_update(request.stage)
        first = work.materializations.of_stage(stage.id)
        if first is not None:
            return Promotion(materialization=first, created=False)
        # One instant for all of it: what counted is what counted at `promoted_at`.
        now = work.now()
        run = request.launch.run_id if request.launch else None
        promoter = replace(_promoter(work, request, stage, now), run_id=run)
        quorum = quorum_at(work, stage, now)

        is_deleted = stage.state is StageState.DELETED
        disposed = work.retention.disposition_of(stage.id) if is_deleted else None
        check_promotable(stage, target, quorum=quorum, actor=promoter.actor, disposed=disposed)
        _check_content(work, stage)
        _check_signed(work, quorum)
        check_unbroken(work.evidence.breaks_about(datasource_chain(stage.datasource), stage.id))
        materialization = materialize(
            work.new_id(),
            stage,
            target=target,
            tenant=work.tenant,
            quorum=quorum,
            segment=work.evidence.segment(datasource_chain(stage.datasource), stage.id),
            promoter=promoter,
            now=now,
        )

        _save(work, stage, target, materialization, quorum, promoter)
        work.commit()
    return Promotion(materialization=materialization, created=True)


def _promoter(work: UnitOfWork, request: PromotionRequest, stage: Stage, now: datetime) -> Promoter:
    launch = request.launch
    if request.attestation is not None:
        actor = attest(
            work,
            request.attestation,
            action=Action.STAGE_PROMOTE,
            subject=promotion_subject(subject_of(stage, work.tenant)),
            now=now,
        )
        promoter = Promoter(actor, request.attestation.id)
    elif launch and launch.promotes(stage.datasource) and (by := launcher_of(work, launch)):
        promoter = Promoter(by.actor, by.attestation_id)
    else:
        return Promoter()
    authorise(work, promoter.actor, Role.OPERATOR, stage.datasource)
    return promoter


def _verify_artifact(artifacts: ArtifactBackend, datasource: str, reference: bytes) -> None:
    # Opened is only what has the size and the digest that the reference says.
    with artifacts.open(datasource, parse_artifact_reference(reference)):
        pass


def _check_content(work: UnitOfWork, stage: Stage) -> None:
    """Refuse a stage whose stored payload is not the one that was validated and decided about."""
    if stage.artifact is not None:
        return
    if work.stages.payload_sha256(stage.id) != stage.payload_sha256:
        raise GuardError(
            f"the content of stage {stage.id} is not what was validated; create a new stage and "
            "run: evidence verify",
            code="stage_outdated",
            stage=stage.id,
            different=("content",),
        )


def _check_signed(work: UnitOfWork, quorum: Quorum | None) -> None:
    """Refuse decisions that are not what their actors signed, whoever wrote them."""
    for decision in quorum.approvals if quorum else ():
        if not _is_signed(work, decision):
            raise GuardError(
                f"decision {decision.id} is not what its actor signed; run: evidence verify",
                code="evidence_chain_broken",
                decision=decision.id,
            )


def _is_signed(work: UnitOfWork, decision: Decision) -> bool:
    attestation = work.authority.attestation(decision.attestation_id)
    if attestation is None or not states_decision(attestation.claims, decision):
        return False
    key = work.authority.key(attestation.claims.key)
    return key is not None and is_signed(attestation, key)


def _save(
    work: UnitOfWork,
    stage: Stage,
    target: Target,
    materialization: Materialization,
    quorum: Quorum | None,
    promoter: Promoter,
) -> None:
    work.materializations.add(materialization)
    work.datasources.move(target, materialization.id)
    work.stages.change_state(stage, StageState.PROMOTED)
    superseded = supersede_open(work, target, promoted=stage.id)
    facts = {
        "materialization": materialization.id,
        "revision": materialization.revision,
        "stage": stage.id,
        "stage_fingerprint": stage.fingerprint(work.tenant),
        "base": stage.base,
        "quality_policy_hash": stage.quality_policy_hash,
        "approval_policy_hash": stage.approval_policy_hash,
        "validation_hash": stage.validation_hash,
        "payload_fingerprint": materialization.payload_fingerprint,
        "row_count": materialization.row_count,
        "approval": "not required" if quorum is None else quorum.document(),
        "superseded": [other.id for other in superseded],
        "actor": promoter.actor,
        "attestation": promoter.attestation_id,
        "run": promoter.run_id,
    }
    record(
        work,
        stage.datasource,
        "stage.promoted",
        subject=stage.id,
        facts=facts,
        at=materialization.created_at,
    )
