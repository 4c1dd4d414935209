"""Results of dbt are read from what it wrote, without it; what is odd is refused, all at once.

The artifacts are those of dbt 1.11 for a small project, without what nobody reads.
"""

import copy
import json
from pathlib import Path

import pytest

from datasource_governance.domain.rule_outcome import Reason, Status
from datasource_governance.domain.rules import Severity
from datasource_governance.errors import UnreadableSourceError
from datasource_governance.quality.dbt_results import read_dbt_results

ARTIFACTS = Path(__file__).parent / "dbt_artifacts"
RUN_RESULTS, MANIFEST = (
    json.loads((ARTIFACTS / name).read_text("utf-8"))
    for name in ("run_results.json", "manifest.json")
)


def schema(kind, version):
    return {"dbt_schema_version": f"https://schemas.getdbt.com/dbt/{kind}/v{version}.json"}


def run_results(*results, version=6):
    metadata = {**schema("run-results", version), "dbt_version": "1.5.0"}
    return {"metadata": metadata, "results": list(results)}


def result(name="t", status="pass", failures=0, **more):
    return {"unique_id": f"test.p.{name}", "status": status, "failures": failures, **more}


def manifest(nodes, version=12):
    tests = {f"test.p.{name}": {"resource_type": "test", **node} for name, node in nodes.items()}
    return {"metadata": schema("manifest", version), "nodes": tests}


def generic(name, package=None, config=None, **arguments):
    metadata = {"name": name, "namespace": package, "kwargs": arguments}
    return {"name": "t", "test_metadata": metadata, "config": config or {}}


def only(node, **found):
    (check,) = read_dbt_results(run_results(result(**found)), manifest({"t": node})).checks
    return check


def problems_of(ran, known):
    with pytest.raises(UnreadableSourceError) as refused:
        read_dbt_results(ran, known)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None
    return [(problem.kind, problem.pointer or problem.names) for problem in refused.value.problems]


def test_real_artifacts_of_dbt_tell_outcomes_by_id():
    result = read_dbt_results(ARTIFACTS / "run_results.json", ARTIFACTS / "manifest.json")

    assert (result.provider, result.provider_version) == ("dbt", "1.11.16")
    assert result.status is Status.ERROR
    assert {
        one.id.removeprefix("test.shop.").partition(".")[0]: (
            one.type,
            str(one.severity),
            str(one.status),
            one.fields,
            one.affected,
        )
        for one in result.checks
    } == {
        "broken": ("broken", "error", "error", (), None),
        "few-orders": ("few_orders", "warning", "failed", (), 1),
        "amount_is_small": ("amount_is_small", "error", "failed", (), 2),
        "unique_orders_id": ("unique", "error", "failed", ("id",), None),
        "id-present": ("not_null", "error", "passed", ("id",), 0),
        "not_null_orders_customer_id": ("not_null", "warning", "failed", ("customer_id",), 1),
        "relationships_orders_customer_id__id__ref_customers_": (
            *("relationships", "error", "failed"),
            *(("customer_id",), 1),
        ),
        "accepted_values_orders_status__open__closed": (
            *("referential", "error", "failed"),
            *(("status",), None),
        ),
        "below_orders_100__amount": ("below", "error", "passed", ("amount",), 0),
        "below_limited": ("below", "error", "failed", ("amount",), None),
    }


def test_messages_and_compiled_sql_are_not_taken_over():
    ran = copy.deepcopy(RUN_RESULTS)
    for one in ran["results"]:
        one.update(message="CANARY", compiled_code="CANARY", adapter_response={"CANARY": 1})

    assert "CANARY" not in str(read_dbt_results(ran, MANIFEST).document())


@pytest.mark.parametrize("results_version", [4, 5, 6])
@pytest.mark.parametrize("manifest_version", [10, 11, 12])
def test_each_known_version_is_read(results_version, manifest_version):
    ran = run_results(result(), version=results_version)

    read = read_dbt_results(ran, manifest({"t": generic("not_null")}, manifest_version))

    assert read.status is Status.PASSED


@pytest.mark.parametrize(
    ("ran", "known"),
    [
        (run_results(version=3), manifest({}, 9)),
        (run_results(version=7), manifest({}, 13)),
        (manifest({}), run_results()),
        ({}, {"metadata": {"dbt_schema_version": 6}}),
        ([], None),
    ],
)
def test_other_versions_and_other_documents_are_refused_both_at_once(ran, known):
    assert problems_of(ran, known) == [("unsupported_version", ())] * 2


def test_files_that_are_missing_or_no_json_are_refused_without_their_content(tmp_path):
    (tmp_path / "text").write_text('{"CANARY')
    (tmp_path / "deep").write_text("[" * 100_000)

    assert problems_of(tmp_path / "none", tmp_path / "text") == [
        ("not_found", ()),
        ("invalid_json", ()),
    ]
    assert problems_of(tmp_path / "deep", MANIFEST) == [("invalid_json", ())]


@pytest.mark.parametrize(
    ("status", "failures", "expected", "reason"),
    [
        ("pass", 0, Status.PASSED, None),
        ("pass", 2, Status.PASSED, None),
        ("warn", 2, Status.FAILED, Reason.NULL),
        ("fail", 2, Status.FAILED, Reason.NULL),
        ("error", None, Status.ERROR, Reason.NOT_EVALUATED),
        ("skipped", None, Status.ERROR, Reason.NOT_EVALUATED),
    ],
)
def test_only_what_passed_in_dbt_is_passed(status, failures, expected, reason):
    check = only(generic("not_null"), status=status, failures=failures)

    assert (check.status, check.affected, check.reason) == (expected, failures, reason)


def test_a_test_that_the_run_left_out_was_not_evaluated_and_a_disabled_one_is_not_there():
    off = generic("unique", config={"enabled": False})

    read = read_dbt_results(run_results(), manifest({"t": generic("unique"), "off": off}))

    assert [(one.id, one.status, one.reason) for one in read.checks] == [
        ("test.p.t", Status.ERROR, Reason.NOT_EVALUATED)
    ]


def test_a_project_without_tests_passes_nothing():
    assert read_dbt_results(run_results(), manifest({})).status is Status.ERROR


def test_only_tests_count_among_the_results():
    model = {"unique_id": "model.p.t", "status": "success", "failures": None}

    read = read_dbt_results(run_results(model, result()), manifest({"t": generic("unique")}))

    assert read.status is Status.PASSED


@pytest.mark.parametrize(
    ("node", "type_", "affected"),
    [
        (generic("not_null"), "not_null", 2),
        (generic("not_null", "dbt"), "not_null", 2),
        (generic("relationships"), "relationships", 2),
        (generic("accepted_range", "dbt_utils"), "range", 2),
        (generic("unique"), "unique", None),
        (generic("accepted_values"), "referential", None),
        (generic("unique_combination_of_columns", "dbt_utils"), "unique", None),
        (
            generic("expect_table_row_count_to_be_between", "dbt_expectations"),
            *("row_count", None),
        ),
        (generic("not_null", "my_own"), "my_own.not_null", None),
        (generic("not_null", config={"limit": 2}), "not_null", None),
        (generic("not_null", config={"fail_calc": "sum(n)"}), "not_null", None),
        ({"name": "singular"}, "singular", 2),
        ({"name": "unique"}, "unique", 2),
    ],
)
def test_failures_are_affected_rows_only_where_they_are_rows(node, type_, affected):
    check = only(node, status="fail", failures=2)

    assert (check.type, check.affected) == (type_, affected)


@pytest.mark.parametrize(
    ("node", "fields"),
    [
        (generic("unique", column_name="a"), ("a",)),
        ({**generic("unique"), "column_name": "a"}, ("a",)),
        (
            generic("unique_combination_of_columns", combination_of_columns=["a", "b"]),
            *(("a", "b"),),
        ),
        (generic("expect_compound_columns_to_be_unique", column_list=["a", "b"]), ("a", "b")),
        (generic("row_count"), ()),
    ],
)
def test_fields_are_the_columns_that_a_test_names(node, fields):
    assert only(node).fields == fields


@pytest.mark.parametrize(
    ("config", "severity"),
    [
        ({}, Severity.ERROR),
        ({"severity": "ERROR"}, Severity.ERROR),
        ({"severity": "warn"}, Severity.WARNING),
        ({"severity": "Warn"}, Severity.WARNING),
    ],
)
def test_severity_is_that_of_the_configuration_in_any_case(config, severity):
    assert only(generic("unique", config=config)).severity is severity


def test_a_rule_id_in_meta_is_the_id():
    assert only(generic("unique", config={"meta": {"rule_id": "a"}})).id == "a"
    assert only({**generic("unique"), "meta": {"rule_id": "a"}}).id == "a"


def test_everything_that_is_wrong_is_told_at_once():
    named = {"meta": {"rule_id": "same"}}
    ran = run_results(
        *(result("a", "odd"), result("b", "fail", None), result("b", "fail", failures=True)),
        *(result("c", "pass", -1), result("gone")),
    )
    ran["metadata"]["dbt_version"] = None
    known = manifest(
        {
            "a": generic("unique", config={"severity": "fatal"}),
            "b": generic("unique", config=named),
            "c": generic("unique", config=named),
            "d": generic("unique", config={"meta": {"rule_id": 1}}),
        }
    )

    assert problems_of(ran, known) == [
        ("invalid_value", "/nodes/test.p.a/config"),
        ("invalid_value", "/nodes/test.p.d/config/meta"),
        ("duplicate_id", ("test.p.b",)),
        ("invalid_value", "/results/0/status"),
        ("invalid_value", "/results/1/failures"),
        ("invalid_value", "/results/2/failures"),
        ("invalid_value", "/results/3/failures"),
        ("invalid_value", "/metadata/dbt_version"),
        ("unknown_id", ("test.p.gone",)),
        ("duplicate_id", ("same",)),
    ]


@pytest.mark.parametrize("results", [None, 1, "a", {}])
def test_results_are_a_list(results):
    ran = {**run_results(), "results": results}

    assert problems_of(ran, manifest({})) == [("invalid_value", "/results")]


@pytest.mark.parametrize("odd", [None, 1, "a", [], [None], {"a": []}])
def test_what_is_of_another_form_makes_no_test_pass(odd):
    parts = {"config": odd, "test_metadata": odd, "column_name": odd, "meta": odd}
    names = {"test_metadata": {"name": odd, "namespace": odd, "kwargs": odd}}

    read = read_dbt_results({**run_results(), "results": [odd]}, manifest({"a": parts, "b": names}))

    assert [check.status for check in read.checks] == [Status.ERROR, Status.ERROR]
