"""How far a receiver got with the events of a datasource, and what becomes of one it refuses.

Neither is evidence: a receiver that got lost is put right, not proved.

Source: SPEC section 13 ("at least once, in order per datasource"); facts on the outbox, 2.11.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from datasource_governance.domain.event import Event

MAXIMUM_ATTEMPTS = 12
"""So many times an event is tried, over about three and a half hours, before it is set aside."""
FIRST_PAUSE = timedelta(seconds=10)
LONGEST_PAUSE = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far one receiver got with the events of one datasource, which are numbered from 1.

    The first `delivered` events were accepted or set aside. The next one failed `attempts` times
    and is left alone until `retry_at`.
    """

    receiver: str
    datasource: str
    delivered: int = 0
    attempts: int = 0
    retry_at: datetime | None = None

    @property
    def next(self) -> int:
        """Number of the event whose turn it is."""
        return self.delivered + 1

    @property
    def is_exhausted(self) -> bool:
        """Whether the next event was tried as often as any is."""
        return self.attempts >= MAXIMUM_ATTEMPTS

    def is_due(self, now: datetime) -> bool:
        """Tell whether the next event may be tried; at `retry_at` it may."""
        return self.retry_at is None or now >= self.retry_at

    def passed(self) -> "Position":
        """Return the position behind the next event."""
        return replace(self, delivered=self.next, attempts=0, retry_at=None)

    def failed(self, now: datetime) -> "Position":
        """Return the position after one more failure; each pause is twice the one before."""
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2**self.attempts)
        return replace(self, attempts=self.attempts + 1, retry_at=now + pause)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What a receiver has not got yet of one datasource; `since` is the oldest event's instant."""

    position: Position
    waiting: int
    since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """An event that a receiver failed to accept every time and that was set aside.

    `problem` is the code of the last failure.
    """

    receiver: str
    event: Event
    attempts: int
    problem: str
    at: datetime
