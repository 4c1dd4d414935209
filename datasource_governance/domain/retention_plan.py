"""The complete, hashed list of what policy makes due at an instant, and what of it may be applied.

A plan is its canonical bytes: the same facts at the same instant give the same hash. Applying
computes it again for the plan's own instant, so that time alone changes nothing and everything else
does.

Source: SPEC section 12; acceptance decision RETENTION_PLAN; facts 2.9.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from datasource_governance.domain.actor import ActorId
from datasource_governance.domain.canonical import (
    Json,
    Sha256,
    canonical_bytes,
    digest,
    document_digest,
    load_object,
)
from datasource_governance.domain.retention import (
    Action,
    Blocker,
    BlockerKind,
    Candidate,
    GoverningPolicy,
    RetentionClass,
    TargetKind,
    in_utc,
)
from datasource_governance.errors import GuardError

FORMAT = "datasource_governance/retention_plan/v1"
LIFETIME = timedelta(hours=24)
"""How long a plan can be applied; at the end of it no longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPolicy:
    """A retention policy under which a plan was made, enabled or not."""

    datasource: str
    version: str | None
    hash: Sha256
    policy_ref: str | None
    enabled: bool

    def document(self) -> dict[str, Json]:
        """Return the JSON form that a plan holds."""
        return {
            "datasource": self.datasource,
            "version": self.version,
            "hash": self.hash,
            "policy_ref": self.policy_ref,
            "enabled": self.enabled,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTarget:
    """One due object: since when, how much it is, what would become of it, and what blocks that."""

    kind: TargetKind
    retention_class: RetentionClass
    id: str
    datasource: str
    partition: str
    created_at: datetime
    eligible_at: datetime
    action: Action
    rows: int
    bytes: int
    payload_sha256: Sha256
    blockers: tuple[Blocker, ...]

    @property
    def is_blocked(self) -> bool:
        """Whether it is kept although it is due."""
        return bool(self.blockers)

    def document(self) -> dict[str, Json]:
        """Return the JSON form that a plan holds."""
        return {
            "kind": str(self.kind),
            "class": str(self.retention_class),
            "id": self.id,
            "datasource": self.datasource,
            "partition": self.partition,
            "created_at": self.created_at.isoformat(),
            "eligible_at": self.eligible_at.isoformat(),
            "action": str(self.action),
            "rows": self.rows,
            "bytes": self.bytes,
            "payload_sha256": self.payload_sha256,
            "blockers": [blocker.document() for blocker in self.blockers],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTotals:
    """How many are due and blocked; `rows` and `bytes` are of those that are not blocked."""

    targets: int
    blocked: int
    rows: int
    bytes: int

    def document(self) -> dict[str, Json]:
        """Return the JSON form that a plan holds."""
        return {
            "targets": self.targets,
            "blocked": self.blocked,
            "rows": self.rows,
            "bytes": self.bytes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPlan:
    """What is due at `as_of` of one datasource, or of all (None). `body` is what `hash` is over.

    Targets are in order of datasource, kind and id, and policies in order of datasource.
    """

    tenant: str
    datasource: str | None
    as_of: datetime
    policies: tuple[PlannedPolicy, ...]
    targets: tuple[PlannedTarget, ...]
    body: bytes = field(repr=False)
    hash: Sha256

    @property
    def expires_at(self) -> datetime:
        """From when on it can no longer be applied."""
        return self.as_of + LIFETIME

    @property
    def totals(self) -> PlanTotals:
        """How much is due, and how much of it would be destroyed."""
        return _totals(self.targets)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlan:
    """A plan as it was recorded, and who made it."""

    plan: RetentionPlan
    planned_by: ActorId
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReference:
    """A plan that was recorded, without what is in it; `id` is its hash."""

    id: Sha256
    created_at: datetime


def make_plan(
    tenant: str,
    datasource: str | None,
    as_of: datetime,
    policies: Iterable[GoverningPolicy],
    candidates: Iterable[Candidate],
) -> RetentionPlan:
    """Return the plan of exactly those candidates that are due at `as_of`, in any zone.

    Raises:
        InvalidArgumentError: for an instant without a zone.
    """
    governing = {one.datasource: one for one in policies}
    instant = in_utc(as_of)
    due = [
        _target(candidate, eligible)
        for candidate in candidates
        if (governs := governing.get(candidate.datasource)) is not None
        and (eligible := governs.due_at(candidate)) is not None
        and eligible <= instant
    ]
    return _plan(
        tenant,
        datasource,
        instant,
        tuple(_policy(governing[name]) for name in sorted(governing)),
        tuple(sorted(due, key=lambda one: (one.datasource, one.kind, one.id))),
    )


def _policy(governing: GoverningPolicy) -> PlannedPolicy:
    policy = governing.policy
    return PlannedPolicy(
        datasource=governing.datasource,
        version=policy.version,
        hash=policy.hash,
        policy_ref=policy.policy_ref,
        enabled=policy.enabled,
    )


def _target(candidate: Candidate, eligible: datetime) -> PlannedTarget:
    is_stage = candidate.kind is TargetKind.STAGE
    return PlannedTarget(
        kind=candidate.kind,
        retention_class=candidate.retention_class,
        id=candidate.id,
        datasource=candidate.datasource,
        partition=candidate.partition,
        created_at=in_utc(candidate.created_at),
        eligible_at=eligible,
        action=Action.DELETE if is_stage else Action.PURGE,
        rows=candidate.rows,
        bytes=candidate.bytes,
        payload_sha256=candidate.payload_sha256,
        blockers=_in_order(candidate.blockers),
    )


def _in_order(blockers: Iterable[Blocker]) -> tuple[Blocker, ...]:
    sorted_ids = (Blocker(kind=one.kind, ids=tuple(sorted(one.ids))) for one in blockers)
    return tuple(sorted(sorted_ids, key=lambda one: one.kind))


def _totals(targets: Sequence[PlannedTarget]) -> PlanTotals:
    free = [target for target in targets if not target.is_blocked]
    return PlanTotals(
        targets=len(targets),
        blocked=len(targets) - len(free),
        rows=sum(target.rows for target in free),
        bytes=sum(target.bytes for target in free),
    )


def _plan(
    tenant: str,
    datasource: str | None,
    as_of: datetime,
    policies: tuple[PlannedPolicy, ...],
    targets: tuple[PlannedTarget, ...],
) -> RetentionPlan:
    body = canonical_bytes(
        {
            "format": FORMAT,
            "tenant": tenant,
            "datasource": datasource,
            "as_of": as_of.isoformat(),
            "policies": [policy.document() for policy in policies],
            "targets": [target.document() for target in targets],
            "totals": _totals(targets).document(),
        }
    )
    return RetentionPlan(
        tenant=tenant,
        datasource=datasource,
        as_of=as_of,
        policies=policies,
        targets=targets,
        body=body,
        hash=digest(FORMAT, body),
    )


def read_plan(body: bytes) -> RetentionPlan:
    """Return the plan whose body these are.

    Raises:
        GuardError: code `evidence_chain_broken` when they are not exactly a plan's.
    """
    try:
        plan = _read(load_object(body))
    except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError):
        plan = None
    if plan is None or plan.body != body:
        raise GuardError(
            "what is kept of a retention plan is none; run: evidence verify",
            code="evidence_chain_broken",
        )
    return plan


def _read(document: dict[str, Json]) -> RetentionPlan:
    return _plan(
        str(document["tenant"]),
        _text_or_none(document["datasource"]),
        datetime.fromisoformat(str(document["as_of"])),
        tuple(map(_read_policy, _objects(document["policies"]))),
        tuple(map(_read_target, _objects(document["targets"]))),
    )


def _read_policy(document: dict[str, Json]) -> PlannedPolicy:
    return PlannedPolicy(
        datasource=str(document["datasource"]),
        version=_text_or_none(document["version"]),
        hash=Sha256(str(document["hash"])),
        policy_ref=_text_or_none(document["policy_ref"]),
        enabled=document["enabled"] is True,
    )


def _read_target(document: dict[str, Json]) -> PlannedTarget:
    return PlannedTarget(
        kind=TargetKind(str(document["kind"])),
        retention_class=RetentionClass(str(document["class"])),
        id=str(document["id"]),
        datasource=str(document["datasource"]),
        partition=str(document["partition"]),
        created_at=datetime.fromisoformat(str(document["created_at"])),
        eligible_at=datetime.fromisoformat(str(document["eligible_at"])),
        action=Action(str(document["action"])),
        rows=int(str(document["rows"])),
        bytes=int(str(document["bytes"])),
        payload_sha256=Sha256(str(document["payload_sha256"])),
        blockers=tuple(map(_read_blocker, _objects(document["blockers"]))),
    )


def _read_blocker(document: dict[str, Json]) -> Blocker:
    ids = document["ids"]
    if not isinstance(ids, list):
        raise TypeError
    return Blocker(kind=BlockerKind(str(document["kind"])), ids=tuple(map(str, ids)))


def _objects(value: Json) -> list[dict[str, Json]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise TypeError
    return value  # type: ignore[return-value]  # a list of objects, as tested


def _text_or_none(value: Json) -> str | None:
    return None if value is None else str(value)


def targets_hash(targets: Iterable[str]) -> Sha256:
    """Return the digest of ids of targets; order and repetition do not count."""
    return document_digest("datasource_governance/retention_targets/v1", sorted(set(targets)))
