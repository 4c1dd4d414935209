"""DSSE envelopes: a payload of a named type under one Ed25519 signature.

Signed is the pre-authentication encoding, which frames type and payload by their lengths, so that
bytes signed as one type never pass for another.

Source: DSSE v1.0 (protocol.md, envelope.md); SPEC section 13; RFC 8032.
"""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass

from datasource_governance.domain.canonical import Json, Sha256, canonical_bytes, load_canonical


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A payload and its signature. `key` is the id of the public key that verifies it."""

    payload_type: str
    payload: bytes
    key: Sha256
    signature: bytes

    def document(self) -> dict[str, Json]:
        """Return the envelope in DSSE's JSON form."""
        return {
            "payload": base64.b64encode(self.payload).decode(),
            "payloadType": self.payload_type,
            "signatures": [{"keyid": self.key, "sig": base64.b64encode(self.signature).decode()}],
        }

    def encoded(self) -> bytes:
        """Return the one spelling in which an envelope is written to a file."""
        return canonical_bytes(self.document())

    def is_signed_with(self, public_key: bytes) -> bool:
        """Tell whether the owner of this raw 32-byte public key made the signature."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        signed = pre_authentication_encoding(self.payload_type, self.payload)
        try:
            Ed25519PublicKey.from_public_bytes(public_key).verify(self.signature, signed)
        except (InvalidSignature, ValueError):
            return False
        return True


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """Return the bytes that DSSE signs: `DSSEv1 <length> <type> <length> <payload>`."""
    name = payload_type.encode()
    return b" ".join((b"DSSEv1", b"%d" % len(name), name, b"%d" % len(payload), payload))


def seal(
    payload_type: str, payload: bytes, *, key: Sha256, sign: Callable[[bytes], bytes]
) -> Envelope:
    """Return the envelope that `sign`, which makes the signatures of `key`, gives a payload."""
    signature = sign(pre_authentication_encoding(payload_type, payload))
    return Envelope(payload_type=payload_type, payload=payload, key=key, signature=signature)


def read_envelope(content: bytes) -> Envelope | None:
    """Return an envelope from exactly the bytes that `encoded` gave, None from any others."""
    try:
        envelope = _envelope(load_canonical(content))
    except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError, binascii.Error):
        return None
    return envelope if envelope.encoded() == content else None


def _envelope(document: Json) -> Envelope:
    if not isinstance(document, dict) or not isinstance(document["signatures"], list):
        raise TypeError
    (signature,) = document["signatures"]
    if not isinstance(signature, dict):
        raise TypeError
    return Envelope(
        payload_type=str(document["payloadType"]),
        payload=base64.b64decode(str(document["payload"]), validate=True),
        key=Sha256(str(signature["keyid"])),
        signature=base64.b64decode(str(signature["sig"]), validate=True),
    )
