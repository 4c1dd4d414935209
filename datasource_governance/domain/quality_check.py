"""What a quality provider answers, and what is made of it. There is no place for a cell value.

A rule is passed or failed only where the provider answered for it exactly once and sensibly;
everything else is `error`, which never counts as passed.

Source: SPEC sections 5 and 14; facts on the quality plugin, 8.8 and 10.2.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from datasource_governance.domain.canonical import Json
from datasource_governance.domain.quality_expectation import ContentRule, QualityExpectation
from datasource_governance.domain.rule_outcome import (
    MAXIMUM_ROWS_LISTED,
    Reason,
    RuleOutcome,
    Status,
)
from datasource_governance.domain.rules import (
    NotNullRule,
    RangeRule,
    ReferentialRule,
    RowCountRule,
    UniqueRule,
)

_REASONS = {
    RowCountRule.type: Reason.ROW_COUNT,
    NotNullRule.type: Reason.NULL,
    UniqueRule.type: Reason.DUPLICATE,
    RangeRule.type: Reason.OUT_OF_RANGE,
    ReferentialRule.type: Reason.NOT_ALLOWED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """What a provider found of one expectation.

    `affected` is the number of distinct rows that violate it, for `row_count` 0 or 1; None where it
    could not be evaluated. `rows` are the lowest one-based positions of such rows, at most 25; None
    where the provider knows none.
    """

    id: str
    affected: int | None
    rows: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityCheckResult:
    """One outcome for every expectation, in the order in which they were asked.

    `provider_version` is that of the framework, or of what wrote results that were only read.
    """

    provider: str
    provider_version: str
    checks: tuple[RuleOutcome, ...]

    @property
    def status(self) -> Status:
        """`error` when nothing was evaluated or something was not, else failed or passed."""
        found = {check.status for check in self.checks}
        if not found or Status.ERROR in found:
            return Status.ERROR
        return Status.FAILED if Status.FAILED in found else Status.PASSED

    def document(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {
            "provider": self.provider,
            "provider_version": self.provider_version,
            "status": str(self.status),
            "checks": [check.document() for check in self.checks],  # type: ignore[misc]  # it is JSON
        }


def concluded(
    asked: Sequence[QualityExpectation],
    answered: Iterable[Evaluated],
    row_count: int | None = None,
) -> tuple[RuleOutcome, ...]:
    """Return the outcome of every expectation, in the order in which they were asked.

    One that was answered never, twice or impossibly could not be evaluated. `row_count` is the
    number of rows that there are, None where it is not known.
    """
    found: dict[str, list[Evaluated]] = {}
    for one in answered:
        found.setdefault(one.id, []).append(one)
    return tuple(
        _outcome(expectation.rule, found.get(expectation.id, []), row_count)
        for expectation in asked
    )


def not_evaluated(rule: ContentRule) -> RuleOutcome:
    """Return the outcome of a rule that could not be evaluated."""
    return _of(rule, Status.ERROR, Reason.NOT_EVALUATED)


def _outcome(rule: ContentRule, answers: Sequence[Evaluated], row_count: int | None) -> RuleOutcome:
    most = 1 if isinstance(rule, RowCountRule) else row_count
    if len(answers) != 1 or not _is_possible(rule, answers[0], most):
        return not_evaluated(rule)
    affected, rows = answers[0].affected or 0, answers[0].rows
    status = Status.FAILED if affected else Status.PASSED
    reason = _REASONS[rule.type] if affected else None
    if isinstance(rule, RowCountRule):
        return _of(rule, status, reason)
    return _of(rule, status, reason, affected=affected, rows=rows)


def _is_possible(rule: ContentRule, answer: Evaluated, most: int | None) -> bool:
    """Tell whether the numbers fit together, and into so many rows."""
    affected, rows = answer.affected, answer.rows
    if affected is None or affected < 0 or (most is not None and affected > most):
        return False
    if isinstance(rule, UniqueRule) and affected == 1:
        return False
    return rows is None or _are_rows(rows, affected, most)


def _are_rows(rows: Sequence[int], affected: int, most: int | None) -> bool:
    """Tell whether these can be the lowest positions of so many rows; a key would be none."""
    ascending = all(low < high for low, high in pairwise((0, *rows)))
    within = most is None or not rows or rows[-1] <= most
    return ascending and within and len(rows) == min(affected, MAXIMUM_ROWS_LISTED)


def _of(
    rule: ContentRule,
    status: Status,
    reason: Reason | None,
    *,
    affected: int | None = None,
    rows: tuple[int, ...] | None = None,
) -> RuleOutcome:
    return RuleOutcome(
        id=rule.id,
        type=rule.type,
        severity=rule.severity,
        status=status,
        fields=rule.fields,
        affected=affected,
        rows=rows,
        reason=reason,
    )
