"""Retention plans, what applying them did, and explanations as JSON for scripts.

Source: SPEC sections 12 and 16.
"""

from datasource_governance.domain.canonical import load_object
from datasource_governance.domain.disposition import Applied, DisposedTarget
from datasource_governance.domain.plan_admission import PlanDifference
from datasource_governance.domain.retention import Explanation
from datasource_governance.domain.retention_plan import RetentionPlan
from datasource_governance.services.plan_review import PlanReview


def summary(review: PlanReview) -> dict[str, object]:
    """Return a plan without its targets."""
    plan = review.stored.plan
    return {
        "plan": plan.hash,
        "datasource": plan.datasource,
        "as_of": plan.as_of.isoformat(),
        "expires_at": plan.expires_at.isoformat(),
        "planned_by": review.stored.planned_by,
        "totals": plan.totals.document(),
        "applied": None if review.applied is None else applied_document(review.applied),
    }


def plan_document(review: PlanReview) -> dict[str, object]:
    """Return a plan with its body, which is what its hash is over."""
    return {**summary(review), "body": load_object(review.stored.plan.body)}


def applied_document(applied: Applied) -> dict[str, object]:
    """Return what applying a plan destroyed, and what is still to do."""
    application = applied.application
    return {
        "plan": application.plan,
        "actor": application.actor,
        "attestation": application.attestation_id,
        "run": application.run_id,
        "applied_at": application.applied_at.isoformat(),
        "destroyed": [disposed_document(one) for one in applied.targets],
        "unfinished": [
            {"materialization": materialization, "problem": problem}
            for materialization, problem in applied.unfinished
        ],
    }


def disposed_document(disposed: DisposedTarget) -> dict[str, object]:
    """Return one object that a plan destroyed."""
    return {
        "kind": str(disposed.kind),
        "id": disposed.subject,
        "datasource": disposed.datasource,
        "class": str(disposed.retention_class),
        "action": str(disposed.action),
        "state_before": disposed.state_before,
        "plan": disposed.plan,
        "disposed_at": disposed.disposed_at.isoformat(),
    }


def difference_document(
    earlier: RetentionPlan, later: RetentionPlan, difference: PlanDifference
) -> dict[str, object]:
    """Return how a later plan differs from an earlier one."""
    return {
        "earlier": earlier.hash,
        "later": later.hash,
        "added": [one.document() for one in difference.added],
        "removed": [one.document() for one in difference.removed],
        "changed": [
            {"before": before.document(), "after": after.document()}
            for before, after in difference.changed
        ],
        "policies": list(difference.policies),
    }


def explanation_document(explained: Explanation) -> dict[str, object]:
    """Return why something is due or is not."""
    candidate, policy, due = explained.candidate, explained.policy, explained.eligible_at
    return {
        "kind": str(candidate.kind),
        "id": candidate.id,
        "datasource": candidate.datasource,
        "class": str(candidate.retention_class),
        "created_at": candidate.created_at.isoformat(),
        "as_of": explained.as_of.isoformat(),
        "policy": policy and {"version": policy.version, "hash": policy.hash},
        "eligible_at": due and due.isoformat(),
        "due": explained.is_due,
        "blockers": [one.document() for one in candidate.blockers],
        "would_be_destroyed": explained.would_be_destroyed,
        "why": list(explained.sentences()),
    }
