"""Run the compiled policy through Pandera, and demand an outcome for every rule.

Source: SPEC section 5.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from datasource_governance.domain.quality_policy import QualityPolicy, RowCountRule, Rule
from datasource_governance.domain.validation import MAXIMUM_ROWS_LISTED, RuleOutcome, Status
from datasource_governance.evaluation.compile import pandera_schema
from datasource_governance.evaluation.frames import Engine, frame_of
from datasource_governance.evaluation.kernel import not_evaluated
from datasource_governance.sources.typed import similar_names

if TYPE_CHECKING:
    import pyarrow as pa

UNNUMBERED = "rows are not numbered: the source has no order"


def of_table(policy: QualityPolicy, table: "pa.Table", engine: Engine) -> tuple[RuleOutcome, ...]:
    """Return what every rule finds in a typed table, in policy order."""
    concerned = _concerned(table, policy)
    return of_frame(policy, frame_of(concerned, engine), engine, typed=concerned.schema)


def of_row_count(policy: QualityPolicy, row_count: int) -> tuple[RuleOutcome, ...]:
    """Return what the rules about the number of rows find in so many of them."""
    import pandas as pd

    counts = [rule for rule in policy.rules if isinstance(rule, RowCountRule)]
    rows = pd.DataFrame(index=pd.RangeIndex(row_count))
    return of_frame(only(policy, counts), rows, "pandas")


def of_shape(policy: QualityPolicy, empty: "pa.Table") -> tuple[RuleOutcome, ...]:
    """Return what all other rules find in a table without rows: missing fields, wrong types."""
    others = [rule for rule in policy.rules if not isinstance(rule, RowCountRule)]
    return of_table(only(policy, others), empty, "pandas")


def of_frame(
    policy: QualityPolicy,
    frame: Any,  # noqa: ANN401 - Pandera is untyped
    engine: Engine,
    *,
    typed: "pa.Schema | None" = None,
) -> tuple[RuleOutcome, ...]:
    """Return what every rule finds in a frame of the engine's library, in policy order."""
    from pandera.errors import SchemaErrors

    receipts: dict[str, RuleOutcome] = {}
    schema: Any = pandera_schema(policy, engine, recorder=receipts, typed=typed)
    refused: set[str] = set()
    try:
        schema.validate(frame, lazy=True)
    except SchemaErrors as errors:
        refused = {error.check.name for error in errors.schema_errors}
    return tuple(
        demand(rule, receipts.get(rule.id), passed=rule.id not in refused) for rule in policy.rules
    )


def demand(rule: Rule, receipt: RuleOutcome | None, *, passed: bool) -> RuleOutcome:
    """Return a rule's receipt; without one, or where Pandera disagrees, it was not evaluated."""
    if receipt is None or (receipt.status is Status.PASSED) is not passed:
        return not_evaluated(rule)
    return receipt


def only(policy: QualityPolicy, rules: Iterable[Rule]) -> QualityPolicy:
    """Return the policy with some of its rules, to run these."""
    ids = {rule.id for rule in rules}
    return replace(policy, rules=tuple(rule for rule in policy.rules if rule.id in ids))


def joined(earlier: RuleOutcome, later: RuleOutcome) -> RuleOutcome:
    """Return what a rule found in two parts of a payload, which have no row in common.

    A part in which the rule could not be evaluated leaves it so.
    """
    errors_first = sorted((earlier, later), key=lambda part: part.status is not Status.ERROR)
    for part in errors_first:
        if part.status is Status.ERROR or part.affected is None:
            return part
    failed = earlier if earlier.affected else later
    return replace(
        failed,
        affected=(earlier.affected or 0) + (later.affected or 0),
        rows=tuple(sorted((earlier.rows or ()) + (later.rows or ())))[:MAXIMUM_ROWS_LISTED],
    )


def numbered(found: tuple[RuleOutcome, ...], *, rows_numbered: bool) -> tuple[RuleOutcome, ...]:
    """Leave out row numbers where the source has no order (SPEC section 3)."""
    return found if rows_numbered else tuple(replace(one, rows=None) for one in found)


def notices(names: Iterable[str], *, rows_numbered: bool) -> tuple[str, ...]:
    """Return what a reader of the validation should know about the payload."""
    similar = [
        f"fields that differ only in case or Unicode form: {', '.join(map(repr, group))}"
        for group in similar_names(names)
    ]
    return (*similar,) if rows_numbered else (*similar, UNNUMBERED)


def _concerned(table: "pa.Table", policy: QualityPolicy) -> "pa.Table":
    """Return the columns that rules name; one where they name none, which keeps the row count."""
    names = {name for rule in policy.rules for name in rule.fields}
    concerned = [name for name in table.column_names if name in names]
    return table.select(concerned or table.column_names[:1])
