"""What a platform manifest adds to a validation: who evaluated, and the score.

Source: SPEC section 14.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from datasource_governance.domain.quality_provider import ProviderBinding
from datasource_governance.domain.quality_score import Thresholds, WeightClass, quality_score
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
