"""Plan what policy makes due, and destroy what a person says of an unchanged plan.

Planning reads one snapshot and destroys nothing. Applying is the only caller of what destroys, and
one transaction: it computes the plan again for its own instant, with every datasource locked that
holds and transitions lock, too. The objects of artifacts follow when it is committed.

Source: SPEC section 12; facts 3.7, 4.6, 4.7, 7.10 and T-26.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby

from datasource_governance.domain.actor import SYSTEM, ActorId, Role, may_read
from datasource_governance.domain.attestation import Action, Attestation
from datasource_governance.domain.canonical import Json
from datasource_governance.domain.disposition import (
    AlreadyAppliedError,
    Application,
    Applied,
    DisposedTarget,
)
from datasource_governance.domain.evidence import TENANT_CHAIN
from datasource_governance.domain.launch import RunLaunch
from datasource_governance.domain.plan_admission import admit, unknown_plan
from datasource_governance.domain.policy_version import PolicyVersion, recorded_retention_policy
from datasource_governance.domain.retention import (
    Explanation,
    GoverningPolicy,
    RetentionClass,
    cutoff,
    explained,
)
from datasource_governance.domain.retention_plan import (
    PlannedTarget,
    RetentionPlan,
    make_plan,
    targets_hash,
)
from datasource_governance.domain.subjects import apply_retention_subject
from datasource_governance.domain.target import Target
from datasource_governance.errors import GuardError, NotFoundError
from datasource_governance.ports import UnitOfWork
from datasource_governance.ports.artifacts import ArtifactBackend
from datasource_governance.services.attesting import attest, authorise
from datasource_governance.services.launching import launcher_of
from datasource_governance.services.purging import finish_purging
from datasource_governance.services.recording import record
from datasource_governance.services.separating import check_separated

_TOLD_TOGETHER = 500
"""So many targets at most are told of in one link of evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """Who makes a plan, of one datasource or of all (None). `system` does for the schedule.

    Whoever is proved to have launched the run `launch` for that makes it instead of `actor`.
    """

    actor: ActorId
    datasource: str | None = None
    launch: RunLaunch | None = None


def plan_retention(work: UnitOfWork, request: PlanRequest) -> RetentionPlan:
    """Return what is due now, with its blockers, and keep it so that it can be reviewed.

    It is read from one snapshot. The same state at the same instant gives the same plan, which is
    kept once.

    Raises:
        NotFoundError: for an unknown datasource.
        GuardError: `not_authorised` for who is no operator, or `evidence_chain_broken`.
    """
    with work.snapshot():
        if request.datasource is not None:
            work.datasources.get(request.datasource)
        planner = _planner(work, request)
        if planner != SYSTEM:
            authorise(work, planner, Role.OPERATOR, request.datasource)
        governing = work.retention.governing(request.datasource)
        plan = _present(work, request.datasource, work.now(), governing)
    with work:
        work.retention.lock()
        if work.retention.plan(plan.hash) is None:
            _keep(work, plan, planner)
            work.commit()
    return plan


def _planner(work: UnitOfWork, request: PlanRequest) -> ActorId:
    launch = request.launch
    by = launcher_of(work, launch) if launch and launch.plans_retention() else None
    return by.actor if by else request.actor


def _present(
    work: UnitOfWork,
    datasource: str | None,
    as_of: datetime,
    governing: Sequence[tuple[Target, PolicyVersion]],
) -> RetentionPlan:
    policies = [_governing(target, version) for target, version in governing]
    candidates = (
        candidate
        for one in policies
        for retention_class in RetentionClass
        if (until := cutoff(one.policy, retention_class, as_of)) is not None
        for candidate in work.retention.candidates(one.datasource, retention_class, until)
    )
    return make_plan(work.tenant, datasource, as_of, policies, candidates)


def _governing(target: Target, version: PolicyVersion) -> GoverningPolicy:
    return GoverningPolicy(datasource=target.datasource, policy=recorded_retention_policy(version))


def _keep(work: UnitOfWork, plan: RetentionPlan, actor: ActorId) -> None:
    now = work.now()
    work.retention.add_plan(plan, actor, now)
    facts = {
        "plan": plan.hash,
        "datasource": plan.datasource,
        "as_of": plan.as_of.isoformat(),
        **plan.totals.document(),
        "actor": actor,
    }
    work.evidence.append(
        TENANT_CHAIN, kind="retention.planned", subject=plan.hash, facts=facts, at=now
    )


def explain(work: UnitOfWork, subject: str, actor: ActorId) -> Explanation | DisposedTarget:
    """Return why a stage or materialization is due now or is not; or what destroyed it.

    Raises:
        NotFoundError: there is none of this id.
        GuardError: `not_authorised` for an actor without a role over its datasource.
    """
    with work.snapshot():
        found = work.retention.candidate(subject) or work.retention.disposition_of(subject)
        if found is None:
            raise NotFoundError(
                f"there is no stage or materialization {subject!r} in tenant {work.tenant!r}"
            )
        if not may_read(work.authority.grants(actor), actor, found.datasource):
            raise GuardError(
                f"actor {actor!r} has no role over datasource {found.datasource!r}",
                code="not_authorised",
                actor=actor,
            )
        if isinstance(found, DisposedTarget):
            return found
        governing = [_governing(*one) for one in work.retention.governing(found.datasource)]
        return explained(found, governing[0] if governing else None, work.now())


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyRequest:
    """A plan to apply, by its hash, and to which targets; None: to all that are not blocked.

    An administrator signs for just this, or is proved to have launched the run `launch`.
    """

    plan: str
    targets: Collection[str] | None = None
    attestation: Attestation | None = None
    launch: RunLaunch | None = None


def apply_retention(
    work: UnitOfWork,
    artifacts: ArtifactBackend,
    request: ApplyRequest,
    progress: Callable[[int], None] | None = None,
) -> Applied:
    """Destroy targets of a plan: all that are asked for, or nothing.

    An object that its store does not delete leaves its materialization `purging` and is named in
    the result; it is tried again when the plan is applied again. `progress` is told of objects that
    were tried.

    Raises:
        AlreadyAppliedError: the plan was applied before; it carries the first result.
        GuardError: the codes of `admit`, `not_authorised`, `changed_policy_recently`, or an
            attestation's; nothing was destroyed.
    """
    with work:
        work.retention.lock()
        stored = work.retention.plan(request.plan)
        if stored is None:
            raise unknown_plan(request.plan)
        first = work.retention.application(request.plan)
        if first is None:
            done = _apply(work, stored.plan, request)
            work.commit()
        else:
            disposed = tuple(work.retention.dispositions(request.plan))
            done = Applied(application=first, targets=disposed)
    done = replace(done, unfinished=finish_purging(work, artifacts, request.plan, progress))
    if first is not None:
        raise AlreadyAppliedError(done)
    return done


def _apply(work: UnitOfWork, plan: RetentionPlan, request: ApplyRequest) -> Applied:
    work.authority.hold()
    governing = work.retention.governing_for_update(plan.datasource)
    # One instant for all of it, read after the locks.
    now = work.now()
    actor, attestation_id = _applier(work, request, now)
    present = _present(work, plan.datasource, plan.as_of, governing)
    targets = admit(plan, present, request.targets, now)
    grants = _authorised(work, actor, targets, now)
    application = Application(
        plan=plan.hash,
        actor=actor,
        attestation_id=attestation_id,
        run_id=request.launch.run_id if request.launch else None,
        targets=targets_hash(target.id for target in targets),
        applied_at=now,
    )
    disposed = [one for chunk in _chunks(targets) for one in _dispose(work, application, chunk)]
    work.retention.add_application(application)
    facts = {
        **_facts(application, targets),
        "targets": len(targets),
        "targets_hash": application.targets,
        "authority": grants,
    }
    work.evidence.append(
        TENANT_CHAIN, kind="retention.applied", subject=plan.hash, facts=facts, at=now
    )
    return Applied(application=application, targets=tuple(disposed))


def _applier(work: UnitOfWork, request: ApplyRequest, now: datetime) -> tuple[ActorId, str]:
    """Return the person who applies, and the attestation that proves it."""
    launch = request.launch
    if request.attestation is not None:
        subject = apply_retention_subject(request.plan, request.targets)
        actor = attest(
            work, request.attestation, action=Action.RETENTION_APPLY, subject=subject, now=now
        )
        return actor, request.attestation.id
    if launch and launch.applies_retention() and (by := launcher_of(work, launch)):
        return by.actor, by.attestation_id
    raise GuardError(
        "nobody is proved to apply the plan; an administrator does: retention apply, or a run "
        "launched in the governed webserver",
        code="not_authorised",
    )


def _authorised(
    work: UnitOfWork, actor: ActorId, targets: Sequence[PlannedTarget], now: datetime
) -> list[str]:
    """Return the grants under which an actor may destroy targets, of every datasource of them."""
    grants = []
    for name in sorted({target.datasource for target in targets}):
        grants.append(authorise(work, actor, Role.ADMINISTRATOR, name).id)
        check_separated(work, actor, name, now)
    return sorted(set(grants))


def _chunks(targets: Sequence[PlannedTarget]) -> Iterator[Sequence[PlannedTarget]]:
    """Yield targets, which are in order of datasource, in parts that are told of together."""
    for _, of_one in groupby(targets, key=lambda target: target.datasource):
        together = list(of_one)
        for first in range(0, len(together), _TOLD_TOGETHER):
            yield together[first : first + _TOLD_TOGETHER]


def _dispose(
    work: UnitOfWork, application: Application, targets: Sequence[PlannedTarget]
) -> Sequence[DisposedTarget]:
    """Destroy some targets of one datasource, and tell of it."""
    disposed = work.retention.dispose(targets, application.plan, application.applied_at)
    named = [{"kind": str(target.kind), "id": target.id} for target in targets]
    record(
        work,
        targets[0].datasource,
        "retention.applied",
        subject=application.plan,
        facts={**_facts(application, targets), "targets": named},
        at=application.applied_at,
    )
    return disposed


def _facts(application: Application, targets: Sequence[PlannedTarget]) -> dict[str, Json]:
    return {
        "plan": application.plan,
        "actor": application.actor,
        "attestation": application.attestation_id,
        "run": application.run_id,
        "rows": sum(target.rows for target in targets),
        "bytes": sum(target.bytes for target in targets),
    }
