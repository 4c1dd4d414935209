"""A candidate delivery: its states, its fingerprint and the guards that keep it alive.

    failed | ready | awaiting_approval
    awaiting_approval --reject--> rejected
    ready, awaiting_approval --promote--> promoted
    ready, awaiting_approval --another materialization became current--> superseded
    any of these --a retention plan is applied--> deleted

A quorum changes no state and a policy change writes nothing: while the hashes that a stage is bound
to differ from the target's, deciding and promoting are refused (`stage_outdated`).

Source: SPEC section 6.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from datasource_governance.domain.actor import ActorId
from datasource_governance.domain.approval_policy import ApprovalPolicy
from datasource_governance.domain.artifact import FORMAT as ARTIFACT_FORMAT
from datasource_governance.domain.canonical import Json, Sha256, digest, document_digest
from datasource_governance.domain.policy_version import PolicySource
from datasource_governance.domain.target import Target
from datasource_governance.domain.validation import (
    Outcome,
    Validation,
    validation_hash,
)
from datasource_governance.errors import GuardError


class StageState(StrEnum):
    """Where a stage is in its life."""

    FAILED = "failed"
    READY = "ready"
    AWAITING_APPROVAL = "awaiting_approval"
    REJECTED = "rejected"
    PROMOTED = "promoted"
    SUPERSEDED = "superseded"
    DELETED = "deleted"


OPEN_STATES = frozenset({StageState.READY, StageState.AWAITING_APPROVAL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A candidate delivery, stored with its validation and never edited; only `state` moves.

    `payload_fingerprint` is the content's, `payload_sha256` that of the stored bytes; `base` is the
    materialization that was current when the stage was validated, or None.

    A stage that a producer's output waits in names its `publication`; where the payload is an
    artifact, `artifact` is its reference in canonical bytes, and nothing is kept inline.

    A stage that a refresh made has the hash of its `origin`'s definition.
    """

    id: str
    datasource: str
    creator: ActorId
    attestation_id: str | None
    delivery: str
    delivery_sha256: Sha256
    schema: bytes
    payload_fingerprint: Sha256
    payload_sha256: Sha256
    row_count: int
    byte_count: int
    base: str | None
    quality_policy_hash: Sha256
    approval_policy_hash: Sha256 | None
    approval_required: bool
    policy_source: str
    evaluator_version: str
    outcome: Outcome
    validation: bytes
    validation_hash: Sha256
    created_at: datetime
    state: StageState
    publication: str | None = None
    partition: str = ""
    artifact: bytes | None = None
    origin: Sha256 | None = None

    def fingerprint(self, tenant: str) -> Sha256:
        """Return the digest that identifies what is decided about (SPEC section 6)."""
        return stage_fingerprint(self.identity(tenant))

    def identity(self, tenant: str) -> dict[str, Json]:
        """Return everything that the fingerprint covers, as it travels to an offline signer."""
        return {
            "tenant": tenant,
            "stage": self.id,
            "datasource": self.datasource,
            "schema": self.schema.decode(),
            "payload": self.payload_fingerprint,
            "payload_sha256": self.payload_sha256,
            "row_count": self.row_count,
            "byte_count": self.byte_count,
            "base": self.base,
            "creator": self.creator,
            "quality_policy_hash": self.quality_policy_hash,
            "policy_source": self.policy_source,
            "evaluator_version": self.evaluator_version,
            **self._published(),
        }

    def _published(self) -> dict[str, Json]:
        """Return what only the stage of a publication has."""
        if self.publication is None:
            return {}
        artifact = self.artifact
        return {
            "publication": self.publication,
            "partition": self.partition,
            "artifact_hash": None if artifact is None else digest(ARTIFACT_FORMAT, artifact),
        }


def stage_fingerprint(identity: Mapping[str, Json]) -> Sha256:
    """Return the fingerprint of a stage from what it covers: `Stage.identity`."""
    return document_digest("datasource_governance/stage/v1", identity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What arrived and who is proven to have brought it. `creator` may be `unattested`.

    `origin` is the hash of the definition of the origin that a refresh read it from.
    """

    name: str
    sha256: Sha256
    payload_sha256: Sha256
    creator: ActorId
    attestation_id: str | None
    origin: Sha256 | None = None


def new_stage(
    stage_id: str,
    delivery: Delivery,
    validation: Validation,
    *,
    target: Target,
    approval_policy: ApprovalPolicy | None,
    now: datetime,
) -> Stage:
    """Return the stage that a validated delivery becomes: failed, awaiting approval or ready."""
    required = approval_policy is not None and approval_policy.required
    kept = validation.hashed_bytes()
    return Stage(
        id=stage_id,
        datasource=target.datasource,
        creator=delivery.creator,
        attestation_id=delivery.attestation_id,
        delivery=delivery.name,
        delivery_sha256=delivery.sha256,
        schema=validation.schema_bytes(),
        payload_fingerprint=validation.fingerprint,
        payload_sha256=delivery.payload_sha256,
        row_count=validation.row_count,
        byte_count=validation.byte_count,
        base=target.current,
        quality_policy_hash=validation.policy_hash,
        approval_policy_hash=target.approval_policy_hash,
        approval_required=required,
        policy_source=PolicySource.INHERITED,
        evaluator_version=validation.evaluator_version,
        outcome=validation.outcome,
        validation=kept,
        validation_hash=validation_hash(kept),
        created_at=now,
        state=_first_state(validation.outcome, approval_required=required),
        origin=delivery.origin,
    )


def _first_state(outcome: Outcome, *, approval_required: bool) -> StageState:
    if outcome is Outcome.BLOCKED:
        return StageState.FAILED
    return StageState.AWAITING_APPROVAL if approval_required else StageState.READY


def changed_since(stage: Stage, target: Target) -> list[str]:
    """Return what the stage is bound to that is no longer the target's present one.

    A supplied quality policy is bound to the permission to supply one.
    """
    quality: tuple[object, object] = (stage.quality_policy_hash, target.quality_policy_hash)
    if stage.policy_source == PolicySource.SUPPLIED:
        quality = (True, target.allow_supplied_policy)
    return [
        name
        for name, bound, present in (
            ("base materialization", stage.base, target.current),
            ("quality policy", *quality),
            ("approval policy", stage.approval_policy_hash, target.approval_policy_hash),
            ("quality provider", stage.evaluator_version, target.evaluator_version),
        )
        if bound != present
    ]


def check_live(stage: Stage, target: Target) -> None:
    """Refuse a stage whose base or policies are not the target's present ones.

    Raises:
        GuardError: code `stage_outdated`, naming what differs and what to do.
    """
    different = changed_since(stage, target)
    if stage.state is StageState.SUPERSEDED and not different:
        different = ["base materialization"]
    if different:
        raise GuardError(
            f"stage {stage.id} is outdated: {' and '.join(different)} changed since it was "
            "validated; create a new stage",
            code="stage_outdated",
            stage=stage.id,
            different=tuple(different),
        )
