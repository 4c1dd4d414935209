"""Look at retention plans that were made, and at what became of them.

A plan counts rows, so whoever looks is a steward, or plans, or applies, over what it is about.

Source: SPEC sections 5, 12 and 17.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from datasource_governance.domain.actor import ActorId, Grant, Role
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.disposition import Applied
from datasource_governance.domain.plan_admission import unknown_plan
from datasource_governance.domain.retention_plan import StoredPlan
from datasource_governance.errors import GuardError, InvalidArgumentError
from datasource_governance.ports import UnitOfWork

SHORTEST = 12
"""How many characters of a plan's hash name it, if no other plan's hash begins with them."""
PLAN_READERS = frozenset({Role.STEWARD, Role.OPERATOR, Role.ADMINISTRATOR})
"""Roles that see plans of what they are over."""
LISTED = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReview:
    """A plan, and what applying it destroyed; None while nobody did."""

    stored: StoredPlan
    applied: Applied | None


def review_plan(work: UnitOfWork, beginning: str, actor: ActorId) -> PlanReview:
    """Return the plan whose hash this is, or begins with, as far as an actor may see it.

    Raises:
        InvalidArgumentError: for less than 12 characters, or where several plans begin with them.
        GuardError: `plan_outdated` where there is none, or `not_authorised`.
    """
    with work.snapshot():
        plan_hash = _plan_hash(work, beginning)
        stored = work.retention.plan(plan_hash)
        if stored is None:
            raise unknown_plan(plan_hash)
        if not _may_see(work.authority.grants(actor), actor, stored.plan.datasource):
            raise _not_authorised(actor, stored.plan.datasource)
        return PlanReview(stored=stored, applied=_applied(work, plan_hash))


def list_plans(work: UnitOfWork, actor: ActorId, limit: int = LISTED) -> Sequence[PlanReview]:
    """Return those of the newest `limit` plans that an actor may see, newest first."""
    with work.snapshot():
        grants = work.authority.grants(actor)
        return [
            PlanReview(stored=stored, applied=_applied(work, stored.plan.hash))
            for stored in work.retention.plans(limit)
            if _may_see(grants, actor, stored.plan.datasource)
        ]


def _plan_hash(work: UnitOfWork, beginning: str) -> Sha256:
    if len(beginning) < SHORTEST:
        raise InvalidArgumentError(
            f"a plan is named by its hash or the first {SHORTEST} characters of it; list them: "
            "retention list"
        )
    found = work.retention.plan_hashes(beginning, limit=2)
    if not found:
        raise unknown_plan(beginning)
    if len(found) > 1:
        raise InvalidArgumentError(f"several plans begin with {beginning!r}; name one in full")
    return found[0]


def _applied(work: UnitOfWork, plan_hash: Sha256) -> Applied | None:
    application = work.retention.application(plan_hash)
    if application is None:
        return None
    return Applied(application=application, targets=tuple(work.retention.dispositions(plan_hash)))


def _may_see(grants: Sequence[Grant], actor: ActorId, datasource: str | None) -> bool:
    return any(
        grant.actor == actor and grant.role in PLAN_READERS and grant.covers(grant.role, datasource)
        for grant in grants
    )


def _not_authorised(actor: ActorId, datasource: str | None) -> GuardError:
    where = f"datasource {datasource!r}" if datasource else "all datasources"
    roles = ", ".join(sorted(PLAN_READERS))
    return GuardError(
        f"actor {actor!r} has none of the roles {roles} on {where}, and a plan counts rows",
        code="not_authorised",
        actor=actor,
    )
