"""The pages on which people decide: what waits, one stage, and the form that is posted back.

A decision goes straight to the service, attested by the gateway for whoever the gate authenticated,
so it is refused or recorded before the answer; no run is launched. Behind the gate every request
has an actor; what the actor may see and do is the services' question.

Source: SPEC sections 7, 15 and 16; threats T-01 to T-04.
"""

from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import quote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from datasource_governance.composition import Application
from datasource_governance.domain.actor import ActorId
from datasource_governance.domain.approval import Decision, Subject, Verdict
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.subjects import decision_action, decision_subject
from datasource_governance.errors import GovernanceError, GuardError, InvalidArgumentError
from datasource_governance.services.approval import AttestedDecision, decide_stage
from datasource_governance.services.reviewing import Review, list_waiting, review_stage
from datasource_governance.web.audit import record
from datasource_governance.web.decision_facts import Visit, stage_facts, waiting_facts
from datasource_governance.web.forms import form_token, is_shown_here, read_form
from datasource_governance.web.gateway import Gateway
from datasource_governance.web.identity import peer
from datasource_governance.web.pages import page, refusal_page

DECISIONS = "/governance/decisions"
STAGES = "/governance/stages"
MAXIMUM_DECISION_BYTES = 128 * 1024
"""What a posted decision may hold: a reason far too long is refused with a sentence, and kept."""
_STATUS = {
    "attestation_invalid": HTTPStatus.FORBIDDEN,
    "creator_cannot_approve": HTTPStatus.FORBIDDEN,
    "creator_unknown": HTTPStatus.FORBIDDEN,
    "invalid_argument": HTTPStatus.BAD_REQUEST,
    "not_authorised": HTTPStatus.FORBIDDEN,
    "not_found": HTTPStatus.NOT_FOUND,
    "reason_missing": HTTPStatus.BAD_REQUEST,
    "refused": HTTPStatus.FORBIDDEN,
}
"""Whatever else is refused conflicts with what is there now, or cannot be asked."""


def decision_pages(application: Application, gateway: Gateway) -> list[Route]:
    """Return the routes of the pages, for `governed_app(pages=…)`."""
    pages = _DecisionPages(application, gateway)
    return [
        Route(DECISIONS, pages.waiting, methods=["GET"]),
        Route(f"{STAGES}/{{stage}}", pages.stage, methods=["GET"]),
        Route(f"{STAGES}/{{stage}}/decision", pages.decide, methods=["POST"]),
    ]


class _DecisionPages:
    def __init__(self, application: Application, gateway: Gateway) -> None:
        self._application = application
        self._gateway = gateway

    def waiting(self, request: Request) -> Response:
        """Show what awaits approval, newest first; `before` is where an older page begins."""
        actor, before = request.state.actor, request.query_params.get("before")
        try:
            found = list_waiting(self._application.work(), actor, before=before)
        except GovernanceError as error:
            return _refused(error)
        return page("waiting.html", waiting_facts(found, actor, is_older=before is not None))

    def stage(self, request: Request) -> Response:
        """Show one stage, with a form where the actor may decide."""
        visit = Visit(
            actor=request.state.actor,
            token=form_token(request.session),
            decision=request.query_params.get("decision"),
        )
        try:
            return self._shown(request.path_params["stage"], visit)
        except GovernanceError as error:
            return _refused(error)

    async def decide(self, request: Request) -> Response:
        """Record a posted decision and lead back to the stage, or show what refuses it."""
        form = await read_form(request, MAXIMUM_DECISION_BYTES)
        return await run_in_threadpool(self._decide, request, form)

    def _decide(self, request: Request, form: dict[str, str]) -> Response:
        actor, stage = request.state.actor, request.path_params["stage"]
        try:
            decision = self._recorded(request, form)
        except GovernanceError as error:
            refusal = error
        else:
            made = str(decision.verdict)
            record("decided", actor=actor, peer=peer(request.scope), stage=stage, verdict=made)
            return RedirectResponse(f"{_path(stage)}?{urlencode({'decision': decision.id})}", 303)
        record("refused", actor=actor, peer=peer(request.scope), stage=stage, code=refusal.code)
        visit = Visit(
            actor=actor,
            token=form_token(request.session),
            problem=str(refusal),
            reason=_reason(form),
        )
        try:
            return self._shown(stage, visit, _status(refusal))
        except GovernanceError:
            return _refused(refusal)

    def _recorded(self, request: Request, form: dict[str, str]) -> Decision:
        if not is_shown_here(request.session, form):
            raise GuardError(
                "this form is too old, or too long to be read; look at the stage and decide again"
            )
        verdict, reason = _verdict(form), _reason(form)
        subject = _reviewed(request.path_params["stage"], form)
        attestation = self._gateway.attest(
            request.state.actor, decision_action(verdict), decision_subject(subject, reason)
        )
        decided = AttestedDecision(
            verdict=verdict, reason=reason, subject=subject, attestation=attestation
        )
        return decide_stage(self._application.work(), decided)

    def _shown(self, stage: str, visit: Visit, status: int = HTTPStatus.OK) -> Response:
        review = review_stage(self._application.work(), stage, visit.actor)
        _check_visible(review, visit.actor)
        tenant = self._application.settings.tenant
        return page("stage.html", stage_facts(review, tenant, visit), status)


def _check_visible(review: Review, actor: ActorId) -> None:
    if not review.is_visible:
        datasource = review.stage.datasource
        raise GuardError(
            f"actor {actor!r} has no role over datasource {datasource!r}; an administrator can "
            f"give one: actor grant {actor} viewer --datasource {datasource}",
            code="not_authorised",
        )


def _verdict(form: Mapping[str, str]) -> Verdict:
    try:
        return Verdict(form.get("verdict", ""))
    except ValueError:
        pass
    raise InvalidArgumentError("choose one of the buttons: approve or reject")


def _reason(form: Mapping[str, str]) -> str:
    """Return the reason with line ends as they were typed; browsers send two characters each."""
    return form.get("reason", "").replace("\r\n", "\n")


def _reviewed(stage: str, form: Mapping[str, str]) -> Subject:
    """Return the subject that the form showed, which the service holds against the present one."""
    return Subject(
        datasource=form.get("datasource", ""),
        stage=stage,
        stage_fingerprint=Sha256(form.get("stage_fingerprint", "")),
        quality_policy_hash=Sha256(form.get("quality_policy_hash", "")),
        approval_policy_hash=Sha256(form["approval_policy_hash"])
        if form.get("approval_policy_hash")
        else None,
        base=form.get("base") or None,
    )


def _path(stage: str) -> str:
    return f"{STAGES}/{quote(stage, safe='')}"


def _status(error: GovernanceError) -> int:
    if isinstance(error, GuardError) or error.code in _STATUS:
        return _STATUS.get(error.code, HTTPStatus.CONFLICT)
    return HTTPStatus.SERVICE_UNAVAILABLE


def _refused(error: GovernanceError) -> Response:
    return refusal_page(str(error), _status(error))
