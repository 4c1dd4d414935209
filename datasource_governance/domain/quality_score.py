"""The quality score: the weighted share of checks that passed, from 0 to 100.

Whether a check passed counts, not how many rows did. Sums are exact fractions: the order of checks
makes no difference, and a score that is on a threshold is exactly on it.

Source: SPEC section 14; facts on the quality plugin, 4 (variant V1) and 10.3.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from types import MappingProxyType
from typing import Final

from datasource_governance.domain.canonical import Json
from datasource_governance.domain.quality_check import QualityCheckResult
from datasource_governance.domain.rule_outcome import RuleOutcome, Status
from datasource_governance.domain.rules import Severity
from datasource_governance.errors import InvalidArgumentError


class WeightClass(StrEnum):
    """What a check counts for; the weights of a platform say how much."""

    CRITICAL = "critical_checks"
    STANDARD = "standard_checks"
    STATISTICAL = "statistical_checks"


DEFAULT_WEIGHTS: Final[Mapping[str, float]] = MappingProxyType(
    {WeightClass.CRITICAL: 3.0, WeightClass.STANDARD: 1.0, WeightClass.STATISTICAL: 0.5}
)
_NO_CLASSES: Final[Mapping[str, WeightClass]] = MappingProxyType({})


class ScoreLevel(StrEnum):
    """What a score means for a promotion."""

    OK = "ok"
    WARN = "warn"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """A score below `min_score` blocks, one below `warn_score` warns; both themselves are fine."""

    min_score: float = 70
    warn_score: float = 85


_DEFAULT_THRESHOLDS: Final = Thresholds()


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityScore:
    """A score with what became of it. Checks are counted by id.

    `value` is None when there is none: nothing was evaluated, or a critical check was not.
    `reasons` say why the level is not `ok`.
    """

    value: float | None
    evaluated: int
    not_evaluated: int
    level: ScoreLevel
    reasons: tuple[str, ...]

    def document(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {
            "value": self.value,
            "evaluated": self.evaluated,
            "not_evaluated": self.not_evaluated,
            "level": str(self.level),
            "reasons": list(self.reasons),
        }


def default_class(severity: Severity) -> WeightClass:
    """Return the class of a check that no manifest moves to another."""
    return WeightClass.CRITICAL if severity is Severity.ERROR else WeightClass.STANDARD


def calculate_quality_score(
    check_results: Sequence[QualityCheckResult],
    weights: Mapping[str, float],
    classes: Mapping[str, WeightClass] = _NO_CLASSES,
) -> float:
    """Return 100 · Σ weight of passed checks / Σ weight of evaluated checks.

    Args:
        check_results: Results of any providers; a check in several of them counts once.
        weights: By weight class; a class that is left out has its default weight.
        classes: Weight classes by check id, where they are not those of the severity.

    Raises:
        InvalidArgumentError: nothing was evaluated, a critical check was not, one check has
            different outcomes, a class is unknown, or a weight is no finite number above 0.
    """
    checks = _Checks.of((check for result in check_results for check in result.checks), classes)
    weighted = _weights(weights)
    if lacking := checks.critical(Status.ERROR):
        raise InvalidArgumentError(
            f"there is no score: critical checks were not evaluated: {', '.join(lacking)}",
            checks=lacking,
        )
    score = checks.score(weighted)
    if score is None:
        raise InvalidArgumentError("there is no score: no check was evaluated")
    return float(score)


def quality_score(
    rules: Sequence[RuleOutcome],
    weights: Mapping[str, float] = DEFAULT_WEIGHTS,
    classes: Mapping[str, WeightClass] = _NO_CLASSES,
    thresholds: Thresholds = _DEFAULT_THRESHOLDS,
) -> QualityScore:
    """Return the score of one validation, and what follows from it.

    Blocked is a score below the minimum, and whatever a critical check did not pass. Where nothing
    could be scored for another reason the level is `warn`: nobody knows that it is well.

    Raises:
        InvalidArgumentError: as `calculate_quality_score`, for what is wrong with its arguments.
    """
    checks = _Checks.of(rules, classes)
    weighted = _weights(weights)
    failed, lacking = checks.critical(Status.FAILED), checks.critical(Status.ERROR)
    score = None if lacking else checks.score(weighted)
    blocked = [
        *([f"critical checks failed: {', '.join(failed)}"] if failed else []),
        *([f"critical checks were not evaluated: {', '.join(lacking)}"] if lacking else []),
        *_below(score, thresholds.min_score, "minimum"),
    ]
    nothing = [] if score is not None or lacking else ["no check was evaluated"]
    warned = [*nothing, *_below(score, thresholds.warn_score, "warning threshold")]
    return QualityScore(
        value=None if score is None else float(score),
        evaluated=len(checks.evaluated),
        not_evaluated=len(checks.outcomes) - len(checks.evaluated),
        level=_level(blocked, warned),
        reasons=tuple(blocked or warned),
    )


def _below(score: Fraction | None, threshold: float, name: str) -> list[str]:
    if score is None or score >= Fraction(threshold):
        return []
    return [f"the score {float(score):.2f} is below the {name} of {threshold:g}"]


def _level(blocked: Sequence[str], warned: Sequence[str]) -> ScoreLevel:
    if blocked:
        return ScoreLevel.BLOCKED
    return ScoreLevel.WARN if warned else ScoreLevel.OK


@dataclass(frozen=True, slots=True)
class _Checks:
    """Outcomes by id, and what each counts for."""

    outcomes: Mapping[str, RuleOutcome]
    classes: Mapping[str, WeightClass]

    @classmethod
    def of(cls, outcomes: Iterable[RuleOutcome], classes: Mapping[str, WeightClass]) -> "_Checks":
        kept: dict[str, RuleOutcome] = {}
        conflicting: set[str] = set()
        for one in outcomes:
            first = kept.setdefault(one.id, one)
            if (first.status, first.severity) != (one.status, one.severity):
                conflicting.add(one.id)
        if conflicting:
            raise InvalidArgumentError(
                f"checks have different outcomes: {', '.join(sorted(conflicting))}",
                checks=tuple(sorted(conflicting)),
            )
        unknown = sorted(id_ for id_, name in classes.items() if name not in set(WeightClass))
        if unknown:
            raise InvalidArgumentError(f"checks have unknown weight classes: {', '.join(unknown)}")
        return cls(kept, classes)

    @property
    def evaluated(self) -> list[RuleOutcome]:
        return [one for one in self.outcomes.values() if one.status is not Status.ERROR]

    def critical(self, status: Status) -> tuple[str, ...]:
        return tuple(
            one.id
            for one in self.outcomes.values()
            if one.status is status and self._class(one) is WeightClass.CRITICAL
        )

    def score(self, weights: Mapping[WeightClass, Fraction]) -> Fraction | None:
        if not self.evaluated:
            return None
        total = sum(weights[self._class(one)] for one in self.evaluated)
        passed = sum(
            weights[self._class(one)] for one in self.evaluated if one.status is Status.PASSED
        )
        return Fraction(100 * passed) / total

    def _class(self, outcome: RuleOutcome) -> WeightClass:
        return WeightClass(self.classes.get(outcome.id, default_class(outcome.severity)))


def _weights(given: Mapping[str, float]) -> Mapping[WeightClass, Fraction]:
    """Return all weights, exactly; refuse all that are none at once."""
    wrong = [
        *(f"{name} is no weight class" for name in given if name not in set(WeightClass)),
        *(
            f"{name} must be a finite number above 0"
            for name in given
            if not _is_weight(given[name])
        ),
    ]
    if wrong:
        raise InvalidArgumentError(f"the weights are invalid: {'; '.join(wrong)}")
    return {one: Fraction(given.get(one, DEFAULT_WEIGHTS[one])) for one in WeightClass}


def _is_weight(value: object) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return math.isfinite(value) and value > 0
