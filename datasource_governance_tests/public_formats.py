"""Published formats, spelled out again for the second verifier: DSSE, framed digests, row digests.

Shares no line with the package.
"""

import base64
import hashlib
import json
from datetime import datetime, timedelta

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

# How the columns of rows are typed that are no plain text, number, truth value or null.
BYTES = {"schema", "validation", "provenance"}
INSTANTS = {"created_at"}


class RefusedError(Exception):
    """The evidence does not prove what it says."""


def require(holds: bool, what: str) -> None:
    if not holds:
        raise RefusedError(what)


def framed(domain: str, *parts: bytes) -> str:
    state = hashlib.sha256()
    for part in (domain.encode(), *parts):
        state.update(len(part).to_bytes(8, "big") + part)
    return state.hexdigest()


def decoded(text: str) -> bytes:
    data = base64.b64decode(text, validate=True)
    require(base64.b64encode(data).decode() == text, "base64 has one spelling")
    return data


def microseconds(text: str) -> int:
    epoch = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    return (datetime.fromisoformat(text) - epoch) // timedelta(microseconds=1)


def check_signature(public_key: bytes, signature: bytes, data: bytes) -> None:
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, data)
    except (InvalidSignature, ValueError):
        raise RefusedError("a signature is wrong") from None


def key_id(public_key: bytes) -> str:
    return framed("datasource_governance/key/v1", public_key)


def opened(envelope: bytes, exporter: bytes) -> dict:
    """Return the statement in an envelope that the exporter signed."""
    document = json.loads(envelope)
    require(set(document) == {"payload", "payloadType", "signatures"}, "envelope")
    require(document["payloadType"] == "application/vnd.in-toto+json", "payload type")
    (signature,) = document["signatures"]
    require(set(signature) == {"keyid", "sig"}, "signature")
    require(signature["keyid"] == key_id(exporter), "key of the exporter")
    name, payload = document["payloadType"].encode(), decoded(document["payload"])
    encoding = b"DSSEv1 %d %s %d %s" % (len(name), name, len(payload), payload)
    check_signature(exporter, decoded(signature["sig"]), encoding)
    return json.loads(payload)


def committed(table: str, columns: dict) -> str:
    """Return the digest of a row's columns, each with its type."""
    parts: list[bytes] = []
    for name in sorted(columns):
        parts += [name.encode(), *_cell(name, columns[name])]
    return framed(f"datasource_governance/row/{table}/v1", *parts)


def _cell(name: str, value: object) -> tuple[bytes, bytes]:
    if value is None:
        return b"null", b""
    if isinstance(value, bool):
        return b"boolean", b"true" if value else b"false"
    if isinstance(value, int):
        return b"integer", str(value).encode()
    if name in INSTANTS:
        return b"instant", str(microseconds(value)).encode()
    return (b"bytes" if name in BYTES else b"text"), value.encode()
