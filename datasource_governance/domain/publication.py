"""A producer's output, brought in once under an idempotency key, and what becomes of it.

A rejected output is an error and leaves nothing; what is accepted has one of three states for ever.

Source: SPEC section 9; acceptance decisions PUBLISH_KEY and PUBLISH_EVIDENCE; facts 2.7 and 3.5.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from datasource_governance.domain.actor import UNATTESTED, ActorId
from datasource_governance.domain.approval_policy import ApprovalPolicy
from datasource_governance.domain.canonical import (
    Json,
    Sha256,
    canonical_bytes,
    digest,
    load_canonical,
)
from datasource_governance.domain.materialization import PROVENANCE_FORMAT, Materialization
from datasource_governance.domain.policy_version import PolicySource
from datasource_governance.domain.producer_evidence import Judgement
from datasource_governance.domain.stage import Delivery, Stage, new_stage
from datasource_governance.domain.target import Target
from datasource_governance.domain.validation import Outcome, Status, Validation
from datasource_governance.errors import GuardError, InvalidArgumentError

_REQUEST_DOMAIN = "datasource_governance/publication_request/v1"
MAXIMUM_NAME_CHARACTERS = 255


class PublicationState(StrEnum):
    """What became of an output. A state never changes, and is never taken for another.

    Published ones became current, with `PUBLISHED_WITH_WARNINGS` although something is to be looked
    at; one of `REVIEW_REQUIRED` is kept and did not.
    """

    PUBLISHED = "published"
    PUBLISHED_WITH_WARNINGS = "published_with_warnings"
    REVIEW_REQUIRED = "review_required"

    @property
    def is_current(self) -> bool:
        """Whether its materialization became current."""
        return self is not PublicationState.REVIEW_REQUIRED


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """The record of one output. `validation` are the bytes that its provenance holds, too.

    `partition` is empty for a datasource without partitions. `evidence` are the canonical bytes of
    what the producer found, if it said so. `actor` is whoever is proved to be behind it, under the
    grant `grant_id`; `run_id` is the run that published it.
    """

    id: str
    datasource: str
    producer: str
    idempotency_key: str
    partition: str
    request_hash: Sha256
    state: PublicationState
    materialization: str
    validation: bytes
    validation_hash: Sha256
    evidence: bytes | None
    quality_policy_hash: Sha256
    policy_source: PolicySource
    actor: ActorId
    grant_id: str
    attestation_id: str | None
    run_id: str | None
    created_at: datetime

    @property
    def creator(self) -> ActorId:
        """Whose output it is, for separation of duties: nobody's, where no attestation proves it.

        `system` publishes for whoever started it, who could otherwise approve what is their own.
        """
        return UNATTESTED if self.attestation_id is None else self.actor


class PublicationRejectedError(GuardError):
    """An output did not pass the gate: nothing was written, and its key is free.

    `validation` holds the outcome of every rule, without any value. `judgement` is what the
    producer's evidence was worth, None where none was asked for.
    """

    def __init__(
        self, message: str, *, code: str, validation: Validation, judgement: Judgement | None
    ) -> None:
        super().__init__(message, code=code)
        self.validation = validation
        self.judgement = judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What is kept of an output: counts and digests, and the reference where it is an artifact.

    `payload_sha256` is of the bytes as stored. `artifact` are canonical bytes.
    """

    payload_fingerprint: Sha256
    payload_sha256: Sha256
    row_count: int
    byte_count: int
    artifact: bytes | None = None


def request_hash(datasource: str, partition: str, checksum: Sha256) -> Sha256:
    """Return by what requests under one key are the same: datasource, partition and payload.

    `checksum` is the content fingerprint of an inline payload, and the SHA-256 of an artifact.
    """
    return digest(_REQUEST_DOMAIN, datasource.encode(), partition.encode(), checksum.encode())


def check_names(producer: str, idempotency_key: str, partition: str) -> None:
    """Refuse names that cannot be kept or told apart by whoever reads them; no partition is ''.

    A name is a text of 1 to 255 printable characters without a space at either end.

    Raises:
        InvalidArgumentError: naming all that are none.
    """
    given = {"producer": producer, "idempotency key": idempotency_key, "partition": partition}
    if partition == "":
        del given["partition"]
    wrong = [what for what, name in given.items() if not _is_name(name)]
    if wrong:
        raise InvalidArgumentError(
            f"the {' and the '.join(wrong)} must be a text of 1 to {MAXIMUM_NAME_CHARACTERS} "
            "printable characters, without a space at either end"
        )


def _is_name(given: object) -> bool:
    return (
        isinstance(given, str)
        and 1 <= len(given) <= MAXIMUM_NAME_CHARACTERS
        and given.isprintable()
        and given == given.strip()
    )


def judge_publication(
    datasource: str,
    validation: Validation,
    judgement: Judgement | None,
    *,
    approval_required: bool,
) -> PublicationState:
    """Return the state of an output, or reject it.

    `judgement` is None where all rules were evaluated here.

    Raises:
        PublicationRejectedError: codes `validation_failed`, and `evidence_failed` when the
            producer's own evidence says so.
    """
    if validation.outcome is Outcome.BLOCKED or judgement is Judgement.FAILED:
        raise _rejected(datasource, validation, judgement)
    if approval_required or (judgement is not None and judgement.needs_review):
        return PublicationState.REVIEW_REQUIRED
    if validation.outcome is Outcome.REVIEW:
        return PublicationState.PUBLISHED_WITH_WARNINGS
    return PublicationState.PUBLISHED


def _rejected(
    datasource: str, validation: Validation, judgement: Judgement | None
) -> PublicationRejectedError:
    failed = [rule.id for rule in validation.rules if rule.status is not Status.PASSED]
    named = f"rules that did not pass: {', '.join(failed)}" if failed else "no rule failed here"
    if validation.schema_diff is not None:
        named += f"; the schema change is {validation.schema_diff.classification}"
    told = (
        f"the output for datasource {datasource!r} is rejected ({named}); nothing was written, "
        "correct it and publish it again, the same key is free"
    )
    if judgement is Judgement.FAILED:
        return PublicationRejectedError(
            told, code="evidence_failed", validation=validation, judgement=judgement
        )
    return PublicationRejectedError(
        told, code="validation_failed", validation=validation, judgement=judgement
    )


def first_materialization(
    publication: Publication,
    validation: Validation,
    content: Content,
    *,
    target: Target,
    approval_required: bool,
) -> Materialization:
    """Return what an output becomes at once, with how it came to be; current or not."""
    named = ("id", "producer", "idempotency_key", "partition", "request_hash", "actor", "run_id")
    provenance = {
        "format": PROVENANCE_FORMAT,
        "datasource": publication.datasource,
        "base": target.current,
        "publication": {
            **{name: getattr(publication, name) for name in named},
            "state": str(publication.state),
            "authority": publication.grant_id,
            "attestation": publication.attestation_id,
        },
        "policies": {
            "quality": publication.quality_policy_hash,
            "approval": target.approval_policy_hash,
            "source": str(publication.policy_source),
        },
        "publication_validation": load_canonical(publication.validation),
        "validation_hash": publication.validation_hash,
        "producer_evidence": _loaded(publication.evidence),
        "artifact": _loaded(content.artifact),
        "approval": "required" if approval_required else "not required",
        "published_at": publication.created_at.isoformat(),
    }
    return Materialization(
        id=publication.materialization,
        datasource=publication.datasource,
        stage=None,
        revision=target.revision + 1 if publication.state.is_current else None,
        schema=validation.schema_bytes(),
        payload_fingerprint=content.payload_fingerprint,
        payload_sha256=content.payload_sha256,
        row_count=content.row_count,
        byte_count=content.byte_count,
        provenance=canonical_bytes(provenance),
        created_by=publication.actor,
        created_at=publication.created_at,
        publication=publication.id,
        partition=publication.partition,
        artifact=content.artifact,
    )


def _loaded(document: bytes | None) -> Json:
    return None if document is None else load_canonical(document)


def publication_facts(
    publication: Publication, materialization: Materialization, target: Target
) -> dict[str, Json]:
    """Return what evidence and receivers are told of an output, by ids and hashes."""
    return {
        "publication": publication.id,
        "state": str(publication.state),
        "materialization": materialization.id,
        "revision": materialization.revision,
        "base": target.current,
        "producer": publication.producer,
        "idempotency_key": publication.idempotency_key,
        "partition": publication.partition,
        "request_hash": publication.request_hash,
        "payload_fingerprint": materialization.payload_fingerprint,
        "row_count": materialization.row_count,
        "quality_policy_hash": publication.quality_policy_hash,
        "policy_source": str(publication.policy_source),
        "approval_policy_hash": target.approval_policy_hash,
        "validation_hash": publication.validation_hash,
        "actor": publication.actor,
        "authority": publication.grant_id,
        "attestation": publication.attestation_id,
        "run": publication.run_id,
    }


def waiting_stage(
    stage_id: str,
    publication: Publication,
    validation: Validation,
    content: Content,
    *,
    target: Target,
    approval_policy: ApprovalPolicy,
) -> Stage:
    """Return the stage in which an output waits for a quorum.

    Its creator is whoever is proved to be behind the output. The publication proves that, so the
    stage has no attestation of its own.
    """
    delivery = Delivery(
        name=publication.idempotency_key,
        sha256=content.payload_sha256,
        payload_sha256=content.payload_sha256,
        creator=publication.creator,
        attestation_id=None,
    )
    stage = new_stage(
        stage_id,
        delivery,
        validation,
        target=target,
        approval_policy=approval_policy,
        now=publication.created_at,
    )
    return replace(
        stage,
        payload_fingerprint=content.payload_fingerprint,
        row_count=content.row_count,
        byte_count=content.byte_count,
        policy_source=publication.policy_source,
        publication=publication.id,
        partition=publication.partition,
        artifact=content.artifact,
    )


def conflicting(producer: str, idempotency_key: str) -> GuardError:
    """Return the refusal of another request under a key that was used."""
    return GuardError(
        f"producer {producer!r} published something else under the key {idempotency_key!r}; "
        "nothing was written, a new output needs a key of its own",
        code="idempotency_conflict",
    )
