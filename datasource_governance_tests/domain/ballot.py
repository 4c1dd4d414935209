"""A vote about one stage, by the domain alone: what the services do, without a database."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from datasource_governance.domain.actor import (
    SYSTEM,
    UNATTESTED,
    ActorId,
    Grant,
    Role,
    authority,
    canonical_principal,
)
from datasource_governance.domain.approval import (
    Decision,
    DecisionRequest,
    Quorum,
    Verdict,
    decide,
    subject_of,
    tally,
)
from datasource_governance.domain.materialization import check_promotable
from datasource_governance.domain.stage import StageState
from datasource_governance.errors import GuardError
from datasource_governance_tests.domain.lifecycle import (
    CREATOR,
    MIDDAY,
    TENANT,
    policy,
    stage,
    target,
)

APPROVERS = tuple(f"approver-{number}" for number in range(1, 7))
OBJECTOR = "objector"


@dataclass
class Ballot:
    """Begins at midday; `refused` are the codes of refused decisions. Everybody has a grant.

    `creator` None: nobody is proven to have made the stage.
    """

    required: int = 1
    separate: bool = True
    hours: int | None = 1
    creator: str | None = CREATOR
    now: datetime = MIDDAY
    decisions: list[Decision] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.policy = policy(
            required_approvals=self.required,
            separation_of_duties=self.separate,
            expires_after_hours=self.hours,
        )
        self.stage = stage(
            creator=UNATTESTED if self.creator is None else ActorId(self.creator),
            approval_policy_hash=self.policy.hash,
        )
        self.target = target(approval_policy_hash=self.policy.hash)
        self.grants = {}
        for name in (*APPROVERS, CREATOR, OBJECTOR):
            self.give(name)

    def give(self, name: str, datasource: str | None = None) -> None:
        actor = ActorId(name)
        self.grants[actor] = Grant(
            id=f"grant-of-{name}",
            actor=actor,
            role=Role.APPROVER,
            datasource=datasource,
            attestation_id=None,
            granted_at=MIDDAY,
        )

    def withdraw(self, name: str) -> None:
        self.grants.pop(ActorId(name), None)

    def wait(self, duration: timedelta) -> None:
        self.now += duration

    def govern(self, **changes) -> None:
        """Change what is in force: policies, or what is current."""
        self.target = replace(self.target, **changes)

    def become(self, state: StageState) -> None:
        self.stage = replace(self.stage, state=state)

    def approve(self, *names: str, **how) -> None:
        for name in names:
            self._decide(name, Verdict.APPROVE, **how)

    def reject(self, name: str = OBJECTOR) -> None:
        self._decide(name, Verdict.REJECT)

    def _decide(self, name, verdict, *, key="first", reason="checked", **reviewed) -> None:
        """Decide under a name in any spelling, having `reviewed` other hashes than there are."""
        number = len(self.decisions) + len(self.refused)
        try:
            actor = canonical_principal(name)
            grant = authority(self.grants.values(), actor, Role.APPROVER, self.stage.datasource)
            made = decide(
                DecisionRequest(
                    id=f"decision-{number}",
                    verdict=verdict,
                    actor=actor,
                    grant_id=grant.id,
                    reason=reason,
                    attestation_id=f"{key}-key-of-{name}-{number}",
                    subject=replace(subject_of(self.stage, TENANT), **reviewed),
                ),
                self.stage,
                target=self.target,
                policy=self.policy,
                earlier=self.decisions,
                tenant=TENANT,
                now=self.now,
            )
        except GuardError as refusal:
            self.refused.append(refusal.code)
            return
        self.decisions.append(made)
        if verdict is Verdict.REJECT:
            self.become(StageState.REJECTED)

    @property
    def quorum(self) -> Quorum:
        """Where the vote stands now."""
        return tally(
            self.policy,
            subject_of(self.stage, TENANT),
            self.decisions,
            creator=self.stage.creator,
            authorised=frozenset(
                grant.actor
                for grant in self.grants.values()
                if grant.covers(Role.APPROVER, self.stage.datasource)
            ),
            now=self.now,
        )

    @property
    def obstacle(self) -> str | None:
        """The code with which promoting is refused now, None where it is not."""
        try:
            check_promotable(self.stage, self.target, quorum=self.quorum, actor=SYSTEM)
        except GuardError as refusal:
            return refusal.code
        return None
