"""Receivers of events that tests look into."""

import threading
from dataclasses import dataclass, field

from datasource_governance.domain.event import Event
from datasource_governance.errors import GuardError, ServiceUnavailableError


@dataclass
class Ledger:
    """Accepts everything but `poison`, by type or id, and keeps it in the order of arrival."""

    name: str
    poison: frozenset[str] = frozenset()
    events: list[Event] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def deliver(self, event: Event) -> None:
        if {event.type, event.id} & self.poison:
            raise GuardError("not this one", code="receiver_refused")
        with self.lock:
            self.events.append(event)

    def ids(self, datasource: str) -> list[str]:
        return [event.id for event in self.events if event.datasource == datasource]


@dataclass
class Deaf:
    """Accepts nothing, and is there all the same."""

    name: str
    asked: int = 0

    def deliver(self, _: Event) -> None:
        self.asked += 1
        raise GuardError("no", code="receiver_refused")


@dataclass
class Away:
    """Is not there."""

    name: str
    asked: int = 0

    def deliver(self, _: Event) -> None:
        self.asked += 1
        raise ServiceUnavailableError("nobody is there", code="receiver_unavailable")
