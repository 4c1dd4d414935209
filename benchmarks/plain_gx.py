"""Plain Great Expectations: a suite over a pandas frame, evidence from its unexpected indices.

`COMPLETE` is the only result format that lists all rows. The frame is as pandas reads it unless
told otherwise, which is quicker there than Arrow dtypes. Uniqueness of a single column leaves out
nulls, which the policy counts.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.evidence import ROWS_LISTED, Finding, Findings
from benchmarks.ours import load_numpy
from benchmarks.register import CODES
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.quality.providers.great_expectations import GreatExpectationsPlugin

if TYPE_CHECKING:
    import pandas as pd

_FORMAT: Final = {"result_format": "COMPLETE", "exclude_unexpected_values": True}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A frame, and the batch definition of Great Expectations that it is for."""

    frame: "pd.DataFrame"
    batches: Any


def load(path: Path) -> Loaded:
    """Return the file as a pandas frame, and where Great Expectations takes frames."""
    os.environ.update(GreatExpectationsPlugin.environment)
    import great_expectations as gx

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    asset = context.data_sources.add_pandas("frames").add_dataframe_asset("register")
    return Loaded(load_numpy(path), asset.add_batch_definition_whole_dataframe("rows"))


def evaluate(loaded: Loaded, _policy: QualityPolicy) -> Findings:
    """Validate the frame with the suite, and read the evidence from its results."""
    import great_expectations as gx

    suite = gx.ExpectationSuite(name="register")
    for one, *rules in _expectations():
        one.meta = {"rules": rules}
        suite.add_expectation(one)
    batch = loaded.batches.get_batch({"dataframe": loaded.frame})
    return {
        rule: _finding(result)
        for result in batch.validate(suite, result_format=_FORMAT).results
        for rule in result.expectation_config.meta["rules"]
    }


def _expectations() -> Iterable[tuple[Any, *tuple[str, ...]]]:
    """Return the expectations of the register, each with the rules that it speaks for."""
    import great_expectations.expectations as gxe

    return [
        (gxe.ExpectTableRowCountToBeBetween(min_value=1), "non-empty"),
        (
            gxe.ExpectTableColumnsToMatchSet(column_set=["id", "status"], exact_match=False),
            "columns",
        ),
        (gxe.ExpectColumnValuesToNotBeNull(column="id"), "id-shape", "id-present"),
        (gxe.ExpectColumnValuesToBeUnique(column="id"), "id-unique"),
        (gxe.ExpectColumnValuesToBeBetween(column="amount", min_value=0), "amount-range"),
        (gxe.ExpectColumnValuesToBeInSet(column="status", value_set=[*CODES]), "known-status"),
        (
            gxe.ExpectCompoundColumnsToBeUnique(
                column_list=["customer_id", "created_at"], ignore_row_if="any_value_is_missing"
            ),
            "customer-time-unique",
        ),
    ]


def _finding(result: Any) -> Finding:  # noqa: ANN401 - it is untyped
    places = sorted(result.result.get("unexpected_index_list") or ())
    rows = tuple(int(place) + 1 for place in places[:ROWS_LISTED])
    affected = result.result.get("unexpected_count", 0)
    return Finding(passed=result.success, affected=affected, rows=rows)
