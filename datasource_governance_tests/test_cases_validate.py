"""The acceptance cases about validation, on every carrier that is read here, and Pandera alone."""

import json

import pandas as pd
import pandera.errors
import pytest

from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.schema_document import parse_schema
from datasource_governance.errors import UnreadableSourceError
from datasource_governance.evaluation.compile import pandera_schema
from datasource_governance.evaluation.evaluate import PanderaEvaluator
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.sources.csv import CsvOptions
from datasource_governance.sources.files import read_file
from datasource_governance.sources.frames import from_data
from datasource_governance_tests import case_files
from datasource_governance_tests.cases import build

BAIT = "zq-canary"
STATUS = {"pass": "passed", "fail": "failed"}


def carriers(case):
    data = case.input["data"]
    if data["kind"] == "table":
        return [carrier for carrier in data["carriers"] if carrier != "sql"]
    return [] if data["kind"] == "sql" else [data["kind"]]


def pytest_generate_tests(metafunc):
    if "carrier" not in metafunc.fixturenames:
        return
    cases = case_files.load_cases(metafunc.config.getoption("cases"), "validate")
    pairs = [(case, carrier) for case in cases for carrier in carriers(case)]
    ids = [f"{case.id}-{carrier}" for case, carrier in pairs]
    metafunc.parametrize(("case", "carrier"), pairs, ids=ids)


def test_validate_case_gets_the_expected_answer_on_both_engines(case, carrier, tmp_path, caplog):
    try:
        table = read(case, carrier, tmp_path)
    except UnreadableSourceError as error:
        assert any(refuses(error, answer) for answer in case.answers), error
        assert BAIT not in f"{error}{caplog.text}"
        return
    validations = [
        PanderaEvaluator(engine).validate(policy_of(case), TypedPayload(table), previous_of(case))
        for engine in ("pandas", "polars")
    ]

    assert any(matches(validations[0], answer) for answer in case.answers), validations[0]
    assert validations[0].hashed_bytes() == validations[1].hashed_bytes()
    text = json.dumps([one.document() for one in validations], allow_nan=False)
    assert BAIT not in f"{text}{caplog.text}"


def test_validate_case_gets_the_same_verdict_from_pandera_alone(case, carrier, tmp_path, caplog):
    if any("error" in answer for answer in case.answers):
        pytest.raises(UnreadableSourceError, read, case, carrier, tmp_path)
        return
    failing, text = set(), ""

    try:
        pandera_schema(policy_of(case), "pandas").validate(
            frame(case, carrier, tmp_path), lazy=True
        )
    except pandera.errors.SchemaErrors as errors:
        failing = {error.check.name for error in errors.schema_errors}
        text = f"{errors}{errors.failure_cases}"

    assert failing in [not_passing(answer) for answer in case.answers]
    assert BAIT not in f"{text}{caplog.text}"


def read(case, carrier, folder):
    """Return the typed table of a case, read through the public entry point of the carrier."""
    data = case.input["data"]
    if carrier == "dataframe":
        return from_data(build.to_dataframe(data))
    if carrier == "arrow":
        return from_data(build.to_arrow(data))
    path = folder / f"delivery.{carrier}"
    if carrier == "parquet":
        build.to_parquet(data, path)
        return read_file(path)
    path.write_bytes(build.to_csv_bytes(data))
    types = {field["name"]: field["type"] for field in data.get("schema", [])}
    return read_file(path, CsvOptions(**data.get("read", {}), types=types))


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
    expected = answer.get("error", {"kind": None, "names": []})
    return any(
        problem.kind == expected["kind"]
        and all(name in problem.names or name in problem.message for name in expected["names"])
        for problem in error.problems
    )


def not_passing(answer):
    return {rule["id"] for rule in answer["rules"] if rule["status"] != "pass"}


def matches(validation, answer):
    """Compare what the answer states; a product may say more."""
    document = validation.document()
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
