"""`approve`, `reject` and `promote`: signed with the actor's own key.

Source: SPEC sections 7, 8 and 16.
"""

from typing import Annotated

import typer

from datasource_governance.cli.output import ActorOption, JsonOption, console, print_json
from datasource_governance.cli.session import application, signer
from datasource_governance.composition import Application
from datasource_governance.domain.approval import (
    Decision,
    Quorum,
    Verdict,
    subject_of,
)
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.materialization import Promotion
from datasource_governance.domain.subjects import (
    decision_action,
    decision_subject,
    promotion_subject,
)
from datasource_governance.errors import GuardError
from datasource_governance.services.approval import AttestedDecision, decide_stage, quorum_of
from datasource_governance.services.promotion import PromotionRequest, promote_stage
from datasource_governance.signing import Signer

StageArgument = Annotated[str, typer.Argument(help="Id of the stage.")]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why; kept, 1-2,000 characters.")]
ReviewedOption = Annotated[
    str | None,
    typer.Option("--reviewed", help="Stage fingerprint that you reviewed; refused if it differs."),
]


def approve(
    stage: StageArgument,
    reason: ReasonOption,
    reviewed: ReviewedOption = None,
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """Approve a stage. Exit 1: a guard refused it."""
    return _decide(Verdict.APPROVE, stage, reason, reviewed, actor, json=json)


def reject(
    stage: StageArgument,
    reason: ReasonOption,
    reviewed: ReviewedOption = None,
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """Reject a stage, for good. Exit 1: a guard refused it."""
    return _decide(Verdict.REJECT, stage, reason, reviewed, actor, json=json)


def _decide(
    verdict: Verdict,
    stage: str,
    reason: str,
    reviewed: str | None,
    actor: str | None,
    *,
    json: bool,
) -> int:
    session = application()
    decision, quorum = decide(
        session, signer(session, actor), verdict, stage, reason, reviewed=reviewed
    )
    print_decision(decision, quorum, json=json)
    return 0


def print_decision(decision: Decision, quorum: Quorum | None, *, json: bool) -> None:
    """Print what was recorded and how many approvals are needed still; never the reason."""
    stage, verdict = decision.subject.stage, decision.verdict
    if json:
        print_json(
            {
                "decision": decision.id,
                "stage": stage,
                "verdict": str(verdict),
                "actor": decision.actor,
                "decided_at": decision.decided_at.isoformat(),
                "expires_at": decision.expires_at.isoformat() if decision.expires_at else None,
                "missing": quorum.missing if quorum else None,
            }
        )
    else:
        waits = f"; {quorum.missing} more needed" if quorum and quorum.missing else ""
        text = f"{decision.actor}: {verdict} of stage {stage} recorded{waits}"
        console().print(text, markup=False)


def decide(
    session: Application,
    author: Signer,
    verdict: Verdict,
    stage_id: str,
    reason: str,
    *,
    reviewed: str | None = None,
) -> tuple[Decision, Quorum | None]:
    """Sign a decision about a stage as it stands and submit it."""
    with session.work() as work:
        subject = subject_of(work.stages.get(stage_id), work.tenant)
    if reviewed is not None and reviewed != subject.stage_fingerprint:
        raise GuardError(
            f"stage {stage_id} has not the fingerprint that you reviewed; look again: "
            f"stage show {stage_id}",
            code="stage_outdated",
        )
    attestation = author.attest(decision_action(verdict), decision_subject(subject, reason))
    request = AttestedDecision(
        verdict=verdict, reason=reason, subject=subject, attestation=attestation
    )
    return submit_decision(session, request)


def submit_decision(
    session: Application, request: AttestedDecision
) -> tuple[Decision, Quorum | None]:
    """Submit a signed decision; return it and where the quorum stands with it."""
    decision = decide_stage(session.work(), request)
    with session.work() as work:
        return decision, quorum_of(work, work.stages.get(decision.subject.stage))


def promote(stage: StageArgument, actor: ActorOption = None, json: JsonOption = False) -> int:
    """Make a stage current. Promoting it again answers with the same materialization."""
    session = application()
    promotion = promote_signed(session, signer(session, actor), stage)
    materialization = promotion.materialization
    if json:
        print_json(
            {
                "materialization": materialization.id,
                "revision": materialization.revision,
                "stage": stage,
                "created": promotion.created,
            }
        )
    else:
        what = "is now current" if promotion.created else "was made from this stage before"
        text = f"materialization {materialization.id} (revision {materialization.revision}) {what}"
        console().print(text, markup=False)
    return 0


def promote_signed(session: Application, author: Signer, stage_id: str) -> Promotion:
    """Sign a promotion as an operator and submit it."""
    with session.work() as work:
        subject = subject_of(work.stages.get(stage_id), work.tenant)
    attestation = author.attest(Action.STAGE_PROMOTE, promotion_subject(subject))
    request = PromotionRequest(stage=stage_id, attestation=attestation)
    return promote_stage(session.work(), session.artifacts(), request)
