"""What a platform manifest adds to a validation: who evaluated, and the score.

Source: SPEC section 14.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from datasource_governance.domain.canonical import Json
from datasource_governance.domain.quality_provider import ProviderBinding
from datasource_governance.domain.quality_score import (
    ScoreLevel,
    Thresholds,
    WeightClass,
    quality_score,
)
from datasource_governance.domain.validation import Validation


@dataclass(frozen=True, slots=True, kw_only=True)
class Appraisal:
    """A provider, and how its checks are scored; `gates` where the score decides, too."""

    provider: ProviderBinding
    weights: Mapping[str, float]
    weight_classes: Mapping[str, WeightClass]
    thresholds: Thresholds
    gates: bool

    def of(self, validation: Validation) -> Validation:
        """Return a validation with both; all rules count, also those that are always native.

        Classes of rules that the policy does not have say nothing.
        """
        score = quality_score(validation.rules, self.weights, self.weight_classes, self.thresholds)
        return replace(validation, provider=self.provider, score=score, score_gates=self.gates)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredScore:
    """The score of a stored validation, and who evaluated, as a name and a version."""

    value: float | None
    level: ScoreLevel
    gates: bool
    provider: str

    @property
    def is_blocking(self) -> bool:
        """Whether the score alone blocks."""
        return self.gates and self.level is ScoreLevel.BLOCKED

    @property
    def told(self) -> str:
        """The score in words."""
        value = "none" if self.value is None else f"{self.value:.2f}"
        return f"{value} ({self.level})"


def stored_score(validation: Mapping[str, Json]) -> StoredScore | None:
    """Return the score in a stored validation; without a platform manifest there is none."""
    score, evaluator = validation.get("score"), validation.get("evaluator")
    if not isinstance(score, dict) or not isinstance(evaluator, dict):
        return None
    provider, value = evaluator["provider"], score["value"]
    if not isinstance(provider, dict):
        return None
    return StoredScore(
        value=float(value) if isinstance(value, int | float) else None,
        level=ScoreLevel(str(score["level"])),
        gates=score["gates"] is True,
        provider=f"{provider['name']} {provider['version']}",
    )
