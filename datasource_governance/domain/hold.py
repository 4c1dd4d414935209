"""Legal holds, which block destruction until somebody else releases them, and frozen evidence.

A hold has a reason and no expiry. It is on a stage, on a materialization, or on a datasource with
everything that it has and will have; any active one blocks. Freezing moves a materialization to the
retention class `frozen_evidence`, for ever.

Source: SPEC section 12; facts 2.10.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from datasource_governance.domain.actor import ActorId
from datasource_governance.errors import GuardError


class HoldScope(StrEnum):
    """What a hold is on."""

    DATASOURCE = "datasource"
    STAGE = "stage"
    MATERIALIZATION = "materialization"


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldRelease:
    """The end of a hold: by whom, under which grant, and why."""

    hold: str
    actor: ActorId
    grant_id: str
    reason: str
    attestation_id: str
    released_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """One hold. `subject` is the id of what it is on; of a datasource, the datasource's.

    The reason stays in the governance tables; its hash may leave them.
    """

    id: str
    datasource: str
    scope: HoldScope
    subject: str
    reason: str
    actor: ActorId
    grant_id: str
    attestation_id: str
    placed_at: datetime
    released: HoldRelease | None = None

    @property
    def is_active(self) -> bool:
        """Whether it still blocks."""
        return self.released is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """A materialization pinned as frozen evidence; nothing takes that back."""

    materialization: str
    datasource: str
    reason: str
    actor: ActorId
    grant_id: str
    attestation_id: str
    frozen_at: datetime


def check_release(hold: Hold, releaser: ActorId) -> None:
    """Refuse to release a hold twice, and by the actor who placed it.

    Raises:
        GuardError: `hold_released` or `second_actor_required`.
    """
    if hold.released is not None:
        raise GuardError(
            f"hold {hold.id} was released already, by {hold.released.actor!r}; nothing is to do",
            code="hold_released",
            hold=hold.id,
        )
    if hold.actor == releaser:
        raise GuardError(
            f"actor {releaser!r} placed hold {hold.id} and cannot release it; another "
            "administrator can",
            code="second_actor_required",
            hold=hold.id,
            actor=releaser,
        )
