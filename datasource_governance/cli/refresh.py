"""`refresh` and `stage refresh`: read the origin of a datasource again.

Source: SPEC sections 11 and 16.
"""

from typing import Annotated

import typer

from datasource_governance.cli.output import ActorOption, JsonOption, console, print_json
from datasource_governance.cli.render import stage_table
from datasource_governance.cli.session import application, signer
from datasource_governance.cli.stage import declaration_of, stage_document
from datasource_governance.composition import Application
from datasource_governance.domain.approval import subject_of
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.datasource import Datasource
from datasource_governance.domain.launch import refresh_job_name
from datasource_governance.domain.stage import Stage, StageState
from datasource_governance.domain.subjects import promotion_subject, refresh_subject
from datasource_governance.errors import EXIT_NO, GovernanceError
from datasource_governance.services.creating import store_refresh_attestation
from datasource_governance.services.promotion import PromotionRequest
from datasource_governance.services.refresh import (
    Refreshed,
    RefreshRequest,
    check_refreshable,
    refresh_stage,
)
from datasource_governance.services.refresh import refresh as refresh_directly
from datasource_governance.signing import Signer

ForceOption = Annotated[
    bool, typer.Option("--force", help="Read and stage it even if it says what it said before.")
]


def refresh(
    datasource: str, force: ForceOption = False, actor: ActorOption = None, json: JsonOption = False
) -> int:
    """Read an origin and make it current at once; refused where approval is required.

    Exit 0: it is current, was not modified, or waits for a review; 1: it is blocked or refused.
    """
    session = application()
    author, declaration = signer(session, actor), declaration_of(session, datasource)
    check_refreshable(session.work(), datasource)
    request = _request(session, author, declaration, force=force)

    def promotion(stage: Stage) -> PromotionRequest:
        subject = promotion_subject(subject_of(stage, session.settings.tenant))
        attestation = author.attest(Action.STAGE_PROMOTE, subject)
        return PromotionRequest(stage=stage.id, attestation=attestation)

    work, evaluator, artifacts = session.work(), session.evaluator(), session.artifacts()
    refreshed = refresh_directly(work, evaluator, artifacts, request, promotion)
    return _told(session, refreshed, json=json)


def stage_refresh(
    datasource: str,
    force: ForceOption = False,
    in_process: Annotated[
        bool, typer.Option("--in-process", help="Do it here, without Dagster.")
    ] = False,
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """Read an origin into a stage. Exit 0: it waits, is ready or not modified, 1: it is blocked."""
    session = application()
    author, declaration = signer(session, actor), declaration_of(session, datasource)
    request = _request(session, author, declaration, force=force)
    if in_process:
        refreshed = refresh_stage(session.work(), session.evaluator(), request)
    else:
        refreshed = _launch(session, author, request)
    return _told(session, refreshed, json=json)


def _request(
    session: Application, creator: Signer, declaration: Datasource, *, force: bool
) -> RefreshRequest:
    """Attest that a creator has the origin of a datasource read, and ask for it."""
    name, origin = declaration.id, session.origin(declaration)
    attestation = creator.attest(Action.STAGE_REFRESH, refresh_subject(name, origin.definition))
    attestation_id = store_refresh_attestation(session.work(), name, origin.definition, attestation)
    return RefreshRequest(
        datasource=name, origin=origin, attestation_id=attestation_id, force=force
    )


def _launch(session: Application, creator: Signer, request: RefreshRequest) -> Refreshed:
    from datasource_governance.orchestration.client import DagsterClient
    from datasource_governance.orchestration.jobs import refresh_run_config
    from datasource_governance.orchestration.launching import launch, wait_for_run

    name, attestation_id = request.datasource, str(request.attestation_id)
    client = DagsterClient(session.settings.dagster_url, creator)
    run_config = refresh_run_config(name, attestation_id, force=request.force)
    run_id = launch(client, refresh_job_name(name), run_config)
    has_ended_well = wait_for_run(client, run_id) == "SUCCESS"
    with session.work() as work:
        made = work.stages.attested_by(attestation_id, name)
        last = work.stages.last_read(name, request.origin.definition)
    if made is not None:
        return Refreshed(stage=made)
    if has_ended_well and last is not None:
        return Refreshed(stage=last, not_modified=True)
    raise GovernanceError(
        f"run {run_id} made no stage; its log says why: {client.url}/runs/{run_id}",
        code="run_failed",
    )


def _told(session: Application, refreshed: Refreshed, *, json: bool) -> int:
    """Print what became of a refresh; return the exit code."""
    stage, promotion = refreshed.stage, refreshed.promotion
    if json:
        print_json(
            {
                **stage_document(session, stage),
                "not_modified": refreshed.not_modified,
                "materialization": promotion.materialization.id if promotion else None,
            }
        )
    elif promotion is not None:
        text = f"materialization {promotion.materialization.id} of stage {stage.id} is now current"
        console().print(text, markup=False)
    else:
        if refreshed.not_modified:
            console().print(f"not modified: stage {stage.id} has it already", markup=False)
        console().print(stage_table([stage]))
    is_blocked = stage.state is StageState.FAILED and not refreshed.not_modified
    return EXIT_NO if is_blocked else 0
