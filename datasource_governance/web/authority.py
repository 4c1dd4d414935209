"""What an actor may do now, as the governance database says; remembered for seconds.

Source: SPEC section 17; threat T-30.
"""

from collections.abc import Callable
from dataclasses import dataclass

from datasource_governance.domain.actor import ActorId, Grant
from datasource_governance.errors import GuardError
from datasource_governance.ports import UnitOfWork
from datasource_governance.web.policy import Need

FRESH_SECONDS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorGrants:
    """A registered actor and the grants in force."""

    actor: ActorId
    grants: tuple[Grant, ...]

    def demand(self, need: Need, what: str) -> None:
        """Refuse unless a grant meets a need.

        Raises:
            GuardError: code `not_authorised`.
        """
        if not need.is_met_by(self.grants):
            raise GuardError(
                f"{what} needs {need}, which {self.actor} does not have; an administrator can "
                f"give it: actor grant {self.actor} {min(need.roles)}",
                code="not_authorised",
                actor=self.actor,
            )


class RememberedGrants:
    """Grants by actor. A grant or withdrawal shows after at most `FRESH_SECONDS`.

    Nothing is decided about data from here: services check authority again in their transactions.
    """

    def __init__(self, begin: Callable[[], UnitOfWork], clock: Callable[[], float]) -> None:
        """Take what makes units of work, and a clock in seconds that never jumps."""
        self._begin = begin
        self._clock = clock
        self._known: dict[ActorId, tuple[float, ActorGrants]] = {}

    def of(self, actor: ActorId) -> ActorGrants:
        """Return what an actor was granted.

        Raises:
            GuardError: code `not_authorised` when the actor is not registered.
            ServiceUnavailableError: when the database cannot be asked; nothing old is used then.
        """
        now = self._clock()
        known = self._known.get(actor)
        if known is not None and now - known[0] < FRESH_SECONDS:
            return known[1]
        with self._begin() as work:
            if work.authority.actor(actor) is None:
                raise GuardError(
                    f"{actor} is not registered here; an administrator can do that: "
                    f"key register {actor}",
                    code="not_authorised",
                    actor=actor,
                )
            granted = ActorGrants(actor=actor, grants=tuple(work.authority.grants(actor)))
        self._known[actor] = (now, granted)
        return granted
