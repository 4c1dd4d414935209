import os
import subprocess
import sys

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datasource_governance.domain.quality_policy import ReferentialRule, Severity
from datasource_governance.domain.schema_diff import Classification
from datasource_governance.domain.validation import Outcome, Reason, Status
from datasource_governance.errors import (
    EvaluationError,
    InvalidArgumentError,
    UnreadableSourceError,
)
from datasource_governance.evaluation.evaluate import PanderaEvaluator, validate, validate_file
from datasource_governance.evaluation.fingerprint import fingerprint
from datasource_governance.evaluation.kernel import evaluate_rule, not_evaluated
from datasource_governance.evaluation.outcomes import UNNUMBERED, demand
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.sources.scan import decoded_bytes
from datasource_governance.sources.sql.read import SqlSource
from datasource_governance_tests.builders import quality_policy, rule, schema
from datasource_governance_tests.evaluation.judging import columns_of
from datasource_governance_tests.sources.databases import new_duckdb

TABLE = pa.table({"x": pa.array([1, 1, None]), "s": pa.array(["a", "b", "a"], pa.large_string())})
POLICY = quality_policy(
    rule("not_null", id="present", field="x"),
    rule("referential", id="known", field="s", allowed_values=["a"], severity="warning"),
    rule("row_count", id="some", minimum=1),
)


class Stored:
    """A payload as a service knows it: only its bytes."""

    def __init__(self, data):
        self.data = data

    def encoded(self):
        return self.data


def test_a_validation_tells_what_every_rule_found_and_what_the_table_is():
    found = PanderaEvaluator().validate(POLICY, TypedPayload(TABLE), None)

    assert [(one.id, one.status, one.affected, one.rows) for one in found.rules] == [
        ("present", Status.FAILED, 1, (3,)),
        ("known", Status.FAILED, 1, (2,)),
        ("some", Status.PASSED, None, None),
    ]
    assert found.outcome is Outcome.BLOCKED
    assert found.schema == schema(x="integer?", s="string")
    assert (found.row_count, found.schema_diff, found.engine) == (3, None, "pandas")
    assert (found.fingerprint, found.byte_count) == fingerprint(TABLE)
    assert (found.policy_version, found.policy_hash) == (POLICY.version, POLICY.hash)


def test_both_engines_and_the_stored_form_give_the_same_bytes():
    memory, stored = TypedPayload(TABLE), Stored(TypedPayload(TABLE).encoded())

    found = [
        PanderaEvaluator(engine).validate(POLICY, payload, None)
        for engine in ("pandas", "polars")
        for payload in (memory, stored)
    ]

    assert [one.engine for one in found] == ["pandas", "pandas", "polars", "polars"]
    assert len({one.hashed_bytes() for one in found}) == 1


def test_the_schema_is_compared_with_the_previous_one():
    found = validate(quality_policy(), TABLE, schema(x="integer?", gone="string"))

    assert found.schema_diff.classification is Classification.BREAKING
    assert found.outcome is Outcome.BLOCKED


@pytest.mark.parametrize("data", [pd.DataFrame({"x": [1]}), pl.DataFrame({"x": [1]})])
def test_data_in_memory_is_validated_whatever_its_library(data):
    assert validate(quality_policy(rule("not_null", field="x")), data).outcome is Outcome.READY


def test_names_that_look_alike_are_a_notice():
    (notice,) = validate(quality_policy(), pa.table({"Name": [1], "name": [1], "x": [1]})).notices

    assert "'Name'" in notice
    assert "'name'" in notice


def test_a_rule_that_cannot_be_evaluated_blocks_and_leaves_the_others_alone():
    # The parser refuses a lone surrogate; a policy built by hand gets this far.
    hand_made = ReferentialRule(
        id="odd", severity=Severity.ERROR, field="s", allowed_values=("\ud800",), allow_null=False
    )
    policy = quality_policy(rule("not_null", id="r", field="s"))
    object.__setattr__(policy, "rules", (hand_made, *policy.rules))

    found = validate(policy, TABLE)

    assert [(one.status, one.reason) for one in found.rules] == [
        (Status.ERROR, Reason.NOT_EVALUATED),
        (Status.PASSED, None),
    ]
    assert found.outcome is Outcome.BLOCKED


def test_a_rule_counts_as_evaluated_only_where_its_receipt_and_pandera_agree():
    (present,) = quality_policy(rule("not_null", field="x")).rules
    failed, passed = (evaluate_rule(present, columns_of(one)) for one in (TABLE, TABLE.slice(0, 2)))

    assert demand(present, failed, passed=False) is failed
    assert demand(present, passed, passed=True) is passed
    assert demand(present, failed, passed=True) == not_evaluated(present)
    assert demand(present, passed, passed=False) == not_evaluated(present)
    assert demand(present, None, passed=True) == not_evaluated(present)


@pytest.mark.parametrize("engine", ["pandas", "polars"])
@pytest.mark.parametrize("data", [b"", b"zq-canary no arrow"])
def test_a_malformed_payload_is_an_error_without_value_cause_or_context(engine, data):
    with pytest.raises(EvaluationError) as error:
        PanderaEvaluator(engine).validate(POLICY, Stored(data), None)

    assert error.value.__cause__ is error.value.__context__ is None
    assert "zq-canary" not in str(error.value)


def delivery(folder, suffix):
    """Return the file of a table in one of the formats."""
    path = folder / f"delivery{suffix}"
    if suffix == ".csv":
        path.write_text("x,s\n1,a\n1,b\n,a\n")
    elif suffix == ".parquet":
        pq.write_table(TABLE, path)
    else:
        with pa.ipc.new_file(path, TABLE.schema) as file:
            file.write_table(TABLE)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_a_file_that_takes_more_than_the_memory_is_read_in_batches(tmp_path, suffix):
    path, told = delivery(tmp_path, suffix), []
    size = decoded_bytes(path)

    fits, is_larger = (
        validate_file(POLICY, path, memory_bytes=memory, on_rows=told.append)
        for memory in (size, size - 1)
    )

    assert (fits.engine, is_larger.engine) == ("pandas", "pandas_batches")
    assert fits.hashed_bytes() == is_larger.hashed_bytes() == validate(POLICY, TABLE).hashed_bytes()
    assert told[-1] == TABLE.num_rows


def test_sources_that_may_have_any_size_are_read_in_batches(tmp_path):
    database = new_duckdb(tmp_path)
    database.run(
        "CREATE TABLE t (k integer PRIMARY KEY, x bigint, s text)",
        "INSERT INTO t VALUES (3, NULL, 'a'), (1, 1, 'a'), (2, 1, 'b')",
    )
    rows = SqlSource(database.url, query="SELECT x, s FROM t", order_by=("x", "s"))

    found = [validate(POLICY, data) for data in (rows, pl.from_arrow(TABLE).lazy())]

    assert [one.engine for one in found] == ["pandas_batches"] * 2
    assert {one.hashed_bytes() for one in found} == {validate(POLICY, TABLE).hashed_bytes()}


def test_data_that_is_no_table_is_refused():
    with pytest.raises(InvalidArgumentError):
        validate(POLICY, [1, 2])
    with pytest.raises(UnreadableSourceError):
        validate(POLICY, pd.DataFrame([[1, 2]], columns=["x", "x"]))


SCRIPT = """
import pandas as pd, pandera.errors, polars as pl, pyarrow as pa
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.evaluation.compile import pandera_schema
from datasource_governance.evaluation.evaluate import PanderaEvaluator
from datasource_governance.evaluation.outcomes import UNNUMBERED, demand
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.sources.scan import decoded_bytes
from datasource_governance.sources.sql.read import SqlSource

policy = parse_quality_policy({"version": "v1", "rules": [
    {"id": "u", "type": "unique", "fields": ["x", "s"]},
    {"id": "r", "type": "referential", "field": "s", "allowed_values": ["b", "c"]},
    {"id": "n", "type": "not_null", "field": "l"},
]})
data = {"x": [1, 1, None], "s": ["a", "a", "b"], "l": [["p"], ["q", "p"], None]}
payload = TypedPayload(pa.table(data).cast(pa.schema(
    [("x", pa.int64()), ("s", pa.large_string()), ("l", pa.list_(pa.string()))])))
for engine in ("pandas", "polars"):
    print(PanderaEvaluator(engine).validate(policy, payload, None).hashed_bytes().decode())
for engine, frame in (("pandas", pd.DataFrame(data)), ("polars", pl.DataFrame(data)),
                      ("polars", pl.LazyFrame(data))):
    try:
        pandera_schema(policy, engine).validate(frame, lazy=True)
        print("passed")
    except pandera.errors.SchemaErrors as errors:
        print(sorted(error.check.name for error in errors.schema_errors))
"""
PLAIN = {"PYTHONHASHSEED": "1"}
ENVIRONMENTS = {
    "switched off": {
        "PYTHONHASHSEED": "2",
        "PANDERA_VALIDATION_ENABLED": "False",
        "PANDERA_VALIDATION_DEPTH": "SCHEMA_ONLY",
    },
    "other backend": {"PYTHONHASHSEED": "3", "PANDERA_USE_NARWHALS_BACKEND": "True"},
}


@pytest.fixture(scope="module")
def plain_output():
    return output(PLAIN)


@pytest.mark.slow
@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_no_environment_and_no_hash_seed_changes_a_byte(environment, plain_output):
    on_pandas, on_polars, *failing = plain_output.splitlines()
    assert on_pandas == on_polars
    assert failing == ["['n', 'r', 'u']"] * 3

    assert output(environment) == plain_output


def output(environment):
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_rows_are_counted_but_not_numbered_where_the_source_has_no_order():
    policy = quality_policy(rule("not_null", id="present", field="a"))
    table = pa.table({"a": pa.array([1, None, None])})

    validation = PanderaEvaluator().validate(policy, TypedPayload(table, rows_numbered=False), None)

    (found,) = validation.rules
    assert (found.affected, found.rows, found.truncated) == (2, None, False)
    assert validation.notices == (UNNUMBERED,)
