"""The acceptance cases about validation, on every carrier that is read here, and Pandera alone."""

import json

import pandas as pd
import pandera.errors
import pytest

from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.schema_document import parse_schema
from datasource_governance.errors import UnreadableSourceError
from datasource_governance.evaluation.compile import pandera_schema
from datasource_governance.evaluation.evaluate import PanderaEvaluator, validate_file
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.evaluation.streaming import validate_batches
from datasource_governance.sources.files import read_file
from datasource_governance.sources.frames import from_data
from datasource_governance_tests import case_files
from datasource_governance_tests.cases import build
from datasource_governance_tests.evaluation.test_against_reference import Cut

BAIT = "zq-canary"
STATUS = {"pass": "passed", "fail": "failed"}


def carriers(case):
    data = case.input["data"]
    if data["kind"] == "table":
        return [carrier for carrier in data["carriers"] if carrier != "sql"]
    return [] if data["kind"] == "sql" else [data["kind"]]


def pytest_generate_tests(metafunc):
    folder = metafunc.config.getoption("cases")
    for argument in {"case", "accepted_case"}.intersection(metafunc.fixturenames):
        cases = case_files.load_cases(folder, "validate")
        if argument == "accepted_case":
            cases = [case for case in cases if not is_refused(case)]
        pairs = [(case, carrier) for case in cases for carrier in carriers(case)]
        ids = [f"{case.id}-{carrier}" for case, carrier in pairs]
        metafunc.parametrize((argument, "carrier"), pairs, ids=ids)


def test_validate_case_gets_the_expected_answer_on_both_engines(case, carrier, tmp_path, caplog):
    if is_refused(case):
        assert_refused(case, lambda: read(case, carrier, tmp_path), caplog)
        return
    payload = TypedPayload(read(case, carrier, tmp_path))

    on_pandas, on_polars = (
        PanderaEvaluator(engine).validate(policy_of(case), payload, previous_of(case))
        for engine in ("pandas", "polars")
    )

    assert any(matches(on_pandas.document(), answer) for answer in case.answers), on_pandas
    assert on_pandas.hashed_bytes() == on_polars.hashed_bytes()
    assert BAIT not in f"{json.dumps(on_pandas.document(), allow_nan=False)}{caplog.text}"


def test_validate_case_gets_the_expected_answer_in_batches(case, carrier, tmp_path, caplog):
    if is_refused(case):
        assert_refused(case, lambda: validate_in_batches(case, carrier, tmp_path), caplog)
        return

    validation = validate_in_batches(case, carrier, tmp_path)

    assert any(matches(validation.document(), answer) for answer in case.answers), validation
    assert BAIT not in f"{json.dumps(validation.document(), allow_nan=False)}{caplog.text}"


def test_validate_case_gets_the_same_verdict_from_pandera_alone(
    accepted_case, carrier, tmp_path, caplog
):
    schema = pandera_schema(policy_of(accepted_case), "pandas")

    failing, message = failing_checks(schema, frame(accepted_case, carrier, tmp_path))

    assert failing in [not_passing(answer) for answer in accepted_case.answers]
    assert BAIT not in f"{message}{caplog.text}"


def assert_refused(case, action, caplog):
    with pytest.raises(UnreadableSourceError) as refusal:
        action()
    assert any(refuses(refusal.value, answer) for answer in case.answers), refusal.value
    assert BAIT not in f"{refusal.value}{caplog.text}"


def failing_checks(schema, data):
    """Return the names of the checks that stock Pandera reports, and all that it says."""
    try:
        schema.validate(data, lazy=True)
    except pandera.errors.SchemaErrors as errors:
        names = {error.check.name for error in errors.schema_errors}
        return names, f"{errors}{errors.failure_cases}"
    return set(), ""


def is_refused(case):
    return "error" in case.expected


def read(case, carrier, folder):
    """Return the typed table of a case, read through the public entry point of the carrier."""
    data = case.input["data"]
    if carrier == "dataframe":
        return from_data(build.to_dataframe(data))
    if carrier == "arrow":
        return from_data(build.to_arrow(data))
    return read_file(*delivered(case, carrier, folder))


def delivered(case, carrier, folder):
    """Write the file of a case; return its path and how it is written."""
    data = case.input["data"]
    path = folder / f"delivery.{carrier}"
    if carrier == "parquet":
        build.to_parquet(data, path)
        return path, None
    path.write_bytes(build.to_csv_bytes(data))
    types = {field["name"]: field["type"] for field in data.get("schema", [])}
    return path, CsvOptions(**data.get("read", {}), types=types)


def validate_in_batches(case, carrier, folder):
    """Validate a case with memory for nothing: a file row by row, a table in three parts."""
    policy, previous = policy_of(case), previous_of(case)
    if carrier in {"dataframe", "arrow"}:
        table = read(case, carrier, folder)
        parts = Cut(table, 1 + table.num_rows // 3)
        return validate_batches(policy, parts, previous, memory_bytes=1)
    path, csv = delivered(case, carrier, folder)
    return validate_file(policy, path, csv=csv, previous_schema=previous, memory_bytes=1)


def frame(case, carrier, folder):
    """Return a pandas frame of a case, with the objects and the index that it is about."""
    if carrier == "dataframe":
        return build.to_dataframe(case.input["data"])
    return read(case, carrier, folder).to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)


def policy_of(case):
    return parse_quality_policy(case.input.get("policy_text") or case.input["policy"])


def previous_of(case):
    previous = case.input.get("previous_schema")
    return None if previous is None else parse_schema(previous)


def refuses(error, answer):
    expected = answer["error"]
    return any(
        problem.kind == expected["kind"]
        and all(name in problem.names or name in problem.message for name in expected["names"])
        for problem in error.problems
    )


def not_passing(answer):
    return {rule["id"] for rule in answer["rules"] if rule["status"] != "pass"}


def matches(document, answer):
    """Compare what the answer states; a product may say more."""
    stated = {
        "outcome": document["outcome"],
        "row_count": document["row_count"],
        "detected_schema": document["schema"],
    }
    same = all(answer.get(key, value) == value for key, value in stated.items())
    return same and rules_match(document, answer) and diff_matches(document, answer)


def rules_match(document, answer):
    expected = answer.get("rules")
    return expected is None or (
        len(expected) == len(document["rules"])
        and all(rule_matches(*pair) for pair in zip(document["rules"], expected, strict=True))
    )


def rule_matches(rule, expected):
    wanted = dict(expected)
    wanted["status"] = STATUS[wanted["status"]]
    if "names" in wanted:
        wanted["fields"] = wanted.pop("names")
    about_rows = {"affected", "rows"}
    return all(
        rule[key] == value
        for key, value in wanted.items()
        if not (key in about_rows and value is None)
    )


def diff_matches(document, answer):
    if "schema" not in answer:
        return True
    found, expected = document["schema_diff"], answer["schema"]
    stated = {
        "classification": found["classification"],
        "blocks_promotion": found["classification"] == "breaking",
    }
    changes = [
        {key: change[key] for key in ("change", "field", "classification")}
        for change in found["changes"]
    ]
    return expected.get("changes", changes) == changes and all(
        expected.get(key, value) == value for key, value in stated.items()
    )


def test_packaged_cases_that_are_read_here_are_all_there():
    cases = case_files.load_cases(case_files.PACKAGED, "validate")

    assert sum(len(carriers(case)) for case in cases) == 27 + 12 + 2 * 75
