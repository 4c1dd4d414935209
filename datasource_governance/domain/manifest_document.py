"""One platform manifest as written: a layer, of which only what it sets explicitly is known.

Its section `plugins.data_quality` becomes a flat table of settings by dotted path, which is what
layers are merged by, locked by and explained by. Other plugins are allowed there and not looked at.

Source: SPEC section 14; ADR-0044, "Platform Configuration".
"""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from datasource_governance.domain.canonical import Json
from datasource_governance.domain.policy_keys import (
    FIELD_NAME,
    MAXIMUM_ID_CHARACTERS,
    ExactlyOne,
    Key,
    Ordered,
    Record,
    read_document,
)
from datasource_governance.domain.policy_values import (
    Choice,
    Flag,
    ListOf,
    MapOf,
    Place,
    Text,
    Whole,
)
from datasource_governance.domain.quality_score import WeightClass
from datasource_governance.domain.tier import Day, Enforcement, RequiredTest, Share, Tier, Waiver

SECTION: Final = "plugins.data_quality"
MAXIMUM_TIMEOUT_SECONDS = 3600
MAXIMUM_SCORE = 100

Settings = Mapping[str, object]
"""Values by the dotted path at which the document has them."""


class Scope(StrEnum):
    """Whose manifest it is, from the outermost to the innermost."""

    ENTERPRISE = "enterprise"
    DOMAIN = "domain"
    PRODUCT = "product"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """What one manifest, or several merged ones, set.

    `settings` are the explicitly set ones; `provenance` and `locks` name, by dotted path, the
    layer that set and locked it. `name`, `version` and `scope` are those of the innermost one.
    """

    name: str
    version: str
    scope: Scope | None
    extends: str | None
    settings: Settings
    provenance: Mapping[str, str]
    locks: Mapping[str, str]


def parse_layer(document: str | bytes | Mapping[str, object]) -> Layer:
    """Read one manifest, which may be a part of what it extends.

    Raises:
        InvalidPolicyError: with every problem at once, each with its JSON pointer.
    """
    return read_document(MANIFEST, document, what="platform manifest")


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """A number within limits; `above` is exclusive, `maximum` inclusive."""

    expected: str
    above: float = -math.inf
    minimum: float = -math.inf
    maximum: float = math.inf

    def read(self, value: Json, place: Place) -> float | None:
        """Return the number."""
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return place.refuse(self, value)
        fits = self.above < value and self.minimum <= value <= self.maximum
        return float(value) if fits else place.refuse(self, value)


@dataclass(frozen=True, slots=True)
class Anything:
    """Any JSON value but null: whoever it is for knows what it must be."""

    expected: str = "a value other than null, or no such key"

    def read(self, value: Json, place: Place) -> object:
        """Return the value as it is."""
        return place.refuse(self, value) if value is None else value


@dataclass(frozen=True, slots=True)
class _LockedPath:
    """The dotted path of a setting, or of an object that settings are in."""

    expected: str = f"the dotted path of a setting, such as {SECTION}.provider"

    def read(self, value: Json, place: Place) -> str | None:
        if not isinstance(value, str) or not _is_path(value):
            return place.refuse(self, value)
        return value


def covers(path: str, setting: str) -> bool:
    """Tell whether a setting is at a path or below it."""
    return setting == path or setting.startswith(f"{path}.")


def _is_path(text: str) -> bool:
    """Tell whether it leads to something that can be set: a misspelled lock would lock nothing."""
    for path, name in _OPEN.items():
        if text.startswith(f"{path}."):
            return re.fullmatch(name, text.removeprefix(f"{path}.")) is not None
    return covers(SECTION, text) and any(covers(text, path) for path in _PATHS)


def _section(**values: object) -> Settings:
    """Return what is set in an object and the objects in it, by dotted path.

    A read-only mapping is an object of the manifest; the value of an option is a plain one.
    """
    found: dict[str, object] = {}
    for name, value in values.items():
        if isinstance(value, MappingProxyType):
            found.update({f"{name}.{path}": one for path, one in value.items()})
        elif value is not None:
            found[name] = value
    return MappingProxyType(found)


_NAME = Text(
    expected=f"a printable text of 1 to {MAXIMUM_ID_CHARACTERS} characters, not blank",
    maximum=MAXIMUM_ID_CHARACTERS,
)
_FIELDS = ListOf(item=FIELD_NAME, expected="a list of field names", repeated="invalid_value")
_OPTION = Text(expected="the name of an option, without points", pattern=r"[A-Za-z_][A-Za-z0-9_-]*")
_SCORE = Amount(expected=f"a number from 0 to {MAXIMUM_SCORE}", minimum=0, maximum=MAXIMUM_SCORE)
_WEIGHT = Amount(expected="a number above 0", above=0)


def _gate(required_tests: tuple[str, ...] | None, **others: object) -> Settings:
    """Return what a gate sets; its required tests are a set, and have one order."""
    tests = None if required_tests is None else tuple(sorted(set(required_tests)))
    return _section(required_tests=tests, **others)


_GATE = Record(
    keys=(
        Key("min_test_coverage", Share()),
        Key("required_tests", ListOf(item=RequiredTest(), expected="a list of test types")),
    ),
    build=_gate,
)
_WAIVER = Record(
    keys=(
        Key("datasource", _NAME, required=True),
        Key("test", RequiredTest()),
        Key("field", FIELD_NAME),
        Key("reason", _NAME, required=True),
        Key("approved_by", _NAME, required=True),
        Key("expires", Day(), required=True),
    ),
    build=Waiver,
    constraints=(ExactlyOne(("test", "field")),),
)
_GATES = Record(
    keys=(
        Key("enforcement", Choice(Enforcement)),
        Key("technical_fields", _FIELDS),
        *(Key(tier, _GATE) for tier in Tier),
        Key("waivers", ListOf(item=_WAIVER, expected="a list of waivers")),
    ),
    build=_section,
)
_CONFIG = Record(
    keys=(
        Key("timeout_seconds", Whole(minimum=1, maximum=MAXIMUM_TIMEOUT_SECONDS)),
        Key("options", MapOf(key=_OPTION, item=Anything(), expected="an object of options")),
        Key("quality_gates", _GATES),
        Key(
            "weights",
            Record(keys=tuple(Key(one, _WEIGHT) for one in WeightClass), build=_section),
        ),
        Key(
            "weight_classes",
            MapOf(
                key=_NAME,
                item=Choice(WeightClass),
                expected="an object of rule id and weight class",
            ),
        ),
        Key(
            "thresholds",
            Record(
                keys=(Key("min_score", _SCORE), Key("warn_score", _SCORE)),
                build=_section,
                constraints=(Ordered("min_score", "warn_score"),),
            ),
        ),
        Key("score_gates_promotion", Flag()),
    ),
    build=_section,
)
_PLUGIN = Record(keys=(Key("provider", _NAME), Key("config", _CONFIG)), build=_section)


def _paths(record: Record[Settings], at: str) -> Collection[str]:
    """Return the dotted paths of the settings of an object."""
    found: list[str] = []
    for key in record.keys:
        path = f"{at}.{key.name}"
        found.extend(_paths(key.kind, path) if isinstance(key.kind, Record) else [path])
    return found


_PATHS: Final = frozenset(_paths(_PLUGIN, SECTION))
_OPEN: Final[Mapping[str, str]] = MappingProxyType(
    {f"{SECTION}.config.options": _OPTION.pattern, f"{SECTION}.config.weight_classes": r".+"}
)
"""Objects whose keys the author chooses, with the pattern of these."""


def _layer(
    metadata: tuple[str, str],
    plugins: Settings,
    scope: Scope | None,
    extends: str | None,
    locked: tuple[str, ...],
    **_fixed: str,
) -> Layer:
    name, version = metadata
    settings = _section(plugins=plugins)
    return Layer(
        name=name,
        version=version,
        scope=scope,
        extends=extends,
        settings=settings,
        provenance=dict.fromkeys(settings, name),
        locks=dict.fromkeys(locked, name),
    )


MANIFEST = Record(
    keys=(
        Key(
            "apiVersion",
            Text(expected="a group and /v1, such as floe.dev/v1", pattern=r"[a-z0-9.-]+/v1"),
            required=True,
        ),
        Key("kind", Text(expected="Manifest", pattern="Manifest"), required=True),
        Key(
            "metadata",
            Record(
                keys=(Key("name", _NAME, required=True), Key("version", _NAME, required=True)),
                build=lambda name, version: (name, version),
            ),
            required=True,
        ),
        Key("scope", Choice(Scope)),
        Key("extends", Text(expected="the name of another manifest's file")),
        Key(
            "plugins",
            Record(keys=(Key("data_quality", _PLUGIN),), build=_section, is_open=True),
            default=MappingProxyType({}),
        ),
        Key("locked", ListOf(item=_LockedPath(), expected="a list of dotted paths"), default=()),
    ),
    build=_layer,
)
"""The keys of a platform manifest."""
