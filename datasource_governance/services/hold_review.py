"""Look at legal holds.

That something is held is a state, which every reader sees. Why it is held is for those who place
and release holds.

Source: SPEC sections 12 and 17.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from datasource_governance.domain.actor import ActorId, Grant, Role, may_read
from datasource_governance.domain.hold import Hold
from datasource_governance.ports import UnitOfWork

REASON_READERS = frozenset({Role.OPERATOR, Role.ADMINISTRATOR})
"""Roles that see why what they are over is held, and why it no longer is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldReview:
    """A hold as an actor may see it; without `tells_reasons` its reasons may not be shown."""

    hold: Hold
    tells_reasons: bool


def list_holds(
    work: UnitOfWork, actor: ActorId, datasource: str | None = None, *, active: bool = True
) -> Sequence[HoldReview]:
    """Return the holds of what an actor may see, newest first; only the active ones if so.

    They are those of one datasource, with its stages and materializations, or of all (None).
    """
    with work.snapshot():
        grants = work.authority.grants(actor)
        return [
            HoldReview(hold=hold, tells_reasons=_tells_reasons(grants, actor, hold.datasource))
            for hold in work.holds.list(datasource, active=active)
            if may_read(grants, actor, hold.datasource)
        ]


def _tells_reasons(grants: Sequence[Grant], actor: ActorId, datasource: str) -> bool:
    return any(
        grant.actor == actor
        and grant.role in REASON_READERS
        and grant.covers(grant.role, datasource)
        for grant in grants
    )
