"""Signed statements of who does what to which subject.

An attestation is canonical claims and an Ed25519 signature over them. An *actor key* attests for
its owner alone, a *gateway key* for whoever the governed webserver authenticated. Attestations are
kept and used once; nothing else can claim that somebody acted.

Source: SPEC section 7, last paragraph; RFC 8032 (Ed25519).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from datasource_governance.domain.actor import ActorId
from datasource_governance.domain.canonical import (
    Json,
    Sha256,
    canonical_bytes,
    digest,
    document_digest,
    load_canonical,
)
from datasource_governance.errors import GuardError, InvalidArgumentError

FORMAT = "datasource_governance/attestation/v1"
LIFETIME = timedelta(hours=72)
"""How long after signing a statement can be submitted: over a weekend by hand, not for ever."""
_KEYS = {"format", "tenant", "actor", "key", "action", "subject", "issued_at", "nonce"}


class Action(StrEnum):
    """What an attestation can be about."""

    STAGE_CREATE = "stage.create"
    STAGE_REFRESH = "stage.refresh"
    STAGE_APPROVE = "stage.approve"
    STAGE_REJECT = "stage.reject"
    STAGE_PROMOTE = "stage.promote"
    PUBLICATION_CREATE = "publication.create"
    RUN_LAUNCH = "run.launch"
    DATASOURCE_APPLY = "datasource.apply"
    KEY_REGISTER = "key.register"
    KEY_REVOKE = "key.revoke"
    ACTOR_GRANT = "actor.grant"
    ACTOR_WITHDRAW = "actor.withdraw"
    HOLD_PLACE = "hold.place"
    HOLD_RELEASE = "hold.release"
    MATERIALIZATION_FREEZE = "materialization.freeze"
    RETENTION_APPLY = "retention.apply"


OWN_KEY_ONLY = frozenset(
    {
        Action.DATASOURCE_APPLY,
        Action.KEY_REGISTER,
        Action.KEY_REVOKE,
        Action.ACTOR_GRANT,
        Action.ACTOR_WITHDRAW,
        Action.HOLD_RELEASE,
        Action.RETENTION_APPLY,
    }
)
"""What a gateway key attests for nobody.

A stolen one changes neither authority nor policies, and neither lifts a hold nor destroys.
"""


class KeyKind(StrEnum):
    """For whom a key may attest."""

    ACTOR = "actor"
    GATEWAY = "gateway"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorKey:
    """A registered public key: 32 bytes of Ed25519. `id` is a digest of them."""

    id: Sha256
    actor: ActorId
    kind: KeyKind
    public_key: bytes
    attestation_id: str | None
    created_at: datetime
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What is signed. `subject` holds ids and hashes; `nonce` makes every statement single."""

    tenant: str
    actor: ActorId
    key: Sha256
    action: Action
    subject: Mapping[str, Json]
    issued_at: str
    nonce: str

    def signed_bytes(self) -> bytes:
        """Return the canonical bytes over which the signature is made."""
        return canonical_bytes(
            {
                "format": FORMAT,
                "tenant": self.tenant,
                "actor": self.actor,
                "key": self.key,
                "action": str(self.action),
                "subject": self.subject,
                "issued_at": self.issued_at,
                "nonce": self.nonce,
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Attestation:
    """Claims as received with their signature (64 bytes)."""

    claims: Claims
    signature: bytes

    @property
    def id(self) -> Sha256:
        """Digest of the signed bytes: the same statement has the same id."""
        return digest(FORMAT, self.claims.signed_bytes())


def key_id(public_key: bytes) -> Sha256:
    """Return the id of a raw 32-byte Ed25519 public key.

    Raises:
        InvalidArgumentError: for any other length.
    """
    if len(public_key) != 32:  # noqa: PLR2004 - RFC 8032: an Ed25519 public key is 32 octets
        raise InvalidArgumentError("an Ed25519 public key is 32 bytes long")
    return digest("datasource_governance/key/v1", public_key)


def reason_hash(reason: str) -> Sha256:
    """Return the hash under which a reason may leave the governance tables."""
    return document_digest("datasource_governance/reason/v1", reason)


def read_claims(data: bytes) -> Claims:
    """Read claims from their canonical bytes.

    Raises:
        GuardError: code `attestation_invalid` when they are not exactly of this format.
    """
    try:
        claims = _claims(data)
    except (ValueError, ArithmeticError, RecursionError):
        claims = None
    if claims is None:
        raise GuardError("the attestation's claims cannot be read", code="attestation_invalid")
    return claims


def _claims(data: bytes) -> Claims | None:
    document = load_canonical(data)
    if not isinstance(document, dict) or set(document) != _KEYS or document["format"] != FORMAT:
        return None
    subject = document["subject"]
    if not isinstance(subject, dict) or canonical_bytes(document) != data:
        return None
    return Claims(
        tenant=str(document["tenant"]),
        actor=ActorId(str(document["actor"])),
        key=Sha256(str(document["key"])),
        action=Action(str(document["action"])),
        subject=subject,
        issued_at=str(document["issued_at"]),
        nonce=str(document["nonce"]),
    )


def verify(
    attestation: Attestation,
    key: ActorKey | None,
    *,
    tenant: str,
    action: Action,
    subject: Mapping[str, Json],
) -> ActorId:
    """Return who did it, if the attestation proves exactly this action on exactly this subject.

    Raises:
        GuardError: `attestation_invalid` for an unknown or revoked key or a wrong signature,
            `attestation_mismatch` when the statement is about something else.
    """
    claims = attestation.claims
    if key is None or key.id != claims.key or key.revoked_at is not None:
        raise GuardError(
            f"key {claims.key[:12]} is not registered or was revoked; register it with an "
            "administrator: key register",
            code="attestation_invalid",
        )
    if not _may_attest(key, claims):
        raise GuardError(
            f"key {key.id[:12]} may not attest {claims.action} for {claims.actor!r}; "
            "whose action it is signs with a key of their own",
            code="attestation_invalid",
        )
    if not is_signed(attestation, key):
        raise GuardError("the attestation's signature is wrong", code="attestation_invalid")
    if claims.tenant != tenant or claims.action is not action:
        raise GuardError(
            f"the attestation is for {claims.action} in tenant {claims.tenant!r}, not for {action}",
            code="attestation_mismatch",
        )
    different = sorted(
        name
        for name in subject.keys() | claims.subject.keys()
        if name not in subject
        or name not in claims.subject
        or subject[name] != claims.subject[name]
    )
    if different:
        raise GuardError(
            f"the attestation is about another subject: {', '.join(different)} differ; "
            "look at the present state and sign again",
            code="attestation_mismatch",
            different=tuple(different),
        )
    return claims.actor


def check_lifetime(claims: Claims, now: datetime) -> None:
    """Refuse a statement that was signed `LIFETIME` ago or longer, by its signer's clock.

    One dated ahead is not refused: whoever holds the key could as well sign it later.

    Raises:
        GuardError: `attestation_expired`, or `attestation_invalid` without an instant of signing.
    """
    try:
        issued_at = datetime.fromisoformat(claims.issued_at)
    except ValueError:
        issued_at = None
    if issued_at is None or issued_at.tzinfo is None:
        raise GuardError("the attestation says no instant of signing", code="attestation_invalid")
    if now - issued_at >= LIFETIME:
        hours = LIFETIME // timedelta(hours=1)
        raise GuardError(
            f"the attestation was signed {hours} hours ago or longer; look at the present state "
            "and sign again",
            code="attestation_expired",
        )


def is_signed(attestation: Attestation, key: ActorKey) -> bool:
    """Tell whether this key made the signature and may speak for the actor.

    A key that was revoked later still did.
    """
    claims = attestation.claims
    if key.id != claims.key or not _may_attest(key, claims):
        return False

    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key.public_key).verify(
            attestation.signature, attestation.claims.signed_bytes()
        )
    except (InvalidSignature, ValueError):
        return False
    return True


def _may_attest(key: ActorKey, claims: Claims) -> bool:
    if key.kind is KeyKind.GATEWAY:
        return claims.action not in OWN_KEY_ONLY
    return key.actor == claims.actor
