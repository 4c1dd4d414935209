import json
from datetime import UTC, datetime

import pytest
from openlineage.client import OpenLineageClient
from openlineage.client.transport.file import FileConfig, FileTransport

from datasource_governance.domain.quality_check import QualityCheckResult
from datasource_governance.domain.rules import Severity
from datasource_governance.domain.validation import Reason, RuleOutcome, Status
from datasource_governance.quality.lineage import (
    PRODUCER,
    CheckRun,
    Dataset,
    NoopEmitter,
    OpenLineageEmitter,
)

ORDERS = Dataset(namespace="postgres://db:5432", name="shop.public.orders")
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def check(rule_id, status=Status.PASSED, severity=Severity.ERROR, affected=0):
    return RuleOutcome(
        id=rule_id,
        type="not_null",
        severity=severity,
        status=status,
        fields=("id",),
        affected=affected,
        reason=None if status is Status.PASSED else Reason.NULL,
    )


def result(*checks):
    return QualityCheckResult(provider="soda", provider_version="4.28.0", checks=checks)


@pytest.fixture
def emitted(tmp_path):
    """Run an emitter with a real client that writes to a file; return what it wrote."""

    def run(found):
        path = tmp_path / "events"
        transport = FileTransport(FileConfig(log_file_path=str(path), append=True))
        emitter = OpenLineageEmitter(OpenLineageClient(transport=transport), now=lambda: NOON)
        emitter.finished(emitter.started(ORDERS), found)
        return [json.loads(line) for line in path.read_text().splitlines()]

    return run


def test_a_run_starts_and_completes_under_one_id_about_one_dataset(emitted):
    start, complete = emitted(result(check("id-present")))

    assert [start["eventType"], complete["eventType"]] == ["START", "COMPLETE"]
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert {event["producer"] for event in (start, complete)} == {PRODUCER}
    assert complete["eventTime"] == "2026-11-30T12:00:00+00:00"
    assert [(one["namespace"], one["name"]) for one in complete["inputs"]] == [
        (ORDERS.namespace, ORDERS.name)
    ]


def test_assertions_say_which_rule_held_and_how_many_rows_violate_it(emitted):
    *_, event = emitted(result(check("a"), check("b", Status.FAILED, affected=3)))

    facet = event["inputs"][0]["inputFacets"]["dataQualityAssertions"]
    assert facet["_producer"] == PRODUCER
    assert facet["_schemaURL"].startswith("https://openlineage.io/spec/facets/1-1-0/")
    told = [
        (one["name"], one["success"], one["expected"], one["actual"], one["severity"])
        for one in facet["assertions"]
    ]
    assert told == [("a", True, "0", "0", "error"), ("b", False, "0", "3", "error")]


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (result(check("w", Status.FAILED, Severity.WARNING, 1)), "COMPLETE"),
        (result(check("e", Status.FAILED, Severity.ERROR, 1)), "FAIL"),
        (result(check("w", Status.ERROR, Severity.WARNING, None)), "FAIL"),
        (result(), "FAIL"),
        (None, "FAIL"),
    ],
)
def test_only_a_failed_error_rule_or_one_that_was_not_evaluated_fails_a_run(emitted, found, state):
    *_, event = emitted(found)

    assert event["eventType"] == state
    assert ("errorMessage" in event["run"]["facets"]) is (state == "FAIL")


def test_by_default_nobody_is_told():
    emitter = NoopEmitter()

    assert emitter.started(ORDERS) == CheckRun(id="", dataset=ORDERS)
    assert emitter.finished(emitter.started(ORDERS), None) is None
