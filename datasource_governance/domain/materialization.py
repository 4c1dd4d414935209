"""Immutable revisions of a datasource and the one decision that makes one current.

Source: SPEC sections 1 ("Materialization") and 8; acceptance decision APPROVAL_BINDING.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from datasource_governance.domain.actor import SYSTEM, ActorId
from datasource_governance.domain.approval import Quorum
from datasource_governance.domain.canonical import (
    Json,
    Sha256,
    canonical_bytes,
    load_canonical,
    load_object,
)
from datasource_governance.domain.disposition import DisposedTarget
from datasource_governance.domain.evidence import Entry
from datasource_governance.domain.stage import Stage, StageState, check_live
from datasource_governance.domain.target import Target
from datasource_governance.domain.validation import Outcome
from datasource_governance.errors import GuardError

PROVENANCE_FORMAT = "datasource_governance/provenance/v1"


class Disposition(StrEnum):
    """Whether the payload is still there. Schema, provenance and evidence always are."""

    RETAINED = "retained"
    PURGING = "purging"
    PURGED = "purged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Materialization:
    """What a stage or a publication became. `provenance` are the canonical bytes of how it did.

    It is of exactly one of the two. `revision` is its number among those that became current, None
    for one that a publication is reviewed for. `artifact` is the reference, in canonical bytes, to
    a payload that is not kept inline.
    """

    id: str
    datasource: str
    stage: str | None
    revision: int | None
    schema: bytes
    payload_fingerprint: Sha256
    payload_sha256: Sha256
    row_count: int
    byte_count: int
    provenance: bytes
    created_by: ActorId
    created_at: datetime
    disposition: Disposition = Disposition.RETAINED
    publication: str | None = None
    partition: str = ""
    artifact: bytes | None = None


@dataclass(frozen=True, slots=True)
class Promoter:
    """Who promotes, and the attestation that proves it. `system` has none.

    `run_id` is the Dagster run in which that happens, if it is one.
    """

    actor: ActorId = SYSTEM
    attestation_id: str | None = None
    run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """What promoting a stage gave: the materialization, and whether this call made it."""

    materialization: Materialization
    created: bool


def check_promotable(
    stage: Stage,
    target: Target,
    *,
    quorum: Quorum | None,
    actor: ActorId,
    disposed: DisposedTarget | None = None,
) -> None:
    """Refuse a promotion for which not every guard holds.

    `quorum` is None where approval is not required; `disposed` tells what deleted the stage.
    `system` promotes only what a quorum approved, or a ready stage with nothing to review of a
    datasource that declares `promote: automatic`.

    Raises:
        GuardError: `stage_blocked`, `stage_rejected`, `stage_outdated`, `quorum_not_met`,
            `not_authorised`.
    """
    if stage.state is StageState.DELETED:
        raise _deleted(stage, disposed)
    if stage.state is StageState.FAILED:
        raise GuardError(
            f"stage {stage.id} is failed and can never be promoted; correct the delivery and "
            "create a new stage",
            code="stage_blocked",
            stage=stage.id,
        )
    if stage.state is StageState.REJECTED:
        raise GuardError(
            f"stage {stage.id} was rejected; create a new stage",
            code="stage_rejected",
            stage=stage.id,
        )
    check_live(stage, target)
    if stage.approval_required and (quorum is None or not quorum.met):
        missing = quorum.missing if quorum else 1
        raise GuardError(
            f"stage {stage.id} needs {missing} more approval(s) that hold now",
            code="quorum_not_met",
            stage=stage.id,
            missing=missing,
        )
    if actor == SYSTEM and quorum is None and not promotes_by_itself(stage, target):
        raise GuardError(
            f"stage {stage.id} is ready and waits for an operator: promote {stage.id}",
            code="not_authorised",
            stage=stage.id,
        )


def _deleted(stage: Stage, disposed: DisposedTarget | None) -> GuardError:
    under = f" at {disposed.disposed_at.isoformat()} under plan {disposed.plan}" if disposed else ""
    return GuardError(
        f"stage {stage.id} was deleted{under}, as its retention policy says, and can never be "
        "promoted; deliver the data again and create a new stage",
        code="stage_blocked",
        stage=stage.id,
        plan=disposed and disposed.plan,
    )


def promotes_by_itself(stage: Stage, target: Target) -> bool:
    """Tell whether a stage needs no person: `promote: automatic` and nothing to review."""
    return (
        target.promotion == "automatic"
        and not stage.approval_required
        and stage.state is StageState.READY
        and stage.outcome is Outcome.READY
    )


def materialize(  # noqa: PLR0913 - the facts of a promotion, all by name
    materialization_id: str,
    stage: Stage,
    *,
    target: Target,
    tenant: str,
    quorum: Quorum | None,
    segment: Sequence[Entry],
    promoter: Promoter,
    now: datetime,
) -> Materialization:
    """Return the materialization that a stage becomes, with its complete provenance."""
    approval: object = "not required" if quorum is None else quorum.document()
    provenance = {
        "format": PROVENANCE_FORMAT,
        "datasource": stage.datasource,
        "base": stage.base,
        "stage": {
            "id": stage.id,
            "fingerprint": stage.fingerprint(tenant),
            "creator": stage.creator,
            "attestation": stage.attestation_id,
            "delivery_sha256": stage.delivery_sha256,
            "created_at": stage.created_at.isoformat(),
            **({} if stage.publication is None else {"publication": stage.publication}),
        },
        "policies": {
            "quality": stage.quality_policy_hash,
            "approval": stage.approval_policy_hash,
            "source": stage.policy_source,
        },
        "validation": load_canonical(stage.validation),
        "validation_hash": stage.validation_hash,
        "approval": approval,
        "evidence": [entry.document() for entry in segment],
        "promoted_by": promoter.actor,
        "promotion_attestation": promoter.attestation_id,
        "promoted_at": now.isoformat(),
    }
    return Materialization(
        id=materialization_id,
        datasource=stage.datasource,
        stage=stage.id,
        revision=target.revision + 1,
        schema=stage.schema,
        payload_fingerprint=stage.payload_fingerprint,
        payload_sha256=stage.payload_sha256,
        row_count=stage.row_count,
        byte_count=stage.byte_count,
        provenance=canonical_bytes(provenance),
        created_by=promoter.actor,
        created_at=now,
        partition=stage.partition,
        artifact=stage.artifact,
    )


def provenance_of(materialization: Materialization) -> dict[str, Json]:
    """Return the provenance as a JSON object."""
    return load_object(materialization.provenance)
