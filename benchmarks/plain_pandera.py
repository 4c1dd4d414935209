"""Plain Pandera: the schema that its documentation teaches, and evidence from `failure_cases`.

It cannot be exact: on pandas `unique=True` leaves out repeated nulls, which the policy counts.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from benchmarks.evidence import PASSED, ROWS_LISTED, Finding, Findings
from benchmarks.register import CODES, RULE_IDS
from datasource_governance.domain.quality_policy import QualityPolicy

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_CHECKS: Mapping[str, tuple[str, ...]] = {
    "non-empty": ("non-empty",),
    "column_in_dataframe": ("columns",),
    "dtype": ("id-shape",),
    "not_nullable": ("id-shape", "id-present"),
    "field_uniqueness": ("id-unique",),
    "multiple_fields_uniqueness": ("customer-time-unique",),
    "greater_than_or_equal_to": ("amount-range",),
    "isin": ("known-status",),
}
"""What Pandera calls a check, up to the bracket with its arguments → rules that it speaks for."""


def evaluate_pandas(frame: "pd.DataFrame", _policy: QualityPolicy) -> Findings:
    """Validate a pandas frame lazily and read the evidence from the failure cases."""
    import pandera.pandas as pa
    from pandera.errors import SchemaErrors

    schema = pa.DataFrameSchema(
        _columns(pa, frame["id"].dtype),
        unique=["customer_id", "created_at"],
        checks=pa.Check(lambda frame: len(frame) >= 1, name="non-empty"),
    )
    try:
        schema.validate(frame, lazy=True)
    except SchemaErrors as errors:
        cases: pd.DataFrame = errors.failure_cases
        return _findings(
            (str(check), len(group), group["index"].dropna().unique())
            for check, group in cases.groupby("check", sort=False)
        )
    return dict.fromkeys(RULE_IDS, PASSED)


def evaluate_polars(frame: "pl.DataFrame", _policy: QualityPolicy) -> Findings:
    """Validate a Polars frame lazily and read the evidence from the failure cases."""
    import pandera.polars as pa
    import polars as pl
    from pandera.errors import SchemaErrors

    schema = pa.DataFrameSchema(
        _columns(pa, pl.Int64),
        unique=["customer_id", "created_at"],
        checks=pa.Check(
            lambda data: data.lazyframe.select(pl.len() >= 1).collect().item(), name="non-empty"
        ),
    )
    try:
        schema.validate(frame, lazy=True)
    except SchemaErrors as errors:
        cases: pl.DataFrame = errors.failure_cases
        return _findings(
            (str(check), group.height, group["index"].drop_nulls().unique())
            for (check,), group in cases.group_by(["check"])
        )
    return dict.fromkeys(RULE_IDS, PASSED)


def _columns(pa: Any, integer: object) -> dict[str, Any]:  # noqa: ANN401 - Pandera is untyped
    return {
        "id": pa.Column(integer, unique=True),
        "status": pa.Column(checks=pa.Check.isin(CODES)),
        "amount": pa.Column(checks=pa.Check.ge(0), nullable=True),
        "customer_id": pa.Column(nullable=True),
        "created_at": pa.Column(nullable=True),
    }


def _findings(groups: Iterable[tuple[str, int, Any]]) -> Findings:
    """Return the findings from the name, the cases and the row labels of every failed check."""
    found = dict.fromkeys(RULE_IDS, PASSED)
    for check, cases, labels in groups:
        places = sorted(labels.to_list() if hasattr(labels, "to_list") else labels)
        rows = tuple(int(place) + 1 for place in places[:ROWS_LISTED])
        finding = Finding(passed=False, affected=len(places) or cases, rows=rows)
        found |= dict.fromkeys(_CHECKS[check.partition("(")[0]], finding)
    return found
