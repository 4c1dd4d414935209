"""What a platform asks of data quality, all layers resolved and all defaults filled in.

Source: SPEC section 14; facts on the quality plugin, 1.3, 1.4 and 10; ADR-0044.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from datasource_governance.domain.canonical import Json, Sha256, document_digest
from datasource_governance.domain.manifest_document import SECTION, Layer, Settings, covers
from datasource_governance.domain.quality_provider import NATIVE
from datasource_governance.domain.quality_score import DEFAULT_WEIGHTS, Thresholds, WeightClass
from datasource_governance.domain.tier import DEFAULT_GATES, Enforcement, Gate, Tier, Waiver

HASH_DOMAIN: Final = "datasource_governance/data_quality/v1"
QUALITY_GATES: Final = "quality_gates"
CONFIG: Final = f"{SECTION}.config"
GATES: Final = f"{CONFIG}.quality_gates"
MIN_SCORE: Final = f"{CONFIG}.thresholds.min_score"
WARN_SCORE: Final = f"{CONFIG}.thresholds.warn_score"

DEFAULTS: Final[Settings] = MappingProxyType(
    {
        f"{SECTION}.provider": NATIVE,
        f"{CONFIG}.timeout_seconds": 300,
        f"{GATES}.enforcement": Enforcement.STRICT,
        f"{GATES}.technical_fields": (),
        f"{GATES}.waivers": (),
        **{
            f"{GATES}.{one}.min_test_coverage": DEFAULT_GATES[one].min_test_coverage for one in Tier
        },
        **{f"{GATES}.{one}.required_tests": DEFAULT_GATES[one].required_tests for one in Tier},
        **{f"{CONFIG}.weights.{one}": weight for one, weight in DEFAULT_WEIGHTS.items()},
        MIN_SCORE: Thresholds().min_score,
        WARN_SCORE: Thresholds().warn_score,
        f"{CONFIG}.score_gates_promotion": False,
    }
)
"""What a setting is that no layer sets; `thresholds` has the one exception."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformManifest:
    """A resolved platform manifest.

    `options` are those of the provider itself. `enforcement` says what a violated gate does; with
    `score_gates_promotion` a blocked score blocks a promotion. `weights` has every weight class,
    `weight_classes` only the rule ids that are moved from the class of their severity.
    `provenance` names the layer that set a setting, by its dotted path, and `locks` the one that
    locked it; what is not in `provenance` is a default.
    """

    name: str
    version: str
    provider: str
    timeout_seconds: int
    options: Mapping[str, Json]
    enforcement: Enforcement
    gates: Mapping[Tier, Gate]
    technical_fields: tuple[str, ...]
    waivers: tuple[Waiver, ...]
    weights: Mapping[str, float]
    weight_classes: Mapping[str, WeightClass]
    thresholds: Thresholds
    score_gates_promotion: bool
    provenance: Mapping[str, str]
    locks: Mapping[str, str]

    @property
    def configuration_hash(self) -> Sha256:
        """What a stage is bound to: how data is evaluated and scored, whichever layers say so.

        Quality gates and waivers are no part of it: they are about policies, not about data.
        """
        evaluation = {
            name: value for name, value in self._config().items() if name != QUALITY_GATES
        }
        return document_digest(HASH_DOMAIN, {"provider": self.provider, "config": evaluation})

    def data_quality(self) -> dict[str, Json]:
        """Return the JSON form of the section `plugins.data_quality`, with every default."""
        return {"provider": self.provider, "config": self._config()}

    def _config(self) -> dict[str, Json]:
        return {
            "timeout_seconds": self.timeout_seconds,
            "options": dict(self.options),
            QUALITY_GATES: self._quality_gates(),
            "weights": dict(self.weights),
            "weight_classes": {name: str(one) for name, one in self.weight_classes.items()},
            "thresholds": {
                "min_score": self.thresholds.min_score,
                "warn_score": self.thresholds.warn_score,
            },
            "score_gates_promotion": self.score_gates_promotion,
        }

    def _quality_gates(self) -> dict[str, Json]:
        return {
            "enforcement": str(self.enforcement),
            "technical_fields": list(self.technical_fields),
            **{str(tier): gate.document() for tier, gate in self.gates.items()},
            "waivers": [waiver.document() for waiver in self.waivers],
        }


def thresholds(settings: Settings) -> Thresholds:
    """Return the thresholds; a warning threshold that nobody set is not below the minimum."""
    found: Mapping[str, Any] = {**DEFAULTS, **settings}
    lowest, warned = found[MIN_SCORE], found[WARN_SCORE]
    return Thresholds(
        min_score=lowest, warn_score=warned if WARN_SCORE in settings else max(warned, lowest)
    )


def manifest_of(layer: Layer) -> PlatformManifest:
    """Return the manifest of settings that are in order, with defaults for all others."""
    found: Mapping[str, Any] = {**DEFAULTS, **layer.settings}
    return PlatformManifest(
        name=layer.name,
        version=layer.version,
        provider=found[f"{SECTION}.provider"],
        timeout_seconds=found[f"{CONFIG}.timeout_seconds"],
        options=_below(f"{CONFIG}.options", found),
        enforcement=found[f"{GATES}.enforcement"],
        gates=MappingProxyType({tier: _gate(tier, found) for tier in Tier}),
        technical_fields=found[f"{GATES}.technical_fields"],
        waivers=found[f"{GATES}.waivers"],
        weights=_below(f"{CONFIG}.weights", found),
        weight_classes=_below(f"{CONFIG}.weight_classes", found),
        thresholds=thresholds(layer.settings),
        score_gates_promotion=found[f"{CONFIG}.score_gates_promotion"],
        provenance=layer.provenance,
        locks=layer.locks,
    )


def _gate(tier: Tier, settings: Mapping[str, Any]) -> Gate:
    return Gate(
        min_test_coverage=settings[f"{GATES}.{tier}.min_test_coverage"],
        required_tests=settings[f"{GATES}.{tier}.required_tests"],
    )


def _below(path: str, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(
        {
            name.removeprefix(f"{path}."): value
            for name, value in settings.items()
            if covers(path, name)
        }
    )
