"""Deliver the outbox: at least once, in order per receiver and datasource.

Each event is handed over under a turn of its own, an advisory lock of the transaction that moves
the position afterwards. Whoever dies in between loses the lock with the connection and leaves the
position where it was, so the event comes again with the same id. A receiver answers within ten
seconds or has failed, so no transaction lasts longer; a lock on rows is never held meanwhile.

Source: SPEC section 13; facts on the outbox, 2.11 and 4.9.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from datasource_governance.domain.event import Event
from datasource_governance.domain.outbox import Backlog, DeadLetter
from datasource_governance.errors import GovernanceError, ServiceUnavailableError
from datasource_governance.ports import UnitOfWork
from datasource_governance.ports.outbox import Receiver

MAXIMUM_EVENTS = 200
"""So many events are handed over to one receiver in one round."""
LONGEST_ROUND = timedelta(seconds=20)
"""After this no other event is begun in a round."""


class Result(StrEnum):
    """What became of one attempt."""

    ACCEPTED = "accepted"
    FAILED = "failed"
    SET_ASIDE = "set_aside"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one round did for one receiver; `problem` is the message of its last failure."""

    receiver: str
    accepted: int
    failed: int
    set_aside: int
    problem: str | None

    @property
    def is_clean(self) -> bool:
        """Whether nothing failed."""
        return self.problem is None

    def document(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "receiver": self.receiver,
            "accepted": self.accepted,
            "failed": self.failed,
            "set_aside": self.set_aside,
            "problem": self.problem,
        }


def deliver(
    begin: Callable[[], UnitOfWork],
    receivers: Sequence[Receiver],
    *,
    maximum_events: int = MAXIMUM_EVENTS,
    heeds_pauses: bool = True,
) -> tuple[Round, ...]:
    """Hand over what waits, in one round that is bounded in events and time for each receiver.

    Receivers are served side by side, so that one that hangs keeps no other waiting, and within one
    the datasources take turns. Without `heeds_pauses` what failed before is tried at once. Two
    rounds at the same time share the work and hand nothing over twice.

    Raises:
        GovernanceError: when Postgres cannot be used; what was accepted before is not forgotten.
    """
    if not receivers:
        return ()
    servings = [_Serving(begin(), receiver, heeds_pauses=heeds_pauses) for receiver in receivers]
    with ThreadPoolExecutor(len(servings)) as pool:
        return tuple(pool.map(lambda serving: serving.round(maximum_events), servings))


def retry(work: UnitOfWork, receiver: Receiver, event_id: str) -> DeadLetter:
    """Hand over an event that was set aside; accepted, it is a dead letter no longer.

    Raises:
        NotFoundError: when the receiver has no such dead letter.
        ServiceUnavailableError: code `busy` while the receiver is served by somebody else.
        GovernanceError: the receiver's refusal; nothing was written.
    """
    with work:
        letter = work.deliveries.dead_letter(receiver.name, event_id)
        if not work.take_turn(_turn(receiver, letter.event.datasource)):
            raise ServiceUnavailableError(
                f"receiver {receiver.name!r} is being served; try again", code="busy"
            )
        # Looked for again, because whoever had the turn before may have handed it over.
        letter = work.deliveries.dead_letter(receiver.name, event_id)
        receiver.deliver(letter.event)
        work.deliveries.resolve(letter, work.now())
        work.commit()
    return letter


def backlogs(work: UnitOfWork, receivers: Sequence[Receiver]) -> list[Backlog]:
    """Return how far each receiver got with each datasource."""
    with work:
        return [one for receiver in receivers for one in work.deliveries.backlogs(receiver.name)]


def dead_letters(work: UnitOfWork) -> Sequence[DeadLetter]:
    """Return what was set aside and not accepted since, oldest first."""
    with work:
        return work.deliveries.dead_letters()


def _turn(receiver: Receiver, datasource: str) -> str:
    return f"outbox/{receiver.name}/{datasource}"


class _Serving:
    """One receiver in one round."""

    def __init__(self, work: UnitOfWork, receiver: Receiver, *, heeds_pauses: bool) -> None:
        self._work = work
        self._receiver = receiver
        self._heeds_pauses = heeds_pauses
        self._results: Counter[Result] = Counter()
        self._problem: str | None = None
        self._is_away = False

    def round(self, maximum_events: int) -> Round:
        with self._work as work:
            self._now = work.now()
            waiting = [one for one in work.deliveries.backlogs(self._receiver.name) if one.since]
        # The oldest event first, so that none has to wait for whoever writes the most.
        queue = deque(
            one.position.datasource
            for one in sorted(waiting, key=lambda one: (one.since, one.position.datasource))
        )
        ends = self._now + LONGEST_ROUND
        while queue and self._now < ends and self._results.total() < maximum_events:
            datasource = queue.popleft()
            if self._hand_over(datasource):
                queue.append(datasource)
            if self._is_away:
                break
        return Round(
            receiver=self._receiver.name,
            accepted=self._results[Result.ACCEPTED],
            failed=self._results[Result.FAILED],
            set_aside=self._results[Result.SET_ASIDE],
            problem=self._problem,
        )

    def _hand_over(self, datasource: str) -> bool:
        """Try the next event of a datasource; tell whether the one behind it may follow."""
        with self._work as work:
            if not work.take_turn(_turn(self._receiver, datasource)):
                return False
            position = work.deliveries.position(self._receiver.name, datasource)
            event = work.outbox.at(datasource, position.next)
            self._now = work.now()
            if event is None or (self._heeds_pauses and not position.is_due(self._now)):
                return False
            refusal = self._refusal(event)

            result, after = Result.ACCEPTED, position.passed()
            if refusal is not None:
                self._now = work.now()
                result, after = Result.FAILED, position.failed(self._now)
            if refusal is not None and after.is_exhausted:
                work.deliveries.set_aside(
                    DeadLetter(
                        receiver=self._receiver.name,
                        event=event,
                        attempts=after.attempts,
                        problem=refusal.code,
                        at=self._now,
                    )
                )
                result, after = Result.SET_ASIDE, position.passed()
            work.deliveries.keep(after)
            work.commit()
        self._results[result] += 1
        return result is not Result.FAILED

    def _refusal(self, event: Event) -> GovernanceError | None:
        try:
            self._receiver.deliver(event)
        except GovernanceError as error:
            self._problem = str(error)
            # Whoever is not there is asked once in a round, not once for each datasource.
            self._is_away = isinstance(error, ServiceUnavailableError)
            return error
        return None
