"""Cells of object columns: which kind a value is, and its canonical bytes.

Two cells are equal exactly when kind and bytes are equal. The bytes, by kind:

- number: the one shortest decimal spelling of the exact value, zeros at the end moved into an
  exponent: `1`, `1.0` and `Decimal("1.00")` are `1`; `100` is `1E+2`; `0.5` is `0.5`; the double
  `0.1` is all 55 digits that it really has. Zero has no sign. Infinities are `inf` and `-inf`.
- string: UTF-8. boolean: `true`, `false`. binary: the bytes.
- date, time: ISO 8601. datetime: nanoseconds since 1970-01-01, with `Z` where the value has an
  offset; an instant is the same in every time zone, a local time never equals an instant.
- list, object: canonical JSON of the members, each under its kind.

None, NaN, NaT and pandas' NA are no values, in lists and objects too.

Source: SPEC section 3; decisions NAN_IS_NULL, TYPED_MATCH, NESTED_VALUES.
"""

import datetime as dt
import re
from collections.abc import Callable, Mapping
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple

from datasource_governance.domain.canonical import canonical_bytes

NUMBER = "number"
STRING = "string"
BOOLEAN = "boolean"
DATE = "date"
DATETIME = "datetime"
TIME = "time"
BINARY = "binary"
LIST = "list"
OBJECT = "object"

MAXIMUM_NESTING = 16
_FARTHEST_EXPONENT = 400

_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_SURROGATE = re.compile("[\ud800-\udfff]")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Instant(NamedTuple):
    """A datetime as exact nanoseconds since 1970-01-01, in UTC where it has an offset."""

    nanoseconds: int
    has_offset: bool


class UnsupportedCellError(ValueError):
    """A value has no kind or no canonical bytes. Holds nothing of the value."""


# The order matters: a bool is an int, a datetime is a date.
_CLASSES: Final[Mapping[str, tuple[type, ...]]] = {
    BOOLEAN: (bool,),
    NUMBER: (int, float, Decimal),
    STRING: (str,),
    DATETIME: (Instant,),
    LIST: (list,),
    DATE: (dt.date,),
    TIME: (dt.time,),
    BINARY: (bytes,),
    OBJECT: (dict,),
}
KINDS: Final = frozenset(_CLASSES)


@lru_cache(maxsize=256)
def kind_of_class(cls: type) -> str | None:
    """Return the kind of the plain values of a class, or None if it has none."""
    for kind, classes in _CLASSES.items():
        if issubclass(cls, classes):
            return kind
    return None


def plain(value: object, depth: int = 1) -> object:
    """Return a value in its plain class, None where it is missing, members likewise.

    NumPy scalars become Python's, arrays and tuples lists, datetimes an `Instant`.

    Raises:
        UnsupportedCellError: a value of no kind, a text with a lone surrogate, a key that is no
            text, a time of day with a zone, members nested deeper than 16.
    """
    if value is None:
        return None
    if depth > MAXIMUM_NESTING:
        raise UnsupportedCellError
    value = _from_numpy(value)
    if convert := _plain_form(type(value)):  # type: ignore[arg-type]  # a class is hashable
        return convert(value, depth)
    if type(value).__name__ in {"NaTType", "NAType"} and type(value).__module__.startswith(
        "pandas"
    ):
        return None
    raise UnsupportedCellError


def _from_numpy(value: object) -> object:
    # Looked at by name: a value can only be of NumPy's classes when NumPy is loaded.
    if type(value).__module__ != "numpy":
        return value
    import numpy as np
    import pandas as pd

    if isinstance(value, np.ndarray):
        return list(value) if value.ndim else value.item()
    if isinstance(value, np.datetime64):
        return pd.Timestamp(value)
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        return value.item()
    return value


def _plain_float(value: float, _depth: int) -> float | None:
    return None if value != value else value  # noqa: PLR0124 - only NaN differs from itself


def _plain_decimal(value: Decimal, _depth: int) -> Decimal | None:
    return None if value.is_nan() else value


def _plain_text(value: str, _depth: int) -> str:
    if _SURROGATE.search(value):
        raise UnsupportedCellError
    return value


def _plain_datetime(value: dt.datetime, _depth: int) -> Instant | None:
    nanosecond = getattr(value, "nanosecond", 0)
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime(warn=False)
    has_offset = value.utcoffset() is not None
    if not has_offset:
        value = value.replace(tzinfo=dt.UTC)
    microseconds = (value - _EPOCH) // dt.timedelta(microseconds=1)
    return Instant(microseconds * 1000 + nanosecond, has_offset)


def _plain_time(value: dt.time, _depth: int) -> dt.time:
    if value.tzinfo is not None:
        raise UnsupportedCellError
    return value


def _plain_list(value: list[object] | tuple[object, ...], depth: int) -> list[object]:
    return [plain(member, depth + 1) for member in value]


def _plain_dict(value: dict[object, object], depth: int) -> dict[str, object]:
    if not all(isinstance(key, str) and not _SURROGATE.search(key) for key in value):
        raise UnsupportedCellError
    return {str(key): plain(member, depth + 1) for key, member in value.items()}


def _unchanged(value: object, _depth: int) -> object:
    return value


def _plain_bytes(value: bytes | bytearray | memoryview, _depth: int) -> bytes:
    return bytes(value)


_PLAIN_FORMS: Final[tuple[tuple[type | tuple[type, ...], Callable[..., object]], ...]] = (
    (str, _plain_text),
    ((bool, int), _unchanged),
    (float, _plain_float),
    (Decimal, _plain_decimal),
    (dt.datetime, _plain_datetime),
    (dt.date, _unchanged),
    (dt.time, _plain_time),
    ((bytes, bytearray, memoryview), _plain_bytes),
    ((list, tuple), _plain_list),
    (dict, _plain_dict),
)


@lru_cache(maxsize=256)
def _plain_form(cls: type) -> Callable[..., object] | None:
    if cls.__name__ == "NaTType":  # it is a datetime, too
        return None
    for classes, convert in _PLAIN_FORMS:
        if issubclass(cls, classes):
            return convert
    return None


def canonical_cell(value: object) -> tuple[str, bytes]:
    """Return kind and canonical bytes of a plain value that is not missing."""
    kind = kind_of_class(type(value))  # type: ignore[arg-type]  # a class is hashable
    if kind is None:
        raise UnsupportedCellError
    return kind, _SPELLINGS[kind](value)


def _spelled_number(value: float | Decimal) -> bytes:
    exact = Decimal(value)
    if exact.is_infinite():
        return b"inf" if exact > 0 else b"-inf"
    return str(exact.normalize(_EXACT)).encode() if exact else b"0"


def _spelled_instant(value: Instant) -> bytes:
    return f"{value.nanoseconds}{'Z' if value.has_offset else ''}".encode()


def _spelled_members(value: object) -> bytes:
    return canonical_bytes(_document(value))


def _document(value: object) -> object:
    if value is None:
        return None
    if isinstance(value, dict):
        return {OBJECT: {key: _document(member) for key, member in value.items()}}
    if isinstance(value, list):
        return {LIST: [_document(member) for member in value]}
    kind, spelling = canonical_cell(value)
    return {kind: spelling.hex() if kind == BINARY else spelling.decode()}


_SPELLINGS: Final[Mapping[str, Callable[..., bytes]]] = {
    NUMBER: _spelled_number,
    STRING: lambda value: value.encode(),
    BOOLEAN: lambda value: b"true" if value else b"false",
    DATE: lambda value: value.isoformat().encode(),
    DATETIME: _spelled_instant,
    TIME: lambda value: value.isoformat(timespec="microseconds").encode(),
    BINARY: lambda value: value,
    LIST: _spelled_members,
    OBJECT: _spelled_members,
}


def number_from_canonical(spelling: bytes) -> Fraction | float:
    """Return the exact value of a canonical number; infinities as `float`.

    A magnitude outside 10^±400, where no bound of a policy can lie, is returned as the limit: every
    comparison with a bound stays right, and no spelling can ask for a gigabyte of digits.

    Raises:
        ValueError: for bytes that are no number; the message holds nothing of them.
    """
    try:
        exact = Decimal(spelling.decode("ascii"))
    except (UnicodeDecodeError, InvalidOperation):
        exact = Decimal("nan")
    if exact.is_nan():
        raise ValueError("not a canonical number")
    if exact.is_infinite():
        return float(exact)
    if exact and abs(exact.adjusted()) > _FARTHEST_EXPONENT:
        exponent = _FARTHEST_EXPONENT if exact.adjusted() > 0 else -_FARTHEST_EXPONENT
        return Fraction(10) ** exponent * (1 if exact > 0 else -1)
    return Fraction(exact)


def is_canonical_number(spelling: bytes) -> bool:
    """Tell whether bytes are the one spelling of a number."""
    try:
        exact = Decimal(spelling.decode("ascii"))
        return not exact.is_nan() and _spelled_number(exact) == spelling
    except (UnicodeDecodeError, InvalidOperation):
        return False
