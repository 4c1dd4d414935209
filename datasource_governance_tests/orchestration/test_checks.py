"""Rules become checks, stored validations become their results."""

import dagster as dg
import pytest

from datasource_governance.domain.evidence import Break, BreakKind
from datasource_governance.orchestration.checks import (
    check_results,
    check_specs,
    evidence_result,
)
from datasource_governance.persistence.verification import Verification
from datasource_governance_tests.orchestration.governed import declaration, stage_of
from datasource_governance_tests.orchestration.governed import rule_found as rule

KEY = dg.AssetKey(["orders", "stage"])


def failed(rule_id="r", **found):
    return rule(
        rule_id,
        **{"status": "failed", "affected": 2, "rows": [7, 9], "reason": "duplicate", **found},
    )


def policy(*rule_ids, **keys):
    rules = [{"id": one, "type": "row_count", "minimum": 1, **keys} for one in rule_ids]
    return declaration({"version": "v1", "rules": rules}).quality_policy


def results(*rules, declared=None, diff=None, outcome="ready"):
    """Return the check results of a stage by check name."""
    stage = stage_of(rules, diff=diff, outcome=outcome)
    declared = policy(*(one["id"] for one in rules)) if declared is None else declared
    return {one.check_name: one for one in check_results(stage, KEY, declared)}


def metadata_of(result):
    return {key.split("/")[-1]: value for key, value in result.metadata.items()}


def text_of(result):
    return {
        key: value.value for key, value in metadata_of(result).items() if hasattr(value, "value")
    }


def test_every_rule_has_a_check_and_two_are_always_there():
    declared = declaration(
        {"version": "v1", "rules": [{"id": "a b", "type": "row_count", "minimum": 1}]}
    )

    specs = check_specs(declared, KEY)

    assert [spec.name for spec in specs] == ["a_b", "quality_policy", "schema_classification"]
    assert specs[0].metadata["datasource_governance/rule_id"] == "a b"
    assert specs[0].description == "Rule `a b` (row_count) of the quality policy."


@pytest.mark.parametrize(("severity", "blocking"), [("error", True), ("warning", False)])
def test_only_error_rules_block(severity, blocking):
    declared = declaration(
        {
            "version": "v1",
            "rules": [{"id": "r", "type": "row_count", "minimum": 1, "severity": severity}],
        }
    )

    spec, *fixed = check_specs(declared, KEY)

    assert spec.blocking is blocking
    assert all(one.blocking for one in fixed)


def test_a_datasource_without_a_policy_has_the_fixed_checks():
    specs = check_specs(declaration(quality=None), KEY)

    assert [spec.name for spec in specs] == ["quality_policy", "schema_classification"]


def test_a_failed_rule_tells_count_rows_fields_and_reason():
    found = results(failed())["r"]

    assert not found.passed
    assert found.description == "The rule does not hold: `duplicate` in 2 rows."
    assert text_of(found) == {
        "rule_id": "r",
        "status": "failed",
        "fields": "id",
        "reason": "duplicate",
        "affected_rows": 2,
        "row_numbers": "7, 9",
    }


def test_one_row_is_one_row():
    found = results(failed(affected=1, rows=[7]))["r"]

    assert found.description == "The rule does not hold: `duplicate` in 1 row."


def test_row_numbers_that_were_cut_off_say_so():
    found = results(failed(affected=26, rows=[*range(1, 26)], truncated=True))["r"]

    assert text_of(found)["row_numbers"].endswith("24, 25, …")


def test_rows_without_an_order_have_a_count_and_no_numbers():
    assert text_of(results(failed(rows=None))["r"])["row_numbers"] == ""


def test_a_rule_that_is_not_about_rows_has_no_count_that_would_be_plotted():
    found = results(failed(affected=None, rows=None, reason="missing_field"))["r"]

    assert found.description == "The rule does not hold: `missing_field`."
    assert not {"affected_rows", "row_numbers"} & text_of(found).keys()


def test_a_passed_rule_plots_as_zero():
    found = results(rule())["r"]

    assert found.passed
    assert text_of(found)["affected_rows"] == 0


@pytest.mark.parametrize("severity", ["error", "warning"])
def test_a_rule_that_could_not_be_evaluated_never_counts_as_passed(severity):
    found = results(
        rule(status="error", affected=None, rows=None, reason="not_evaluated", severity=severity)
    )

    assert not found["r"].passed
    assert not found["quality_policy"].passed
    assert "could not be evaluated" in found["r"].description


@pytest.mark.parametrize(
    ("severity", "shown"),
    [("error", dg.AssetCheckSeverity.ERROR), ("warning", dg.AssetCheckSeverity.WARN)],
)
def test_a_warning_is_yellow_and_an_error_red(severity, shown):
    found = results(failed(severity=severity))

    assert (found["r"].severity, found["quality_policy"].severity) == (shown, shown)


def test_the_aggregate_counts_and_lists_every_rule_those_that_failed_first():
    found = results(rule("a"), failed("b"), rule("c"), outcome="blocked")["quality_policy"]

    assert found.description == "2 of 3 rules passed; outcome: blocked"
    assert text_of(found)["failed_rules"] == 1
    records = text_of(found)["rules"].records
    assert [record.data["rule"] for record in records] == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("classification", "passed", "severity"),
    [
        ("compatible", True, dg.AssetCheckSeverity.WARN),
        ("warning", False, dg.AssetCheckSeverity.WARN),
        ("breaking", False, dg.AssetCheckSeverity.ERROR),
    ],
)
def test_the_schema_check_follows_the_classification(classification, passed, severity):
    change = {
        "field": "note",
        "change": "field_removed",
        "before": {"type": "string", "nullable": True},
        "after": None,
        "classification": classification,
    }
    diff = {"classification": classification, "changes": [change]}

    found = results(diff=diff, declared=policy())["schema_classification"]

    assert (found.passed, found.severity) == (passed, severity)
    (record,) = text_of(found)["schema_diff"].records
    assert record.data == {"field": "note", "change": "field_removed", "class": classification}


def test_a_first_stage_has_nothing_to_be_compared_with():
    found = results(declared=policy())["schema_classification"]

    assert found.passed
    assert found.description == "classification: first"


def test_rules_that_are_not_declared_have_no_check_of_their_own():
    found = results(rule("a"), failed("b"), declared=policy("a"))

    assert set(found) == {"a", "quality_policy", "schema_classification"}
    assert text_of(found["quality_policy"])["policy_drift"] is True


def test_evidence_that_holds_shows_how_much_was_read():
    held = Verification(chains=2, entries=14, rows=39, breaks=(), heads=())

    found = evidence_result(held)

    assert found.passed
    assert text_of(found) == {"entries": 14, "rows": 39}


def test_every_break_of_the_evidence_is_listed():
    gap = Break(kind=BreakKind.GAP, table="evidence", key=("default", "t", "3"), message="gone")
    broken = Verification(chains=1, entries=2, rows=3, breaks=(gap, gap), heads=())

    found = evidence_result(broken)

    assert not found.passed
    assert found.description == "The evidence is broken in 2 places."
    assert [record.data["key"] for record in text_of(found)["breaks"].records] == [
        "default/t/3"
    ] * 2
