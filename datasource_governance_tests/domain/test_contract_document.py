"""What is read of an ODCS document, strictly, and what is refused all at once."""

from datetime import date, timedelta

import pytest

from datasource_governance.domain.contract import DEFAULT_RHYTHMS, CheckKind, ContractTable
from datasource_governance.domain.contract_document import parse_contract, unchecked_promises
from datasource_governance.domain.schema import DataType
from datasource_governance.errors import InvalidPolicyError
from datasource_governance_tests.domain.contracts import monitored, odcs

KINDS = {str(kind) for kind in CheckKind}


def refused(**given):
    with pytest.raises(InvalidPolicyError) as caught:
        parse_contract(odcs(**given))
    return {(one.pointer, one.kind) for one in caught.value.problems}


def fields(*properties, **table):
    return [{"name": "orders", "properties": [*properties], **table}]


def test_everything_that_is_used_is_read_and_all_else_is_kept():
    found = parse_contract(
        odcs(
            name="Orders",
            description={"purpose": "To bill.", "usage": "Freely."},
            team={"members": [{"username": "ann", "role": "Data Owner"}, {"username": "bob"}]},
            price={"priceAmount": 1},
            schema=fields(
                {"name": "id", "logicalType": "integer", "primaryKey": True},
                {"name": "at", "logicalType": "timestamp", "required": True},
                {"name": "anything"},
            ),
            slaProperties=[
                {"property": "latency", "value": 2, "unit": "d", "element": "orders.at"},
                {"property": "availability", "value": 99, "unit": "percent"},
                {"property": "quality", "value": 90},
                {"property": "retention", "value": 3, "unit": "y"},
                {"property": "endOfSupport", "value": "2027-06-30"},
            ],
        )
    )

    assert (found.id, found.version, found.name, found.description) == (
        "orders",
        "1.0.0",
        "Orders",
        "To bill.",
    )
    assert found.owners == ("ann",)
    assert [(one.name, one.type, one.nullable) for one in found.schema.fields] == [
        ("id", DataType.INTEGER, False),
        ("at", DataType.DATETIME, False),
        ("anything", DataType.UNKNOWN, True),
    ]
    levels = found.service_levels
    assert (levels.freshness, levels.freshness_field) == (timedelta(days=2), "at")
    assert (levels.availability, levels.quality) == (99, 90)
    assert found.end_of_support == date(2027, 6, 30)
    assert found.rhythms == DEFAULT_RHYTHMS
    assert set(found.kinds) == KINDS


def test_an_override_is_merged_key_by_key():
    told = [
        {
            "property": "monitor",
            "value": {"freshness": {"timeout_seconds": 5}, "quality": {"interval_minutes": 30}},
        }
    ]
    found = parse_contract(odcs(customProperties=told)).rhythms

    freshness, quality = found[CheckKind.FRESHNESS], found[CheckKind.QUALITY]
    assert (freshness.interval, freshness.timeout_seconds) == (timedelta(minutes=15), 5)
    assert (quality.interval, quality.timeout_seconds) == (timedelta(minutes=30), 300)
    assert found[CheckKind.AVAILABILITY] == DEFAULT_RHYTHMS[CheckKind.AVAILABILITY]


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        ({"slaProperties": []}, KINDS - {"freshness"}),
        ({"schema": fields()}, KINDS - {"schema_drift", "quality"}),
        ({"schema": fields({"name": "id"})}, KINDS - {"quality"}),
        ({"status": "draft"}, set()),
        ({"status": "retired"}, set()),
        ({"customProperties": monitored("off")}, set()),
        ({"customProperties": monitored("warn")}, KINDS),
    ],
)
def test_checked_is_what_is_promised(given, kinds):
    assert {str(kind) for kind in parse_contract(odcs(**given)).kinds} == kinds


def test_a_table_outside_is_named_by_its_variable():
    told = {"url_variable": "WAREHOUSE_URL", "schema": "sales", "table": "orders"}
    found = parse_contract(odcs(customProperties=[{"property": "table", "value": told}]))
    assert found.table == ContractTable(
        url_variable="WAREHOUSE_URL", schema="sales", table="orders"
    )


def test_the_hash_is_over_the_whole_document():
    one, other = parse_contract(odcs()), parse_contract(odcs(tags=["x"]))
    assert one.hash == parse_contract(dict(reversed(odcs().items()))).hash
    assert one.hash != other.hash


@pytest.mark.parametrize(
    ("given", "pointer", "kind"),
    [
        ({"apiVersion": "v2.2.2"}, "/apiVersion", "invalid_value"),
        ({"kind": "Contract"}, "/kind", "invalid_value"),
        ({"version": "1.0"}, "/version", "invalid_value"),
        ({"version": "01.0.0"}, "/version", "invalid_value"),
        ({"status": "live"}, "/status", "invalid_value"),
        ({"schema": []}, "/schema", "invalid_value"),
        ({"schema": [{}, {}]}, "/schema", "invalid_value"),
        (
            {"schema": fields({"name": "id", "logicalType": "decimal"})},
            "/schema/0/properties/0/logicalType",
            "invalid_value",
        ),
        (
            {"schema": fields({"name": "id"}, {"name": "id"})},
            "/schema/0/properties/1/name",
            "invalid_value",
        ),
        (
            {"slaProperties": [{"property": "latency", "value": 1, "unit": "y"}]},
            "/slaProperties/0/unit",
            "invalid_value",
        ),
        (
            {"slaProperties": [{"property": "latency", "value": "P1W", "unit": "d"}]},
            "/slaProperties/0/value",
            "invalid_value",
        ),
        (
            {"slaProperties": [{"property": "freshness", "value": 0, "unit": "d"}]},
            "/slaProperties/0/value",
            "invalid_value",
        ),
        (
            {"slaProperties": [{"property": "availability", "value": 100.1}]},
            "/slaProperties/0/value",
            "invalid_value",
        ),
        (
            {"slaProperties": [{"property": "quality", "value": 1}] * 2},
            "/slaProperties",
            "conflicting_keys",
        ),
        (
            {
                "slaProperties": [
                    {"property": "endOfSupport", "value": "2027-01-02"},
                    {"property": "endOfLife", "value": "2027-01-01"},
                ]
            },
            "/slaProperties",
            "bounds_reversed",
        ),
        ({"status": "deprecated"}, "/slaProperties", "missing_key"),
        (
            {"customProperties": monitored("alert")},
            "/customProperties/0/value",
            "invalid_value",
        ),
        (
            {"customProperties": monitored(freshness=0)},
            "/customProperties/1/value/freshness/interval_minutes",
            "invalid_value",
        ),
        (
            {"customProperties": monitored(speed=1)},
            "/customProperties/1/value/speed",
            "unknown_key",
        ),
        (
            {"customProperties": [{"property": "table", "value": {"table": "t"}}]},
            "/customProperties/0/value",
            "missing_key",
        ),
    ],
)
def test_what_is_used_is_read_strictly(given, pointer, kind):
    assert (pointer, kind) in refused(**given)


def test_all_problems_are_told_at_once():
    found = refused(version="x", status="x", schema=fields({"name": "id", "required": "yes"}))
    assert {pointer for pointer, _ in found} == {
        "/version",
        "/status",
        "/schema/0/properties/0/required",
    }


def test_a_promise_that_nothing_checks_is_refused_unless_the_contract_says_that_it_knows():
    text = {"name": "code", "logicalType": "string", "logicalTypeOptions": {"pattern": "[A-Z]+"}}
    sql = {"type": "sql", "query": "SELECT 1", "mustBe": 0}
    given = {"schema": fields(text, quality=[sql])}
    pointers = {"/schema/0/properties/0/logicalTypeOptions/pattern", "/schema/0/quality/0"}

    assert refused(**given) == {(pointer, "unsupported") for pointer in pointers}
    accepted = odcs(**given, customProperties=[{"property": "unchecked", "value": "accept"}])
    assert parse_contract(accepted).quality_policy is None
    assert {one.pointer for one in unchecked_promises(accepted)} == pointers
