"""A chapter of the demo's story: what would be destroyed, which is nothing yet, and what is held.

Source: SPEC section 12; issue "Retention that deletes only what a reviewed plan says".
"""

from dataclasses import dataclass
from datetime import timedelta

from datasource_governance.composition import Application
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.hold import Hold, HoldScope
from datasource_governance.domain.retention import Explanation
from datasource_governance.domain.retention_plan import RetentionPlan
from datasource_governance.domain.subjects import hold_subject, release_subject
from datasource_governance.services.hold_review import HoldReview, list_holds
from datasource_governance.services.holds import (
    HoldRequest,
    ReleaseRequest,
    place_hold,
    release_hold,
)
from datasource_governance.services.retention import PlanRequest, explain, plan_retention
from datasource_governance.signing import Signer

_REASON = "An audit of last month's register."
_SETTLED = "The audit is over."
_A_YEAR = timedelta(days=364)
"""What was made minutes ago, and is kept for a year, is not due for so long at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """What an operator finds out about a materialization: a plan, and why it is not in it."""

    plan: RetentionPlan
    explanation: Explanation

    @property
    def is_kept_for_a_year(self) -> bool:
        """Whether policy keeps it, and all else, for as long as it says."""
        due = self.explanation.eligible_at
        is_far = due is not None and due - self.explanation.as_of > _A_YEAR
        return is_far and not self.plan.targets


def look_ahead(application: Application, operator: Signer, materialization: str) -> Retained:
    """Plan for everything, and ask of one materialization when it is due."""
    plan = plan_retention(application.work(), PlanRequest(actor=operator.actor))
    found = explain(application.work(), materialization, operator.actor)
    if not isinstance(found, Explanation):
        raise TypeError("nothing was destroyed in this story")
    return Retained(plan=plan, explanation=found)


def hold_it(
    application: Application, operator: Signer, datasource: str, materialization: str
) -> Hold:
    """Place a hold on a materialization."""
    scope = HoldScope.MATERIALIZATION
    subject = hold_subject(datasource, scope, materialization, _REASON)
    request = HoldRequest(
        datasource=datasource,
        scope=scope,
        subject=materialization,
        reason=_REASON,
        attestation=operator.attest(Action.HOLD_PLACE, subject),
    )
    return place_hold(application.work(), request)


def holds_on(application: Application, reader: Signer, datasource: str) -> list[HoldReview]:
    """Return the holds in force of a datasource, as a reader sees them."""
    return list(list_holds(application.work(), reader.actor, datasource))


def let_go(application: Application, actor: Signer, hold: Hold) -> Hold:
    """Release a hold.

    Raises:
        GuardError: when the actor may not, as whoever placed it may not.
    """
    attestation = actor.attest(Action.HOLD_RELEASE, release_subject(hold.id, _SETTLED))
    request = ReleaseRequest(hold=hold.id, reason=_SETTLED, attestation=attestation)
    return release_hold(application.work(), request)
