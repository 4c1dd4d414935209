"""What a producer publishes, as the gate sees it: a payload kept inline, or an artifact.

Examining one takes as long as its rows need and happens outside of every transaction.

Source: SPEC sections 9 and 10; facts I-067 and I-069.
"""

import hashlib
from dataclasses import dataclass
from typing import Protocol

from datasource_governance.domain.artifact import ArtifactReference, tampered
from datasource_governance.domain.artifact_validation import artifact_validation
from datasource_governance.domain.canonical import Sha256, canonical_bytes
from datasource_governance.domain.producer_evidence import (
    Judgement,
    ProducerEvidence,
    judge_evidence,
)
from datasource_governance.domain.publication import Content
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.domain.quality_provider import ProviderBinding
from datasource_governance.domain.validation import Validation
from datasource_governance.ports import Evaluator, Payload
from datasource_governance.ports.artifacts import ArtifactBackend, ArtifactEvaluator
from datasource_governance.services.artifacts import artifact_version, verified_artifact


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What the gate found in an output, not yet compared with an earlier schema.

    `judgement` is None where all rules were evaluated here; `payload`, the stored bytes, where it
    is an artifact. `version` is of the object that was verified.
    """

    validation: Validation
    judgement: Judgement | None
    content: Content
    payload: bytes | None = None
    version: str | None = None


class Output(Protocol):
    """What is published; only the evaluators look inside."""

    @property
    def locator(self) -> str | None:
        """Where its object is kept; None for what is kept inline."""
        ...

    @property
    def provider(self) -> ProviderBinding | None:
        """Who evaluates rules about rows; None for natively, without a platform manifest."""
        ...

    def checksum(self) -> Sha256:
        """Return the digest that tells it from other outputs, without validating it."""
        ...

    def examine(
        self, policy: QualityPolicy, evidence: ProducerEvidence | None, *, evaluates_here: bool
    ) -> Examined:
        """Verify and validate it under a policy; raise nothing that holds a value."""
        ...

    def check_unchanged(self, examined: Examined) -> None:
        """Refuse what is not what was examined any more, without looking at all of it again.

        Raises:
            GuardError: codes `artifact_missing` and `artifact_tampered`.
        """
        ...


class InlineOutput:
    """A typed table that is small enough to be kept in the database.

    Raises:
        InvalidArgumentError: code `payload_too_large`.
    """

    locator = None

    def __init__(self, evaluator: Evaluator, payload: Payload) -> None:
        self._evaluator = evaluator
        self._payload = payload
        self._encoded = payload.encoded()

    @property
    def provider(self) -> ProviderBinding | None:
        """Who evaluates rules about rows."""
        return self._evaluator.provider

    def checksum(self) -> Sha256:
        """Return the fingerprint of the content, whatever its chunks and encoding are."""
        return self._evaluator.fingerprint(self._payload)

    def examine(
        self, policy: QualityPolicy, evidence: ProducerEvidence | None, *, evaluates_here: bool
    ) -> Examined:
        """Validate it; all rows are here, so no evidence is needed."""
        del evidence, evaluates_here
        validation = self._evaluator.validate(policy, self._payload, None)
        content = Content(
            payload_fingerprint=validation.fingerprint,
            payload_sha256=Sha256(hashlib.sha256(self._encoded).hexdigest()),
            row_count=validation.row_count,
            byte_count=validation.byte_count,
        )
        return Examined(
            validation=validation, judgement=None, content=content, payload=self._encoded
        )

    def check_unchanged(self, examined: Examined) -> None:
        """Return at once: nobody else has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactOutput:
    """An artifact that a backend keeps, for a datasource of a tenant."""

    backend: ArtifactBackend
    evaluator: ArtifactEvaluator
    reference: ArtifactReference
    tenant: str
    datasource: str

    @property
    def locator(self) -> str:
        """Where the backend keeps it."""
        return self.reference.locator

    @property
    def provider(self) -> ProviderBinding | None:
        """Who evaluates rules about rows, unless the producer did."""
        return self.evaluator.provider

    def checksum(self) -> Sha256:
        """Return the SHA-256 of its bytes."""
        return self.reference.sha256

    def examine(
        self, policy: QualityPolicy, evidence: ProducerEvidence | None, *, evaluates_here: bool
    ) -> Examined:
        """Verify it; then validate its rows, or judge what the producer says of them."""
        reference, judgement = self.reference, None
        # Before it is verified, so that nothing goes unseen between the two.
        version = self._version()
        whose = {"tenant": self.tenant, "datasource": self.datasource}
        with verified_artifact(self.backend, self.evaluator, reference, **whose) as artifact:
            if evaluates_here:
                file, media_type = artifact.file, reference.media_type
                validation = self.evaluator.validate(policy, file, media_type, None)
            else:
                certain = self.evaluator.judge(policy, artifact.description)
                judgement = judge_evidence(evidence, policy, reference, certain)
                judged = artifact_validation(policy, reference, certain, evidence, judgement)
                validation = self.evaluator.appraised(judged)
        content = Content(
            payload_fingerprint=reference.sha256,
            payload_sha256=reference.sha256,
            row_count=reference.row_count,
            byte_count=reference.byte_count,
            artifact=canonical_bytes(reference.document()),
        )
        return Examined(
            validation=validation, judgement=judgement, content=content, version=version
        )

    def check_unchanged(self, examined: Examined) -> None:
        """Ask the store whether it still has the object that was verified."""
        if self._version() != examined.version:
            raise tampered(self.reference.locator, "it was replaced since it was verified")

    def _version(self) -> str:
        whose = {"tenant": self.tenant, "datasource": self.datasource}
        return artifact_version(self.backend, self.reference, **whose)
