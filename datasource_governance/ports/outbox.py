"""What services need of the outbox and of those outside who are told, as Protocols.

Source: SPEC section 13.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from datasource_governance.domain.event import Event
from datasource_governance.domain.outbox import Backlog, DeadLetter, Position


class Outbox(Protocol):
    """Events for other systems."""

    def add(self, event: Event) -> None:
        """Store an event behind the datasource's earlier ones; the datasource is locked."""
        ...

    def at(self, datasource: str, number: int) -> Event | None:
        """Return an event of a datasource by its number, counted from 1 without a gap."""
        ...


class Deliveries(Protocol):
    """How far receivers got with the outbox; no evidence."""

    def backlogs(self, receiver: str) -> Sequence[Backlog]:
        """Return how far a receiver got with each datasource, ordered by datasource."""
        ...

    def position(self, receiver: str, datasource: str) -> Position:
        """Return where a receiver is; at the beginning, if it never got anything."""
        ...

    def keep(self, position: Position) -> None:
        """Store where a receiver is now."""
        ...

    def set_aside(self, letter: DeadLetter) -> None:
        """Store an event that a receiver would not accept."""
        ...

    def dead_letters(self) -> Sequence[DeadLetter]:
        """Return what was set aside and not accepted since, oldest first."""
        ...

    def dead_letter(self, receiver: str, event: str) -> DeadLetter:
        """Return one of them."""
        ...

    def resolve(self, letter: DeadLetter, now: datetime) -> None:
        """Record that the receiver accepted it after all."""
        ...


class Receiver(Protocol):
    """Somebody outside who is told of events."""

    @property
    def name(self) -> str:
        """What it is called in settings, positions and messages; another name is another one."""
        ...

    def deliver(self, event: Event) -> None:
        """Hand over an event and return once it is accepted, or raise after ten seconds at most.

        The same event may come again, with the same id.

        Raises:
            ServiceUnavailableError: when the receiver cannot be reached or does not answer.
            GovernanceError: when it does not accept this event.
        """
        ...
