"""Layers of platform manifests: what is set outside holds inside, and can only be tightened there.

Only what a manifest sets explicitly is merged: a layer that is silent about a setting leaves it to
the layers inside, the outermost of which then owns it, and a default never overwrites anything.
What tightening means depends on the setting:

- coverage, scores and enforcement rise, `score_gates_promotion` is turned on;
- required tests are added to;
- technical fields and waivers, which lift requirements, are taken from their owner's, never added;
- weights and weight classes belong to the outermost layer that sets them;
- provider, timeout and options are anybody's.

A lock on a dotted path forbids any difference there and below it, tightening included; where
nothing was set, it holds the default.

Source: SPEC section 14; facts on the quality plugin, 5 and 10.5; ADR-0038.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.manifest_document import Layer, Scope, covers, parse_layer
from datasource_governance.domain.platform_manifest import (
    CONFIG,
    DEFAULTS,
    GATES,
    MIN_SCORE,
    WARN_SCORE,
    PlatformManifest,
    manifest_of,
    thresholds,
)
from datasource_governance.domain.tier import Enforcement, Tier
from datasource_governance.errors import InvalidPolicyError, Problem

_REQUIRED_TESTS: Final = frozenset(f"{GATES}.{tier}.required_tests" for tier in Tier)


def parse_platform_manifest(document: str | bytes | Mapping[str, object]) -> PlatformManifest:
    """Read a platform manifest that is complete by itself.

    Raises:
        InvalidPolicyError: with every problem at once; also for one that extends another, which
            is read from its file.
    """
    layer = parse_layer(document)
    if layer.extends is not None:
        message = f"it extends {layer.extends!r}; read both, from the file"
        raise InvalidPolicyError(
            "platform manifest",
            [Problem(kind="extends", pointer="/extends", names=("extends",), message=message)],
        )
    return resolve_layers([layer])


def resolve_layers(layers: Sequence[Layer]) -> PlatformManifest:
    """Return what layers amount to, the outermost first, with defaults for what none of them sets.

    Raises:
        InvalidPolicyError: with every problem at once: a setting that is loosened or locked, each
            with its dotted path, the layer that owns or locked it and the one that differs; layers
            of one name or out of order; a warning threshold below the minimum.
        ValueError: there is no layer.
    """
    if not layers:
        raise ValueError("a platform manifest has at least one layer")
    problems = [*_named_apart(layers), *_in_scope(layers)]
    resolved = layers[0]
    for layer in layers[1:]:
        resolved, found = merged(resolved, layer)
        problems.extend(found)
    problems.extend(_thresholds_reversed(resolved))
    if problems:
        raise InvalidPolicyError("platform manifest", problems)
    return manifest_of(resolved)


def merged(outer: Layer, inner: Layer) -> tuple[Layer, list[Problem]]:
    """Return one layer for two, and why the inner one must not set what it does.

    What it must not set stays as it is outside.
    """
    settings, provenance = dict(outer.settings), dict(outer.provenance)
    problems: list[Problem] = []
    for path, wanted in inner.settings.items():
        value = _combined(path, outer, wanted)
        if problem := _refused(path, outer, inner, value):
            problems.append(problem)
        elif path not in settings or not _same(settings[path], value):
            settings[path], provenance[path] = value, inner.provenance[path]
    layer = replace(
        inner,
        extends=outer.extends,
        settings=MappingProxyType(settings),
        provenance=MappingProxyType(provenance),
        locks=MappingProxyType({**inner.locks, **outer.locks}),
    )
    return layer, problems


def _combined(path: str, outer: Layer, wanted: Any) -> Any:  # noqa: ANN401 - of any setting
    if path not in _REQUIRED_TESTS:
        return wanted
    return tuple(sorted({*_held(path, outer, ()), *wanted}))


def _refused(path: str, outer: Layer, inner: Layer, value: object) -> Problem | None:
    """Return why an inner layer must not set a value."""
    layer = inner.provenance[path]
    held = _held(path, outer, DEFAULTS.get(path))
    for lock, locking in outer.locks.items():
        if covers(lock, path) and not _same(held, value):
            message = f"{path} is locked at {lock} by {locking!r}; {layer!r} must not change it"
            return Problem(kind="locked", message=message, names=(path, locking, layer))
    tightens, may = _condition(path)
    if path not in outer.settings or tightens(held, value):
        return None
    owner = outer.provenance[path]
    message = f"{path} is set by {owner!r}; {layer!r} {may}"
    return Problem(kind="loosened", message=message, names=(path, owner, layer))


def _held(path: str, outer: Layer, default: Any) -> Any:  # noqa: ANN401 - of any setting
    return outer.settings.get(path, default)


def _same(held: object, value: object) -> bool:
    """Tell whether two values of a setting are one; the order of a tuple does not count."""
    if isinstance(held, tuple) and isinstance(value, tuple):
        return set(held) == set(value)
    if held is None or isinstance(held, tuple):
        return held is value
    # Of the values of options, 1 and true are two, and equal to one another in Python.
    return canonical_bytes([held]) == canonical_bytes([value])


def _is_stricter(held: Any, value: Any) -> bool:  # noqa: ANN401 - of this setting
    order = list(Enforcement)
    return order.index(value) >= order.index(held)


_Condition = tuple[Callable[[Any, Any], bool], str]

_RISES: Final[_Condition] = (lambda held, value: value >= held, "may only raise it")
_SHRINKS: Final[_Condition] = (
    lambda held, value: set(value) <= set(held),
    "may only take from it",
)
_OWNED: Final[_Condition] = (_same, "must not change it")
_FREE: Final[_Condition] = (lambda _held, _value: True, "may change it")

_CONDITIONS: Final[Mapping[str, _Condition]] = MappingProxyType(
    {
        GATES: _RISES,
        f"{GATES}.enforcement": (_is_stricter, "may only make it stricter"),
        f"{GATES}.technical_fields": _SHRINKS,
        f"{GATES}.waivers": _SHRINKS,
        f"{CONFIG}.thresholds": _RISES,
        f"{CONFIG}.score_gates_promotion": (
            lambda held, value: value >= held,
            "must not turn it off",
        ),
        f"{CONFIG}.weights": _OWNED,
        f"{CONFIG}.weight_classes": _OWNED,
    }
)
"""When a value is no looser than the one held, and what may be instead; the longest path counts."""


def _condition(path: str) -> _Condition:
    # Required tests are combined with those that are held, so that there are never fewer.
    if path in _REQUIRED_TESTS:
        return _FREE
    found = max((one for one in _CONDITIONS if covers(one, path)), key=len, default=None)
    return _FREE if found is None else _CONDITIONS[found]


def _named_apart(layers: Sequence[Layer]) -> Iterator[Problem]:
    names = [layer.name for layer in layers]
    for name in sorted({name for name in names if names.count(name) > 1}):
        message = f"several layers are named {name!r}, and cannot be told apart"
        yield Problem(kind="duplicate_layer", message=message, names=(name,))


def _in_scope(layers: Sequence[Layer]) -> Iterator[Problem]:
    order = list(Scope)
    scoped = [(layer.name, layer.scope) for layer in layers if layer.scope is not None]
    for (outside, outer), (name, inner) in pairwise(scoped):
        if order.index(outer) >= order.index(inner):
            message = f"{name!r} of scope {inner} cannot extend {outside!r} of scope {outer}"
            yield Problem(kind="scope", message=message, names=(name, outside))


def _thresholds_reversed(layer: Layer) -> Iterator[Problem]:
    found = thresholds(layer.settings)
    if found.warn_score < found.min_score:
        warned, lowest = (layer.provenance.get(one, "default") for one in (WARN_SCORE, MIN_SCORE))
        message = (
            f"{WARN_SCORE} of {found.warn_score:g} ({warned}) is below {MIN_SCORE} of "
            f"{found.min_score:g} ({lowest})"
        )
        yield Problem(
            kind="bounds_reversed", message=message, names=(WARN_SCORE, MIN_SCORE, warned, lowest)
        )
