"""What waits and stands out, found at a cost that grows with what happened, not with what waits.

Source: SPEC sections 6, 7, 15 ("Sensors run by state") and 18.
"""

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from datasource_governance.domain.actor import Grant
from datasource_governance.domain.approval import Decision, Quorum, subject_of
from datasource_governance.domain.approval_policy import ApprovalPolicy
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.event import EXPIRING
from datasource_governance.domain.evidence import TENANT_CHAIN, Head, datasource_chain
from datasource_governance.domain.stage import OPEN_STATES, Stage, StageState
from datasource_governance.domain.standing import Standing, standing
from datasource_governance.domain.target import Target
from datasource_governance.ports import UnitOfWork
from datasource_governance.services.approval import approval_policy_of, tally_at
from datasource_governance.services.recording import record

_ENTRIES_FOLLOWED = 500
"""So many entries of a chain are followed one by one; after more, the datasource is read anew."""
_ABOUT_ONE_STAGE = frozenset({"stage.created", "stage.decided"})
_ABOUT_NONE = frozenset({"delivery.attested", EXPIRING})
_PREFIX = datasource_chain("")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What stands out at one instant of the database's clock. `standings` are by datasource."""

    at: datetime
    standings: Mapping[str, Sequence[Standing]]


@dataclass(slots=True)
class _Known:
    """What is remembered of a datasource. `turns` is a heap of when stages move by themselves.

    `targets` are the datasource as it stands, by partition of the stages that were looked at.
    """

    head: Head
    targets: dict[str, Target] = field(default_factory=dict)
    standings: dict[str, Standing] = field(default_factory=dict)
    turns: list[tuple[datetime, str]] = field(default_factory=list)

    def keep(self, found: Standing) -> None:
        if found.stands_out:
            self.standings[found.stage] = found
        if found.until is not None:
            heapq.heappush(self.turns, (found.until, found.stage))

    def turned(self, now: datetime) -> set[str]:
        """Return the stages whose turn has come, and forget those turns."""
        found = set()
        while self.turns and self.turns[0][0] <= now:
            found.add(heapq.heappop(self.turns)[1])
        return found


class WaitingStages:
    """Which open stages stand out, remembered and brought up to date.

    Every row that a stage's standing rests on is told to an evidence chain, so what is remembered
    holds while the heads of the chains stand still, except for what expires. It is a memory only:
    without it, or where a chain does not continue the one that was seen, everything is read anew.
    Not for several threads at once.
    """

    def __init__(self) -> None:
        self._authority: Head | None = None
        self._grants: Sequence[Grant] = ()
        self._policies: dict[tuple[str, Sha256 | None], ApprovalPolicy | None] = {}
        self._known: dict[str, _Known] = {}

    def overview(self, work: UnitOfWork) -> Overview:
        """Return what stands out now."""
        with work:
            # Read before anything else: what is written meanwhile is news to the next call.
            heads = work.evidence.heads()
            now = work.now()
            self._read_grants(work, heads.get(TENANT_CHAIN))
            datasources = {
                chain.removeprefix(_PREFIX): head
                for chain, head in heads.items()
                if chain.startswith(_PREFIX)
            }
            for name, head in datasources.items():
                self._catch_up(work, name, head, now)
        return Overview(
            at=now,
            standings={name: [*self._known[name].standings.values()] for name in datasources},
        )

    def _read_grants(self, work: UnitOfWork, authority: Head | None) -> None:
        if authority is not None and authority == self._authority:
            return
        grants = work.authority.grants()
        if grants != self._grants:
            self._known.clear()
        self._grants, self._authority = grants, authority

    def _catch_up(self, work: UnitOfWork, name: str, head: Head, now: datetime) -> None:
        # Forgotten until it is complete again, so that a failure in between loses no news.
        known = self._known.pop(name, None)
        news = None if known is None else _news(work, known.head, head)
        if known is None or news is None:
            self._known[name] = self._read_anew(work, name, head, now)
            return
        self._follow(work, known, news | known.turned(now), now)
        known.head = head
        self._known[name] = known

    def _follow(self, work: UnitOfWork, known: _Known, stages: set[str], now: datetime) -> None:
        for stage_id in sorted(stages):
            known.standings.pop(stage_id, None)
            stage = work.stages.get(stage_id)
            if stage.state in OPEN_STATES:
                decisions = work.decisions.about(stage_id)
                known.keep(self._standing(work, stage, _target(work, known, stage), decisions, now))

    def _read_anew(self, work: UnitOfWork, name: str, head: Head, now: datetime) -> _Known:
        known = _Known(head)
        decisions: dict[str, list[Decision]] = defaultdict(list)
        for decision in work.decisions.about_open(name):
            decisions[decision.subject.stage].append(decision)
        for stage in work.stages.unsettled(name):
            target = _target(work, known, stage)
            known.keep(self._standing(work, stage, target, decisions[stage.id], now))
        return known

    def _standing(
        self,
        work: UnitOfWork,
        stage: Stage,
        target: Target,
        decisions: Sequence[Decision],
        now: datetime,
    ) -> Standing:
        return standing(
            stage,
            target,
            decisions,
            subject=subject_of(stage, work.tenant),
            quorum=self._quorum(work, stage, decisions, now),
            now=now,
        )

    def _quorum(
        self, work: UnitOfWork, stage: Stage, decisions: Sequence[Decision], now: datetime
    ) -> Quorum | None:
        if not decisions or not stage.approval_required:
            return None
        policy = self._policy(work, stage)
        if policy is None:
            return None
        return tally_at(work, stage, policy, decisions, self._grants, now)

    def _policy(self, work: UnitOfWork, stage: Stage) -> ApprovalPolicy | None:
        """Return the policy that a stage is bound to; what a hash stands for never changes."""
        bound = (stage.datasource, stage.approval_policy_hash)
        if bound not in self._policies:
            self._policies[bound] = approval_policy_of(work, stage)
        return self._policies[bound]


def _target(work: UnitOfWork, known: _Known, stage: Stage) -> Target:
    """Return what a stage is for; whatever changes it makes the datasource be read anew."""
    if stage.partition not in known.targets:
        known.targets[stage.partition] = work.datasources.get(stage.datasource, stage.partition)
    return known.targets[stage.partition]


def _news(work: UnitOfWork, seen: Head, head: Head) -> set[str] | None:
    """Return the stages that a chain tells news of; None where more than single stages changed."""
    if head == seen:
        return set()
    entries = work.evidence.since(seen.chain, seen.sequence, _ENTRIES_FOLLOWED + 1)
    is_continued = bool(entries) and entries[0].previous_hash == seen.entry_hash
    kinds = {entry.kind for entry in entries}
    if (
        not is_continued
        or len(entries) > _ENTRIES_FOLLOWED
        or kinds - _ABOUT_ONE_STAGE - _ABOUT_NONE
    ):
        return None
    return {entry.subject for entry in entries if entry.kind in _ABOUT_ONE_STAGE}


def supersede_stage(work: UnitOfWork, stage_id: str) -> bool:
    """Close an open stage whose base is no longer current; tell whether this call did.

    Promotion closes the other open stages itself; this is for whatever else moves the current
    materialization. Any other stage is left as it is, so doing it twice, or too early, is harmless.

    Raises:
        NotFoundError: for an unknown stage.

    Source: SPEC section 6.
    """
    with work:
        found = work.stages.get(stage_id)
        target = work.datasources.get_for_update(found.datasource, found.partition)
        stage = work.stages.get_for_update(stage_id)
        if stage.state not in OPEN_STATES or stage.base == target.current:
            return False
        work.stages.change_state(stage, StageState.SUPERSEDED)
        record(
            work,
            stage.datasource,
            "stage.superseded",
            subject=stage.id,
            facts={
                "stage": stage.id,
                "stage_fingerprint": stage.fingerprint(work.tenant),
                "base": stage.base,
                "current": target.current,
            },
            at=work.now(),
        )
        work.commit()
    return True
