"""SPEC sections 6 to 8 once more, as a reader notes them down: what tests predict outcomes by.

Nothing here is taken from the code under test. An instant is a datetime, a person a name.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(frozen=True)
class Terms:
    """What an approval policy asks for; `hours` None: decisions do not age."""

    required: int
    separate: bool = True
    hours: int | None = None


@dataclass(frozen=True)
class Governing:
    """What a stage is bound to when it is made, and what has to be so still: SPEC section 7.

    `terms` None: no approval is required. `base` names the current materialization.
    """

    quality: str
    terms: Terms | None
    base: str | None = None


@dataclass(frozen=True)
class Vote:
    who: str
    approves: bool
    at: datetime
    hours: int | None

    def is_live(self, now: datetime) -> bool:
        """At the very instant of expiry it no longer counts."""
        return self.hours is None or now - self.at < timedelta(hours=self.hours)


@dataclass
class ExpectedStage:
    """One stage as it has to stand. `creator` None: nobody is proven to have made it."""

    creator: str | None
    bound_to: Governing
    state: str = "awaiting_approval"
    votes: list[Vote] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        return self.state in ("ready", "awaiting_approval")

    def why_no_decision(
        self, who: str, *, now: datetime, present: Governing, approvers: AbstractSet[str]
    ) -> set[str]:
        """Return the codes of every refusal that fits; none: it has to be recorded."""
        terms = self.bound_to.terms
        separate = terms is not None and terms.separate
        reasons = {
            "not_authorised": who not in approvers,
            "not_awaiting_approval": self.state != "awaiting_approval",
            "stage_outdated": self.bound_to != present,
            "creator_unknown": separate and self.creator is None,
            "creator_cannot_approve": separate and self.creator == who,
            "already_approved": any(vote.who == who and vote.is_live(now) for vote in self.votes),
        }
        return {code for code, holds in reasons.items() if holds}

    def take(self, who: str, *, approves: bool, now: datetime) -> None:
        """Note a decision that was recorded. One reject is final."""
        assert self.bound_to.terms is not None
        self.votes.append(Vote(who, approves, now, self.bound_to.terms.hours))
        if not approves:
            self.state = "rejected"

    def counted(self, now: datetime, approvers: AbstractSet[str]) -> set[str]:
        """Return whose approval counts now."""
        return {
            vote.who
            for vote in self.votes
            if vote.approves and vote.is_live(now) and vote.who in approvers
        }

    def has_quorum(self, now: datetime, approvers: AbstractSet[str]) -> bool:
        """Tell whether nobody rejected and enough people approve who still may."""
        terms = self.bound_to.terms
        if terms is None:
            return True
        enough = len(self.counted(now, approvers)) >= terms.required
        return enough and all(vote.approves for vote in self.votes)

    def why_no_promotion(
        self, *, now: datetime, present: Governing, approvers: AbstractSet[str], by_system: bool
    ) -> set[str]:
        """Return the codes of every refusal that fits; none: it has to become current."""
        reasons = {
            "stage_blocked": self.state == "failed",
            "stage_rejected": self.state == "rejected",
            "stage_outdated": self.bound_to != present,
            "quorum_not_met": not self.has_quorum(now, approvers),
            # Where no quorum stands behind it, a person has to: a ready stage may need review.
            "not_authorised": by_system and self.bound_to.terms is None,
        }
        return {code for code, holds in reasons.items() if holds}
