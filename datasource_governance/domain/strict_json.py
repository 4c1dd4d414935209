"""Strict JSON: a document is read exactly, or refused with everything that is wrong with it.

Whole numbers are `int` however they are spelled (`10`, `10.0`, `1e1`), fractions are the nearest
double.

Source: SPEC section 2, "Strict means", and 2.4; RFC 8259; RFC 6901.
"""

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from itertools import takewhile

from datasource_governance.domain.canonical import INTEGER_KEY, Json, canonical_bytes
from datasource_governance.errors import InvalidPolicyError, Problem

MAXIMUM_DOCUMENT_BYTES = 1024 * 1024
MAXIMUM_DEPTH = 32
MAXIMUM_SIGNIFICANT_DIGITS = 17

_TEXT_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)
_LARGEST_DOUBLE = int(sys.float_info.max)
_TOO_FAR = "a number beyond double range"
_TOO_FINE = f"a fraction with more than {MAXIMUM_SIGNIFICANT_DIGITS} significant digits"
_TOO_DEEP = f"nested deeper than {MAXIMUM_DEPTH}"

_Path = tuple[str | int, ...]


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
    value, problems = read_json(text, what=what)
    if problems:
        raise InvalidPolicyError(what, problems)
    return value


def read_json(document: object, *, what: str = "document") -> tuple[Json, list[Problem]]:
    """Read like `parse_json`, but return the problems that have a place in the document.

    For a reader who knows what the document means and reports more problems together with these.
    A value with a problem reads as null, a key with one is left out, and of a repeated key the last
    value is kept. A document that is neither
    text nor bytes counts as parsed already, and is held to the same limits.

    Raises:
        InvalidPolicyError: when nothing can be read: not JSON, not UTF-8, too large, too deep.
    """
    problems: list[Problem] = []
    if isinstance(document, (str, bytes)):
        text = _decode(document, what)
        return _read(_load(text, what), (), problems), problems
    value = _read(document, (), problems)
    if not problems:
        _check_size(len(canonical_bytes(value)), what)
    return value, problems


def _decode(text: str | bytes, what: str) -> str:
    if isinstance(text, str):
        _check_size(len(text.encode("utf-8", "surrogatepass")), what)
        return text
    _check_size(len(text), what)
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"not UTF-8 at byte {error.start + 1}"
    raise _refused(what, "invalid_text", message)


def _load(text: str, what: str) -> object:
    if _nesting(text) > MAXIMUM_DEPTH:
        raise _refused(what, "invalid_value", _TOO_DEEP)
    try:
        return json.loads(
            text,
            object_pairs_hook=_Pairs,
            parse_int=_exact,
            parse_float=_exact,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        message = f"not JSON at line {error.lineno}, column {error.colno}: {error.msg}"
    except _ConstantError:
        message = "NaN and Infinity are not JSON"
    raise _refused(what, "invalid_json", message)


def _check_size(size: int, what: str) -> None:
    if size > MAXIMUM_DOCUMENT_BYTES:
        raise _refused(
            what, "invalid_value", f"{size} bytes, the limit is {MAXIMUM_DOCUMENT_BYTES}"
        )


def _refused(what: str, kind: str, message: str) -> InvalidPolicyError:
    return InvalidPolicyError(what, [Problem(kind=kind, message=message)])


def _nesting(text: str) -> int:
    """Return the deepest nesting without parsing: a parser would recurse on hostile input."""
    depth = deepest = 0
    for token in _TEXT_OR_BRACKET.finditer(text):
        if token[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif token[0] in "]}":
            depth -= 1
    return deepest


class _ConstantError(ValueError):
    """NaN, Infinity or -Infinity was met."""


def _refuse_constant(_literal: str) -> object:
    raise _ConstantError


class _Pairs(dict[str, object]):
    """An object as read, which still knows the keys that were repeated."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        counts = Counter(key for key, _ in pairs) if len(self) != len(pairs) else {}
        self.repeated = [_shown(key) for key, count in counts.items() if count > 1]


class _Unrepresentable:
    """A number that is no integer and no double; kept until its pointer is known."""

    def __init__(self, message: str) -> None:
        self.message = message


def _exact(literal: str) -> int | float | _Unrepresentable:
    # Decimal keeps every digit of a literal; only its arithmetic would round, so none is used.
    try:
        exact = Decimal(literal)
    except InvalidOperation:
        return _Unrepresentable(_TOO_FAR)
    nearest = float(exact)
    if math.isinf(nearest) or (nearest == 0.0 and not exact.is_zero()):
        return _Unrepresentable(_TOO_FAR)
    _, digits, exponent = exact.as_tuple()
    zeros = sum(1 for _ in takewhile(lambda digit: digit == 0, reversed(digits)))
    if isinstance(exponent, int) and exponent + zeros >= 0:
        return int(exact)
    if len(digits) - zeros > MAXIMUM_SIGNIFICANT_DIGITS:
        return _Unrepresentable(_TOO_FINE)
    return nearest


def _read(value: object, path: _Path, problems: list[Problem]) -> Json:
    """Return the plain value; report what cannot be kept, each with its place."""
    if isinstance(value, (Mapping, list, tuple)) and len(path) >= MAXIMUM_DEPTH:
        problems.append(_problem("invalid_value", path, _TOO_DEEP))
        return None
    if isinstance(value, Mapping):
        return _read_object(value, path, problems)
    if isinstance(value, (list, tuple)):
        return [_read(item, (*path, place), problems) for place, item in enumerate(value)]
    return _read_scalar(value, path, problems)


def _read_object(value: Mapping[object, object], path: _Path, problems: list[Problem]) -> Json:
    repeated = value.repeated if isinstance(value, _Pairs) else []
    problems.extend(
        _problem("duplicate_key", (*path, key), f"key {key!r} is repeated") for key in repeated
    )
    kept: dict[str, Json] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            problems.append(_problem("invalid_value", path, "a key that is not a text"))
        elif reason := text_problem(key):
            problems.append(_problem("invalid_text", (*path, _shown(key)), f"a key with {reason}"))
        elif key == INTEGER_KEY:
            problems.append(_problem("unknown_key", (*path, key), f"key {key!r} is reserved"))
        else:
            kept[str(key)] = _read(item, (*path, str(key)), problems)
    return kept


def _read_scalar(value: object, path: _Path, problems: list[Problem]) -> Json:
    problem = _scalar_problem(value)
    if problem is not None:
        kind, message = problem
        problems.append(_problem(kind, path, message))
        return None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value  # type: ignore[return-value]  # no problem: null, a boolean or a number


def _scalar_problem(value: object) -> tuple[str, str] | None:
    if isinstance(value, str):
        reason = text_problem(value)
        return ("invalid_text", reason) if reason else None
    if isinstance(value, _Unrepresentable):
        return ("invalid_value", value.message)
    if isinstance(value, float) and not math.isfinite(value):
        return ("invalid_value", "NaN and Infinity are not JSON")
    if isinstance(value, int) and abs(value) > _LARGEST_DOUBLE:
        return ("invalid_value", _TOO_FAR)
    known = value is None or isinstance(value, (int, float))
    return None if known else ("invalid_value", "not a JSON value")


def text_problem(text: str) -> str | None:
    """Return why a text cannot be kept (NUL, lone surrogate), or None."""
    if "\x00" in text:
        return "a NUL character"
    if any("\ud800" <= character <= "\udfff" for character in text):
        return "a lone surrogate"
    return None


def _shown(key: str) -> str:
    """Return a key that can be printed and stored: a problem must not have what it reports."""
    return ascii(key)[1:-1] if text_problem(key) else key


def _problem(kind: str, path: _Path, message: str) -> Problem:
    keys = [part for part in path if isinstance(part, str)]
    return Problem(kind=kind, pointer=pointer(*path), names=tuple(keys[-1:]), message=message)
