"""Plan, apply, hold and freeze in a world, each signed by who may."""

from collections.abc import Collection
from datetime import UTC, datetime

import pyarrow as pa

from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.domain.attestation import Action, Attestation
from datasource_governance.domain.disposition import Applied
from datasource_governance.domain.hold import Freeze, Hold, HoldScope
from datasource_governance.domain.materialization import Materialization
from datasource_governance.domain.retention_plan import RetentionPlan
from datasource_governance.domain.subjects import (
    apply_retention_subject,
    freeze_subject,
    hold_subject,
    release_subject,
)
from datasource_governance.ports.artifacts import ArtifactBackend
from datasource_governance.services.holds import (
    FreezeRequest,
    HoldRequest,
    ReleaseRequest,
    freeze,
    place_hold,
    release_hold,
)
from datasource_governance.services.retention import (
    ApplyRequest,
    PlanRequest,
    apply_retention,
    plan_retention,
)
from datasource_governance_tests.postgres import unique_name
from datasource_governance_tests.world import ONE_ROW_AT_LEAST, World

KEEPER = "keeper"
"""The administrator who applies plans and releases holds; `admin` is who declares policies."""
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
NOW = datetime(2024, 6, 30, 12, tzinfo=UTC)
THIRTY_DAYS = {
    "version": "r1",
    "enabled": True,
    "stage_days": 30,
    "materialization_days": 30,
    "frozen_evidence_days": 3650,
}


def admit_keeper(world: World) -> None:
    """Make the keeper known in a world."""
    world.admit(KEEPER, Role.ADMINISTRATOR)


def declare_kept(world: World, retention=THIRTY_DAYS, at: datetime = LONG_AGO, **declared) -> None:
    """Declare a datasource with a retention policy, long before anything is due by it."""
    world.set_clock(at)
    world.declare(ONE_ROW_AT_LEAST, retention=retention, **declared)
    for role in (Role.PRODUCER, Role.STEWARD):
        world.grant(SYSTEM, role, world.datasource)


def stage_at(world: World, at: datetime = LONG_AGO, **stage):
    """Create a stage at an instant."""
    world.set_clock(at)
    return world.stage(**stage)


def publish_at(world: World, at: datetime = LONG_AGO, data=None, **request) -> Materialization:
    """Publish a small table, or what is given, at an instant."""
    world.set_clock(at)
    data = pa.table({"id": [at.toordinal()]}) if data is None else data
    return world.publish(data, unique_name("key"), **request).materialization


def plan_now(
    world: World, datasource: str | None = None, at: datetime = NOW, actor: str = "operator"
) -> RetentionPlan:
    """Plan at an instant; for the world's datasource unless told otherwise."""
    world.set_clock(at)
    request = PlanRequest(actor=actor, datasource=datasource or world.datasource)
    return plan_retention(world.application.work(), request)


def apply_attestation(
    world: World, plan: str, targets: Collection[str] | None = None, actor: str = KEEPER
) -> Attestation:
    """Sign for the application of a plan."""
    return world.signer(actor).attest(
        Action.RETENTION_APPLY, apply_retention_subject(plan, targets)
    )


def apply_plan(
    world: World,
    plan: RetentionPlan | str,
    targets: Collection[str] | None = None,
    actor: str = KEEPER,
    artifacts: ArtifactBackend | None = None,
    **request,
) -> Applied:
    """Apply a plan, signed by an actor for just this, unless the request says otherwise."""
    plan_hash = plan if isinstance(plan, str) else plan.hash
    if not request:
        request["attestation"] = apply_attestation(world, plan_hash, targets, actor)
    application = world.application
    return apply_retention(
        application.work(),
        artifacts or application.artifacts(),
        ApplyRequest(plan=plan_hash, targets=targets, **request),
    )


def hold(
    world: World,
    subject: str | None = None,
    scope: HoldScope = HoldScope.DATASOURCE,
    actor: str = "operator",
    reason: str = "litigation",
) -> Hold:
    """Place a hold, by default on the world's datasource."""
    held = world.datasource if subject is None else subject
    signed = hold_subject(world.datasource, scope, held, reason)
    request = HoldRequest(
        datasource=world.datasource,
        scope=scope,
        subject=held,
        reason=reason,
        attestation=world.signer(actor).attest(Action.HOLD_PLACE, signed),
    )
    return place_hold(world.application.work(), request)


def release(world: World, hold_id: str, actor: str = KEEPER, reason: str = "settled") -> Hold:
    """Release a hold."""
    attestation = world.signer(actor).attest(Action.HOLD_RELEASE, release_subject(hold_id, reason))
    request = ReleaseRequest(hold=hold_id, reason=reason, attestation=attestation)
    return release_hold(world.application.work(), request)


def freeze_as_evidence(
    world: World, materialization: str, actor: str = "operator", reason: str = "an audit"
) -> Freeze:
    """Pin a materialization as frozen evidence."""
    signed = freeze_subject(world.datasource, materialization, reason)
    request = FreezeRequest(
        materialization=materialization,
        reason=reason,
        attestation=world.signer(actor).attest(Action.MATERIALIZATION_FREEZE, signed),
    )
    return freeze(world.application.work(), request)
