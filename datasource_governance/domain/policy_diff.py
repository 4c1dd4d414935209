"""What changed between two policies of one kind, and whether it permits more or less.

A change tightens when everything that the new policy permits, the old one permitted as well: a
delivery to pass, a stage to be promoted, something to be destroyed. It loosens the other way round,
and does neither when both permit the same: a new version name, an order, a default written out.
Each change is judged by itself, and for rules by what the rule answers where its fields exist.
Where that depends on the data, such as for another field, it is not decided.

Documents are compared as they are hashed, so that a changed hash always has a change to show for
it. Policies are not data: their values may be shown.

Source: SPEC sections 2 and 16.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Any

from datasource_governance.domain.approval_policy import ApprovalPolicy
from datasource_governance.domain.canonical import Json, Sha256, canonical_bytes, load_canonical
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.domain.retention_policy import RetentionPolicy
from datasource_governance.domain.rules import NotNullRule, RowCountRule, Severity, UniqueRule
from datasource_governance.domain.schema import DataType
from datasource_governance.domain.schema_diff import DEFAULTS, Change, Classification

FORMAT = "datasource_governance/policy_diff/v1"

Policy = QualityPolicy | ApprovalPolicy | RetentionPolicy
Path = tuple[str, ...]
Object = Mapping[str, Json]


class Effect(StrEnum):
    """Whether the new policy permits less than the old one, more, or the same."""

    TIGHTENS = "tightens"
    LOOSENS = "loosens"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """One change. `path` leads to it by keys, and by id where it is in a rule.

    `("rules", id)` is a whole rule, added, removed or turned into another type; `("rules",)` is the
    order of the rules on both sides. `before` and `after` are as authored, None where there is
    nothing. `effect` is None where it cannot be decided.
    """

    path: Path
    before: Json
    after: Json
    effect: Effect | None

    def document(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "path": list(self.path),
            "before": self.before,
            "after": self.after,
            "effect": None if self.effect is None else str(self.effect),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDiff:
    """Both hashes and every change: the policy's own keys first, then rules in their order."""

    before: Sha256
    after: Sha256
    changes: tuple[PolicyChange, ...]

    @property
    def changes_hash(self) -> bool:
        """Whether the two are different policies to anything that is bound to a hash."""
        return self.before != self.after

    def document(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "format": FORMAT,
            "hash": {"before": self.before, "after": self.after, "changes": self.changes_hash},
            "changes": [change.document() for change in self.changes],
        }


def compare_policies(before: Policy, after: Policy) -> PolicyDiff:
    """Return every change from one policy to another of the same kind."""
    old, new = _document(before), _document(after)
    parts = ("rules", "schema_policy")
    changes = [
        *_key_changes((), _without(old, parts), _without(new, parts)),
        *_override_changes(old, new),
        *_rule_changes(_rules(old), _rules(new)),
    ]
    return PolicyDiff(before=before.hash, after=after.hash, changes=tuple(changes))


def _document(policy: Policy) -> dict[str, Any]:
    # Of an approval policy the normalised form is kept, in which null stands for absence.
    document: Any = load_canonical(policy.canonical)
    return {key: value for key, value in document.items() if value is not None}


def _without(document: Object, keys: tuple[str, ...]) -> Object:
    return {key: value for key, value in document.items() if key not in keys}


def _override_changes(old: dict[str, Any], new: dict[str, Any]) -> list[PolicyChange]:
    key = "schema_policy"
    changes = list(_key_changes((key,), old.get(key, {}), new.get(key, {})))
    # Without any override the object itself may still be there or not, which changes the hash.
    return changes or list(_key_changes((), _only(old, key), _only(new, key)))


def _only(document: Object, key: str) -> Object:
    return {key: document[key]} if key in document else {}


def _rules(document: dict[str, Any]) -> dict[str, Object]:
    return {rule["id"]: rule for rule in document.get("rules", ())}


def _rule_changes(old: dict[str, Object], new: dict[str, Object]) -> Iterator[PolicyChange]:
    for name, rule in old.items():
        if name not in new:
            yield _change(("rules", name), rule, None, Effect.LOOSENS)
    for name, rule in new.items():
        if name not in old:
            yield _change(("rules", name), None, rule, Effect.TIGHTENS)
        elif old[name]["type"] != rule["type"]:
            yield _change(("rules", name), old[name], rule, None)
        else:
            yield from _key_changes(("rules", name), _one_spelling(old[name]), _one_spelling(rule))
    old_order: list[Json] = [name for name in old if name in new]
    new_order: list[Json] = [name for name in new if name in old]
    if old_order != new_order:
        yield PolicyChange(
            path=("rules",), before=old_order, after=new_order, effect=Effect.NEITHER
        )


def _one_spelling(rule: Object) -> Object:
    """Return the rule with `field` under `fields` where it may be spelled either way."""
    if "field" not in rule or rule["type"] not in {NotNullRule.type, UniqueRule.type}:
        return rule
    return {"fields": rule["field"], **_without(rule, ("field",))}


def _change(
    path: Path, before: Object | None, after: Object | None, effect: Effect | None
) -> PolicyChange:
    return PolicyChange(
        path=path,
        before=None if before is None else dict(before),
        after=None if after is None else dict(after),
        effect=effect,
    )


def _key_changes(path: Path, old: Object, new: Object) -> Iterator[PolicyChange]:
    for key in dict.fromkeys((*old, *new)):
        before, after = old.get(key), new.get(key)
        if canonical_bytes(before) != canonical_bytes(after):
            measured_as = _MEASURED_AS.get((new.get("type"), key), key)
            effect = _effect(measured_as, before, after)
            yield PolicyChange(path=(*path, key), before=before, after=after, effect=effect)


def _effect(key: str, before: Json, after: Json) -> Effect | None:
    if key in _STRICTER_ABOVE:
        measure = _STRICTER_ABOVE[key]
        low, high = measure(before), measure(after)
    elif key in _STRICTER_BELOW:
        measure = _STRICTER_BELOW[key]
        low, high = measure(after), measure(before)
    else:
        return None
    # Sets are ordered in part only: neither may be within the other.
    if low == high:
        return Effect.NEITHER
    if low < high:
        return Effect.TIGHTENS
    return Effect.LOOSENS if low > high else None


def _same(_value: Json) -> int:
    return 0


def _or(absent: float) -> Callable[[Any], float]:
    return lambda value: absent if value is None else value


def _names(value: Any) -> frozenset[str]:  # noqa: ANN401 - a field name or a list of them
    return frozenset([value] if isinstance(value, str) else value)


def _codes(value: Any) -> frozenset[bytes]:  # noqa: ANN401 - a list of codes
    return frozenset(canonical_bytes(code) for code in value)


def _types(contract: Any) -> frozenset[DataType]:  # noqa: ANN401 - a type, or None for any
    return frozenset(one for one in DataType if contract is None or one.meets(DataType(contract)))


def _class(change: Change) -> Callable[[Any], int]:
    classes = tuple(Classification)
    return lambda value: classes.index(DEFAULTS[change] if value is None else value)


_STRICTER_ABOVE: Mapping[str, Callable[[Json], Any]] = {
    "version": _same,
    "schema_policy": _same,
    "policy_ref": _same,
    "severity": lambda value: value != Severity.WARNING,
    "minimum": _or(-inf),
    "least_count": _or(0),
    "fields": _names,
    # A longer key is met more easily, but asks for one more field: only its order is decided.
    "unique_key": lambda value: frozenset({_names(value)}),
    # Refusing nulls is stricter than both others, which differ in the schema that is detected.
    "nullable": lambda value: frozenset({True, None} if value is False else {value}),
    "required": bool,
    "required_approvals": _or(1),
    "separation_of_duties": bool,
    "stage_days": _or(inf),
    "materialization_days": _or(inf),
    "frozen_evidence_days": _or(inf),
    **{change: _class(change) for change in Change},
}
_STRICTER_BELOW: Mapping[str, Callable[[Json], Any]] = {
    "maximum": _or(inf),
    "data_type": _types,
    "allowed_values": _codes,
    "allow_null": bool,
    "ignore_nulls": bool,
    "expires_after_hours": _or(inf),
    "enabled": bool,
}
"""How strict a value is, None being absence: the more above, or the more below, the stricter."""
_MEASURED_AS: Mapping[tuple[Json, str], str] = {
    (UniqueRule.type, "fields"): "unique_key",
    (RowCountRule.type, "minimum"): "least_count",
}
"""Keys that one type of rule uses in a way of its own."""
