"""Where one open stage stands at an instant: what it waits for, and what became of its approvals.

Derived, never stored. What stands out is what somebody or something has to see to.

Source: SPEC sections 6, 7 and 15 ("Sensors").
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from datasource_governance.domain.actor import ActorId
from datasource_governance.domain.approval import Decision, Quorum, Subject, Verdict
from datasource_governance.domain.materialization import promotes_by_itself
from datasource_governance.domain.stage import Stage, changed_since
from datasource_governance.domain.target import Target

BASE = "base materialization"
SUBJECT = "subject"
_LAST_PART = 4
"""An approval expires soon when no more than a quarter of its life is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One open stage. `changed` names what it is bound to that is no longer so.

    `missing` counts approvals that are still needed. `lapsed` are approvers whose approval expired
    and who have not renewed it, `expiring` those whose approval is in the last quarter of its life;
    `next_expiry` is when the first one that counts expires. `complete_since` is the instant since
    which nobody is needed any more, or None. Nothing here moves before `until` unless something is
    written; None: never.
    """

    stage: str
    datasource: str
    changed: tuple[str, ...]
    missing: int
    lapsed: tuple[ActorId, ...]
    expiring: tuple[ActorId, ...]
    next_expiry: datetime | None
    complete_since: datetime | None
    until: datetime | None

    @property
    def stands_out(self) -> bool:
        """Whether anybody or anything has to see to it."""
        return bool(self.changed or self.lapsed or self.expiring or self.complete_since)

    @property
    def lost_its_base(self) -> bool:
        """Whether another materialization became current since the stage was validated."""
        return BASE in self.changed


def standing(
    stage: Stage,
    target: Target,
    decisions: Collection[Decision],
    *,
    subject: Subject,
    quorum: Quorum | None,
    now: datetime,
) -> Standing:
    """Return where an open stage stands.

    `decisions` are all about it, `quorum` their tally at `now` (None: no approval is required),
    `subject` what a decision about the stage is bound to.
    """
    changed = tuple(changed_since(stage, target)) or _changed_subject(subject, decisions)
    counted = quorum.approvals if quorum else ()
    turns = [turn for one in counted for turn in _turns(one) if turn > now]
    return Standing(
        stage=stage.id,
        datasource=stage.datasource,
        changed=changed,
        missing=quorum.missing if quorum else 0,
        lapsed=_lapsed(decisions, counted, now),
        expiring=tuple(sorted(one.actor for one in counted if expires_soon(one, now))),
        next_expiry=min((one.expires_at for one in counted if one.expires_at), default=None),
        complete_since=None if changed else _complete_since(stage, target, quorum),
        until=min(turns, default=None),
    )


def _changed_subject(subject: Subject, decisions: Collection[Decision]) -> tuple[str, ...]:
    """Tell whether somebody decided about something else under this stage's id."""
    return (SUBJECT,) if any(one.subject != subject for one in decisions) else ()


def _lapsed(
    decisions: Collection[Decision], counted: Collection[Decision], now: datetime
) -> tuple[ActorId, ...]:
    expired = {
        one.actor for one in decisions if one.verdict is Verdict.APPROVE and not one.is_live(now)
    }
    return tuple(sorted(expired - {one.actor for one in counted}))


def _complete_since(stage: Stage, target: Target, quorum: Quorum | None) -> datetime | None:
    if quorum is None:
        return stage.created_at if promotes_by_itself(stage, target) else None
    # A tally orders approvals by instant, so this is the one that completed the quorum.
    return quorum.approvals[quorum.required - 1].decided_at if quorum.met else None


def _turns(decision: Decision) -> tuple[datetime, ...]:
    """Return the instants at which an approval begins to expire soon, and expires."""
    if decision.expires_at is None:
        return ()
    life = decision.expires_at - decision.decided_at
    return (decision.expires_at - life / _LAST_PART, decision.expires_at)


def expires_soon(decision: Decision, now: datetime) -> bool:
    """Tell whether no more than the last quarter of an approval's life is left."""
    soon, *_ = _turns(decision) or (None,)
    return soon is not None and now >= soon
