"""`retention apply | certificate | verify`: destroy what a reviewed plan says, and prove it later.

Source: SPEC sections 12 and 16.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from datasource_governance.cli.output import (
    ActorOption,
    JsonOption,
    console,
    counting,
    print_json,
    refusal_document,
    write_new,
)
from datasource_governance.cli.plan_documents import applied_document
from datasource_governance.cli.plan_tables import applied_view, target_table
from datasource_governance.cli.session import application, signer
from datasource_governance.composition import Application
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.disposition import AlreadyAppliedError, Applied
from datasource_governance.domain.plan_admission import choose
from datasource_governance.domain.retention_plan import PlannedTarget
from datasource_governance.domain.subjects import apply_retention_subject
from datasource_governance.errors import EXIT_UNREADABLE
from datasource_governance.services.certifying import certify_disposition, verify_certificate
from datasource_governance.services.plan_review import review_plan
from datasource_governance.services.retention import ApplyRequest, apply_retention
from datasource_governance.signing import Signer

PlanArgument = Annotated[
    str, typer.Argument(help="Hash of the plan, or the first 12 characters of it or more.")
]


def apply(
    plan: PlanArgument,
    targets: Annotated[
        list[str] | None, typer.Argument(help="Ids; default: all that nothing blocks.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """Destroy targets of a plan, as an administrator. Exit 1: a guard refused it, nothing is gone.

    Exit 3: an object of an artifact could not be deleted yet; applying again goes on with it.
    """
    session = application()
    author = signer(session, actor)
    review = review_plan(session.work(), plan, author.actor)
    reviewed = review.stored.plan
    if review.applied is None:
        # The service judges again; nobody is asked about what it would refuse anyhow.
        chosen = choose(reviewed, targets or None)
        if not json:
            console().print(target_table(chosen))
        if not yes:
            typer.confirm(_question(author, chosen), abort=True, err=True)
    try:
        applied = apply_signed(session, author, reviewed.hash, targets)
    except AlreadyAppliedError as repeated:
        return _show_first(repeated, json=json)
    _show(applied, json=json)
    return EXIT_UNREADABLE if applied.unfinished else 0


def apply_signed(
    session: Application, author: Signer, plan: str, targets: list[str] | None
) -> Applied:
    """Sign that an administrator applies a plan, and submit it."""
    wanted = targets or None
    subject = apply_retention_subject(plan, wanted)
    attestation = author.attest(Action.RETENTION_APPLY, subject)
    request = ApplyRequest(plan=plan, targets=wanted, attestation=attestation)
    with counting("{task.completed} objects of artifacts were tried") as told:
        return apply_retention(session.work(), session.artifacts(), request, told)


def _question(author: Signer, chosen: Sequence[PlannedTarget]) -> str:
    rows, size = sum(one.rows for one in chosen), sum(one.bytes for one in chosen)
    return (
        f"Sign as {author.actor}: destroy {len(chosen):,} of these, {rows:,} rows and {size:,} "
        "bytes, for ever?"
    )


def _show(applied: Applied, *, json: bool) -> None:
    if json:
        print_json(applied_document(applied))
    else:
        console().print(applied_view(applied))


def _show_first(repeated: AlreadyAppliedError, *, json: bool) -> int:
    """Show what the first time did; a script finds it under `first`."""
    if json:
        document = refusal_document(repeated)
        print_json({**document, "first": applied_document(repeated.first)})
    else:
        console().print(applied_view(repeated.first))
        typer.echo(str(repeated), err=True)
    return repeated.exit_code


def certificate(
    plan: PlanArgument,
    out: Annotated[
        Path | None, typer.Option("--out", help="New file to write to; default: print.")
    ] = None,
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """Certify what a plan destroyed, under which policies, by whom and when, as a signed file."""
    session = application()
    author = signer(session, actor)
    plan_hash = review_plan(session.work(), plan, author.actor).stored.plan.hash
    envelope = certify_disposition(session.work(), plan_hash, author)
    if out is None:
        print_json(envelope.document())
        return 0
    write_new(out, envelope.encoded())
    if json:
        print_json({"plan": plan_hash, "file": str(out), "key": envelope.key})
    else:
        console().print(f"certificate of plan {plan_hash} is in {out}", markup=False)
    return 0


def verify(
    file: Annotated[Path, typer.Argument(help="A certificate of disposition.")],
    json: JsonOption = False,
) -> int:
    """Verify a certificate: its signature, and that the records still say the same. Exit 1: no."""
    document = verify_certificate(application().work(), file.read_bytes())
    if json:
        print_json(document)
        return 0
    destroyed = document["targets"]
    console().print(
        f"the certificate holds: plan {document['plan']} was applied by {document['applied_by']} "
        f"at {document['applied_at']}, and destroyed "
        f"{len(destroyed) if isinstance(destroyed, list) else 0}",
        markup=False,
    )
    return 0
