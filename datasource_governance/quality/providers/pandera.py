"""The native provider: the policy compiled to Pandera, as everywhere else in this package.

Source: SPEC sections 5 and 14.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from datasource_governance.domain.quality_check import Evaluated
from datasource_governance.domain.quality_expectation import QualityExpectation
from datasource_governance.domain.quality_policy import NO_OVERRIDES, QualityPolicy
from datasource_governance.domain.rules import RowCountRule
from datasource_governance.domain.validation import RuleOutcome, Status
from datasource_governance.quality.plugin import DataQualityPlugin
from datasource_governance.quality.targets import FrameTarget, Target


class PanderaPlugin(DataQualityPlugin):
    """Runs our own evaluator over frames, and over SQL tables in batches."""

    name = "pandera"
    distributions = ("pandera",)
    dialects: ClassVar[frozenset[str]] = frozenset({"postgresql", "duckdb"})

    @override
    def run(
        self, target: Target, expectations: Sequence[QualityExpectation], folder: Path
    ) -> Iterable[Evaluated]:
        from datasource_governance.evaluation.evaluate import validate
        from datasource_governance.sources.sql.read import SqlSource

        policy = QualityPolicy(
            version="expectations",
            rules=tuple(one.rule for one in expectations),
            schema_policy=NO_OVERRIDES,
            canonical=b"",
            hash=expectations[0].policy_hash,
        )
        data: object = (
            target.table
            if isinstance(target, FrameTarget)
            else SqlSource(target.url, table=target.table, schema=target.schema)
        )
        return [_evaluated(outcome) for outcome in validate(policy, data).rules]


def _evaluated(outcome: RuleOutcome) -> Evaluated:
    if outcome.status is Status.ERROR:
        return Evaluated(id=outcome.id, affected=None)
    if outcome.type == RowCountRule.type:
        return Evaluated(id=outcome.id, affected=int(outcome.status is Status.FAILED))
    return Evaluated(id=outcome.id, affected=outcome.affected, rows=outcome.rows)
