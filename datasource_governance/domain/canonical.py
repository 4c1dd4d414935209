"""Canonical bytes and framed digests: the one way anything is hashed.

Canonical bytes are RFC 8785; an integer outside ±(2^53-1), which RFC 8785 cannot spell, is written
as `{"$integer": "<digits>"}`. Digests are SHA-256 over a domain and parts, each framed with its
length, so that no two lists of parts meet.

Source: SPEC section 2.4; RFC 8785.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NewType

import rfc8785

Sha256 = NewType("Sha256", str)
"""64 lower-case hexadecimal digits."""

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

MAXIMUM_EXACT_INTEGER = 2**53 - 1
INTEGER_KEY = "$integer"
_INTEGER = re.compile("-?[1-9][0-9]*")
_quoted = json.encoder.encode_basestring
"""Escapes what RFC 8785 does, and so."""


def canonical_bytes(value: object) -> bytes:
    """Return the RFC 8785 spelling of a JSON value; integers beyond ±(2^53-1) are tagged.

    Mappings and sequences of any kind are accepted. Values are equal exactly when their bytes are:
    key order does not count, `1` and `1.0` are one number. To keep that true of an object with the
    key `$integer`, which no strict document has, the key gets one more `$` in front.

    Raises:
        ValueError: for NaN, Infinity, lone surrogates, keys that are not texts, nesting beyond the
            interpreter's limit and values JSON has no word for; the message holds no value, and
            nothing is chained.
    """
    try:
        return _spelled(value).encode()
    except (ValueError, RecursionError):
        # CanonicalizationError and UnicodeEncodeError are ValueErrors; both quote the value.
        pass
    raise ValueError("the value has no canonical JSON form")


def _spelled(value: object) -> str:
    """Return the text of a value. The library walks it several times, so it spells floats only."""
    if isinstance(value, str):
        return _quoted(value)
    if value is None:
        return "null"
    if isinstance(value, int):
        return _spelled_integer(value)
    if isinstance(value, float):
        whole = value.is_integer()
        return _spelled_integer(int(value)) if whole else rfc8785.dumps(value).decode()
    if isinstance(value, (dict, Mapping)):
        return _spelled_object(value)
    if isinstance(value, (list, Sequence)) and not isinstance(value, (bytes, bytearray)):
        return f"[{','.join(map(_spelled, value))}]"
    raise ValueError


def _spelled_integer(value: int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if abs(value) <= MAXIMUM_EXACT_INTEGER:
        return int.__repr__(value)
    # Not str(value): the interpreter refuses to print more than 4300 digits.
    return f'{{"{INTEGER_KEY}":"{Decimal(value):f}"}}'


def _spelled_object(value: Mapping[object, object]) -> str:
    named = {_escaped(key): item for key, item in value.items()}
    in_order = sorted(named) if all(map(str.isascii, named)) else sorted(named, key=_units)
    members = [f"{_quoted(name)}:{_spelled(named[name])}" for name in in_order]
    return f"{{{','.join(members)}}}"


def _units(name: str) -> bytes:
    """Return what the names of an object are ordered by: UTF-16 code units."""
    return name.encode("utf-16-be")


def _escaped(key: object) -> str:
    if not isinstance(key, str):
        raise ValueError  # noqa: TRY004 - canonical_bytes promises one kind of error
    return f"${key}" if key.startswith("$") and _is_escaped(f"${key}") else str(key)


def _is_escaped(key: str) -> bool:
    """Tell whether it is `$integer` with one `$` or more in front."""
    return key.startswith("$$") and key.lstrip("$") == INTEGER_KEY.lstrip("$")


def load_canonical(data: bytes) -> Json:
    """Read canonical bytes that this package wrote, with tagged integers restored."""
    return _untagged(json.loads(data))


def load_object(data: bytes) -> dict[str, Json]:
    """Read canonical bytes of a JSON object that this package wrote.

    Raises:
        TypeError: they are of another JSON value.
    """
    document = load_canonical(data)
    if not isinstance(document, dict):
        raise TypeError("what is kept is no JSON object")
    return document


def _untagged(value: Json) -> Json:
    if isinstance(value, dict):
        tagged = value.get(INTEGER_KEY)
        if isinstance(tagged, str) and _INTEGER.fullmatch(tagged):
            return int(Decimal(tagged))
        return {
            key[1:] if _is_escaped(key) else key: _untagged(item) for key, item in value.items()
        }
    if isinstance(value, list):
        return [_untagged(item) for item in value]
    return value


def digest(domain: str, *parts: bytes) -> Sha256:
    """Return SHA-256 over the domain and every part, each preceded by its length in 8 bytes.

    Different lists of parts never give the same input: ("a", "bc") and ("ab", "c") are framed
    apart.
    """
    state = hashlib.sha256()
    for part in (domain.encode(), *parts):
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    return Sha256(state.hexdigest())


def document_digest(domain: str, value: object) -> Sha256:
    """Return the digest of one JSON value's canonical bytes."""
    return digest(domain, canonical_bytes(value))
