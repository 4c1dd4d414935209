"""Every event that is emitted is what OpenLineage says it must be, and says what happened."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from openlineage.client.serde import Serde

from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.domain.canonical import load_object
from datasource_governance.domain.contract import CheckKind
from datasource_governance.domain.event import EVENT_TYPES, Event
from datasource_governance.lineage.events import LINEAGE_TYPES, lineage_events
from datasource_governance.lineage.facets import PRODUCER
from datasource_governance.monitoring.monitor import Monitor
from datasource_governance_tests.domain.contracts import odcs
from datasource_governance_tests.launches import promotion_launch
from datasource_governance_tests.lineage.openlineage_schemas import problems

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
RUN = "0b0c8a3e-7c4e-4f6a-9d57-0f1c2a3b4c5d"


@pytest.fixture
def watched(world):
    world.set_clock(NOW)
    world.grant(SYSTEM, Role.PRODUCER)
    world.grant(SYSTEM, Role.STEWARD)
    world.declare(kind="published", contracts=[odcs()])
    return world


def checked(world, table=None, at=NOW):
    """Publish, run every check, and return what is told of each kind: START and its end."""
    world.publish(table)
    world.set_clock(at)
    for _ in Monitor(application=world.application, run_id=RUN, environment={}).run_due():
        pass
    told = [emitted(world, one) for one in outbox(world, LINEAGE_TYPES[0])]
    return {start["job"]["name"].rsplit(".", 1)[-1]: (start, end) for start, end in told}


def outbox(world, *types):
    rows = world.query(
        "SELECT id, datasource, type, body, created_at FROM governance.outbox ORDER BY number"
    )
    events = [
        Event(id=a, datasource=b, type=c, body=bytes(d), created_at=e) for a, b, c, d, e in rows
    ]
    return [one for one in events if not types or one.type in types]


def emitted(world, event):
    with world.application.work() as work:
        found = lineage_events(event, work, "ours")
    documents = [json.loads(Serde.to_json(one)) for one in found]
    assert [problems(one) for one in documents] == [[] for _ in documents]
    return documents


def test_a_check_starts_and_completes_about_what_was_read(watched):
    told = checked(watched)
    assert told.keys() == {str(kind) for kind in CheckKind}

    start, end = told["quality"]
    assert [start["eventType"], end["eventType"]] == ["START", "COMPLETE"]
    assert start["run"]["runId"] == end["run"]["runId"]
    assert start["job"] == end["job"]
    assert (end["job"]["namespace"], end["job"]["name"]) == (
        "ours",
        "contract_check.orders.quality",
    )
    (read,) = end["inputs"]
    assert (read["namespace"], read["name"]) == (
        "datasource_governance://default",
        "orders.current",
    )
    assert [one["name"] for one in read["facets"]["schema"]["fields"]] == ["id"]
    with watched.application.work() as work:
        assert read["facets"]["version"]["datasetVersion"] == work.datasources.get("orders").current
    (assertion,) = read["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert assertion == {
        "assertion": "not_null",
        "column": "id",
        "name": "id.required",
        "severity": "error",
        "success": True,
        "expected": "0",
        "actual": "0",
        "params": {},
    }
    assert read["inputFacets"]["dataQualityMetrics"]["rowCount"] == 2
    assert end["run"]["facets"]["parent"]["run"]["runId"] == RUN
    assert end["run"]["facets"]["nominalTime"]["nominalStartTime"] == NOW.isoformat()
    assert {end["producer"], end["job"]["facets"]["jobType"]["_producer"]} == {PRODUCER}
    assert start["inputs"][0]["inputFacets"] == {}


@pytest.mark.parametrize(
    ("hours", "ends", "severity"),
    [
        (1, "COMPLETE", None),
        (20, "COMPLETE", "info"),
        (22, "COMPLETE", "warning"),
        (24, "FAIL", "error"),
    ],
)
def test_only_a_breach_fails_and_a_violation_is_told_whatever_it_is(watched, hours, ends, severity):
    start, end = checked(watched, at=NOW + timedelta(hours=hours))["freshness"]

    assert end["eventType"] == ends
    violation = end["run"]["facets"].get("contractViolation")
    assert (violation and violation["severity"]) == severity
    assert "contractViolation" not in start["run"]["facets"]
    assert ("errorMessage" in end["run"]["facets"]) == (ends == "FAIL")
    if severity:
        assert violation["usedPercent"] == 100 * hours // 24
        assert violation["violationType"] == "freshness"


def test_every_field_that_differs_is_an_assertion(watched):
    _, end = checked(watched, pa.table({"id": ["a"], "more": [1]}))["schema_drift"]

    found = end["inputs"][0]["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert {(one["assertion"], one["column"], one["severity"]) for one in found} == {
        ("schema_drift.type", "id", "error"),
        ("schema_drift.added", "more", "warn"),
    }
    assert end["eventType"] == "FAIL"


def test_what_could_not_be_evaluated_fails(watched):
    away = {"property": "table", "value": {"url_variable": "NOT_SET", "table": "orders"}}
    watched.declare(kind="published", contracts=[odcs(version="2.0.0", customProperties=[away])])

    for _, end in checked(watched).values():
        assert end["eventType"] in ("FAIL", "COMPLETE")
        if end["job"]["name"].endswith("quality"):
            assert end["eventType"] == "FAIL"
            assert "table_url_missing" in end["run"]["facets"]["errorMessage"]["message"]


def test_a_publication_has_an_output_with_its_version_and_size(watched):
    watched.publish()
    (event,) = outbox(watched, "datasource.publication.published")

    start, end = emitted(watched, event)

    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert end["job"]["name"] == "orders.publish"
    (output,) = end["outputs"]
    facts = load_object(event.body)["facts"]
    assert output["facets"]["version"]["datasetVersion"] == facts["materialization"]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 2
    (candidate,) = end["inputs"]
    assert candidate["inputFacets"]["dataQualityAssertions"]["assertions"][0]["success"]


def test_a_promotion_leads_from_the_stage_to_what_is_current(world):
    world.declare()
    stage = world.stage()
    made = world.promote(stage, launch=promotion_launch("orders", run_id=RUN)).materialization
    (event,) = outbox(world, "datasource.stage.promoted")

    _, end = emitted(world, event)

    assert end["job"]["name"] == "orders.promote"
    assert [one["name"] for one in end["inputs"]] == ["orders.stage"]
    assert [one["name"] for one in end["outputs"]] == ["orders.current"]
    assert end["inputs"][0]["facets"]["version"]["datasetVersion"] == stage.id
    assert end["outputs"][0]["facets"]["version"]["datasetVersion"] == made.id
    parent = end["run"]["facets"]["parent"]
    assert (parent["run"]["runId"], parent["job"]["name"]) == (RUN, "promote_orders")


def test_what_waits_for_a_review_is_no_output_yet(watched):
    approval = {"version": "v", "required": True, "separation_of_duties": False}
    watched.declare(approval=approval, kind="published", contracts=[odcs()])
    watched.publish()
    (event,) = outbox(watched, "datasource.publication.published")
    assert emitted(watched, event) == []


def test_the_same_event_says_the_same_again(watched):
    watched.publish()
    (event,) = outbox(watched, "datasource.publication.published")
    assert emitted(watched, event) == emitted(watched, event)
    other = emitted(watched, replace(event, id="not a uuid"))
    assert other[0]["run"]["runId"] != emitted(watched, event)[0]["run"]["runId"]


@pytest.mark.parametrize("kind", [one for one in EVENT_TYPES if one not in LINEAGE_TYPES])
def test_other_events_are_no_lineage(kind):
    event = Event(id="e", datasource="orders", type=kind, body=b'{"facts":{}}', created_at=NOW)
    assert lineage_events(event, None, "ours") == []


def test_facts_that_nobody_asked_for_are_not_passed_on(watched):
    checked(watched)
    for event in outbox(watched, LINEAGE_TYPES[0]):
        document = load_object(event.body)
        document["facts"] |= {"cell": "zq-canary-7731"}
        planted = replace(event, body=json.dumps(document).encode())
        assert "zq-canary" not in json.dumps(emitted(watched, planted))
