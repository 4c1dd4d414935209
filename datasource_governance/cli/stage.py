"""`stage create | list | show`.

Source: SPEC sections 6 and 16.
"""

import hashlib
import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from datasource_governance.cli.output import ActorOption, JsonOption, console, print_json
from datasource_governance.cli.render import (
    change_table,
    coloured,
    decision_table,
    rule_table,
    stage_table,
)
from datasource_governance.cli.session import application, proven, signer
from datasource_governance.composition import Application
from datasource_governance.declarations import read_declarations
from datasource_governance.domain.approval import subject_of
from datasource_governance.domain.attestation import Action, reason_hash
from datasource_governance.domain.canonical import Json, Sha256
from datasource_governance.domain.datasource import Datasource
from datasource_governance.domain.launch import stage_job_name
from datasource_governance.domain.stage import Stage, StageState
from datasource_governance.domain.subjects import delivery_subject
from datasource_governance.errors import (
    EXIT_NO,
    GovernanceError,
    NotFoundError,
)
from datasource_governance.services.creating import store_delivery_attestation
from datasource_governance.services.reviewing import (
    Review,
    review_stage,
    score_of,
    validation_document,
    without_counts,
)
from datasource_governance.services.staging import StageRequest, create_stage
from datasource_governance.signing import Signer

app = typer.Typer(help="Candidate deliveries.", no_args_is_help=True)


@app.command()
def create(
    datasource: str,
    file: Annotated[Path, typer.Argument(help="The delivery: a CSV, Parquet or Arrow file.")],
    in_process: Annotated[
        bool, typer.Option("--in-process", help="Do it here, without Dagster.")
    ] = False,
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """Stage a delivery. Exit 0: it waits or is ready, 1: it is blocked."""
    session = application()
    stage = stage_file(session, signer(session, actor), datasource, file, in_process=in_process)
    if json:
        print_json(stage_document(session, stage))
    else:
        console().print(stage_table([stage]))
    return EXIT_NO if stage.state is StageState.FAILED else 0


def stage_file(
    session: Application, creator: Signer, datasource: str, file: Path, *, in_process: bool
) -> Stage:
    """Put a file into the delivery folder under its SHA-256, attest it, and stage it."""
    declaration = declaration_of(session, datasource)
    delivery, sha256 = deliver(session, declaration, file)
    attestation = creator.attest(Action.STAGE_CREATE, delivery_subject(datasource, sha256))
    attestation_id = store_delivery_attestation(session.work(), datasource, sha256, attestation)
    if in_process:
        payload, read_sha256 = session.read_delivery(declaration, delivery)
        request = StageRequest(
            datasource=datasource,
            delivery=delivery,
            file_sha256=read_sha256,
            attestation_id=attestation_id,
        )
        return create_stage(session.work(), session.evaluator(), payload, request).stage
    return _launch(session, creator, datasource, delivery, attestation_id)


def _launch(
    session: Application, creator: Signer, datasource: str, delivery: str, attestation_id: str
) -> Stage:
    from datasource_governance.orchestration.client import DagsterClient
    from datasource_governance.orchestration.jobs import stage_run_config
    from datasource_governance.orchestration.launching import launch, wait_for_run

    client = DagsterClient(session.settings.dagster_url, creator)
    run_config = stage_run_config(datasource, delivery, attestation_id)
    run_id = launch(client, stage_job_name(datasource), run_config)
    wait_for_run(client, run_id)
    with session.work() as work:
        stage = work.stages.attested_by(attestation_id, datasource)
    if stage is None:
        raise GovernanceError(
            f"run {run_id} made no stage; its log says why: {client.url}/runs/{run_id}",
            code="run_failed",
        )
    return stage


def declaration_of(session: Application, datasource: str) -> Datasource:
    """Return the declaration of one datasource.

    Raises:
        NotFoundError: naming those that are declared.
    """
    declarations = read_declarations(session.settings.datasources)
    for declaration in declarations:
        if declaration.id == datasource:
            return declaration
    known = ", ".join(one.id for one in declarations)
    raise NotFoundError(f"there is no datasource {datasource!r}; declared are: {known}")


def deliver(session: Application, declaration: Datasource, file: Path) -> tuple[str, Sha256]:
    """Copy a file into the delivery folder under its SHA-256, atomically; return both names.

    The digest is of the copy, so that a file that changes meanwhile never gets another's name.
    """
    folder = session.delivery_folder(declaration)
    partial = folder / f".{os.getpid()}.partial"
    with file.open("rb") as source:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with partial.open("w+b") as copy:
                shutil.copyfileobj(source, copy)
                copy.seek(0)
                sha256 = Sha256(hashlib.file_digest(copy, "sha256").hexdigest())
            partial.replace(folder / (sha256 + file.suffix.lower()))
        finally:
            partial.unlink(missing_ok=True)
    return sha256 + file.suffix.lower(), sha256


@app.command("list")
def list_stages(
    datasource: Annotated[str | None, typer.Argument(help="Default: all.")] = None,
    state: Annotated[list[StageState] | None, typer.Option(help="Only these states.")] = None,
    json: JsonOption = False,
) -> int:
    """List stages, newest first."""
    session = application()
    with session.work() as work:
        stages = work.stages.list(datasource, state or ())
    if json:
        print_json([summary(session, stage) for stage in stages])
    else:
        console().print(stage_table(stages))
    return 0


@app.command()
def show(stage: str, actor: ActorOption = None, json: JsonOption = False) -> int:
    """Show a stage: verdicts, schema changes, hashes, decisions.

    Counts and row numbers are shown to actors with a steward's grant and a key here.
    """
    session = application()
    view = look_at(session, stage, actor)
    if json:
        print_json(stage_document(session, view.stage, view))
        return 0
    out = console()
    validation = view.validation()
    out.print(stage_table([view.stage]))
    out.print(rule_table(_dicts(validation["rules"]), detailed=view.is_detailed))
    diff = validation["schema_diff"]
    if isinstance(diff, dict) and diff["changes"]:
        out.print(change_table(_dicts(diff["changes"])))
        out.print(f"schema: {coloured(str(diff['classification']))}")
    if (score := score_of(view.stage)) is not None:
        out.print(f"score: {score.told}, evaluated by {score.provider}", markup=False)
    out.print(decision_table(view.decisions, view.quorum))
    for name, value in subject_of(view.stage, session.settings.tenant).document().items():
        out.print(f"{name}: {value}", markup=False)
    return 0


def look_at(session: Application, stage_id: str, actor: str | None) -> Review:
    """Return a stage as an actor may see it; nobody named, or without a key, sees no counts."""
    return review_stage(session.work(), stage_id, proven(session, actor))


def summary(session: Application, stage: Stage) -> dict[str, object]:
    """Return a stage without its validation, as JSON."""
    return {
        **subject_of(stage, session.settings.tenant).document(),
        "state": str(stage.state),
        "outcome": str(stage.outcome),
        "creator": stage.creator,
        "row_count": stage.row_count,
        "delivery": stage.delivery,
        "validation_hash": stage.validation_hash,
        "created_at": stage.created_at.isoformat(),
    }


def stage_document(
    session: Application, stage: Stage, view: Review | None = None
) -> dict[str, object]:
    """Return a stage as JSON; counts and rows only in a detailed view."""
    validation = view.validation() if view else without_counts(validation_document(stage))
    document: dict[str, object] = {**summary(session, stage), "validation": validation}
    if view is not None:
        document["quorum"] = view.quorum.document() if view.quorum else None
        document["decisions"] = [
            {
                "actor": one.actor,
                "verdict": str(one.verdict),
                "reason_hash": reason_hash(one.reason),
                "decided_at": one.decided_at.isoformat(),
            }
            for one in view.decisions
        ]
    return document


def _dicts(value: Json) -> list[dict[str, Json]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
