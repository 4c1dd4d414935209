"""What a retention policy makes due, and when: the days of each class, and what blocks.

A class without days is kept for ever, and nothing is due unless its policy is enabled. An object is
due at the very instant at which it is as old as the policy says, in days of 24 hours, UTC.

Source: SPEC sections 2.3 and 12; acceptance decisions RETENTION_EDGE and RETENTION_PLAN.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from datasource_governance.domain.canonical import Json, Sha256
from datasource_governance.domain.retention_policy import RetentionPolicy
from datasource_governance.errors import InvalidArgumentError

_NAMED = 5


class RetentionClass(StrEnum):
    """By which of a policy's durations an object is kept."""

    STAGE = "stage"
    MATERIALIZATION = "materialization"
    FROZEN_EVIDENCE = "frozen_evidence"


class TargetKind(StrEnum):
    """What can be destroyed."""

    STAGE = "stage"
    MATERIALIZATION = "materialization"


class Action(StrEnum):
    """What becomes of a due object: a stage is deleted but for its tombstone, a payload purged."""

    DELETE = "delete"
    PURGE = "purge"


class BlockerKind(StrEnum):
    """Why a due object may not be destroyed now."""

    PENDING_APPROVAL = "pending_approval"
    CURRENT_MATERIALIZATION = "current_materialization"
    LEGAL_HOLD = "legal_hold"
    REFERENCED_BY_PUBLICATION = "referenced_by_publication"
    BASE_OF_OPEN_STAGE = "base_of_open_stage"


_EXPLANATIONS = {
    BlockerKind.PENDING_APPROVAL: "it awaits approval; approve or reject it first",
    BlockerKind.CURRENT_MATERIALIZATION: (
        "it is what readers get now; promote or publish a newer one first"
    ),
    BlockerKind.LEGAL_HOLD: (
        "legal holds are on it or its datasource: {ids}; an administrator who did not place them "
        "can release them: hold release"
    ),
    BlockerKind.REFERENCED_BY_PUBLICATION: (
        "publications wait for their review with it: {ids}; approve or reject them first"
    ),
    BlockerKind.BASE_OF_OPEN_STAGE: (
        "open stages were compared with it: {ids}; promote or reject them first"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """One reason why an object is kept.

    `ids` are the holds, publications or stages; a pending approval and being current say it all.
    """

    kind: BlockerKind
    ids: tuple[str, ...] = ()

    def explanation(self) -> str:
        """Return a sentence for people: what blocks, and what to do about it."""
        more = f" and {len(self.ids) - _NAMED} more" if len(self.ids) > _NAMED else ""
        return _EXPLANATIONS[self.kind].format(ids=", ".join(self.ids[:_NAMED]) + more)

    def document(self) -> dict[str, Json]:
        """Return the JSON form that a plan holds; equal facts in any order give equal ones."""
        return {"kind": str(self.kind), "ids": list[Json](sorted(self.ids))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What the database says of a stage or a materialization whose payload is still there.

    `state` is a stage's, None of a materialization; `artifact` is the locator of a payload that is
    not kept inline; `partition` is empty where there is none.
    """

    kind: TargetKind
    id: str
    datasource: str
    partition: str
    retention_class: RetentionClass
    created_at: datetime
    rows: int
    bytes: int
    payload_sha256: Sha256
    state: str | None = None
    artifact: str | None = None
    blockers: tuple[Blocker, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GoverningPolicy:
    """The retention policy that is in force for a datasource."""

    datasource: str
    policy: RetentionPolicy

    def due_at(self, candidate: Candidate) -> datetime | None:
        """Return since when an object of the datasource is due, or will be; None for never."""
        days = kept_days(self.policy, candidate.retention_class)
        return None if days is None else eligible_at(candidate.created_at, days)


def kept_days(policy: RetentionPolicy, retention_class: RetentionClass) -> int | None:
    """Return for how many days a class is kept, None for ever.

    Frozen evidence never falls back to the days of a materialization.
    """
    days = {
        RetentionClass.STAGE: policy.stage_days,
        RetentionClass.MATERIALIZATION: policy.materialization_days,
        RetentionClass.FROZEN_EVIDENCE: policy.frozen_evidence_days,
    }
    return days[retention_class] if policy.enabled else None


def eligible_at(created_at: datetime, days: int) -> datetime:
    """Return since when an object is due, in UTC; at that instant it is.

    Raises:
        InvalidArgumentError: for an instant without a zone.
    """
    return in_utc(created_at) + timedelta(days=days)


def cutoff(
    policy: RetentionPolicy, retention_class: RetentionClass, as_of: datetime
) -> datetime | None:
    """Return the instant at or before which what was created is due; None where nothing is.

    Raises:
        InvalidArgumentError: for an instant without a zone.
    """
    instant, days = in_utc(as_of), kept_days(policy, retention_class)
    if days is None:
        return None
    try:
        return instant - timedelta(days=days)
    except OverflowError:
        # That long ago there was no calendar, so nothing can be so old.
        return None


def in_utc(instant: datetime) -> datetime:
    """Return the same instant as UTC spells it.

    Raises:
        InvalidArgumentError: for one without a zone, which every place would read otherwise.
    """
    if instant.tzinfo is None:
        raise InvalidArgumentError("an instant of retention needs a time zone")
    return instant.astimezone(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why an object is due or is not, and what keeps it although it is.

    `eligible_at` is None where policy keeps it for ever.
    """

    candidate: Candidate
    policy: RetentionPolicy | None
    as_of: datetime
    eligible_at: datetime | None

    @property
    def is_due(self) -> bool:
        """Whether policy makes it due at `as_of`."""
        return self.eligible_at is not None and self.eligible_at <= self.as_of

    @property
    def would_be_destroyed(self) -> bool:
        """Whether a plan made at `as_of` and applied would destroy it."""
        return self.is_due and not self.candidate.blockers

    def sentences(self) -> Sequence[str]:
        """Return why, for people: first what policy says, then every blocker."""
        return [self._policy_says(), *(one.explanation() for one in self.candidate.blockers)]

    def _policy_says(self) -> str:
        name, kept_as = self.candidate.datasource, self.candidate.retention_class
        if self.policy is None:
            return f"datasource {name!r} has no retention policy, so it is kept for ever"
        version = f"policy {self.policy.version or '{}'} ({self.policy.hash[:12]})"
        if not self.policy.enabled:
            return f"{version} is not enabled, so it is kept for ever"
        if self.eligible_at is None:
            return f"{version} says no {kept_as}_days, so it is kept for ever"
        since = "has been due since" if self.is_due else "will be due at"
        return f"by the {kept_as}_days of {version} it {since} {self.eligible_at.isoformat()}"


def explained(
    candidate: Candidate, governing: GoverningPolicy | None, as_of: datetime
) -> Explanation:
    """Return why a candidate is due at an instant, or is not."""
    return Explanation(
        candidate=candidate,
        policy=governing.policy if governing else None,
        as_of=in_utc(as_of),
        eligible_at=governing.due_at(candidate) if governing else None,
    )
