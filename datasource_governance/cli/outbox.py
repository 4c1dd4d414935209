"""`outbox status | deliver | dead | retry`.

Source: SPEC sections 13 and 16.
"""

from typing import Annotated

import typer
from rich.table import Column, Table

from datasource_governance.cli.output import JsonOption, console, instant, print_json
from datasource_governance.cli.session import application
from datasource_governance.domain.outbox import Backlog, DeadLetter
from datasource_governance.errors import EXIT_NO, NotFoundError
from datasource_governance.services import delivering

app = typer.Typer(help="Events for other systems and for people.")


@app.command()
def status(json: JsonOption = False) -> int:
    """Show how far each receiver got with each datasource. Exit 0."""
    session = application()
    found = delivering.backlogs(session.work(), session.receivers())
    dead = len(delivering.dead_letters(session.work()))
    if json:
        print_json({"positions": [_backlog(one) for one in found], "dead": dead})
        return 0
    table = Table("receiver", "datasource", "delivered", "waiting", "since", "failures", "next try")
    for one in found:
        position = one.position
        table.add_row(
            position.receiver,
            position.datasource,
            str(position.delivered),
            str(one.waiting),
            instant(one.since) if one.since else "",
            str(position.attempts),
            instant(position.retry_at) if position.retry_at else "",
        )
    out = console()
    out.print(table)
    out.print(f"{dead} dead letters", markup=False)
    return 0


def _backlog(one: Backlog) -> dict[str, object]:
    position = one.position
    return {
        "receiver": position.receiver,
        "datasource": position.datasource,
        "delivered": position.delivered,
        "waiting": one.waiting,
        "since": one.since and one.since.isoformat(),
        "attempts": position.attempts,
        "retry_at": position.retry_at and position.retry_at.isoformat(),
    }


@app.command()
def deliver(json: JsonOption = False) -> int:
    """Deliver what waits, also what failed a moment ago. Exit 1: a receiver did not accept."""
    session = application()
    rounds = delivering.deliver(session.work, session.receivers(), heeds_pauses=False)
    if json:
        print_json({"receivers": [one.document() for one in rounds]})
    else:
        for one in rounds:
            text = f"{one.receiver}: {one.accepted} accepted, {one.failed} failed"
            aside = f", {one.set_aside} set aside" if one.set_aside else ""
            problem = f"; {one.problem}" if one.problem else ""
            console().print(f"{text}{aside}{problem}", markup=False)
    return 0 if all(one.is_clean for one in rounds) else EXIT_NO


@app.command()
def dead(json: JsonOption = False) -> int:
    """List the events that a receiver would not accept. Exit 0."""
    found = delivering.dead_letters(application().work())
    if json:
        print_json({"dead": [_dead_letter(one) for one in found]})
        return 0
    event = Column("event", no_wrap=True)
    table = Table("receiver", event, "datasource", "type", "problem", "at")
    for one in found:
        table.add_row(
            one.receiver,
            one.event.id,
            one.event.datasource,
            one.event.type,
            one.problem,
            instant(one.at),
        )
    console().print(table)
    return 0


@app.command()
def retry(
    receiver: Annotated[str, typer.Argument(help="Name of the receiver.")],
    event: Annotated[str, typer.Argument(help="Id of the event.")],
    json: JsonOption = False,
) -> int:
    """Deliver an event that was set aside."""
    session = application()
    named = next((one for one in session.receivers() if one.name == receiver), None)
    if named is None:
        raise NotFoundError(f"GOVERNANCE_RECEIVERS names no receiver {receiver!r}")
    letter = delivering.retry(session.work(), named, event)
    if json:
        print_json(_dead_letter(letter))
    else:
        console().print(f"{receiver} accepted event {event}", markup=False)
    return 0


def _dead_letter(one: DeadLetter) -> dict[str, object]:
    return {
        "receiver": one.receiver,
        "event": one.event.id,
        "datasource": one.event.datasource,
        "type": one.event.type,
        "attempts": one.attempts,
        "problem": one.problem,
        "at": one.at.isoformat(),
    }
