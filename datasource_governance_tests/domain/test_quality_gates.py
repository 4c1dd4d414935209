import json
import re
from datetime import date

import pytest

from datasource_governance.domain.datasource_manifest import FORMAT
from datasource_governance.domain.quality_gates import (
    ValidationResult,
    check_gates,
    gates_for,
    gates_result,
)
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.tier import DEFAULT_GATES, Gate, Tier
from datasource_governance.errors import InvalidPolicyError
from datasource_governance_tests.manifests import gates, platform_manifest, waiver

TODAY = date(2027, 3, 31)


def datasource(*tests, fields=("id", "amount", "note"), **keys):
    """Return a datasource of our manifest with tests such as `("not_null", "id")`."""
    found = [{"type": name, "fields": list(named)} for name, *named in tests]
    return {"fields": list(fields), "tests": found, **keys}


WORKED = (("not_null", "id"), ("unique", "id"), ("range", "amount"))
"""Of three fields, two are tested."""


def checked(gates=DEFAULT_GATES, *, technical=(), waivers=(), today=TODAY, **datasources):
    manifest = {"format": FORMAT, "datasources": datasources}
    return check_gates(manifest, gates, technical_fields=technical, waivers=waivers, today=today)


def found(result):
    """Return (kind, names) of every problem."""
    return [(one.kind, one.names) for one in result.problems]


def waived(**keys):
    return platform_manifest(gates(waivers=[waiver(**keys)])).waivers


def test_the_worked_examples_come_out_as_published():
    for tier, expected in {
        "bronze": [],
        "silver": [("coverage_too_low", ("orders", "silver", "note"))],
        "gold": [
            ("coverage_too_low", ("orders", "gold", "note")),
            ("required_test_missing", ("orders", "gold", "relationships")),
        ],
    }.items():
        result = checked(orders=datasource(*WORKED, tier=tier))

        assert found(result) == expected
        assert result.success is (not expected)
        assert result.coverage.datasets[0].share == 2 / 3
    result = checked(orders=datasource(*WORKED, tier="gold"), technical=["note"])
    assert found(result) == [("required_test_missing", ("orders", "gold", "relationships"))]
    assert result.coverage.datasets[0].share == 1


def test_a_coverage_on_the_gate_is_enough():
    half = datasource(("range", "id"), fields=["id", "note"], tier="bronze")

    def at(share):
        return found(
            checked({Tier.BRONZE: Gate(min_test_coverage=share, required_tests=())}, a=half)
        )

    assert at(0.5) == []
    assert at(0.5000001) == [("coverage_too_low", ("a", "bronze", "note"))]


def test_every_violation_of_every_dataset_is_said_at_once():
    result = checked(
        a=datasource(tier="silver"),
        b=datasource(tier="platinum"),
        c=datasource(),
        d=datasource(("row_count",), tier="gold", fields=()),
        e=datasource(*WORKED, tier="GOLD"),
    )

    assert found(result) == [
        ("coverage_too_low", ("a", "silver", "id", "amount", "note")),
        ("required_test_missing", ("a", "silver", "not_null")),
        ("required_test_missing", ("a", "silver", "unique")),
        ("unknown_tier", ("b", "platinum")),
        ("coverage_too_low", ("d", "gold")),
        ("required_test_missing", ("d", "gold", "not_null")),
        ("required_test_missing", ("d", "gold", "relationships")),
        ("required_test_missing", ("d", "gold", "unique")),
        ("unknown_tier", ("e", "GOLD")),
    ]
    assert [(one.kind, one.names) for one in result.warnings] == [("no_tier", ("c",))]
    assert "no field is eligible" in result.problems[4].message
    assert result.coverage.models == {"silver": 0, "platinum": 0, "gold": 1, "GOLD": 1}


def test_a_violation_says_how_much_is_there_how_much_is_required_and_what_to_add():
    (problem, *_) = checked(orders=datasource(*WORKED, tier="silver")).problems

    assert problem.message == (
        "orders (silver): 2 of 3 fields have a test, 66.67 % of 80 %; without one: note; "
        'suggested: {"field":"note","id":"note-present","type":"not_null"}'
    )


def test_every_suggestion_is_a_rule_as_a_policy_has_them():
    required = ("not_null", "range", "referential", "relationships", "row_count", "unique")
    gate = {Tier.GOLD: Gate(min_test_coverage=1, required_tests=required)}

    for fields, expected in (["id", "amount"], 2 + len(required)), ([], len(required)):
        problems = checked(gate, orders=datasource(fields=fields, tier="gold")).problems
        suggested = [text for one in problems for text in re.findall(r"\{.*?\}", one.message)]

        assert len(suggested) == expected
        for text in suggested:
            parse_quality_policy({"version": "v1", "rules": [json.loads(text)]})


def test_a_list_of_allowed_values_satisfies_both_that_a_foreign_key_may_be_asked_as():
    tests = [("referential", "id"), ("not_null", "id"), ("unique", "id")]
    required = ("referential", "relationships")
    gate = {Tier.GOLD: Gate(min_test_coverage=0, required_tests=required)}

    assert checked(gate, orders=datasource(*tests, tier="gold")).success


def test_a_waiver_lifts_what_it_names_and_nothing_else():
    orders = datasource(*WORKED, tier="gold")
    missing = ("required_test_missing", ("orders", "gold", "relationships"))
    too_low = ("coverage_too_low", ("orders", "gold", "note"))

    for keys, expected in [
        ({"test": "relationships"}, [too_low]),
        ({"field": "note"}, [missing]),
        ({"field": "amount"}, [too_low, missing]),
        ({"test": "unique"}, [too_low, missing]),
        ({"test": "relationships", "datasource": "customers"}, [too_low, missing]),
    ]:
        assert found(checked(orders=orders, waivers=waived(**keys))) == expected
    both = (*waived(test="relationships"), *waived(field="note"))
    result = checked(orders=orders, waivers=both)
    assert result.success
    assert result.coverage.datasets[0].uncovered == ("note",)


def test_a_waiver_that_is_over_lifts_nothing_and_is_a_problem_itself():
    orders = datasource(*WORKED, tier="silver")
    lifting = waived(field="note", expires="2027-03-31")

    assert checked(orders=orders, waivers=lifting).success
    result = checked(orders=orders, waivers=lifting, today=date(2027, 4, 1))
    assert found(result) == [
        ("waiver_expired", ("orders", "note")),
        ("coverage_too_low", ("orders", "silver", "note")),
    ]


def test_a_field_that_is_waived_still_has_to_be_there():
    empty = datasource(tier="bronze", fields=[])

    assert found(checked(orders=empty, waivers=waived(field="id"))) == [
        ("coverage_too_low", ("orders", "bronze"))
    ]


def test_a_manifest_without_datasets_is_told_of():
    result = checked()

    assert result.success
    assert [one.kind for one in result.warnings] == ["no_datasets"]


def test_coverage_is_required_as_a_share_by_tier_and_else_by_default():
    gates = gates_for({"gold": "90%", "bronze": 1})

    assert [gates[tier].min_test_coverage for tier in Tier] == [1, 0.8, 0.9]
    assert gates[Tier.GOLD].required_tests == DEFAULT_GATES[Tier.GOLD].required_tests
    with pytest.raises(InvalidPolicyError) as caught:
        gates_for({"platinum": 1, "gold": 80, "silver": True})
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    ("manifest", "required", "kind"),
    [
        ({}, {}, "unknown_manifest"),
        ({"format": "datasource_governance/manifest/v2"}, {}, "unknown_manifest"),
        ({"format": FORMAT}, {}, "missing_key"),
        ({"format": FORMAT, "datasources": {}}, {"gold": 80}, "invalid_value"),
        (
            {"metadata": {"dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v1.json"}},
            {},
            "unknown_version",
        ),
    ],
)
def test_bad_arguments_are_problems_of_the_result_and_nothing_is_raised(manifest, required, kind):
    result = gates_result(manifest, required)

    assert not result.success
    assert [one.kind for one in result.problems] == [kind]


def test_a_result_has_one_json_form():
    manifest = {"format": FORMAT, "datasources": {"orders": datasource(tier="platinum")}}

    result = gates_result(manifest, {}).document()

    assert result["success"] is False
    assert result["problems"] == [
        {
            "kind": "unknown_tier",
            "message": "orders: expected a tier of bronze, silver, gold, got 'platinum'",
            "pointer": "",
            "names": ["orders", "platinum"],
        }
    ]
    assert result["warnings"] == []
    assert result["coverage"]["models"] == {"platinum": 0}
    assert ValidationResult().success
