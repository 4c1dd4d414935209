"""ODCS quality as rules, table by table, and back."""

import pytest

from datasource_governance.domain.canonical import load_object
from datasource_governance.domain.contract_document import parse_contract
from datasource_governance.domain.contract_export import (
    ContractName,
    contract_of_policy,
    policy_of_contract,
)
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.errors import InvalidPolicyError
from datasource_governance_tests.domain.contracts import odcs

NAME = ContractName(id="orders", version="1.0.0", table="orders")


def rules(*properties, quality=()):
    table = {"name": "orders", "properties": [*properties], "quality": [*quality]}
    policy = parse_contract(odcs(schema=[table])).quality_policy
    found = load_object(policy.canonical)["rules"] if policy else []
    return {rule.pop("id"): rule for rule in found}


def number(name="n", **given):
    return {"name": name, "logicalType": "number", **given}


@pytest.mark.parametrize(
    ("field", "rule_id", "rule"),
    [
        (
            number(required=True),
            "n.required",
            {"type": "not_null", "field": "n", "severity": "error"},
        ),
        (
            number(unique=True),
            "n.unique",
            {"type": "unique", "field": "n", "ignore_nulls": True, "severity": "error"},
        ),
        (
            number(logicalTypeOptions={"minimum": 0, "maximum": 9}),
            "n.options",
            {
                "type": "range",
                "field": "n",
                "minimum": 0,
                "maximum": 9,
                "allow_null": True,
                "severity": "error",
            },
        ),
        (
            number(quality=[{"metric": "nullValues", "mustBe": 0, "severity": "warning"}]),
            "n.not_null",
            {"type": "not_null", "field": "n", "severity": "warning"},
        ),
        (
            number(quality=[{"metric": "missingValues", "mustBe": 0, "name": "given"}]),
            "given",
            {"type": "not_null", "field": "n", "severity": "error"},
        ),
        (
            number(quality=[{"metric": "duplicateValues", "mustBe": 0, "unit": "percent"}]),
            "n.unique",
            {"type": "unique", "field": "n", "ignore_nulls": True, "severity": "error"},
        ),
        (
            number(
                quality=[
                    {
                        "metric": "invalidValues",
                        "mustBe": 0,
                        "severity": "urgent",
                        "arguments": {"validValues": [1, "a"]},
                    }
                ]
            ),
            "n.referential",
            {
                "type": "referential",
                "field": "n",
                "allowed_values": [1, "a"],
                "allow_null": True,
                "severity": "error",
            },
        ),
    ],
)
def test_what_is_promised_of_a_field_is_a_rule(field, rule_id, rule):
    assert rules(field) == {rule_id: rule}


@pytest.mark.parametrize(
    ("given", "bounds"),
    [
        ({"mustBe": 3}, {"minimum": 3, "maximum": 3}),
        ({"mustBeBetween": [1, 5]}, {"minimum": 1, "maximum": 5}),
        ({"mustBeGreaterThan": 3}, {"minimum": 4}),
        ({"mustBeGreaterOrEqualTo": 3}, {"minimum": 3}),
        ({"mustBeLessThan": 3}, {"maximum": 2}),
        ({"mustBeLessOrEqualTo": 3, "unit": "rows"}, {"maximum": 3}),
    ],
)
def test_numbers_of_rows_are_inclusive_bounds(given, bounds):
    entry = {"metric": "rowCount", "severity": "info", **given}
    found = rules(quality=[entry])
    assert found == {"rows": {"type": "row_count", "severity": "warning", **bounds}}


def test_a_primary_key_is_unique_in_its_order_and_never_null():
    found = rules(
        number("b", primaryKey=True, primaryKeyPosition=2),
        number("a", primaryKey=True, primaryKeyPosition=1, unique=True),
        number("c", required=True, primaryKey=True, primaryKeyPosition=3),
    )
    assert found["primary_key.unique"]["fields"] == ["a", "b", "c"]
    assert found["primary_key.required"]["fields"] == ["a", "b"]
    assert found["c.required"]["field"] == "c"
    assert "a.unique" not in found


def test_fields_together_are_unique_and_repeated_names_are_told_apart():
    entry = {"metric": "duplicateValues", "mustBe": 0, "arguments": {"properties": ["a", "b"]}}
    found = rules(quality=[entry, entry])
    assert found.keys() == {"rows", "rows.2"}
    assert found["rows"]["fields"] == ["a", "b"]


def test_prose_promises_nothing():
    assert rules(number(quality=[{"type": "text", "description": "It should be good."}])) == {}


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "sql", "query": "SELECT 1", "mustBe": 0},
        {"type": "custom", "engine": "soda", "implementation": "x"},
        {"metric": "nullValues", "mustBe": 1},
        {"metric": "nullValues", "mustBe": False},
        {"metric": "nullValues", "mustBeLessThan": 5, "unit": "percent"},
        {"metric": "rowCount", "mustNotBe": 0},
        {"metric": "rowCount", "mustBeGreaterThan": 0.5},
        {"metric": "rowCount", "mustBe": 1, "unit": "percent"},
        {"metric": "rowCount", "mustBe": 1, "mustBeLessThan": 2},
        {"metric": "rowCount"},
        {"metric": "invalidValues", "mustBe": 0, "arguments": {"pattern": "x"}},
        {"metric": "missingValues", "mustBe": 0, "arguments": {"missingValues": ["N/A"]}},
        {"metric": "freshness", "mustBe": 0},
    ],
)
def test_what_no_rule_can_say_is_told_and_never_dropped(entry):
    with pytest.raises(InvalidPolicyError) as caught:
        rules(number(quality=[entry]))
    (problem,) = caught.value.problems
    assert (problem.kind, problem.pointer) == (
        "unsupported",
        "/schema/0/properties/0/quality/0",
    )


def test_a_table_promise_about_fields_names_them():
    with pytest.raises(InvalidPolicyError, match=r"arguments\.properties"):
        rules(quality=[{"metric": "nullValues", "mustBe": 0}])


SEVEN = [
    {"id": "fields", "type": "required_fields", "fields": ["id", "kind", "n"]},
    {"id": "id-type", "type": "field", "field": "id", "data_type": "integer", "nullable": False},
    {"id": "rows", "type": "row_count", "minimum": 1, "maximum": 9},
    {"id": "n-given", "type": "not_null", "field": "n", "severity": "warning"},
    {"id": "both", "type": "not_null", "fields": ["kind", "n"]},
    {"id": "once", "type": "unique", "fields": ["id", "kind"]},
    {"id": "n-range", "type": "range", "field": "n", "minimum": 0, "allow_null": True},
    {"id": "kinds", "type": "referential", "field": "kind", "allowed_values": ["a", 1]},
]


def test_a_policy_becomes_a_contract_that_promises_the_same():
    document = contract_of_policy(parse_quality_policy({"version": "v", "rules": SEVEN}), NAME)
    found = parse_contract(document | {"status": "active"})

    assert [field.name for field in found.schema.fields] == ["id", "kind", "n"]
    back = {rule.id: rule for rule in parse_quality_policy(policy_of_contract(found)).rules}
    assert back.keys() >= {"rows", "n-given", "both", "once", "kinds", "id.required", "id.type"}
    assert back["both"].fields == ("kind", "n")
    assert back["n-given"].severity == "warning"
    assert (back["rows"].minimum, back["rows"].maximum) == (1, 9)
    assert back["kinds"].allowed_values == ("a", 1)
    assert (back["n.options"].minimum, back["n.options"].maximum) == (0, None)


@pytest.mark.parametrize(
    "rule",
    [
        {"type": "range", "field": "n", "minimum": 0, "severity": "warning", "allow_null": True},
        {"type": "range", "field": "n", "minimum": 0},
        {"type": "referential", "field": "n", "allowed_values": [1]},
    ],
)
def test_a_rule_without_words_in_the_standard_is_refused(rule):
    policy = parse_quality_policy({"version": "v", "rules": [{"id": "r", **rule}]})
    with pytest.raises(InvalidPolicyError, match="'r' has no words"):
        contract_of_policy(policy, NAME)
