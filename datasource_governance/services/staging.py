"""Turn a delivery into a stage: validate outside a transaction, store inside one.

Source: SPEC section 6; facts on concurrency, 4.3.
"""

import hashlib
from dataclasses import dataclass

from datasource_governance.domain.actor import UNATTESTED, ActorId, Role
from datasource_governance.domain.approval_policy import ApprovalPolicy
from datasource_governance.domain.attestation import Action, Attestation, verify
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.datasource import DatasourceKind
from datasource_governance.domain.evidence import datasource_chain
from datasource_governance.domain.launch import RunLaunch
from datasource_governance.domain.policy_version import (
    PolicyKind,
    recorded_approval_policy,
    recorded_quality_policy,
)
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.domain.schema import TableSchema
from datasource_governance.domain.schema_document import parse_schema
from datasource_governance.domain.stage import Delivery, Stage, new_stage
from datasource_governance.domain.subjects import delivery_subject
from datasource_governance.domain.target import Target
from datasource_governance.domain.validation import Validation
from datasource_governance.errors import GuardError, NotFoundError, ServiceUnavailableError
from datasource_governance.ports import Evaluator, Payload, UnitOfWork
from datasource_governance.services.attesting import attest, authorise
from datasource_governance.services.launching import AttestedLauncher, launcher_of
from datasource_governance.services.recording import record_created

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRequest:
    """A delivery to be staged, and who may prove to be its creator.

    `attestation_id` names a stored attestation. Without one it is whoever is proved to have
    launched the run `launch`, and without that, too, nobody.
    """

    datasource: str
    delivery: str
    file_sha256: Sha256
    attestation_id: str | None
    launch: RunLaunch | None = None


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


def store_delivery_attestation(
    work: UnitOfWork, datasource: str, file_sha256: Sha256, attestation: Attestation
) -> Sha256:
    """Keep a creator's attestation for a run that will name it; return its id.

    Storing it again is harmless: it still creates one stage only.

    Raises:
        GuardError: `not_authorised` or an attestation's codes.
    """
    with work:
        work.datasources.get_for_update(datasource)
        if work.authority.attestation(attestation.id) is not None:
            return attestation.id
        now = work.now()
        subject = delivery_subject(datasource, file_sha256)
        actor = attest(work, attestation, action=Action.STAGE_CREATE, subject=subject, now=now)
        authorise(work, actor, Role.STEWARD, datasource)
        facts = {"actor": actor, "file_sha256": file_sha256}
        work.evidence.append(
            datasource_chain(datasource),
            kind="delivery.attested",
            subject=attestation.id,
            facts=facts,
            at=now,
        )
        work.commit()
    return attestation.id


def create_stage(
    work: UnitOfWork, evaluator: Evaluator, payload: Payload, request: StageRequest
) -> Staged:
    """Validate a payload and store it as a stage; a failed one is stored too.

    An attestation that created a stage already gives that stage again, so a retry converges; for
    another file or datasource it proves nothing. The same holds for a run's.

    Raises:
        NotFoundError: for an unknown datasource or attestation.
        GuardError: `wrong_kind`, `quality_policy_missing`, `not_authorised` or an attestation's
            codes.
    """
    encoded = payload.encoded()
    for _ in range(_ATTEMPTS):
        with work:
            earlier = _earlier(work, request)
            if earlier is not None:
                return Staged(stage=earlier, created=False)
            facts = _facts(work, work.datasources.get(request.datasource))
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
    attestation_id = _attestation_id(work, request)
    if attestation_id is None:
        return None
    stage = work.stages.attested_by(attestation_id, request.datasource)
    if stage is not None and stage.delivery_sha256 != request.file_sha256:
        raise GuardError(
            "the attestation created a stage of another delivery; sign this one, or launch anew",
            code="attestation_mismatch",
        )
    return stage


def _attestation_id(work: UnitOfWork, request: StageRequest) -> str | None:
    if request.attestation_id is not None:
        return request.attestation_id
    launcher = _launcher(work, request)
    return launcher.attestation_id if launcher else None


def _launcher(work: UnitOfWork, request: StageRequest) -> AttestedLauncher | None:
    """Return who is proved to have launched the run in order to stage this datasource."""
    launch = request.launch
    return launcher_of(work, launch) if launch and launch.stages(request.datasource) else None


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
        creator, attestation_id = _creator(work, request)
        delivery = Delivery(
            name=request.delivery,
            sha256=request.file_sha256,
            payload_sha256=Sha256(hashlib.sha256(encoded).hexdigest()),
            creator=creator,
            attestation_id=attestation_id,
        )
        stage = new_stage(
            work.new_id(),
            delivery,
            validation,
            target=target,
            approval_policy=facts.approval_policy,
            now=now,
        )
        work.stages.add(stage, encoded)
        record_created(work, stage)
        work.commit()
    return Staged(stage=stage, created=True)


def _creator(work: UnitOfWork, request: StageRequest) -> tuple[ActorId, str | None]:
    """Return who is proved to be the creator, and the attestation that proves it."""
    attestation_id = request.attestation_id
    if attestation_id is not None:
        actor = _signer(work, request, attestation_id)
    elif launcher := _launcher(work, request):
        actor, attestation_id = launcher.actor, launcher.attestation_id
    else:
        return UNATTESTED, None
    authorise(work, actor, Role.STEWARD, request.datasource)
    return actor, attestation_id


def _signer(work: UnitOfWork, request: StageRequest, attestation_id: str) -> ActorId:
    attestation = work.authority.attestation(attestation_id)
    if attestation is None:
        raise NotFoundError(
            f"there is no attestation {attestation_id[:12]!r} in tenant {work.tenant!r}; "
            "stage create stores one"
        )
    return verify(
        attestation,
        work.authority.key(attestation.claims.key),
        tenant=work.tenant,
        action=Action.STAGE_CREATE,
        subject=delivery_subject(request.datasource, request.file_sha256),
    )
