"""`decision request | sign | submit`: decide on a machine that reaches no database.

What is signed are the claims of an online decision, and what submits them is the same service, so
one verifier checks both. The file may be carried by anybody.

Source: SPEC section 7 ("the command line, air-gapped approval").
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from datasource_governance.cli.approval import (
    ReasonOption,
    StageArgument,
    print_decision,
    submit_decision,
)
from datasource_governance.cli.output import ActorOption, JsonOption, console, print_json, write_new
from datasource_governance.cli.render import change_table, coloured, rule_table
from datasource_governance.cli.session import application
from datasource_governance.cli.stage import look_at, stage_document
from datasource_governance.cli.validate import read_document
from datasource_governance.composition import Application
from datasource_governance.domain.approval import Verdict, check_open, check_reason, subject_of
from datasource_governance.domain.canonical import Json
from datasource_governance.domain.decision_document import (
    OfflineRequest,
    SignedDecision,
    read_request,
    read_signed,
)
from datasource_governance.domain.subjects import decision_action, decision_subject
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.services.approval import AttestedDecision
from datasource_governance.services.reviewing import Review
from datasource_governance.signing import Signer

app = typer.Typer(help="Sign here, submit there.", no_args_is_help=True)

FileArgument = Annotated[Path, typer.Argument(help="The file.")]
OutOption = Annotated[Path, typer.Option("--out", help="A new file; never overwritten.")]


@app.command()
def request(
    stage: StageArgument, out: OutOption, actor: ActorOption = None, json: JsonOption = False
) -> int:
    """Write down what is to be decided, for a machine without a database.

    Counts are in it if you are a steward with a key here. No cell value and no reason ever is.
    """
    session = application()
    made = request_about(session, look_at(session, stage, actor))
    write_new(out, made.file_bytes())
    if json:
        print_json({"file": str(out), "stage": stage, "digest": made.digest})
    else:
        console().print(f"{out}: request about stage {stage}, digest {made.digest}", markup=False)
    return 0


def request_about(session: Application, view: Review) -> OfflineRequest:
    """Return the request to decide about a stage, as it may be seen.

    Raises:
        GuardError: `not_awaiting_approval`, `stage_outdated`; deciding would be refused.
    """
    stage, quorum = view.stage, view.quorum
    policy = check_open(stage, view.target, view.approval_policy)
    if quorum is None:
        raise TypeError("a stage that awaits approval has a quorum")
    approval: dict[str, Json] = {
        "approved_by": [one.actor for one in quorum.approvals],
        "missing": quorum.missing,
        "required": policy.required_approvals,
        "separation_of_duties": policy.separation_of_duties,
        "expires_after_hours": policy.expires_after_hours,
    }
    validation = stage_document(session, stage, view)["validation"]
    return OfflineRequest(
        subject=subject_of(stage, session.settings.tenant),
        stage=stage.identity(session.settings.tenant),
        requested_at=view.at.isoformat(),
        approval=approval,
        validation=validation,  # type: ignore[arg-type]  # a JSON object
    )


@app.command()
def sign(
    file: FileArgument,
    verdict: Annotated[Verdict, typer.Option("--verdict", help="Your verdict.")],
    reason: ReasonOption,
    key: Annotated[Path, typer.Option("--key", help="Your private key, <actor>.pem.")],
    out: OutOption,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: JsonOption = False,
) -> int:
    """Look at a request and sign your decision. Needs no database and no network."""
    check_reason(reason)
    asked = read_request(read_document(file))
    if key.suffix != ".pem":
        raise InvalidArgumentError(f"{key}: a private key is named after its actor, <actor>.pem")
    signer = Signer(key.parent, key.stem, asked.tenant)
    if not json:
        _show(asked)
    if not yes:
        typer.confirm(f"Sign as {signer.actor}: {verdict}?", abort=True, err=True)
    attestation = signer.attest(decision_action(verdict), decision_subject(asked.subject, reason))
    signed = SignedDecision(attestation=attestation, reason=reason)
    write_new(out, signed.file_bytes())
    if json:
        facts = {"actor": signer.actor, "verdict": str(verdict), "attestation": attestation.id}
        print_json({"file": str(out), **facts, "request_digest": asked.digest})
    else:
        text = (
            f"{out}: {verdict} by {signer.actor}; it holds your reason, submit it within 72 hours"
        )
        console().print(text, markup=False)
    return 0


@app.command()
def submit(file: FileArgument, json: JsonOption = False) -> int:
    """Submit a signed decision; whoever carries it. Exit 1: a guard refused it."""
    signed = read_signed(read_document(file))
    decided = AttestedDecision(
        verdict=signed.verdict,
        reason=signed.reason,
        subject=signed.subject,
        attestation=signed.attestation,
    )
    decision, quorum = submit_decision(application(), decided)
    print_decision(decision, quorum, json=json)
    return 0


def _show(asked: OfflineRequest) -> None:
    """Print what is being signed: the verdicts, the schema changes, the facts, the hashes."""
    out = console()
    rules = _objects(asked.validation.get("rules"))
    out.print(rule_table(rules, detailed=all("affected" in rule for rule in rules)))
    diff = asked.validation.get("schema_diff")
    if isinstance(diff, dict):
        out.print(change_table(_objects(diff.get("changes"))))
        out.print(f"schema: {coloured(str(diff.get('classification')))}")
    facts = Table("what", "is", show_edge=False)
    rows = {**asked.stage, **asked.approval, **asked.subject.document()}
    for name, value in {**rows, "requested at": asked.requested_at, "digest": asked.digest}.items():
        facts.add_row(name, str(value).replace("[", r"\["))
    out.print(facts)


def _objects(value: Json | None) -> list[dict[str, Json]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
