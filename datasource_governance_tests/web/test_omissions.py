"""What is left of entries, tags, texts and errors for a reader who may not see counts."""

import json

import dagster as dg
from dagster._utils.error import SerializableErrorInfo
from dagster_graphql.implementation.events import iterate_metadata_entries
from dagster_graphql.schema.errors import GraphenePythonError
from dagster_graphql.schema.tags import GrapheneEventTag

from datasource_governance.domain.actor import Role
from datasource_governance.orchestration import metadata
from datasource_governance.web.omissions import (
    omit_entries,
    omit_link,
    omit_numbers,
    omit_numbers_of_error,
    omit_tags,
)
from datasource_governance.web.policy import Need
from datasource_governance.web.visibility import OURS, RESTRICTED
from datasource_governance_tests.orchestration.governed import rule_found

ORDERS = Need(roles=frozenset({Role.STEWARD}), datasource="orders")


def entries(found):
    """Return metadata as the entries that GraphQL shows."""
    return list(iterate_metadata_entries(dg.AssetMaterialization("any", metadata=found).metadata))


def rules(*found):
    return entries({metadata.RULES: metadata.rule_table(found)})


def test_entries_that_everybody_sees_stay_the_very_same():
    public = entries({metadata.STATUS: "failed", "dagster/column_schema": dg.TableSchema([])})

    assert omit_entries(public, ORDERS) == public


def test_one_entry_stands_for_all_that_are_left_out():
    found = {metadata.AFFECTED_ROWS: 1, metadata.STATUS: "failed", "violations": 2}

    status, restricted = omit_entries(entries(found), ORDERS)

    assert (status.label, status.text) == (metadata.STATUS, "failed")
    assert restricted.label == RESTRICTED
    assert restricted.text == "counts and row numbers need the role steward on datasource 'orders'"


def test_of_what_is_not_governed_only_keys_of_ours_are_left_out():
    table = dg.MetadataValue.table([dg.TableRecord({"n": 1})])
    free = entries({"rows": 1, "table": table})

    assert omit_entries(free, None) == free
    (restricted,) = omit_entries(entries({f"{OURS}new": 1}), None)
    assert restricted.text == "counts and row numbers need the role steward on all datasources"


def test_nothing_is_left_of_nothing():
    assert omit_entries([], ORDERS) == []


def test_a_table_keeps_its_public_columns_in_their_order():
    shown, restricted = omit_entries(rules(rule_found("r", affected=7, status="failed")), ORDERS)

    columns = [column.name for column in shown.table.schema.columns]
    assert shown.label == metadata.RULES
    assert columns == ["rule", "status", "reason", "severity", "type", "fields"]
    (record,) = map(json.loads, shown.table.records)
    assert record["status"] == "failed"
    assert set(record) == set(columns)
    assert restricted.label == RESTRICTED


def test_a_table_without_rows_tells_no_less():
    shown, restricted = omit_entries(rules(), ORDERS)

    assert shown.table.records == []
    assert restricted.label == RESTRICTED


def test_the_tags_that_dagster_gives_stay():
    tags = [GrapheneEventTag(key=key, value="1") for key in ("dagster/data_version", "rows")]

    assert omit_tags(tags, ORDERS) == tags[:1]
    assert omit_tags(tags, None) == tags


def test_a_text_loses_its_numbers_where_something_is_governed():
    assert omit_numbers("4711 rows", ORDERS) == "… rows"
    assert omit_numbers("4711 rows", None) == "4711 rows"


def test_an_error_keeps_its_class_and_loses_numbers_stack_and_causes():
    cause = SerializableErrorInfo("8297 rows", ["line 8297"], "KeyError")
    info = SerializableErrorInfo("4711 rows", ["line 4711"], "ValueError", cause, cause)
    error = GraphenePythonError(info)

    left = omit_numbers_of_error(error, ORDERS)

    assert (left.resolve_className(None), left.resolve_message(None)) == ("ValueError", "… rows")
    assert left.resolve_stack(None) == []
    assert left.resolve_cause(None) is None
    assert left.resolve_causes(None) == left.resolve_errorChain(None) == []
    assert omit_numbers_of_error(error, None) is error


def test_a_link_to_compute_logs_is_left_out_wherever_it_leads():
    assert omit_link("https://logs.example", None) is None
