"""Processes that kill themselves behind an event that is counted, and what they have to leave.

Dying before an event is dying after the one before it: 0 is before the first.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pkgutil import resolve_name
from typing import Any, Protocol

from datasource_governance.composition import Application, Settings
from datasource_governance.ports import UnitOfWork
from datasource_governance_tests.contents import contents
from datasource_governance_tests.world import World

LEAST_EVENTS, MOST_EVENTS = 5, 100
# Functions, each by the path of what has it and its own name.
Places = Mapping[str, Sequence[str]]
STATEMENTS: Places = {
    # Statements that were built for once, and one or more that are kept, in one trip.
    "datasource_governance.persistence.connection:Connection": ("execute", "_exchange")
}

# A process that forks others must have one thread: so a fresh one is prepared, not this.
forks = multiprocessing.get_context("forkserver")
forks.set_forkserver_preload(["__main__", "pandera.polars", "psycopg", __name__])


class Transition(Protocol):
    """What changes rows, and is done again until it is done."""

    def run(self, application: Application) -> object:
        """Do it; return what came of it, the same each time."""
        ...

    def found(self, work: UnitOfWork) -> Sequence[object]:
        """Return what came of it, if it happened."""
        ...


class Fuse:
    """Ends the process when a number of events have happened."""

    def __init__(self, events: int) -> None:
        self.left = events

    def burn(self) -> None:
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1

    def attach(self, places: Places) -> None:
        """Count every call of these functions from now on."""
        self.burn()
        for path, names in places.items():
            owner = resolve_name(path)
            for name in names:
                setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            found = method(*arguments, **named)
            self.burn()
            return found

        return counted


def run_and_die(settings: Settings, transition: Transition, events: int, places: Places) -> None:
    Fuse(events).attach(places)
    application = Application(settings)
    transition.run(application)
    application.close()


def die_after(
    world: World, transition: Transition, events: int, places: Places = STATEMENTS
) -> int | None:
    """Run in another process and return how that ended: 0, or minus a signal."""
    process = forks.Process(
        target=run_and_die, args=(world.application.settings, transition, events, places)
    )
    process.start()
    process.join(60)
    code = process.exitcode
    process.close()
    return code


def assert_whole_or_not_at_all(
    world: World, transition: Transition, places: Places = STATEMENTS
) -> None:
    """Hold that a transition survives `kill -9` after every trip to the server, or other places.

    Statements that nobody waits for go in one trip with the next one; a commit is the last of one.
    As long as not a byte of any table has changed, the next process that dies is the retry of the
    one before.
    """
    before = after = contents(world)
    codes = []

    while after == before and len(codes) < MOST_EVENTS:
        codes.append(die_after(world, transition, len(codes), places))
        after = contents(world)

    # Only whoever was killed behind the commit has changed anything, and that is all of it.
    assert len(codes) > LEAST_EVENTS
    assert set(codes) == {-signal.SIGKILL}
    with world.application.work() as work:
        (survived,) = transition.found(work)
    assert world.verification().holds
    assert transition.run(world.application) == survived
    assert contents(world) == after
    assert die_after(world, transition, MOST_EVENTS) == 0
    assert contents(world) == after
