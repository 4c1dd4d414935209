"""How two retention plans differ, and which targets of an unchanged plan may be destroyed.

Source: SPEC section 12 ("any difference refuses everything"); acceptance decision RETENTION_PLAN.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from datasource_governance.domain.retention_plan import PlannedTarget, RetentionPlan
from datasource_governance.errors import GuardError

_NAMED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDifference:
    """What a later plan has that an earlier one had not, and the other way round.

    `changed` are targets of both, before and after; `policies` are the datasources whose policy is
    another one. The instants of the plans do not count.
    """

    added: tuple[PlannedTarget, ...]
    removed: tuple[PlannedTarget, ...]
    changed: tuple[tuple[PlannedTarget, PlannedTarget], ...]
    policies: tuple[str, ...]

    def summary(self) -> str:
        """Return what differs in a few words, naming the first few of each."""
        named = {
            "due now and not then": [one.id for one in self.added],
            "due then and not now": [one.id for one in self.removed],
            "changed": [one.id for _, one in self.changed],
            "under another policy": self.policies,
        }
        told = [f"{len(ids)} {what} ({_first(ids)})" for what, ids in named.items() if ids]
        return ", ".join(told) or "nothing"


def compare_plans(earlier: RetentionPlan, later: RetentionPlan) -> PlanDifference:
    """Return what differs between two plans of one tenant."""
    before = {(one.kind, one.id): one for one in earlier.targets}
    after = {(one.kind, one.id): one for one in later.targets}
    policies = {one.datasource: one for one in earlier.policies}
    present = {one.datasource: one for one in later.policies}
    return PlanDifference(
        added=tuple(one for place, one in after.items() if place not in before),
        removed=tuple(one for place, one in before.items() if place not in after),
        changed=tuple(
            (before[place], one)
            for place, one in after.items()
            if place in before and before[place] != one
        ),
        policies=tuple(
            name
            for name in sorted(policies.keys() | present.keys())
            if policies.get(name) != present.get(name)
        ),
    )


def admit(
    plan: RetentionPlan,
    present: RetentionPlan,
    targets: Collection[str] | None,
    now: datetime,
) -> tuple[PlannedTarget, ...]:
    """Return the targets to destroy, as `choose` does, of a plan that still is what it was.

    `present` is the plan as it would be made now for the same instant.

    Raises:
        GuardError: `plan_expired`, `plan_outdated`, or the codes of `choose`; each names everything
            that it is about.
    """
    if now >= plan.expires_at:
        raise GuardError(
            f"plan {plan.hash} could be applied until {plan.expires_at.isoformat()}; make and "
            "review a new one: retention plan",
            code="plan_expired",
            plan=plan.hash,
        )
    if plan.body != present.body:
        raise _outdated(plan, present)
    return choose(plan, targets)


def choose(plan: RetentionPlan, targets: Collection[str] | None) -> tuple[PlannedTarget, ...]:
    """Return the targets of a plan that are asked for, or (None) all that are not blocked.

    Order and repetition of `targets` do not count.

    Raises:
        GuardError: `target_not_in_plan`, `target_blocked` or `nothing_to_apply`; each names
            everything that it is about.
    """
    chosen = _free(plan) if targets is None else _asked_for(plan, set(targets))
    if not chosen:
        raise GuardError(
            f"nothing of plan {plan.hash} is to be applied: no target that is not blocked was "
            "asked for",
            code="nothing_to_apply",
            plan=plan.hash,
        )
    return chosen


def unknown_plan(plan_hash: str) -> GuardError:
    """Return the refusal of a hash that no stored plan has, or that somebody altered."""
    return GuardError(
        f"no plan has the hash {plan_hash}; make and review one: retention plan",
        code="plan_outdated",
        plan=plan_hash,
    )


def _outdated(plan: RetentionPlan, present: RetentionPlan) -> GuardError:
    difference = compare_plans(plan, present)
    return GuardError(
        f"plan {plan.hash} is outdated, for its instant it would now be {present.hash}: "
        f"{difference.summary()}; nothing was destroyed, make and review a new one: retention plan",
        code="plan_outdated",
        plan=plan.hash,
        present=present.hash,
        difference=difference,
    )


def _free(plan: RetentionPlan) -> tuple[PlannedTarget, ...]:
    return tuple(target for target in plan.targets if not target.is_blocked)


def _asked_for(plan: RetentionPlan, wanted: set[str]) -> tuple[PlannedTarget, ...]:
    chosen = tuple(target for target in plan.targets if target.id in wanted)
    foreign = sorted(wanted - {target.id for target in chosen})
    if foreign:
        raise GuardError(
            f"plan {plan.hash} has no such targets: {', '.join(foreign)}; nothing was destroyed",
            code="target_not_in_plan",
            plan=plan.hash,
            targets=tuple(foreign),
        )
    blocked = [target for target in chosen if target.is_blocked]
    if blocked:
        told = "; ".join(f"{target.id}: {_blockers(target)}" for target in blocked)
        raise GuardError(
            f"targets of plan {plan.hash} are blocked, so nothing was destroyed: {told}",
            code="target_blocked",
            plan=plan.hash,
            targets=tuple(target.id for target in blocked),
        )
    return chosen


def _blockers(target: PlannedTarget) -> str:
    return " and ".join(blocker.explanation() for blocker in target.blockers)


def _first(ids: Iterable[str]) -> str:
    named: Sequence[str] = list(ids)
    more = [f"and {len(named) - _NAMED} more"] if len(named) > _NAMED else []
    return ", ".join([*named[:_NAMED], *more])
