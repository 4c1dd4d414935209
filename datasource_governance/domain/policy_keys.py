"""The table of keys of a strict document, and the one reader over it.

A document is declared as `Record`s of `Key`s. The reader refuses every key that the table does not
have, and reports all problems of a document at once, each with its JSON pointer, its kind, what it
is about and what was expected. The same table is what a JSON Schema is generated from.

Source: SPEC section 2; acceptance decision POLICY_STRICT.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Generic, Protocol, TypeVar

from datasource_governance.domain.canonical import Json, canonical_bytes
from datasource_governance.domain.policy_values import Kind, Place, Text
from datasource_governance.domain.strict_json import read_json
from datasource_governance.errors import InvalidPolicyError, Problem

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Key:
    """One key of an object. `default` is what its absence means, in the domain's form.

    `meaning` is a sentence for people in an editor; keys of policies have theirs in `json_schema`.
    """

    name: str
    kind: Kind[object]
    required: bool = False
    default: object = None
    meaning: str = ""


MAXIMUM_ID_CHARACTERS = 128
VERSION = Key(
    "version",
    Text(
        expected=f"a printable text of 1 to {MAXIMUM_ID_CHARACTERS} characters, not blank",
        maximum=MAXIMUM_ID_CHARACTERS,
    ),
    required=True,
)
"""What the author calls this version of a policy; every policy has it."""

FIELD_NAME = Text(expected="a field name that is not blank", allows_control_characters=True)
"""The name of a field, compared code point by code point."""

POLICY_REF = Key("policy_ref", Text(expected="a printable text that is not blank"))
"""Where the policy is agreed outside of this system; kept and shown, never followed."""


class Constraint(Protocol):
    """A condition on several keys of one object."""

    def check(self, given: Collection[str], values: Mapping[str, object], place: Place) -> None:
        """Report at `place` if the condition does not hold."""
        ...


@dataclass(frozen=True, slots=True)
class AtLeastOne:
    """One of the keys must be given; all of them may."""

    keys: tuple[str, ...]

    def check(self, given: Collection[str], _values: Mapping[str, object], place: Place) -> None:
        """Report `missing_key` at the object."""
        if not any(key in given for key in self.keys):
            choice = " or ".join(self.keys)
            place.report("missing_key", f"at least one of {choice} is required", *self.keys)


@dataclass(frozen=True, slots=True)
class ExactlyOne:
    """One of the keys must be given, and no other of them."""

    keys: tuple[str, ...]

    def check(self, given: Collection[str], _values: Mapping[str, object], place: Place) -> None:
        """Report `missing_key` or `conflicting_keys` at the object."""
        found = [key for key in self.keys if key in given]
        if not found:
            place.report("missing_key", f"one of {' or '.join(self.keys)} is required", *self.keys)
        elif len(found) > 1:
            place.report(
                "conflicting_keys", f"only one of {' and '.join(found)} may be given", *found
            )


@dataclass(frozen=True, slots=True)
class Ordered:
    """The first number must not exceed the second; equal ones are in order."""

    low: str
    high: str

    def check(self, _given: Collection[str], values: Mapping[str, object], place: Place) -> None:
        """Report `bounds_reversed` at the object."""
        low, high = values[self.low], values[self.high]
        if isinstance(low, (int, float)) and isinstance(high, (int, float)) and low > high:
            message = f"{self.low} {low} is above {self.high} {high}"
            place.report("bounds_reversed", message, self.low, self.high)


@dataclass(frozen=True, slots=True)
class Different:
    """The two values, or what their absence means, must not be the same."""

    first: str
    second: str

    def check(self, _given: Collection[str], values: Mapping[str, object], place: Place) -> None:
        """Report `conflicting_keys` at the object."""
        if values[self.first] is not None and values[self.first] == values[self.second]:
            message = f"{self.first} and {self.second} must differ"
            place.report("conflicting_keys", message, self.first, self.second)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Generic[T_co]):
    """An object with known keys, from which `build` makes a domain value.

    `build` gets every key of the table by name, defaults filled in, and only when the document has
    no problem. `named_by` is the key whose text names the object in problems. With `keeps_bytes`,
    `build` also gets `canonical`, the bytes of the object as authored. An object that `is_open` may
    have other keys, one that `may_be_empty` needs its required keys only when it has any.
    """

    keys: tuple[Key, ...]
    build: Callable[..., T_co]
    constraints: tuple[Constraint, ...] = ()
    named_by: str | None = None
    keeps_bytes: bool = False
    is_open: bool = False
    may_be_empty: bool = False
    expected: str = "an object"

    def read(self, value: Json, place: Place) -> T_co | None:
        """Return what `build` makes of the object."""
        if not isinstance(value, dict):
            return place.refuse(self, value)
        if self.named_by is not None:
            place = place.owned_by(value.get(self.named_by))
        self._report_keys(value, place)
        values = {key.name: _read_key(key, value, place) for key in self.keys}
        for constraint in self.constraints:
            constraint.check(value.keys(), values, place)
        if place.problems:
            return None
        if self.keeps_bytes:
            values["canonical"] = canonical_bytes(value)
        return self.build(**values)

    def _report_keys(self, value: Mapping[str, Json], place: Place) -> None:
        known = [key.name for key in self.keys]
        for name in value:
            if name not in known and not self.is_open:
                message = f"unknown key, expected one of {', '.join(known)}"
                place.at(name).report("unknown_key", message)
        if self.may_be_empty and not value:
            return
        for key in self.keys:
            if key.required and key.name not in value:
                place.report("missing_key", f"key {key.name!r} is required", key.name)


def _read_key(key: Key, value: Mapping[str, Json], place: Place) -> object:
    if key.name not in value:
        return key.default
    return place.at(key.name).read(key.kind, value[key.name])


@dataclass(frozen=True, slots=True, kw_only=True)
class Variants(Generic[T_co]):
    """An object whose other keys depend on the text at one of them.

    `otherwise` is read where that text is missing or unknown, to report what it can; an unknown one
    is reported with the problem kind `unknown`.
    """

    by: str
    records: Mapping[str, Record[T_co]]
    otherwise: Record[T_co]
    unknown: str
    expected: str = "an object"

    def read(self, value: Json, place: Place) -> T_co | None:
        """Return what the record of the variant makes of the object."""
        if not isinstance(value, dict):
            return place.refuse(self, value)
        named = self.otherwise.named_by
        variant = self._variant(value, place.owned_by(value.get(named)) if named else place)
        others = {name: member for name, member in value.items() if name != self.by}
        return self.records.get(variant, self.otherwise).read(others, place)

    def _variant(self, value: Mapping[str, Json], place: Place) -> str:
        if self.by not in value:
            place.report("missing_key", f"key {self.by!r} is required", self.by)
            return ""
        variant, here = value[self.by], place.at(self.by)
        return here.read(Tag(tuple(self.records), self.unknown), variant) or ""


@dataclass(frozen=True, slots=True)
class Tag:
    """The text that tells variants apart; any other is reported with the problem kind `unknown`."""

    names: tuple[str, ...]
    unknown: str

    @property
    def expected(self) -> str:
        """The texts, in words."""
        return f"one of {', '.join(self.names)}"

    def read(self, value: Json, place: Place) -> str | None:
        """Return the text."""
        if not isinstance(value, str):
            return place.refuse(self, value)
        if value in self.names:
            return value
        place.report(self.unknown, f"expected {self.expected}, got {value!r}", value)
        return None


def read_document(kind: Kind[T], document: object, *, what: str) -> T:
    """Read JSON text, bytes or an already parsed value as the table says.

    Args:
        kind: the declaration of the whole document.
        document: text and bytes are read by `parse_json`; anything else is held to the same limits.
        what: names the document in the message of the error.

    Raises:
        InvalidPolicyError: with every problem at once.
    """
    value, found = read_json(document, what=what)
    # A repeated key still has a value, its last, in which more may be wrong.
    unreadable = frozenset(one.pointer for one in found if one.kind != "duplicate_key")
    place = Place(problems=list(found), unreadable=unreadable)
    result = place.read(kind, value)
    if place.problems or result is None:
        raise InvalidPolicyError(what, [_with_owner(one, place.owners) for one in place.problems])
    return result


def _with_owner(problem: Problem, owners: Mapping[str, str]) -> Problem:
    """Add the id of the object that holds the problem, which the JSON reader cannot know."""
    for prefix in accumulate(problem.pointer.split("/"), lambda start, part: f"{start}/{part}"):
        if prefix in owners and owners[prefix] not in problem.names:
            return replace(problem, names=(owners[prefix], *problem.names))
    return problem
