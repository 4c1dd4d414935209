"""Turn a delivery into a stage: validate outside a transaction, store inside one.

Source: SPEC section 6; facts on concurrency, 4.3.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from datasource_governance.domain.approval_policy import ApprovalPolicy
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.canonical import Json, Sha256
from datasource_governance.domain.datasource import DatasourceKind
from datasource_governance.domain.launch import RunLaunch
from datasource_governance.domain.origin import OriginVersion
from datasource_governance.domain.policy_version import (
    PolicyKind,
    recorded_approval_policy,
    recorded_quality_policy,
)
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.domain.schema import TableSchema
from datasource_governance.domain.schema_document import parse_schema
from datasource_governance.domain.stage import Delivery, Stage, new_stage
from datasource_governance.domain.subjects import delivery_subject, refresh_subject
from datasource_governance.domain.target import Target, check_evaluator
from datasource_governance.domain.validation import Validation
from datasource_governance.errors import GuardError, ServiceUnavailableError
from datasource_governance.ports import Evaluator, Payload, UnitOfWork
from datasource_governance.services.creating import created_before, creator_of
from datasource_governance.services.recording import record_created

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRequest:
    """A delivery to be staged, and by what its creator is proved: see `creating.Creation`.

    `read` says of which origin it is, and in which version, where a refresh read it.
    """

    datasource: str
    delivery: str
    file_sha256: Sha256
    attestation_id: str | None
    launch: RunLaunch | None = None
    read: OriginVersion | None = None

    @property
    def signed(self) -> tuple[Action, Mapping[str, Json]]:
        """The action and the subject that a creator signs: the file, or the origin."""
        if self.read is not None:
            return Action.STAGE_REFRESH, refresh_subject(self.datasource, self.read.origin)
        return Action.STAGE_CREATE, delivery_subject(self.datasource, self.file_sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """The stage, its validation as stored, and whether this call created it."""

    stage: Stage
    created: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """What a validation is made against; the transaction that stores it checks that it held."""

    target: Target
    quality_policy: QualityPolicy
    approval_policy: ApprovalPolicy | None
    previous: TableSchema | None


def create_stage(
    work: UnitOfWork, evaluator: Evaluator, payload: Payload, request: StageRequest
) -> Staged:
    """Validate a payload and store it as a stage; a failed one is stored too.

    An attestation that created a stage already gives that stage again, so a retry converges; for
    another file or datasource it proves nothing. The same holds for a run's.

    Raises:
        NotFoundError: for an unknown datasource or attestation.
        GuardError: `wrong_kind`, `quality_policy_missing`, `provider_changed`, `not_authorised` or
            an attestation's codes.
    """
    encoded = payload.encoded()
    for _ in range(_ATTEMPTS):
        with work:
            earlier = _earlier(work, request)
            if earlier is not None:
                return Staged(stage=earlier, created=False)
            facts = _facts(work, work.datasources.get(request.datasource))
        check_evaluator(facts.target, evaluator.provider)
        validation = evaluator.validate(facts.quality_policy, payload, facts.previous)
        staged = _store(work, request, facts, validation, encoded)
        if staged is not None:
            return staged
    raise ServiceUnavailableError(
        f"datasource {request.datasource!r} changed each time while the delivery was validated; "
        "nothing was written, try again",
        code="busy",
    )


def _earlier(work: UnitOfWork, request: StageRequest) -> Stage | None:
    """Return the stage that this very request created before, if it did.

    Raises:
        GuardError: code `attestation_mismatch` when its attestation created another delivery's.
    """
    stage = created_before(work, request)
    if stage is not None and stage.delivery_sha256 != request.file_sha256:
        raise GuardError(
            "the attestation created a stage of another delivery; sign this one, or launch anew",
            code="attestation_mismatch",
        )
    return stage


def _facts(work: UnitOfWork, target: Target) -> _Facts:
    if target.kind == DatasourceKind.PUBLISHED:
        raise GuardError(
            f"datasource {target.datasource!r} is {target.kind}, and takes no deliveries; publish "
            "an output for it, or declare another datasource",
            code="wrong_kind",
        )
    if target.quality_policy_hash is None:
        raise GuardError(
            f"datasource {target.datasource!r} has no quality policy, so nothing could be proven; "
            "declare one and run: datasource apply",
            code="quality_policy_missing",
        )
    name = target.datasource
    quality = work.datasources.policy(name, PolicyKind.QUALITY, target.quality_policy_hash)
    approval = None
    if target.approval_policy_hash is not None:
        kept = work.datasources.policy(name, PolicyKind.APPROVAL, target.approval_policy_hash)
        approval = recorded_approval_policy(kept)
    previous = None
    if target.current is not None:
        previous = parse_schema(work.materializations.get(target.current).schema)
    return _Facts(
        target=target,
        quality_policy=recorded_quality_policy(quality),
        approval_policy=approval,
        previous=previous,
    )


def _store(
    work: UnitOfWork,
    request: StageRequest,
    facts: _Facts,
    validation: Validation,
    encoded: bytes,
) -> Staged | None:
    """Store the stage, unless what it was validated against has changed meanwhile (None)."""
    with work:
        target = work.datasources.get_for_update(request.datasource)
        earlier = _earlier(work, request)
        if earlier is not None:
            return Staged(stage=earlier, created=False)
        if target != facts.target:
            return None
        now = work.now()
        creator, attestation_id = creator_of(work, request)
        delivery = Delivery(
            name=request.delivery,
            sha256=request.file_sha256,
            payload_sha256=Sha256(hashlib.sha256(encoded).hexdigest()),
            creator=creator,
            attestation_id=attestation_id,
            origin=request.read.origin if request.read else None,
        )
        stage = new_stage(
            work.new_id(),
            delivery,
            validation,
            target=target,
            approval_policy=facts.approval_policy,
            now=now,
        )
        work.stages.add(stage, encoded, request.read.token if request.read else None)
        record_created(work, stage)
        work.commit()
    return Staged(stage=stage, created=True)
