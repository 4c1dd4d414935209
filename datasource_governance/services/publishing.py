"""Bring a producer's output in, once for each idempotency key: all of it, or nothing.

The key is looked up before anything is validated; the gate runs outside of every transaction; then
one transaction waits for the key, looks again, and writes all rows.

Source: SPEC section 9; facts 4.1, 4.2 and I-060 to I-070.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from datasource_governance.domain.actor import ActorId
from datasource_governance.domain.artifact import ArtifactReference, parse_artifact_reference
from datasource_governance.domain.attestation import Attestation
from datasource_governance.domain.canonical import Json, Sha256, canonical_bytes, load_object
from datasource_governance.domain.datasource import ArtifactEvaluation
from datasource_governance.domain.launch import RunLaunch
from datasource_governance.domain.materialization import Materialization
from datasource_governance.domain.policy_version import PolicyKind, PolicySource, PolicyVersion
from datasource_governance.domain.producer_evidence import (
    ProducerEvidence,
    parse_producer_evidence,
)
from datasource_governance.domain.publication import (
    Publication,
    PublicationState,
    check_names,
    conflicting,
    first_materialization,
    judge_publication,
    publication_facts,
    request_hash,
    waiting_stage,
)
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.domain.stage import Stage
from datasource_governance.domain.target import check_evaluator
from datasource_governance.domain.validation import validation_hash
from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.ports import Evaluator, Payload, UnitOfWork
from datasource_governance.ports.artifacts import ArtifactBackend, ArtifactEvaluator
from datasource_governance.services.judging import JudgingFacts, at_present, judging_facts
from datasource_governance.services.outputs import (
    ArtifactOutput,
    Examined,
    InlineOutput,
    Output,
)
from datasource_governance.services.producing import (
    Producing,
    authorised_producer,
    check_producer,
    check_replay,
)
from datasource_governance.services.purging import times_purged
from datasource_governance.services.recording import record, record_created
from datasource_governance.services.superseding import supersede_open

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationRequest:
    """An output to be published, and who may prove to be behind it.

    `partition` is empty for a datasource without partitions. `evidence` is what the producer found
    in an artifact; it is kept where it is judged. An `attestation` signs for just this output;
    without one it is whoever is proved to have launched the run `launch`, and where nobody attested
    a launch, too, `system`. `supplied_policy` is a quality policy in place of the datasource's,
    which must allow it.
    """

    producer: str
    idempotency_key: str
    datasource: str
    partition: str = ""
    evidence: ProducerEvidence | None = None
    attestation: Attestation | None = None
    launch: RunLaunch | None = None
    supplied_policy: QualityPolicy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A publication and what it became at once; `stage` is the id of the one it waits in, if any.

    `replayed`: it had been published before, and this call wrote nothing.
    """

    publication: Publication
    materialization: Materialization
    stage: str | None
    replayed: bool

    @property
    def validation(self) -> Mapping[str, Json]:
        """The validation as it is kept."""
        return load_object(self.publication.validation)


def publish(
    work: UnitOfWork, evaluator: Evaluator, payload: Payload, request: PublicationRequest
) -> Published:
    """Publish a payload that is kept inline. Publishing it again gives the first result.

    Raises:
        PublicationRejectedError: it did not pass; nothing was written and the key is free.
        GuardError: `idempotency_conflict`, `wrong_kind`, `quality_policy_missing`,
            `supplied_policy_refused`, `provider_changed`, `not_authorised` or an attestation's
            codes.
        InvalidArgumentError: a name that cannot be kept; code `payload_too_large`.
        InvalidPolicyError: evidence that is not of its form.
        NotFoundError: for an unknown datasource.
        EvaluationError: it could not be validated.
        ServiceUnavailableError: code `busy`, when policies changed each time meanwhile.
    """
    return _publish(work, InlineOutput(evaluator, payload), request)


def publish_artifact(
    work: UnitOfWork,
    backend: ArtifactBackend,
    evaluator: ArtifactEvaluator,
    reference: ArtifactReference,
    request: PublicationRequest,
) -> Published:
    """Publish an artifact that its backend has. Publishing it again gives the first result.

    Raises:
        GuardError: as `publish`, and `artifact_foreign`, `artifact_missing`, `artifact_tampered`,
            `artifact_purging`.
        InvalidPolicyError: a reference or evidence that is not of its form.
        UnreadableSourceError: it is no file of its media type, or is refused.
        ServiceUnavailableError: also when the store cannot be read.
    """
    output = ArtifactOutput(
        backend=backend,
        evaluator=evaluator,
        reference=parse_artifact_reference(reference.document()),
        tenant=work.tenant,
        datasource=request.datasource,
    )
    return _publish(work, output, request)


def check_publishable(
    work: UnitOfWork, request: PublicationRequest, signer: ActorId | None = None
) -> None:
    """Refuse a request whose output need not even be looked at or kept; write nothing.

    `signer` will sign for the output once it is kept, if the request has no attestation yet.

    Raises:
        GovernanceError: as `publish`, as far as it does not depend on the output.
    """
    _looked_up(work, _checked(request), signer)


def _checked(request: PublicationRequest) -> PublicationRequest:
    """Return a request held to the form that a document of it would have."""
    check_names(request.producer, request.idempotency_key, request.partition)
    evidence = request.evidence
    if evidence is None:
        return request
    return replace(request, evidence=parse_producer_evidence(evidence.document()))


def _publish(work: UnitOfWork, output: Output, request: PublicationRequest) -> Published:
    request = _checked(request)
    for _ in range(_ATTEMPTS):
        facts = _looked_up(work, request, locator=output.locator)
        if isinstance(facts, Publication):
            return _replayed(work, facts, request, output.checksum())
        check_evaluator(facts.target, output.provider)
        examined = output.examine(
            facts.quality_policy,
            request.evidence,
            evaluates_here=facts.target.artifact_evaluation == ArtifactEvaluation.HERE,
        )
        stored = _store(work, output, request, facts, examined)
        if isinstance(stored, Publication):
            return _replayed(work, stored, request, examined.content.payload_fingerprint)
        if stored is not None:
            return stored
    raise ServiceUnavailableError(
        f"the policies of datasource {request.datasource!r} changed each time while the output "
        "was validated; nothing was written, try again",
        code="busy",
    )


def _looked_up(
    work: UnitOfWork,
    request: PublicationRequest,
    signer: ActorId | None = None,
    locator: str | None = None,
) -> Publication | JudgingFacts:
    """Return what was published under the key; if nothing was, what an output is judged by.

    Neither is for who may not publish: a key that was used, a schema and rules tell something.
    """
    producing = _producing(request, signer)
    with work:
        first = work.publications.find(request.producer, request.idempotency_key)
        if first is not None:
            check_replay(work, producing, first)
            return first
        check_producer(work, producing)
        supplied = request.supplied_policy
        facts = judging_facts(work, request.datasource, request.partition, supplied)
        return replace(facts, times_purged=times_purged(work, locator))


def _producing(request: PublicationRequest, signer: ActorId | None = None) -> Producing:
    supplied, evidence = request.supplied_policy, request.evidence
    return Producing(
        datasource=request.datasource,
        partition=request.partition,
        producer=request.producer,
        idempotency_key=request.idempotency_key,
        supplied_policy=supplied.hash if supplied else None,
        evidence=evidence.hash if evidence else None,
        attestation=request.attestation,
        launch=request.launch,
        signer=signer,
    )


def _replayed(
    work: UnitOfWork, first: Publication, request: PublicationRequest, checksum: Sha256
) -> Published:
    """Return the first result of a request, whatever has changed since.

    Raises:
        GuardError: code `idempotency_conflict` when it was another request.
    """
    if first.request_hash != request_hash(request.datasource, request.partition, checksum):
        raise conflicting(request.producer, request.idempotency_key)
    with work:
        stage = None if first.state.is_current else work.stages.of_publication(first.id)
        return Published(
            publication=first,
            materialization=work.materializations.get(first.materialization),
            stage=stage.id if stage else None,
            replayed=True,
        )


def _store(
    work: UnitOfWork,
    output: Output,
    request: PublicationRequest,
    facts: JudgingFacts,
    examined: Examined,
) -> Published | Publication | None:
    """Store an output that passed, in one transaction.

    Return the publication that somebody else made under the key meanwhile, if so; None when the
    policies that it was judged by have changed, or its object was purged meanwhile.
    """
    # As late as it goes: within the transaction, everybody else would wait for the store.
    output.check_unchanged(examined)
    with work:
        # Waiting for the key comes before looking it up: that statement sees what was committed.
        work.publications.lock_key(request.producer, request.idempotency_key)
        first = work.publications.find(request.producer, request.idempotency_key)
        if first is not None:
            return first
        target = work.datasources.get_for_update(request.datasource, request.partition)
        if not facts.govern(target) or times_purged(work, output.locator) != facts.times_purged:
            return None
        facts = at_present(work, facts, target)
        validation = facts.compared(examined.validation)
        state = judge_publication(
            target.datasource,
            validation,
            examined.judgement,
            approval_required=facts.approval_required,
        )
        examined = replace(examined, validation=validation)
        published = _write(work, request, facts, examined, state)
        work.commit()
    return published


def _write(
    work: UnitOfWork,
    request: PublicationRequest,
    facts: JudgingFacts,
    examined: Examined,
    state: PublicationState,
) -> Published:
    target, validation, content = facts.target, examined.validation, examined.content
    publication = _publication(work, request, facts, examined, state)
    if publication.policy_source is PolicySource.SUPPLIED:
        work.datasources.add_policy(_supplied(facts.quality_policy, publication))
    materialization = first_materialization(
        publication, validation, content, target=target, approval_required=facts.approval_required
    )
    work.publications.add(publication, materialization, examined.payload)
    superseded: list[str] = []
    if state.is_current:
        work.datasources.move(target, materialization.id)
        superseded = [stage.id for stage in supersede_open(work, target)]
    _record(work, publication, materialization, facts, superseded)
    stage = _wait(work, publication, facts, examined)
    return Published(
        publication=publication,
        materialization=materialization,
        stage=stage.id if stage else None,
        replayed=False,
    )


def _publication(
    work: UnitOfWork,
    request: PublicationRequest,
    facts: JudgingFacts,
    examined: Examined,
    state: PublicationState,
) -> Publication:
    validation, checksum = examined.validation, examined.content.payload_fingerprint
    now = work.now()
    by = authorised_producer(work, _producing(request), checksum, now)
    kept = validation.hashed_bytes()
    evidence = request.evidence if examined.judgement is not None else None
    return Publication(
        id=work.new_id(),
        datasource=request.datasource,
        producer=request.producer,
        idempotency_key=request.idempotency_key,
        partition=request.partition,
        request_hash=request_hash(request.datasource, request.partition, checksum),
        state=state,
        materialization=work.new_id(),
        validation=kept,
        validation_hash=validation_hash(kept),
        evidence=canonical_bytes(evidence.document()) if evidence else None,
        quality_policy_hash=facts.quality_policy.hash,
        policy_source=facts.policy_source,
        actor=by.actor,
        grant_id=by.grant_id,
        attestation_id=by.attestation_id,
        run_id=request.launch.run_id if request.launch else None,
        created_at=now,
    )


def _supplied(policy: QualityPolicy, publication: Publication) -> PolicyVersion:
    return PolicyVersion(
        datasource=publication.datasource,
        kind=PolicyKind.QUALITY,
        hash=policy.hash,
        version=policy.version,
        document=policy.canonical,
        source=PolicySource.SUPPLIED,
        attestation_id=publication.attestation_id,
        created_at=publication.created_at,
    )


def _wait(
    work: UnitOfWork, publication: Publication, facts: JudgingFacts, examined: Examined
) -> Stage | None:
    """Store the stage in which an output waits for a quorum, where one is required."""
    if facts.approval_policy is None or not facts.approval_required:
        return None
    stage = waiting_stage(
        work.new_id(),
        publication,
        examined.validation,
        examined.content,
        target=facts.target,
        approval_policy=facts.approval_policy,
    )
    work.stages.add(stage, examined.payload)
    record_created(work, stage)
    return stage


def _record(
    work: UnitOfWork,
    publication: Publication,
    materialization: Materialization,
    facts: JudgingFacts,
    superseded: list[str],
) -> None:
    told = publication_facts(publication, materialization, facts.target)
    record(
        work,
        publication.datasource,
        "publication.published",
        subject=publication.id,
        facts={**told, "superseded": superseded},
        at=publication.created_at,
    )
