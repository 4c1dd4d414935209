"""Strict JSON, canonical bytes and framed digests: the one way anything is hashed.

A document is read exactly: whole numbers of any size are `int` however they are spelled, fractions
are the nearest double. Canonical bytes are RFC 8785; an integer outside ±(2^53-1), which RFC 8785
cannot spell, is written as `{"$integer": "<digits>"}`. Digests are SHA-256 over a domain and parts,
each framed with its length, so that no two lists of parts meet.

Source: SPEC section 2 and 2.4; RFC 8785; RFC 6901.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import NewType

import rfc8785

from datasource_governance.errors import InvalidPolicyError, Problem

Sha256 = NewType("Sha256", str)
"""64 lower-case hexadecimal digits."""

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

MAXIMUM_DOCUMENT_BYTES = 1024 * 1024
MAXIMUM_DEPTH = 32
MAXIMUM_EXACT_INTEGER = 2**53 - 1
MAXIMUM_SIGNIFICANT_DIGITS = 17
INTEGER_KEY = "$integer"


def pointer(*parts: str | int) -> str:
    """Return the RFC 6901 pointer of a path; the empty path is the whole document."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def parse_json(text: str | bytes, *, what: str = "document") -> Json:
    """Read one strict JSON document.

    Refused, all at once where they can be told apart: more than 1 MiB, nesting over 32, invalid
    UTF-8, a byte order mark, repeated keys, NaN and Infinity, NUL, lone surrogates, numbers beyond
    double range, fractions with more than 17 significant digits, the reserved key `$integer`.

    Raises:
        InvalidPolicyError: with every problem found; never with a value from the document.

    Source: SPEC section 2, "Strict means".
    """
    source = _decode(text, what)
    reader = _Reader()
    try:
        value = json.loads(
            source,
            object_pairs_hook=reader.pairs,
            parse_int=reader.integer,
            parse_float=reader.number,
            parse_constant=reader.constant,
        )
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise _refused(what, "invalid_json", f"not JSON at {place}: {error.msg}") from None
    except _ConstantError:
        raise _refused(what, "invalid_json", "NaN and Infinity are not JSON") from None
    problems = _walk(value, ())
    if problems:
        raise InvalidPolicyError(what, problems)
    return _plain(value)


def _decode(text: str | bytes, what: str) -> str:
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "surrogatepass"))
    if size > MAXIMUM_DOCUMENT_BYTES:
        raise _refused(what, "invalid_value", f"{size} bytes, the limit is {MAXIMUM_DOCUMENT_BYTES}")
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            message = f"not UTF-8 at byte {error.start + 1}"
            raise _refused(what, "invalid_text", message) from None
    if _nesting(text) > MAXIMUM_DEPTH:
        raise _refused(what, "invalid_value", f"nested deeper than {MAXIMUM_DEPTH}")
    return text


def _nesting(text: str) -> int:
    """Return the deepest nesting without parsing: a parser would recurse on hostile input."""
    depth = deepest = 0
    quoted = escaped = False
    for character in text:
        if quoted:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                quoted = False
        elif character == '"':
            quoted = True
        elif character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


class _ConstantError(ValueError):
    """NaN, Infinity or -Infinity was met."""


class _Pairs(dict[str, object]):
    """An object as read, which still knows the keys that were repeated."""

    repeated: tuple[str, ...] = ()


class _Literal:
    """A number that cannot be represented; kept until its pointer is known."""

    def __init__(self, message: str) -> None:
        self.message = message


class _Reader:
    """The hooks of `json.loads`. They only mark; `_walk` reports with pointers."""

    def pairs(self, pairs: list[tuple[str, object]]) -> _Pairs:
        result = _Pairs(pairs)
        if len(result) != len(pairs):
            seen: set[str] = set()
            repeated = [key for key, _ in pairs if key in seen or seen.add(key)]  # type: ignore[func-returns-value]  # add returns None, which is what makes this a filter
            result.repeated = tuple(dict.fromkeys(repeated))
        return result

    def integer(self, literal: str) -> object:
        return _whole(Decimal(literal))

    def number(self, literal: str) -> object:
        try:
            exact = Decimal(literal)
        except InvalidOperation:
            return _Literal("a number beyond double range")
        return _number(exact)

    def constant(self, _literal: str) -> object:
        raise _ConstantError


def _whole(exact: Decimal) -> object:
    # A double ends at about 1.8e308; anything longer has no number to be.
    if exact.adjusted() > 308 or math.isinf(float(exact)):  # noqa: PLR2004
        return _Literal("a number beyond double range")
    return int(exact)


def _number(exact: Decimal) -> object:
    if exact.is_zero():
        return 0
    if exact.adjusted() > 308:  # noqa: PLR2004
        return _Literal("a number beyond double range")
    stripped = exact.normalize() if len(exact.as_tuple().digits) <= 28 else _strip(exact)  # noqa: PLR2004
    exponent = stripped.as_tuple().exponent
    if isinstance(exponent, int) and exponent >= 0:
        return _whole(exact)
    if len(stripped.as_tuple().digits) > MAXIMUM_SIGNIFICANT_DIGITS:
        return _Literal(f"a fraction with more than {MAXIMUM_SIGNIFICANT_DIGITS} significant digits")
    nearest = float(exact)
    if nearest == 0.0:
        return _Literal("a number beyond double range")
    return nearest


def _strip(exact: Decimal) -> Decimal:
    """Drop trailing zeros without the rounding that `normalize` applies beyond 28 digits."""
    sign, digits, exponent = exact.as_tuple()
    kept = list(digits)
    while len(kept) > 1 and kept[-1] == 0 and isinstance(exponent, int):
        kept.pop()
        exponent += 1
    return Decimal((sign, tuple(kept), exponent))


def _walk(value: object, path: tuple[str | int, ...]) -> list[Problem]:
    if isinstance(value, _Literal):
        return [_problem("invalid_value", path, value.message)]
    if isinstance(value, str):
        reason = text_problem(value)
        return [_problem("invalid_text", path, reason)] if reason else []
    if isinstance(value, list):
        return [found for place, item in enumerate(value) for found in _walk(item, (*path, place))]
    if not isinstance(value, _Pairs):
        return []
    problems = [
        _problem("duplicate_key", (*path, key), f"key {key!r} is repeated", key)
        for key in value.repeated
    ]
    for key, item in value.items():
        if key == INTEGER_KEY:
            problems.append(_problem("unknown_key", (*path, key), f"{key!r} is reserved", key))
        if reason := text_problem(key):
            problems.append(_problem("invalid_text", path, f"a key with {reason}"))
        problems.extend(_walk(item, (*path, key)))
    return problems


def text_problem(text: str) -> str | None:
    """Return why a text cannot be kept (NUL, lone surrogate), or None."""
    if "\x00" in text:
        return "a NUL character"
    if any("\ud800" <= character <= "\udfff" for character in text):
        return "a lone surrogate"
    return None


def _problem(kind: str, path: tuple[str | int, ...], message: str, *names: str) -> Problem:
    return Problem(kind=kind, pointer=pointer(*path), names=names, message=message)


def _plain(value: object) -> Json:
    if isinstance(value, _Pairs):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value  # type: ignore[return-value]  # what is left is a JSON scalar


def _refused(what: str, kind: str, message: str) -> InvalidPolicyError:
    return InvalidPolicyError(what, [Problem(kind=kind, message=message)])


def canonical_bytes(value: object) -> bytes:
    """Return the RFC 8785 spelling of a JSON value; integers beyond ±(2^53-1) are tagged.

    Mappings and sequences of any kind are accepted. Equal values have equal bytes: key order does
    not count, `1` and `1.0` are one number.

    Raises:
        ValueError: for NaN, Infinity, lone surrogates and values JSON has no word for; the message
            holds no value.
    """
    try:
        return rfc8785.dumps(_taggable(value))
    except (rfc8785.CanonicalizationError, UnicodeEncodeError):
        raise ValueError("the value has no canonical JSON form") from None


def _taggable(value: object) -> object:
    if value is None or isinstance(value, (bool, str)):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, float):
        return _taggable(int(value)) if value.is_integer() else value
    if isinstance(value, int):
        exact = abs(value) <= MAXIMUM_EXACT_INTEGER
        return value if exact else {INTEGER_KEY: str(value)}
    if isinstance(value, Mapping):
        return {str(key): _taggable(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [_taggable(item) for item in value]
    raise ValueError("the value has no canonical JSON form")


def load_canonical(data: bytes) -> Json:
    """Read canonical bytes that this package wrote, with tagged integers restored."""
    return _untagged(json.loads(data))


def _untagged(value: Json) -> Json:
    if isinstance(value, dict):
        tagged = value.get(INTEGER_KEY)
        if len(value) == 1 and isinstance(tagged, str):
            return int(tagged)
        return {key: _untagged(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_untagged(item) for item in value]
    return value


def digest(domain: str, *parts: bytes) -> Sha256:
    """Return SHA-256 over the domain and every part, each preceded by its length in 8 bytes.

    Different lists of parts never give the same input: ("a", "bc") and ("ab", "c") are framed apart.
    """
    state = hashlib.sha256()
    for part in (domain.encode(), *parts):
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    return Sha256(state.hexdigest())


def document_digest(domain: str, value: object) -> Sha256:
    """Return the digest of one JSON value's canonical bytes."""
    return digest(domain, canonical_bytes(value))
