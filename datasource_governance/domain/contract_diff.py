"""What changed between two versions of a contract, and whether the new version says so.

Changes are seen as consumers see them: breaking is what they can rely on no longer. Breaking
changes need a major version, what promises more a minor one, all else a patch. What cannot be
decided counts as breaking.

Source: SPEC sections 4 and 14; facts on the quality plugin, 5 (ADR-0029); Semantic Versioning 2.0.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from datasource_governance.domain.contract import Contract
from datasource_governance.domain.policy_diff import Effect, compare_policies
from datasource_governance.domain.quality_policy import QualityPolicy, parse_quality_policy
from datasource_governance.domain.schema import DataType, Field
from datasource_governance.errors import GuardError


class ChangeLevel(StrEnum):
    """Which part of a version has to rise for a change, from the least to the most."""

    PATCH = "patch"
    MINOR = "minor"
    MAJOR = "major"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractChange:
    """One change: where, what, how much of a version it needs, and if more or less is promised."""

    path: str
    message: str
    level: ChangeLevel
    effect: Effect

    def document(self) -> dict[str, str]:
        """Return the JSON form."""
        return {
            "path": self.path,
            "message": self.message,
            "level": str(self.level),
            "direction": str(self.effect),
        }


def contract_diff(before: Contract, after: Contract) -> tuple[ContractChange, ...]:
    """Return every change from one version of a contract to another.

    Of what is kept and not looked at, such as a description, one change tells that it differs.
    """
    found = [
        *_field_changes(before, after),
        *_rule_changes(before.quality_policy, after.quality_policy),
        *_level_changes(before, after),
        *_life_changes(before, after),
        *_source_changes(before, after),
    ]
    if not found and before.hash != after.hash:
        message = "only what is not checked differs: texts, owners, tags and the like"
        found = [_change("", message, Effect.NEITHER)]
    return tuple(found)


def needed_level(changes: tuple[ContractChange, ...]) -> ChangeLevel | None:
    """Return which part of the version has to rise; None where nothing changed."""
    return max((one.level for one in changes), key=[*ChangeLevel].index, default=None)


def check_version(before: Contract, after: Contract) -> None:
    """Refuse a contract whose version does not say how much it changes.

    Below 1.0.0 a minor version may break.

    Raises:
        GuardError: code `contract_version_too_low`, naming what needs more; also for another text
            of the same version, and for a version that is lower.
    """
    changes = contract_diff(before, after)
    needed = needed_level(changes)
    if needed is None:
        return
    given = _risen(before.version, after.version)
    if needed is ChangeLevel.MAJOR and _numbers(after.version)[0] == 0:
        needed = ChangeLevel.MINOR
    if given is not None and [*ChangeLevel].index(given) >= [*ChangeLevel].index(needed):
        return
    told = "; ".join(f"{one.path}: {one.message}" for one in changes if one.level == needed)
    raise GuardError(
        f"contract {after.id!r} goes from version {before.version} to {after.version} and needs a "
        f"new {needed} version, {_next(before.version, needed)} at least, because of: {told}",
        code="contract_version_too_low",
        contract=after.id,
        needed=_next(before.version, needed),
        changes=changes,
    )


def _numbers(version: str) -> tuple[int, int, int]:
    major, minor, patch = map(int, version.split("."))
    return major, minor, patch


def _risen(before: str, after: str) -> ChangeLevel | None:
    old, new = _numbers(before), _numbers(after)
    if new <= old:
        return None
    levels = (ChangeLevel.MAJOR, ChangeLevel.MINOR, ChangeLevel.PATCH)
    return next(
        level for level, (a, b) in zip(levels, zip(old, new, strict=True), strict=True) if b > a
    )


def _next(version: str, level: ChangeLevel) -> str:
    major, minor, patch = _numbers(version)
    if level is ChangeLevel.MAJOR:
        return f"{major + 1}.0.0"
    return (
        f"{major}.{minor + 1}.0" if level is ChangeLevel.MINOR else f"{major}.{minor}.{patch + 1}"
    )


def _change(
    path: str, message: str, effect: Effect, level: ChangeLevel | None = None
) -> ContractChange:
    """Return a change; what promises less breaks, what promises more is a minor version."""
    usual = {
        Effect.LOOSENS: ChangeLevel.MAJOR,
        Effect.TIGHTENS: ChangeLevel.MINOR,
        Effect.NEITHER: ChangeLevel.PATCH,
    }
    return ContractChange(path=path, message=message, level=level or usual[effect], effect=effect)


def _field_changes(before: Contract, after: Contract) -> Iterator[ContractChange]:
    old = {field.name: field for field in before.schema.fields}
    new = {field.name: field for field in after.schema.fields}
    for name in old.keys() - new.keys():
        yield _change(f"schema/{name}", "the field is not promised any more", Effect.LOOSENS)
    for name in new.keys() - old.keys():
        yield _change(f"schema/{name}", "the field is promised, too", Effect.TIGHTENS)
    for name in old.keys() & new.keys():
        yield from _one_field(old[name], new[name])


def _one_field(old: Field, new: Field) -> Iterator[ContractChange]:
    path = f"schema/{old.name}"
    if old.type is not new.type:
        message = f"the type was {old.type} and is {new.type}"
        if old.type is DataType.UNKNOWN:
            yield _change(path, message, Effect.TIGHTENS)
        elif old.type.meets(new.type):
            yield _change(path, message, Effect.LOOSENS, ChangeLevel.MINOR)
        else:
            yield _change(path, message, Effect.LOOSENS)
    if new.nullable and not old.nullable:
        yield _change(path, "nulls may be in it", Effect.LOOSENS)
    if old.nullable and not new.nullable:
        yield _change(path, "no nulls are in it any more", Effect.TIGHTENS)


def _rule_changes(
    before: QualityPolicy | None, after: QualityPolicy | None
) -> Iterator[ContractChange]:
    if before is None and after is None:
        return
    none = parse_quality_policy({"version": "none", "rules": []})
    for one in compare_policies(before or none, after or none).changes:
        if one.path == ("version",):
            continue
        # What cannot be decided may promise less.
        effect = Effect.LOOSENS if one.effect is None else one.effect
        what = "is new" if one.before is None else "is gone" if one.after is None else "differs"
        yield _change("/".join(one.path), f"the rule {what}", effect)


def _level_changes(before: Contract, after: Contract) -> Iterator[ContractChange]:
    old, new = before.service_levels, after.service_levels
    # Less time is more; what is not promised is the least.
    yield from _measured("freshness", old.freshness, new.freshness, is_more_below=True)
    yield from _measured("availability", old.availability, new.availability)
    if before.quality_policy or after.quality_policy:
        yield from _measured("quality", old.quality, new.quality)
    if old.freshness_field != new.freshness_field:
        message = "the field that says how old it is differs"
        yield _change("slaProperties/freshness", message, Effect.NEITHER, ChangeLevel.MINOR)


def _measured(
    name: str, old: object, new: object, *, is_more_below: bool = False
) -> Iterator[ContractChange]:
    if old == new:
        return
    path, message = f"slaProperties/{name}", f"{name} was {old} and is {new}"
    if old is None or new is None:
        yield _change(path, message, Effect.TIGHTENS if old is None else Effect.LOOSENS)
        return
    is_below = new < old  # type: ignore[operator]  # two durations, or two numbers
    yield _change(path, message, Effect.TIGHTENS if is_below == is_more_below else Effect.LOOSENS)


def _life_changes(before: Contract, after: Contract) -> Iterator[ContractChange]:
    ends = (
        ("endOfSupport", before.end_of_support, after.end_of_support),
        ("endOfLife", before.end_of_life, after.end_of_life),
    )
    for name, old, new in ends:
        if old != new:
            effect = Effect.LOOSENS if _is_earlier(old, new) else Effect.TIGHTENS
            # To say for the first time when it ends is what deprecating is.
            level = ChangeLevel.MINOR if old is None else None
            yield _change(f"slaProperties/{name}", f"it was {old} and is {new}", effect, level)
    if before.status is not after.status:
        left = before.is_watched and not after.is_watched and after.end_of_life is None
        effect = Effect.LOOSENS if left else Effect.NEITHER
        yield _change("status", f"it was {before.status} and is {after.status}", effect)


def _is_earlier(old: date | None, new: date | None) -> bool:
    return new is not None and (old is None or new < old)


def _source_changes(before: Contract, after: Contract) -> Iterator[ContractChange]:
    if before.table != after.table:
        message = "it is about another table"
        yield _change("customProperties/table", message, Effect.NEITHER, ChangeLevel.MAJOR)
    if (before.enforcement, before.rhythms) != (after.enforcement, after.rhythms):
        yield _change("customProperties/monitor", "it is watched differently", Effect.NEITHER)
