"""`hold place | release | list`: what may not be destroyed, whatever policy says.

Source: SPEC sections 12 and 16.
"""

from typing import Annotated

import typer

from datasource_governance.cli.output import ActorOption, JsonOption, console, print_json
from datasource_governance.cli.plan_tables import hold_table
from datasource_governance.cli.session import application, proven, signer
from datasource_governance.composition import Application
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.hold import Hold, HoldScope
from datasource_governance.domain.subjects import hold_subject, release_subject
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.services.hold_review import list_holds
from datasource_governance.services.holds import (
    HoldRequest,
    ReleaseRequest,
    place_hold,
    release_hold,
)

app = typer.Typer(help="Legal holds.", no_args_is_help=True)

ReasonOption = Annotated[str, typer.Option("--reason", help="Why; kept, 1-2,000 characters.")]


@app.command()
def place(
    reason: ReasonOption,
    datasource: Annotated[
        str | None, typer.Argument(help="Hold all that it has and will have.")
    ] = None,
    stage: Annotated[str | None, typer.Option("--stage", help="Hold this stage.")] = None,
    materialization: Annotated[
        str | None, typer.Option("--materialization", help="Hold this materialization.")
    ] = None,
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """Place a hold, as an operator. It has no end; somebody else can release it."""
    session = application()
    author = signer(session, actor)
    scope, subject = _held(datasource, stage, materialization)
    owner = _owner(session, scope, subject)
    attestation = author.attest(Action.HOLD_PLACE, hold_subject(owner, scope, subject, reason))
    request = HoldRequest(
        datasource=owner, scope=scope, subject=subject, reason=reason, attestation=attestation
    )
    hold = place_hold(session.work(), request)
    if json:
        print_json(hold_document(hold))
    else:
        console().print(f"hold {hold.id} is on {hold.scope} {hold.subject}", markup=False)
    return 0


def _held(
    datasource: str | None, stage: str | None, materialization: str | None
) -> tuple[HoldScope, str]:
    """Return the one thing that was named.

    Raises:
        InvalidArgumentError: when it is none or several.
    """
    named = {
        HoldScope.DATASOURCE: datasource,
        HoldScope.STAGE: stage,
        HoldScope.MATERIALIZATION: materialization,
    }
    found = [(scope, subject) for scope, subject in named.items() if subject is not None]
    if len(found) != 1:
        raise InvalidArgumentError(
            "say what is held, one of: DATASOURCE, --stage ID, --materialization ID"
        )
    return found[0]


def _owner(session: Application, scope: HoldScope, subject: str) -> str:
    if scope is HoldScope.DATASOURCE:
        return subject
    with session.work() as work:
        found = work.stages if scope is HoldScope.STAGE else work.materializations
        return found.get(subject).datasource


@app.command()
def release(
    hold: Annotated[str, typer.Argument(help="Id of the hold.")],
    reason: ReasonOption,
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """Release a hold, as an administrator who did not place it."""
    session = application()
    author = signer(session, actor)
    attestation = author.attest(Action.HOLD_RELEASE, release_subject(hold, reason))
    request = ReleaseRequest(hold=hold, reason=reason, attestation=attestation)
    released = release_hold(session.work(), request)
    if json:
        print_json(hold_document(released))
    else:
        text = f"hold {released.id} on {released.scope} {released.subject} is released"
        console().print(text, markup=False)
    return 0


@app.command("list")
def list_seen(
    datasource: Annotated[str | None, typer.Argument(help="Default: all.")] = None,
    all: Annotated[bool, typer.Option("--all", help="Released ones, too.")] = False,  # noqa: A002 - the name of the option
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """List holds that are in force, newest first.

    Those of datasources that the actor has a role over; reasons, for operators and administrators.
    """
    session = application()
    found = list_holds(session.work(), proven(session, actor), datasource, active=not all)
    if json:
        print_json([hold_document(one.hold, reasons=one.tells_reasons) for one in found])
    elif found:
        console().print(hold_table(found))
    else:
        console().print("no hold that you may see is in force", markup=False)
    return 0


def hold_document(hold: Hold, *, reasons: bool = True) -> dict[str, object]:
    """Return a hold as JSON; a reason that may not be shown is null."""
    release = hold.released
    return {
        "hold": hold.id,
        "datasource": hold.datasource,
        "scope": str(hold.scope),
        "subject": hold.subject,
        "reason": hold.reason if reasons else None,
        "actor": hold.actor,
        "placed_at": hold.placed_at.isoformat(),
        "released": release
        and {
            "actor": release.actor,
            "reason": release.reason if reasons else None,
            "released_at": release.released_at.isoformat(),
        },
    }
