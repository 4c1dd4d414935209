"""The kinds of value that a key of a strict document can have, and the place a reader stands at.

A kind is a declaration: its attributes are what a JSON Schema says. `read` returns the value as the
domain keeps it, or reports why it cannot at its place and returns None, so that one pass over a
document finds everything that is wrong with it.

Source: SPEC section 2, "Strict means"; acceptance decision POLICY_STRICT.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

from datasource_governance.domain.canonical import Json
from datasource_governance.domain.strict_json import pointer
from datasource_governance.errors import Problem

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Member = TypeVar("Member", bound=StrEnum)

_MAXIMUM_QUOTED = 40


class Kind(Protocol[T_co]):
    """What a value must be. `expected` completes the sentence "expected …"."""

    @property
    def expected(self) -> str:
        """What must be there, in words."""
        ...

    def read(self, value: Json, place: "Place") -> T_co | None:
        """Return the value in its domain form; report at `place` what is wrong with it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in the document the reader is, whose part that is, and what was found so far.

    `pointer` is its RFC 6901 pointer, `owner` the id of the named object around it and `key` the
    nearest key below that. `problems` and `owners` (ids by pointer) are shared by all places of a
    document. Values at `unreadable` pointers are reported already and are not read again.
    """

    problems: list[Problem]
    unreadable: frozenset[str]
    owners: dict[str, str] = field(default_factory=dict)
    pointer: str = ""
    owner: tuple[str, ...] = ()
    key: tuple[str, ...] = ()

    def at(self, part: str | int) -> "Place":
        """Return the place of a member or an item."""
        # Spelled out, not dataclasses.replace: this is once per value of a document.
        return Place(
            problems=self.problems,
            unreadable=self.unreadable,
            owners=self.owners,
            pointer=self.pointer + pointer(part),
            owner=self.owner,
            key=(part,) if isinstance(part, str) else self.key,
        )

    def owned_by(self, owner: Json) -> "Place":
        """Return this place with the id that its problems name, if it is a text."""
        if not isinstance(owner, str):
            return self
        self.owners[self.pointer] = owner
        return replace(self, owner=(owner,), key=())

    def read(self, kind: Kind[T], value: Json) -> T | None:
        """Read the value that is here, unless it is reported already."""
        return None if self.pointer in self.unreadable else kind.read(value, self)

    def report(self, kind: str, message: str, *names: str) -> None:
        """Add a problem; it names the owner, the key, and `names`."""
        unique = dict.fromkeys((*self.owner, *self.key, *names))
        self.problems.append(
            Problem(kind=kind, pointer=self.pointer, names=tuple(unique), message=message)
        )

    def adopt(self, problems: Iterable[Problem]) -> None:
        """Add the problems of a document that is written out at this place."""
        for problem in problems:
            here = self.pointer + problem.pointer
            if here not in self.unreadable:
                self.problems.append(replace(problem, pointer=here))

    def refuse(self, kind: Kind[T], value: Json) -> T | None:
        """Report that the value is not of the kind; return None, for the kind to return."""
        self.report("invalid_value", f"expected {kind.expected}, got {_spelled(value)}")
        return None


def _spelled(value: Json) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return "an object"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= _MAXIMUM_QUOTED else f"{text[:_MAXIMUM_QUOTED]}…"


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false; neither 0 and 1 nor texts."""

    expected: str = "true or false"

    def read(self, value: Json, place: Place) -> bool | None:
        """Return the boolean."""
        return value if isinstance(value, bool) else place.refuse(self, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """An integer, however it is spelled; both limits are inclusive."""

    minimum: int
    maximum: int | None = None

    @property
    def expected(self) -> str:
        """The limits in words."""
        if self.maximum is None:
            return f"an integer of {self.minimum} or more"
        return f"an integer from {self.minimum} to {self.maximum}"

    def read(self, value: Json, place: Place) -> int | None:
        """Return the integer."""
        if not isinstance(value, int) or isinstance(value, bool):
            return place.refuse(self, value)
        if value < self.minimum or (self.maximum is not None and value > self.maximum):
            return place.refuse(self, value)
        return value


@dataclass(frozen=True, slots=True)
class Bound:
    """A number: an integer of any size, or the nearest double."""

    expected: str = "a number"

    def read(self, value: Json, place: Place) -> int | float | None:
        """Return the number."""
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return value
        return place.refuse(self, value)


@dataclass(frozen=True, slots=True)
class CodeMember:
    """A member of a code set; an empty text is one, null, a list or an object is not."""

    expected: str = "a text, a number, true or false"

    def read(self, value: Json, place: Place) -> bool | int | float | str | None:
        """Return the code with its type: `true`, `1` and `"1"` are three codes."""
        if value is None or isinstance(value, (list, dict)):
            place.refuse(self, value)
            return None
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text that matches `pattern` as a whole, without control characters unless they are allowed.

    `maximum` counts code points, `maximum_bytes` those of UTF-8. Nothing is trimmed, folded or
    normalised.
    """

    expected: str
    pattern: str = r"[\s\S]*\S[\s\S]*"
    maximum: int | None = None
    maximum_bytes: int | None = None
    allows_control_characters: bool = False

    def read(self, value: Json, place: Place) -> str | None:
        """Return the text as it is."""
        if not isinstance(value, str) or not re.fullmatch(self.pattern, value):
            return place.refuse(self, value)
        if self.maximum is not None and len(value) > self.maximum:
            place.report("invalid_value", f"expected {self.expected}, got {len(value)} characters")
            return None
        if self.maximum_bytes is not None and len(value.encode()) > self.maximum_bytes:
            place.report("invalid_value", f"expected {self.expected}, got {len(value.encode())}")
            return None
        if not self.allows_control_characters and _has_control_character(value):
            place.report("invalid_text", f"expected {self.expected}, got a control character")
            return None
        return value


def _has_control_character(text: str) -> bool:
    return any(unicodedata.category(character) == "Cc" for character in text)


@dataclass(frozen=True, slots=True)
class Choice(Generic[Member]):
    """One of the words of an enumeration, exactly as it spells them."""

    members: type[Member]

    @property
    def expected(self) -> str:
        """The words, in the enumeration's order."""
        return f"one of {', '.join(self.members)}"

    def read(self, value: Json, place: Place) -> Member | None:
        """Return the member."""
        if isinstance(value, str) and value in set(self.members):
            return self.members(value)
        return place.refuse(self, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf(Generic[T_co]):
    """A list, kept as a tuple in the order of the document; both limits are inclusive.

    With `repeated`, a problem kind, no two items may be the same text; with `distinct_by`, no two
    objects in it may have the same text at that key.
    """

    item: Kind[T_co]
    expected: str
    minimum: int = 0
    maximum: int | None = None
    repeated: str | None = None
    distinct_by: str | None = None

    def read(self, value: Json, place: Place) -> tuple[T_co, ...] | None:
        """Return the items; what is wrong with each is reported at its own place."""
        if not isinstance(value, list):
            return place.refuse(self, value)
        if len(value) < self.minimum or (self.maximum is not None and len(value) > self.maximum):
            return place.refuse(self, value)
        if self.repeated is not None:
            self._report_repeated(value, place, self.repeated)
        items = [place.at(index).read(self.item, item) for index, item in enumerate(value)]
        return tuple(item for item in items if item is not None)

    def _report_repeated(self, value: list[Json], place: Place, kind: str) -> None:
        first: dict[str, Place] = {}
        for index, item in enumerate(value):
            here, text = place.at(index), item
            if self.distinct_by is not None:
                here = here.at(self.distinct_by)
                text = item.get(self.distinct_by) if isinstance(item, dict) else None
            if not isinstance(text, str):
                continue
            if text in first:
                here.report(kind, f"{text!r} is repeated, first at {first[text].pointer}", text)
            first.setdefault(text, here)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOf(Generic[T_co]):
    """An object whose keys the author chooses; it keeps its order and cannot be changed."""

    key: Kind[str]
    item: Kind[T_co]
    expected: str

    def read(self, value: Json, place: Place) -> Mapping[str, T_co] | None:
        """Return the members; a key is reported at the place of its value."""
        if not isinstance(value, dict):
            return place.refuse(self, value)
        kept: dict[str, T_co] = {}
        for name, member in value.items():
            key, item = self.key.read(name, place.at(name)), place.at(name).read(self.item, member)
            if key is not None and item is not None:
                kept[key] = item
        return MappingProxyType(kept)
