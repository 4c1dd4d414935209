"""Plain dbt: data tests of a source on DuckDB, run in this process; it lists no rows.

`unique` and `accepted_values` count values where the policy counts rows. That fields are there is
no test of dbt's, and its packages with more tests come from a network, so that three are written
as its documentation teaches.
"""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.evidence import Finding, Findings
from benchmarks.register import CODES, RULE_IDS
from datasource_governance.domain.canonical import Json, canonical_bytes
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.quality.providers import dbt_project

_GENERIC: Final = """
{% test at_least(model, column_name, minimum) %}
select * from {{ model }} where {{ column_name }} < {{ minimum }}
{% endtest %}
{% test unique_together(model, columns) %}
select {{ columns | join(", ") }} from {{ model }}
where {{ columns | join(" is not null and ") }} is not null
group by all having count(*) > 1
{% endtest %}
{% test rows_present(model, minimum) %}
select 1 from (select count(*) as total from {{ model }}) where total < {{ minimum }}
{% endtest %}
"""
_NAMES: Final = {rule.replace("-", "_"): rule for rule in RULE_IDS}
"""Rules by what dbt calls their tests."""


def _test(kind: str, rule: str, **arguments: Json) -> Json:
    return {kind: {"name": rule.replace("-", "_"), "arguments": arguments}}


_TABLE: Final[Mapping[str, Json]] = {
    "name": "register",
    "data_tests": [
        _test("rows_present", "non-empty", minimum=1),
        _test("unique_together", "customer-time-unique", columns=["customer_id", "created_at"]),
    ],
    "columns": [
        {
            "name": "id",
            "data_tests": [
                _test("not_null", "id-shape"),
                _test("not_null", "id-present"),
                _test("unique", "id-unique"),
            ],
        },
        {
            "name": "status",
            "data_tests": [_test("accepted_values", "known-status", values=[*CODES])],
        },
        {"name": "amount", "data_tests": [_test("at_least", "amount-range", minimum=0)]},
    ],
}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A folder with a project and its database, which ends with this object."""

    folder: "tempfile.TemporaryDirectory[str]"

    def run(self, command: str) -> Any:  # noqa: ANN401 - dbt gives what the command gives
        """Run a command of dbt, silently.

        Raises:
            RuntimeError: dbt could not run it, which is not that tests failed.
        """
        from dbt.cli.main import dbtRunner

        at = Path(self.folder.name)
        places = ["--project-dir", str(at), "--profiles-dir", str(at), "--log-path", str(at / "l")]
        silent = ["--log-level", "none", "--log-level-file", "none"]
        ended = dbtRunner().invoke([command, *places, *silent, "--target-path", str(at / "target")])
        if ended.exception is not None:
            raise RuntimeError(f"dbt {command} could not run") from ended.exception
        return ended.result


def load(path: Path) -> Loaded:
    """Return a project whose database has the file's rows in a table; dbt has parsed it once."""
    os.environ.update(dbt_project.ENVIRONMENT)
    import duckdb

    loaded = Loaded(tempfile.TemporaryDirectory())
    folder = Path(loaded.folder.name)
    database = folder / "loaded.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.read_parquet(str(path)).create("register")
    output: Json = {"type": "duckdb", "path": str(database), "threads": os.cpu_count()}
    source: Json = {"name": "main", "schema": "main", "tables": [dict(_TABLE)]}
    documents: Mapping[str, Json] = {
        "dbt_project.yml": {"name": "register", "version": "1.0", "profile": "register"},
        "profiles.yml": {"register": {"target": "here", "outputs": {"here": output}}},
        "models/sources.yml": {"version": 2, "sources": [source]},
    }
    for name in ("models", "tests/generic"):
        (folder / name).mkdir(parents=True)
    (folder / "tests/generic/tests.sql").write_text(_GENERIC)
    for name, document in documents.items():
        # JSON is YAML.
        (folder / name).write_bytes(canonical_bytes(document))
    loaded.run("parse")
    return loaded


def evaluate(loaded: Loaded, _policy: QualityPolicy) -> Findings:
    """Run the tests, and read the evidence from their failures."""
    return {
        _NAMES[result.node.name]: Finding(
            passed=str(result.status) == "pass", affected=result.failures or 0
        )
        for result in loaded.run("test").results
    }
