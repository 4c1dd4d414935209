"""What every kind of receiver has in common: which events it gets, and how long it may take.

A receiver is code and machines of somebody else. It is talked to in a thread of its own that is
left behind after ten seconds, and whatever it raises is replaced here by an error of ours.

Source: SPEC section 13; facts on transactions, 7.9.
"""

import threading
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from typing_extensions import override

from datasource_governance.domain.event import EVENT_TYPES, Event
from datasource_governance.errors import GuardError, ServiceUnavailableError

TIMEOUT_SECONDS = 10.0


class Transport(Protocol):
    """A way of handing over an event."""

    def deliver(self, event: Event) -> None:
        """Return once the event is accepted; raise anything otherwise."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """See ports.outbox.Receiver. Passed over are other types, and events earlier than `since`."""

    name: str
    transport: Transport
    events: frozenset[str] = frozenset(EVENT_TYPES)
    since: datetime | None = None
    timeout_seconds: float = TIMEOUT_SECONDS

    def deliver(self, event: Event) -> None:
        """Hand over an event that is subscribed to.

        Raises:
            ServiceUnavailableError: code `receiver_unavailable`, after `timeout_seconds` at most.
            GuardError: code `receiver_refused`.
        """
        if event.type not in self.events or (self.since and event.created_at < self.since):
            return
        handover = _Handover(self.transport, event)
        handover.start()
        handover.join(self.timeout_seconds)
        failure = handover.failure
        if handover.is_alive():
            failure = unavailable(f"there was no answer within {self.timeout_seconds:g} seconds")
        if failure is not None:
            raise type(failure)(
                f"receiver {self.name!r}: {failure}", code=failure.code, receiver=self.name
            )


def unavailable(why: str) -> ServiceUnavailableError:
    """Return what a transport raises when nobody is there to accept anything now."""
    return ServiceUnavailableError(why, code="receiver_unavailable")


def refused(why: str) -> GuardError:
    """Return what a transport raises when this event is not accepted; another one might be."""
    return GuardError(why, code="receiver_refused")


class _Handover(threading.Thread):
    """One event on its way. As a daemon it does not keep a process that wants to end."""

    def __init__(self, transport: Transport, event: Event) -> None:
        super().__init__(name="handover", daemon=True)
        self._transport = transport
        self._event = event
        self.failure: ServiceUnavailableError | GuardError | None = None

    @override
    def run(self) -> None:
        try:
            self._transport.deliver(self._event)
        except (ServiceUnavailableError, GuardError) as error:
            self.failure = error
        except BaseException as error:  # noqa: BLE001 - the one boundary of foreign receivers
            # Its text is somebody else's and could quote anything.
            self.failure = refused(f"it raised {type(error).__name__}")
