"""Checkpoints: signed lists of all chain heads, kept where the database's owner cannot reach.

Whoever may write to the database at will can make it consistent in itself again. A checkpoint says
what it held once: each chain at least so long, with this hash at that place. Held against it, a
chain cut off with its head, a dropped or rewritten chain and an old backup are found.

Source: SPEC section 13; facts on checkpoints (6.4, 6.9, 6.10).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from datasource_governance.domain.canonical import (
    Json,
    Sha256,
    canonical_bytes,
    digest,
    load_canonical,
)
from datasource_governance.domain.envelope import Envelope, read_envelope
from datasource_governance.domain.evidence import Break, BreakKind, Head

FORMAT = "datasource_governance/checkpoint/v1"
PAYLOAD_TYPE = "application/vnd.datasource-governance.checkpoint.v1+json"
CHECKPOINTED = "evidence.checkpointed"
"""Kind of the entry by which a checkpoint itself is evidence; its subject is the checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Every chain's head at an instant, in order of chains.

    `sequence` is the place of its own entry on the tenant's chain, so the head of that chain is the
    entry just before.
    """

    tenant: str
    sequence: int
    at: datetime
    heads: tuple[Head, ...]

    @property
    def id(self) -> Sha256:
        """Digest of the signed bytes."""
        return digest(FORMAT, self.payload())

    @property
    def name(self) -> str:
        """Name of its file: sequence and instant in UTC, so that names sort as they were made."""
        return f"{self.sequence:012d}-{self.at.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}.json"

    def document(self) -> dict[str, Json]:
        """Return the JSON form that is signed."""
        return {
            "format": FORMAT,
            "tenant": self.tenant,
            "sequence": self.sequence,
            "at": self.at.astimezone(UTC).isoformat(),
            "heads": [
                {"chain": head.chain, "sequence": head.sequence, "hash": head.entry_hash}
                for head in self.heads
            ],
        }

    def payload(self) -> bytes:
        """Return the canonical bytes that are signed."""
        return canonical_bytes(self.document())


def read_checkpoint(payload: bytes) -> Checkpoint | None:
    """Return a checkpoint from exactly the bytes that `payload` gave, None from any others."""
    try:
        checkpoint = _checkpoint(load_canonical(payload))
        unaltered = checkpoint.payload() == payload
    except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError):
        return None
    return checkpoint if unaltered else None


def _checkpoint(document: Json) -> Checkpoint:
    if not isinstance(document, dict) or not isinstance(document["heads"], list):
        raise TypeError
    tenant = str(document["tenant"])
    return Checkpoint(
        tenant=tenant,
        sequence=_whole(document["sequence"]),
        at=datetime.fromisoformat(str(document["at"])),
        heads=tuple(_head(tenant, head) for head in document["heads"]),
    )


def _head(tenant: str, document: Json) -> Head:
    if not isinstance(document, dict):
        raise TypeError
    return Head(
        tenant=tenant,
        chain=str(document["chain"]),
        sequence=_whole(document["sequence"]),
        entry_hash=Sha256(str(document["hash"])),
    )


def _whole(value: Json) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedKey:
    """A raw public key whose checkpoints are believed, until it was revoked."""

    public_key: bytes
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCheckpoints:
    """What is kept outside the database: names and contents of files, read as they are asked for.

    `public_key` (32 bytes) pins the one key that may have signed them. Without it every registered
    actor's key may; but who rewrites a whole database also chooses the keys in it.
    """

    files: Iterable[tuple[str, bytes]]
    public_key: bytes | None = None


def open_checkpoint(
    name: str, content: bytes, *, tenant: str, keys: Mapping[Sha256, TrustedKey]
) -> Checkpoint | Break:
    """Return the checkpoint in a kept file, or why it proves nothing about this tenant."""
    envelope = read_envelope(content)
    if envelope is None or envelope.payload_type != PAYLOAD_TYPE:
        return _unusable(BreakKind.ALTERED_CHECKPOINT, name, "it is no checkpoint's envelope")
    key = keys.get(envelope.key)
    if key is None:
        return _unusable(BreakKind.UNTRUSTED_CHECKPOINT, name, "its key is not trusted here")
    if not envelope.is_signed_with(key.public_key):
        return _unusable(BreakKind.ALTERED_CHECKPOINT, name, "its signature is not its content's")
    return _opened(name, envelope, tenant, key)


def _opened(name: str, envelope: Envelope, tenant: str, key: TrustedKey) -> Checkpoint | Break:
    checkpoint = read_checkpoint(envelope.payload)
    if checkpoint is None:
        return _unusable(BreakKind.ALTERED_CHECKPOINT, name, "it cannot be read")
    if checkpoint.tenant != tenant:
        return _unusable(BreakKind.FOREIGN_CHECKPOINT, name, "it is another tenant's")
    if key.revoked_at is not None and checkpoint.at >= key.revoked_at:
        return _unusable(
            BreakKind.UNTRUSTED_CHECKPOINT, name, "its key was revoked before it was made"
        )
    return checkpoint


def _unusable(kind: BreakKind, name: str, message: str) -> Break:
    return Break(kind=kind, table="checkpoint", key=(name,), message=message)
