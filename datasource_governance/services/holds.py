"""Place and release legal holds, and pin materializations as frozen evidence.

Each locks the datasource that applying a retention plan locks, so that one of the two comes first
as a whole.

Source: SPEC sections 12 and 17; facts 2.10 and 4.8.
"""

from dataclasses import dataclass, replace
from typing import assert_never

from datasource_governance.domain.actor import Role
from datasource_governance.domain.approval import check_reason
from datasource_governance.domain.attestation import Action, Attestation, reason_hash
from datasource_governance.domain.canonical import Json
from datasource_governance.domain.hold import Freeze, Hold, HoldRelease, HoldScope, check_release
from datasource_governance.domain.subjects import freeze_subject, hold_subject, release_subject
from datasource_governance.errors import GuardError, NotFoundError
from datasource_governance.ports import UnitOfWork
from datasource_governance.services.attesting import attest, authorise
from datasource_governance.services.recording import record


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldRequest:
    """A hold to place, signed by an operator. Of a datasource, `subject` is the datasource."""

    datasource: str
    scope: HoldScope
    subject: str
    reason: str
    attestation: Attestation


def place_hold(work: UnitOfWork, request: HoldRequest) -> Hold:
    """Place a hold. Any number may be on one thing.

    Raises:
        NotFoundError: for a datasource, or a stage or materialization of it, that does not exist.
        GuardError: `reason_missing`, `already_disposed`, `not_authorised` or an attestation's.
    """
    check_reason(request.reason, "a hold")
    with work:
        work.datasources.get_for_update(request.datasource)
        _check_there(work, request.datasource, request.scope, request.subject)
        now = work.now()
        actor = attest(
            work,
            request.attestation,
            action=Action.HOLD_PLACE,
            subject=hold_subject(
                request.datasource, request.scope, request.subject, request.reason
            ),
            now=now,
        )
        grant = authorise(work, actor, Role.OPERATOR, request.datasource)
        hold = Hold(
            id=work.new_id(),
            datasource=request.datasource,
            scope=request.scope,
            subject=request.subject,
            reason=request.reason,
            actor=actor,
            grant_id=grant.id,
            attestation_id=request.attestation.id,
            placed_at=now,
        )
        work.holds.place(hold)
        record(work, hold.datasource, "hold.placed", subject=hold.id, facts=_facts(hold), at=now)
        work.commit()
    return hold


def _check_there(work: UnitOfWork, datasource: str, scope: HoldScope, subject: str) -> None:
    """Refuse what is not the datasource's, and what was destroyed already.

    Raises:
        NotFoundError: there is none of this id.
        GuardError: code `already_disposed`, naming the plan.
    """
    if not _is_known(work, datasource, scope, subject):
        raise NotFoundError(f"there is no {scope} {subject!r} of datasource {datasource!r}")
    disposed = work.retention.disposition_of(subject)
    if disposed is not None:
        raise GuardError(
            f"{scope} {subject} was destroyed at {disposed.disposed_at.isoformat()} under plan "
            f"{disposed.plan}; there is nothing left to keep",
            code="already_disposed",
            subject=subject,
            plan=disposed.plan,
        )


def _is_known(work: UnitOfWork, datasource: str, scope: HoldScope, subject: str) -> bool:
    match scope:
        case HoldScope.DATASOURCE:
            return subject == datasource
        case HoldScope.STAGE:
            return subject in work.stages.known(datasource, [subject])
        case HoldScope.MATERIALIZATION:
            return subject in work.materializations.known(datasource, [subject])
        case _:
            assert_never(scope)


def _facts(hold: Hold) -> dict[str, Json]:
    return {
        "hold": hold.id,
        "scope": str(hold.scope),
        "held": hold.subject,
        "reason_hash": reason_hash(hold.reason),
        "actor": hold.actor,
        "authority": hold.grant_id,
        "attestation": hold.attestation_id,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRequest:
    """A hold to release, signed by an administrator who did not place it."""

    hold: str
    reason: str
    attestation: Attestation


def release_hold(work: UnitOfWork, request: ReleaseRequest) -> Hold:
    """Release a hold, and return it as it now is.

    Raises:
        NotFoundError: for an unknown hold.
        GuardError: `reason_missing`, `hold_released`, `second_actor_required`, `not_authorised` or
            an attestation's.
    """
    check_reason(request.reason, "a release")
    with work:
        found = work.holds.get(request.hold)
    with work:
        work.datasources.get_for_update(found.datasource)
        hold = work.holds.get(request.hold)
        now = work.now()
        actor = attest(
            work,
            request.attestation,
            action=Action.HOLD_RELEASE,
            subject=release_subject(hold.id, request.reason),
            now=now,
        )
        check_release(hold, actor)
        grant = authorise(work, actor, Role.ADMINISTRATOR, hold.datasource)
        release = HoldRelease(
            hold=hold.id,
            actor=actor,
            grant_id=grant.id,
            reason=request.reason,
            attestation_id=request.attestation.id,
            released_at=now,
        )
        work.holds.release(release)
        facts = {
            **_facts(hold),
            "placed_by": hold.actor,
            "reason_hash": reason_hash(release.reason),
            "actor": release.actor,
            "authority": release.grant_id,
            "attestation": release.attestation_id,
        }
        record(work, hold.datasource, "hold.released", subject=hold.id, facts=facts, at=now)
        work.commit()
    return replace(hold, released=release)


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeRequest:
    """A materialization to be kept as frozen evidence, signed by an operator."""

    materialization: str
    reason: str
    attestation: Attestation


def freeze(work: UnitOfWork, request: FreezeRequest) -> Freeze:
    """Pin a materialization as frozen evidence, for ever. Doing it again returns the first time.

    Raises:
        NotFoundError: for an unknown materialization.
        GuardError: `reason_missing`, `already_disposed`, `not_authorised` or an attestation's.
    """
    check_reason(request.reason, "a freeze")
    with work:
        found = work.materializations.get(request.materialization)
    with work:
        work.datasources.get_for_update(found.datasource)
        _check_there(work, found.datasource, HoldScope.MATERIALIZATION, found.id)
        first = work.holds.frozen(found.id)
        if first is not None:
            return first
        now = work.now()
        actor = attest(
            work,
            request.attestation,
            action=Action.MATERIALIZATION_FREEZE,
            subject=freeze_subject(found.datasource, found.id, request.reason),
            now=now,
        )
        grant = authorise(work, actor, Role.OPERATOR, found.datasource)
        frozen = Freeze(
            materialization=found.id,
            datasource=found.datasource,
            reason=request.reason,
            actor=actor,
            grant_id=grant.id,
            attestation_id=request.attestation.id,
            frozen_at=now,
        )
        work.holds.freeze(frozen)
        _record_freeze(work, frozen)
        work.commit()
    return frozen


def _record_freeze(work: UnitOfWork, frozen: Freeze) -> None:
    facts = {
        "materialization": frozen.materialization,
        "reason_hash": reason_hash(frozen.reason),
        "actor": frozen.actor,
        "authority": frozen.grant_id,
        "attestation": frozen.attestation_id,
    }
    record(
        work,
        frozen.datasource,
        "materialization.frozen",
        subject=frozen.materialization,
        facts=facts,
        at=frozen.frozen_at,
    )
