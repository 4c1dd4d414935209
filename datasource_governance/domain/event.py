"""Events for other systems: written to the outbox in the transaction that they tell of.

A body holds ids, hashes, counts, states and instants only.

Source: SPEC sections 8, 13.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from datasource_governance.domain.canonical import canonical_bytes

EXPIRING = "stage.expiring"
"""Kind of the event that an approval of a waiting stage expires soon."""
CHECKED = "contract.checked"
"""Kind of the event that a check of a contract ran; there are many."""
VIOLATED, RESOLVED = "contract.violated", "contract.resolved"
"""Kinds of the events that a violation of a contract began, and that it ended."""
EVENT_TYPES = (
    "datasource.contract.checked",
    "datasource.contract.resolved",
    "datasource.contract.violated",
    "datasource.governance.applied",
    "datasource.hold.placed",
    "datasource.hold.released",
    "datasource.materialization.frozen",
    "datasource.materialization.purged",
    "datasource.publication.published",
    "datasource.retention.applied",
    "datasource.stage.created",
    "datasource.stage.decided",
    "datasource.stage.expiring",
    "datasource.stage.promoted",
    "datasource.stage.superseded",
)
"""Every type that an event can have, as receivers choose among them."""
TOLD_TYPES = tuple(one for one in EVENT_TYPES if one != f"datasource.{CHECKED}")
"""Those that a receiver gets that chooses none: all but the checks of contracts, which are many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event. `id` is what receivers tell duplicates by."""

    id: str
    datasource: str
    type: str
    body: bytes
    created_at: datetime


def event(
    event_id: str, kind: str, *, datasource: str, facts: Mapping[str, object], now: datetime
) -> Event:
    """Return the event `datasource.<kind>` with its facts."""
    body = {
        "id": event_id,
        "type": f"datasource.{kind}",
        "datasource": datasource,
        "at": now.isoformat(),
        "facts": facts,
    }
    return Event(
        id=event_id,
        datasource=datasource,
        type=f"datasource.{kind}",
        body=canonical_bytes(body),
        created_at=now,
    )
