"""`retention plan | list | show | compare | explain | freeze`: what is due, and why or why not.

Source: SPEC sections 12 and 16.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from datasource_governance.cli.disposition import PlanArgument, apply, certificate, verify
from datasource_governance.cli.hold import ReasonOption
from datasource_governance.cli.output import (
    ActorOption,
    JsonOption,
    console,
    print_json,
    write_new,
)
from datasource_governance.cli.plan_documents import (
    difference_document,
    disposed_document,
    explanation_document,
    plan_document,
    summary,
)
from datasource_governance.cli.plan_files import plan_csv, plan_html
from datasource_governance.cli.plan_tables import difference_view, plan_table, plan_view
from datasource_governance.cli.session import application, proven, signer
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.disposition import DisposedTarget
from datasource_governance.domain.plan_admission import compare_plans
from datasource_governance.domain.subjects import freeze_subject
from datasource_governance.services.holds import FreezeRequest
from datasource_governance.services.holds import freeze as freeze_materialization
from datasource_governance.services.plan_review import (
    LISTED,
    PlanReview,
    list_plans,
    review_plan,
)
from datasource_governance.services.retention import PlanRequest, plan_retention
from datasource_governance.services.retention import explain as explain_subject

app = typer.Typer(help="What may be destroyed, and what was.", no_args_is_help=True)

OutOption = Annotated[
    Path | None, typer.Option("--out", help="New file to write to; default: print.")
]


class PlanFormat(StrEnum):
    """In which form a plan is shown."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    HTML = "html"


@app.command()
def plan(
    datasource: Annotated[str | None, typer.Argument(help="Default: all.")] = None,
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """List what policy makes due now, and keep the list for review. Destroys nothing."""
    session = application()
    by = proven(session, actor)
    made = plan_retention(session.work(), PlanRequest(actor=by, datasource=datasource))
    review = review_plan(session.work(), made.hash, by)
    if json:
        print_json(plan_document(review))
    else:
        console().print(plan_view(made))
    return 0


@app.command("list")
def list_made(
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = LISTED,
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """List plans, newest first."""
    session = application()
    found = list_plans(session.work(), proven(session, actor), limit)
    if json:
        print_json([summary(one) for one in found])
    else:
        console().print(plan_table(found))
    return 0


@app.command()
def show(
    plan: PlanArgument,
    format: Annotated[PlanFormat, typer.Option(help="In which form.")] = PlanFormat.TABLE,  # noqa: A002 - the name of the option
    out: OutOption = None,
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """Show a plan, for reviewing or handing it on. `json` is the text that its hash is over."""
    review = _reviewed(plan, actor)
    if format is PlanFormat.TABLE and out is None:
        if json:
            print_json(plan_document(review))
        else:
            console().print(plan_view(review.stored.plan))
            console().print(_what_became(review), markup=False)
        return 0
    content = _content(review, PlanFormat.HTML if format is PlanFormat.TABLE else format)
    if out is None:
        typer.echo(content.decode())
        return 0
    write_new(out, content)
    if json:
        print_json({"plan": review.stored.plan.hash, "file": str(out)})
    else:
        console().print(f"plan {review.stored.plan.hash} is in {out}", markup=False)
    return 0


def _reviewed(plan: str, actor: str | None) -> PlanReview:
    session = application()
    return review_plan(session.work(), plan, proven(session, actor))


def _content(review: PlanReview, form: PlanFormat) -> bytes:
    if form is PlanFormat.JSON:
        return review.stored.plan.body
    return plan_csv(review.stored) if form is PlanFormat.CSV else plan_html(review.stored)


def _what_became(review: PlanReview) -> str:
    if review.applied is None:
        return "not applied"
    application = review.applied.application
    return f"applied by {application.actor} to {len(review.applied.targets):,} of these"


@app.command()
def compare(
    earlier: PlanArgument,
    later: PlanArgument,
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """Show how a later plan differs from an earlier one. Exit 0, also when it does."""
    before, after = _reviewed(earlier, actor), _reviewed(later, actor)
    difference = compare_plans(before.stored.plan, after.stored.plan)
    if json:
        print_json(difference_document(before.stored.plan, after.stored.plan, difference))
    else:
        console().print(difference_view(difference))
    return 0


@app.command()
def explain(
    subject: Annotated[
        str, typer.Argument(metavar="ID", help="Id of a stage or a materialization.")
    ],
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """Say why something is due or is not, and what keeps it. Exit 0 whatever it is."""
    session = application()
    found = explain_subject(session.work(), subject, proven(session, actor))
    if isinstance(found, DisposedTarget):
        if json:
            print_json(disposed_document(found))
        else:
            text = f"{found.kind} {subject} was destroyed ({found.action}) under plan {found.plan}"
            console().print(text, markup=False)
        return 0
    if json:
        print_json(explanation_document(found))
        return 0
    for sentence in found.sentences():
        console().print(f"{found.candidate.kind} {subject}: {sentence}", markup=False)
    destroyed = "would be destroyed" if found.would_be_destroyed else "would be kept"
    console().print(f"by a plan that is made and applied now it {destroyed}", markup=False)
    return 0


@app.command()
def freeze(
    materialization: Annotated[str, typer.Argument(help="Id of the materialization.")],
    reason: ReasonOption,
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """Keep a materialization as frozen evidence, for ever; nothing takes that back."""
    session = application()
    author = signer(session, actor)
    with session.work() as work:
        datasource = work.materializations.get(materialization).datasource
    subject = freeze_subject(datasource, materialization, reason)
    attestation = author.attest(Action.MATERIALIZATION_FREEZE, subject)
    request = FreezeRequest(materialization=materialization, reason=reason, attestation=attestation)
    frozen = freeze_materialization(session.work(), request)
    if json:
        print_json(
            {
                "materialization": frozen.materialization,
                "datasource": frozen.datasource,
                "actor": frozen.actor,
                "frozen_at": frozen.frozen_at.isoformat(),
            }
        )
    else:
        text = f"materialization {frozen.materialization} is frozen evidence"
        console().print(f"{text}, since {frozen.frozen_at.isoformat()}", markup=False)
    return 0


app.command()(apply)
app.command()(certificate)
app.command()(verify)
