"""What people look at before they decide: what waits, and one stage as an actor may see it.

Reading only, one unit of work for one view. Nothing is decided from a view: deciding checks all of
it again, under locks.

Source: SPEC sections 5 (counts and rows), 7 and 17.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from datasource_governance.domain.actor import (
    UNATTESTED,
    ActorId,
    Grant,
    Role,
    authority,
    may_read,
)
from datasource_governance.domain.appraisal import StoredScore, stored_score
from datasource_governance.domain.approval import Decision, Quorum, check_may_decide, subject_of
from datasource_governance.domain.approval_policy import ApprovalPolicy
from datasource_governance.domain.canonical import Json, Sha256, load_object
from datasource_governance.domain.materialization import Materialization
from datasource_governance.domain.policy_version import PolicyKind, PolicySource
from datasource_governance.domain.publication import Publication
from datasource_governance.domain.stage import OPEN_STATES, Stage
from datasource_governance.domain.standing import Standing, standing
from datasource_governance.domain.target import Target
from datasource_governance.errors import GuardError
from datasource_governance.ports import UnitOfWork
from datasource_governance.services.approval import approval_policy_of, tally_at

PAGE = 50
"""So many waiting stages are looked at together."""
COUNTS = frozenset({"affected", "rows", "truncated"})
"""What a stored validation tells of a rule beside the verdict; for stewards only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A stage at one instant of the database's clock, for one actor.

    `quorum` is None where no approval is required, `standing` where the stage is closed.
    `is_visible`: the actor has a role over the datasource; `is_detailed`: one as steward, so counts
    and row numbers may be shown. `refusal` is what a decision by the actor would be answered with,
    None where it would be recorded. Decisions carry their reasons, which are shown to nobody.
    `publication` is the one that waits in the stage, if it is one.
    """

    at: datetime
    stage: Stage
    target: Target
    quality_version: str | None
    approval_policy: ApprovalPolicy | None
    decisions: Sequence[Decision]
    quorum: Quorum | None
    standing: Standing | None
    materialization: Materialization | None
    publication: Publication | None
    is_visible: bool
    is_detailed: bool
    refusal: str | None

    def validation(self) -> dict[str, Json]:
        """Return the stored validation as far as the actor may see it."""
        document = validation_document(self.stage)
        return document if self.is_detailed else without_counts(document)


def score_of(stage: Stage) -> StoredScore | None:
    """Return the score of a stage; without a platform manifest there is none."""
    return stored_score(validation_document(stage))


def validation_document(stage: Stage) -> dict[str, Json]:
    """Return the validation stored with a stage, with counts and row numbers."""
    return load_object(stage.validation)


def without_counts(validation: Mapping[str, Json]) -> dict[str, Json]:
    """Return a validation without affected counts and row numbers of its rules."""
    rules = validation["rules"]
    return {
        **validation,
        "rules": [
            {name: value for name, value in rule.items() if name not in COUNTS}
            for rule in (rules if isinstance(rules, list) else [])
            if isinstance(rule, dict)
        ],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingStage:
    """One stage that awaits approval; `is_decidable` by the actor who looks, now."""

    stage: Stage
    quorum: Quorum | None
    standing: Standing
    is_decidable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Stages that await approval, newest first; `older` is where the next older ones begin."""

    at: datetime
    stages: Sequence[WaitingStage]
    older: str | None


class _Reader:
    """One actor looking, with what every stage is held against, read once."""

    def __init__(self, work: UnitOfWork, actor: ActorId) -> None:
        self.now = work.now()
        self.grants = work.authority.grants()
        self.actor = actor
        self._work = work
        self._policies: dict[tuple[str, Sha256 | None], ApprovalPolicy | None] = {}

    def policy(self, stage: Stage) -> ApprovalPolicy | None:
        bound = (stage.datasource, stage.approval_policy_hash)
        if bound not in self._policies:
            self._policies[bound] = approval_policy_of(self._work, stage)
        return self._policies[bound]

    def quorum(self, stage: Stage, decisions: Collection[Decision]) -> Quorum | None:
        policy = self.policy(stage)
        if policy is None or not stage.approval_required:
            return None
        return tally_at(self._work, stage, policy, decisions, self.grants, self.now)

    def standing(
        self,
        stage: Stage,
        target: Target,
        decisions: Collection[Decision],
        quorum: Quorum | None,
    ) -> Standing:
        subject = subject_of(stage, self._work.tenant)
        return standing(stage, target, decisions, subject=subject, quorum=quorum, now=self.now)

    def refusal(self, stage: Stage, target: Target, decisions: Collection[Decision]) -> str | None:
        """Return what a decision by the actor would be answered with, in the service's order."""
        try:
            authority(self.grants, self.actor, Role.APPROVER, stage.datasource)
            check_may_decide(
                self.actor,
                stage,
                target=target,
                policy=self.policy(stage),
                earlier=decisions,
                now=self.now,
            )
        except GuardError as error:
            return str(error)
        return None


def review_stage(work: UnitOfWork, stage_id: str, actor: ActorId = UNATTESTED) -> Review:
    """Return a stage as an actor may see it; without one, as nobody in particular does.

    Whoever shows it heeds `is_visible`: here a stage is found by everybody.

    Raises:
        NotFoundError: for an unknown stage.
    """
    with work:
        stage = work.stages.get(stage_id)
        target = work.datasources.get(stage.datasource, stage.partition)
        quality = work.datasources.policy(
            stage.datasource,
            PolicyKind.QUALITY,
            stage.quality_policy_hash,
            PolicySource(stage.policy_source),
        )
        decisions = work.decisions.about(stage.id)
        reader = _Reader(work, actor)
        quorum = reader.quorum(stage, decisions)
        is_open = stage.state in OPEN_STATES
        return Review(
            at=reader.now,
            stage=stage,
            target=target,
            quality_version=quality.version,
            approval_policy=reader.policy(stage),
            decisions=decisions,
            quorum=quorum,
            standing=reader.standing(stage, target, decisions, quorum) if is_open else None,
            materialization=work.materializations.of_stage(stage.id),
            publication=work.publications.get(stage.publication) if stage.publication else None,
            is_visible=may_read(reader.grants, actor, stage.datasource),
            is_detailed=_is_steward(reader.grants, actor, stage.datasource),
            refusal=reader.refusal(stage, target, decisions),
        )


def list_waiting(
    work: UnitOfWork, actor: ActorId, *, before: str | None = None, limit: int = PAGE
) -> Waiting:
    """Return what awaits approval in the datasources that an actor may see, newest first.

    `before` is the last stage of the page that was seen. One page is loaded, however many wait.

    Raises:
        NotFoundError: when there is no stage `before`.
    """
    with work:
        reader = _Reader(work, actor)
        targets = {
            target.datasource: target
            for target in work.datasources.list()
            if may_read(reader.grants, actor, target.datasource)
        }
        place = work.stages.get(before) if before else None
        found = work.stages.awaiting_approval(targets.keys(), before=place, limit=limit + 1)
        shown = found[:limit]
        decisions = _by_stage(work.decisions.about_any([stage.id for stage in shown]))
        return Waiting(
            at=reader.now,
            stages=[
                _waiting(reader, stage, _target(work, targets, stage), decisions[stage.id])
                for stage in shown
            ],
            older=shown[-1].id if len(found) > limit else None,
        )


def _target(work: UnitOfWork, targets: Mapping[str, Target], stage: Stage) -> Target:
    """Return what a stage is for; the targets that were read are those without a partition."""
    if stage.partition:
        return work.datasources.get(stage.datasource, stage.partition)
    return targets[stage.datasource]


def _waiting(
    reader: _Reader, stage: Stage, target: Target, decisions: Sequence[Decision]
) -> WaitingStage:
    quorum = reader.quorum(stage, decisions)
    return WaitingStage(
        stage=stage,
        quorum=quorum,
        standing=reader.standing(stage, target, decisions, quorum),
        is_decidable=reader.refusal(stage, target, decisions) is None,
    )


def _by_stage(decisions: Iterable[Decision]) -> Mapping[str, list[Decision]]:
    found: dict[str, list[Decision]] = defaultdict(list)
    for decision in decisions:
        found[decision.subject.stage].append(decision)
    return found


def _is_steward(grants: Iterable[Grant], actor: ActorId, datasource: str) -> bool:
    return any(grant.actor == actor and grant.covers(Role.STEWARD, datasource) for grant in grants)
