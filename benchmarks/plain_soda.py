"""Plain Soda: a contract of its own checks over a table of DuckDB in memory; it lists no rows.

Its count of duplicates is that of surplus rows, where the policy counts all rows of a group.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.evidence import Finding, Findings
from benchmarks.register import CODES
from datasource_governance.domain.canonical import Json, canonical_bytes
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.quality.providers.soda import SodaPlugin

if TYPE_CHECKING:
    import duckdb

_CONTRACT: Final[Mapping[str, Json]] = {
    "dataset": "memory/main/register",
    "columns": [
        {
            "name": "id",
            "checks": [
                {"missing": {"name": "id-shape", "qualifier": "id-shape"}},
                {"missing": {"name": "id-present", "qualifier": "id-present"}},
                {"duplicate": {"name": "id-unique"}},
            ],
        },
        {
            "name": "status",
            "checks": [{"invalid": {"name": "known-status", "valid_values": [*CODES]}}],
        },
        {"name": "amount", "checks": [{"invalid": {"name": "amount-range", "valid_min": 0}}]},
        {"name": "customer_id"},
        {"name": "created_at"},
    ],
    "checks": [
        {"row_count": {"name": "non-empty", "threshold": {"must_be_greater_than_or_equal": 1}}},
        {
            "schema": {
                "name": "columns",
                "allow_extra_columns": True,
                "allow_other_column_order": True,
            }
        },
        {
            "duplicate": {
                "name": "customer-time-unique",
                "columns": ["customer_id", "created_at"],
            }
        },
    ],
}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A database in memory, and the data source that Soda makes of it."""

    connection: "duckdb.DuckDBPyConnection"
    source: Any


def load(path: Path) -> Loaded:
    """Return a database in memory with the file's rows in a table."""
    os.environ.update(SodaPlugin.environment)
    import duckdb
    import soda_core.contracts.contract_verification  # noqa: F401 - adapters need it first
    from soda_duckdb.common.data_sources.duckdb_data_source import DuckDBDataSourceImpl

    connection = duckdb.connect()
    connection.read_parquet(str(path)).create("register")
    return Loaded(connection, DuckDBDataSourceImpl.from_existing_cursor(connection, name="memory"))


def evaluate(loaded: Loaded, _policy: QualityPolicy) -> Findings:
    """Verify the contract, and read the evidence from the counts of its checks."""
    from soda_core.common.yaml import ContractYamlSource
    from soda_core.contracts.contract_verification import ContractVerificationSession

    # JSON is YAML.
    contract = ContractYamlSource.from_str(canonical_bytes(_CONTRACT).decode())
    session = ContractVerificationSession.execute(
        contract_yaml_sources=[contract], data_source_impls=[loaded.source]
    )
    return {
        result.check.name: _finding(result)
        for verified in session.contract_verification_results
        for result in verified.check_results
    }


def _finding(result: Any) -> Finding:  # noqa: ANN401 - Soda is untyped
    counts = result.diagnostic_metric_values or {}
    affected = int(counts.get(f"{result.check.type}_count") or 0)
    return Finding(passed=result.outcome.name == "PASSED", affected=affected)
