"""The two documents of an offline decision: what is asked, and what was signed.

Both are canonical bytes and one line end; a file that differs by a byte is refused. A request holds
everything that the stage's fingerprint covers, so that a machine without a database can tell that
what it shows is what it signs. The rest of it, the verdicts, is as true as who carried it; the
digest is there to be compared with whoever made the request.

A signed decision holds the very claims of an online one, and the reason that they name by hash.

Source: SPEC section 7 ("air-gapped approval").
"""

from collections.abc import Mapping
from dataclasses import dataclass

from datasource_governance.domain.approval import Subject, Verdict
from datasource_governance.domain.attestation import Action, Attestation, read_claims
from datasource_governance.domain.canonical import (
    Json,
    Sha256,
    canonical_bytes,
    document_digest,
    load_canonical,
)
from datasource_governance.domain.stage import stage_fingerprint
from datasource_governance.domain.strict_json import parse_json
from datasource_governance.domain.subjects import decision_subject
from datasource_governance.errors import GuardError, InvalidPolicyError, Problem

REQUEST_FORMAT = "datasource_governance/decision-request/v1"
SIGNED_FORMAT = "datasource_governance/signed-decision/v1"
_REQUEST_KEYS = frozenset(
    {"format", "requested_at", "subject", "stage", "approval", "validation", "digest"}
)
_SIGNED_KEYS = frozenset({"format", "claims", "signature", "reason"})
_VERDICTS = {Action.STAGE_APPROVE: Verdict.APPROVE, Action.STAGE_REJECT: Verdict.REJECT}
_SUBJECT_KEYS = frozenset(Subject.__dataclass_fields__)
_MAY_BE_NULL = ("approval_policy_hash", "base")
_TOLD_TWICE = ("datasource", "stage", "base", "quality_policy_hash")
"""What a request says in its subject and among the facts of the stage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineRequest:
    """What somebody is asked to decide about, complete enough to be looked at elsewhere.

    `stage` is `Stage.identity`; `approval` says what is required and who has approved, `validation`
    the verdicts and schema changes, with counts only if whoever asked may read the data.
    """

    subject: Subject
    stage: Mapping[str, Json]
    requested_at: str
    approval: Mapping[str, Json]
    validation: Mapping[str, Json]

    @property
    def tenant(self) -> str:
        """Whose stage it is."""
        return str(self.stage["tenant"])

    @property
    def digest(self) -> Sha256:
        """Digest of everything in it."""
        return document_digest(REQUEST_FORMAT, self._content())

    def file_bytes(self) -> bytes:
        """Return the file."""
        return _file_bytes({**self._content(), "digest": self.digest})

    def _content(self) -> dict[str, object]:
        return {
            "format": REQUEST_FORMAT,
            "requested_at": self.requested_at,
            "subject": self.subject.document(),
            "stage": self.stage,
            "approval": self.approval,
            "validation": self.validation,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedDecision:
    """A decision that was signed and not submitted yet."""

    attestation: Attestation
    reason: str

    @property
    def verdict(self) -> Verdict:
        """The verdict that was signed."""
        return _VERDICTS[self.attestation.claims.action]

    @property
    def subject(self) -> Subject:
        """The hashes that were signed."""
        signed = {**self.attestation.claims.subject}
        del signed["reason_hash"]
        return Subject(**signed)  # type: ignore[arg-type]  # texts or null, as its reader made sure

    def file_bytes(self) -> bytes:
        """Return the file. It holds the reason, so it is for the governance database only."""
        return _file_bytes(
            {
                "format": SIGNED_FORMAT,
                "claims": load_canonical(self.attestation.claims.signed_bytes()),
                "signature": self.attestation.signature.hex(),
                "reason": self.reason,
            }
        )


def read_request(data: bytes) -> OfflineRequest:
    """Read a request, and make sure that its facts are those of the fingerprint it asks about.

    Raises:
        InvalidPolicyError: for a file that is not, to the byte, a request that was made.
    """
    document = _read(data, REQUEST_FORMAT, _REQUEST_KEYS)
    request = OfflineRequest(
        subject=_subject(document["subject"], "/subject"),
        stage=_object(document["stage"], "/stage"),
        requested_at=str(document["requested_at"]),
        approval=_object(document["approval"], "/approval"),
        validation=_object(document["validation"], "/validation"),
    )
    if request.file_bytes() != data:
        raise _refused("/digest", "is not the digest of the rest; the file was altered")
    told = {name: request.stage.get(name) for name in _TOLD_TWICE}
    if (
        told != {name: request.subject.document()[name] for name in _TOLD_TWICE}
        or stage_fingerprint(request.stage) != request.subject.stage_fingerprint
    ):
        raise _refused("/stage", "is not what the stage's fingerprint covers")
    return request


def read_signed(data: bytes) -> SignedDecision:
    """Read a signed decision. Whether the signature is right is for the service to say.

    Raises:
        InvalidPolicyError: for a file that is not, to the byte, a signed decision.
        GuardError: `attestation_mismatch` for a reason that is not the one that was signed.
    """
    document = _read(data, SIGNED_FORMAT, _SIGNED_KEYS)
    signed = _signed(document)
    if signed is None or signed.file_bytes() != data:
        raise _refused("/claims", "is not a signed decision about a stage, or was altered")
    if dict(signed.attestation.claims.subject) != decision_subject(signed.subject, signed.reason):
        raise GuardError("the reason is not the one that was signed", code="attestation_mismatch")
    return signed


def _signed(document: Mapping[str, Json]) -> SignedDecision | None:
    try:
        claims = read_claims(canonical_bytes(document["claims"]))
        signature = bytes.fromhex(str(document["signature"]))
    except (GuardError, ValueError):
        return None
    hashes = {**claims.subject}
    reason_hash = hashes.pop("reason_hash", None)
    if claims.action not in _VERDICTS or reason_hash is None or not _is_subject(hashes):
        return None
    attestation = Attestation(claims=claims, signature=signature)
    return SignedDecision(attestation=attestation, reason=str(document["reason"]))


def _read(data: bytes, wanted: str, keys: frozenset[str]) -> dict[str, Json]:
    document = _object(parse_json(data, what="file"), "")
    if document.get("format") != wanted or set(document) != keys:
        raise _refused("/format", f"expected a file of the format {wanted}")
    return document


def _object(value: Json, pointer: str) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise _refused(pointer, "expected an object")
    return value


def _subject(value: Json, pointer: str) -> Subject:
    found = _object(value, pointer)
    if not _is_subject(found):
        raise _refused(pointer, f"expected the texts {', '.join(sorted(_SUBJECT_KEYS))}")
    return Subject(**found)  # type: ignore[arg-type]  # texts or null, as just tested


def _is_subject(found: Mapping[str, Json]) -> bool:
    return set(found) == _SUBJECT_KEYS and all(
        isinstance(value, str) or (value is None and name in _MAY_BE_NULL)
        for name, value in found.items()
    )


def _file_bytes(document: object) -> bytes:
    return canonical_bytes(document) + b"\n"


def _refused(pointer: str, message: str) -> InvalidPolicyError:
    problem = Problem(kind="invalid_value", pointer=pointer, message=message)
    return InvalidPolicyError("file", [problem])
