import pytest

from datasource_governance.domain.coverage import Dataset, DatasetTest
from datasource_governance.domain.datasource import parse_datasource
from datasource_governance.domain.datasource_manifest import (
    FORMAT,
    datasource_manifest,
    declared_datasets,
)
from datasource_governance.errors import InvalidPolicyError
from datasource_governance_tests.builders import policy_document, rule


def declaration(*rules, **keys):
    governance = {"quality_policy": policy_document(*rules)} if rules else {}
    document = {"id": "orders", "kind": "static", "governance": governance, **keys}
    return parse_datasource(document, files=lambda _name: b"")


EVERY_RULE = (
    rule("row_count", id="a"),
    rule("required_fields", id="b", fields=["id", "note"]),
    rule("field", id="c", field="kind", data_type="string"),
    rule("field", id="d", field="day", nullable=False),
    rule("field", id="e", field="free", nullable=True),
    rule("unique", id="f", fields=["id", "day"]),
    rule("range", id="g", field="amount", minimum=0),
    rule("referential", id="h", field="status", allowed_values=["open"]),
)


def test_fields_are_all_that_rules_name_and_tests_the_rules_about_rows():
    found = datasource_manifest([declaration(*EVERY_RULE, tags={"tier": "gold", "team": "x"})])

    assert found == {
        "format": FORMAT,
        "datasources": {
            "orders": {
                "tier": "gold",
                "fields": ["id", "note", "kind", "day", "free", "amount", "status"],
                "tests": [
                    {"type": "row_count", "fields": []},
                    {"type": "not_null", "fields": ["day"]},
                    {"type": "unique", "fields": ["id", "day"]},
                    {"type": "range", "fields": ["amount"]},
                    {"type": "referential", "fields": ["status"]},
                ],
            }
        },
    }


def test_a_list_of_allowed_values_counts_as_a_foreign_key_too():
    (found,) = declared_datasets(datasource_manifest([declaration(EVERY_RULE[-1])]))

    assert found == Dataset(
        id="orders",
        tier=None,
        fields=("status",),
        tests=(
            DatasetTest(type="referential", fields=("status",)),
            DatasetTest(type="relationships", fields=("status",)),
        ),
    )


def test_datasources_keep_their_order_and_one_without_a_policy_has_nothing():
    found = declared_datasets(
        datasource_manifest([declaration(id="b"), declaration(id="a", tags={"tier": ""})])
    )

    assert found == (
        Dataset(id="b", tier=None, fields=(), tests=()),
        Dataset(id="a", tier="", fields=(), tests=()),
    )


def test_everything_wrong_with_a_manifest_is_said_at_once():
    with pytest.raises(InvalidPolicyError) as caught:
        declared_datasets(
            {
                "format": FORMAT,
                "datasources": {"orders": {"tests": [{"fields": [1]}], "rows": 3}},
            }
        )

    assert {(one.kind, one.pointer) for one in caught.value.problems} == {
        ("unknown_key", "/datasources/orders/rows"),
        ("missing_key", "/datasources/orders"),
        ("missing_key", "/datasources/orders/tests/0"),
        ("invalid_value", "/datasources/orders/tests/0/fields/0"),
    }


def test_a_manifest_may_be_larger_than_what_a_person_writes():
    described = {"fields": [f"{place:0100}" for place in range(1000)], "tests": []}
    datasources = {f"source_{place}": described for place in range(11)}

    assert len(declared_datasets({"format": FORMAT, "datasources": datasources})) == 11
