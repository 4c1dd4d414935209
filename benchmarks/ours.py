"""The package's own ways to the evidence, through its public functions."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.evidence import Finding, Findings
from datasource_governance import pandera_schema, validate
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.domain.validation import RuleOutcome, Status

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from datasource_governance.evaluation.frames import Engine

MEMORY_BYTES = 512 * 1024 * 1024
"""The setting that bounds validation in batches; the command line's default."""


def load_pandas(path: Path) -> "pd.DataFrame":
    """Return the file as a pandas frame of Arrow dtypes."""
    import pandas as pd

    return pd.read_parquet(path, dtype_backend="pyarrow")


def load_numpy(path: Path) -> "pd.DataFrame":
    """Return the file as pandas reads it unless told otherwise."""
    import pandas as pd

    # An integer column with a null would become one of floats, and the rule about its type fail.
    return pd.read_parquet(path).astype({"id": "Int64"})


def load_scan(path: Path) -> "pl.LazyFrame":
    """Return the file as a query that is yet to run."""
    import polars as pl

    return pl.scan_parquet(path)


def load_typed(path: Path) -> "pa.Table":
    """Return the same frame in the typed form, which the fingerprint is about."""
    from datasource_governance.sources.frames import from_data

    return from_data(load_pandas(path))


def evaluate_pandas(frame: "pd.DataFrame", policy: QualityPolicy) -> Findings:
    """Validate a pandas frame with the compiled schema."""
    return _evaluate(frame, policy, "pandas")


def evaluate_polars(frame: "pl.DataFrame | pl.LazyFrame", policy: QualityPolicy) -> Findings:
    """Validate a Polars frame or query with the compiled schema."""
    return _evaluate(frame, policy, "polars")


def evaluate_file(path: Path, policy: QualityPolicy) -> Findings:
    """Read a file and validate it in memory: schema, rules and fingerprint."""
    from datasource_governance.evaluation.evaluate import validate_file

    return _findings(validate_file(policy, path, memory_bytes=2**40).rules)


def evaluate_batches(path: Path, policy: QualityPolicy) -> Findings:
    """Read a file and validate it in batches: schema, rules and fingerprint."""
    from datasource_governance.evaluation.streaming import BATCHES_IN_MEMORY, validate_batches
    from datasource_governance.sources.scan import scan_file

    batches = scan_file(path, batch_bytes=MEMORY_BYTES // BATCHES_IN_MEMORY)
    return _findings(validate_batches(policy, batches, memory_bytes=MEMORY_BYTES).rules)


def evaluate_whole(frame: "pd.DataFrame", policy: QualityPolicy) -> Findings:
    """Validate a frame: schema, rules and fingerprint."""
    return _findings(validate(policy, frame).rules)


def fingerprint(table: "pa.Table", _policy: QualityPolicy) -> None:
    """Compute the content fingerprint; it has no findings."""
    from datasource_governance.evaluation.fingerprint import fingerprint

    fingerprint(table)


def _evaluate(frame: object, policy: QualityPolicy, engine: "Engine") -> Findings:
    from pandera.errors import SchemaErrors

    outcomes: dict[str, RuleOutcome] = {}
    schema: Any = pandera_schema(policy, engine, recorder=outcomes)
    with contextlib.suppress(SchemaErrors):
        schema.validate(frame, lazy=True)
    return _findings(tuple(outcomes.values()))


def _findings(outcomes: tuple[RuleOutcome, ...]) -> Findings:
    return {
        outcome.id: Finding(
            passed=outcome.status is Status.PASSED,
            affected=outcome.affected or 0,
            rows=outcome.rows or (),
        )
        for outcome in outcomes
    }
