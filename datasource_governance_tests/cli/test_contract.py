"""The `contract` commands over a real database."""

import json

import pytest

from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance_tests.domain.contracts import odcs
from datasource_governance_tests.quality.test_dbt_results import ARTIFACTS

FRESH_FOR_A_SECOND = [{"property": "latency", "value": 1, "unit": "s"}]


@pytest.fixture
def watched(office):
    world = office.world
    world.grant(SYSTEM, Role.PRODUCER)
    world.grant(SYSTEM, Role.STEWARD)
    world.datasource = "promised"
    world.declare(kind="published", contracts=[odcs()])
    world.publish()
    return office


def test_what_is_watched_is_listed_run_and_checked_by_hand(watched):
    listed = watched("contract", "list", "--json").document
    assert {one["kind"]: one["interval_minutes"] for one in listed} == {
        "freshness": 15,
        "schema_drift": 60,
        "quality": 360,
        "availability": 5,
    }
    assert "never checked" in watched("contract", "list").out

    ran = watched("contract", "run", "--json")
    assert (ran.code, {one["status"] for one in ran.document}) == (0, {"passed"})
    assert watched("contract", "run", "--json").document == []

    by_hand = watched("contract", "check", "promised", "orders", "--kind", "availability", "--json")
    assert [one["trigger"] for one in by_hand.document] == ["manual"]
    assert "passed" in watched("contract", "list").out


def test_a_broken_contract_ends_with_1_and_its_violation_is_listed(watched):
    world = watched.world
    stale = odcs(version="2.0.0", slaProperties=FRESH_FOR_A_SECOND)
    world.declare(kind="published", contracts=[stale])
    world.as_superuser("SELECT pg_sleep(1)")

    checked = watched("contract", "check", "promised", "orders", "--kind", "freshness")

    assert checked.code == 1
    assert "percent of the promised freshness" in checked.out
    (violation,) = watched("contract", "violations", "--open", "--json").document
    assert (violation["kind"], violation["severity"], violation["resolved_at"]) == (
        "freshness",
        "error",
        None,
    )
    assert "open" in watched("contract", "violations", "--datasource", "promised").out


def test_a_report_is_a_table_json_and_a_page(watched, tmp_path):
    watched("contract", "run")
    path = tmp_path / "report.html"

    answer = watched("contract", "report", "--html", path, "--json")

    promises = answer.document["promises"]
    assert {one["compliance_percent"] for one in promises} == {100}
    assert "promised" in path.read_text()
    assert "100.00 %" in watched("contract", "report", "--datasource", "promised").out
    assert watched("contract", "report", "--datasource", "x", "--json").document["promises"] == []


def test_results_of_dbt_are_taken_in(watched, tmp_path):
    answer = watched("contract", "ingest", "promised", "orders", ARTIFACTS, "--json")

    (check,) = answer.document
    assert (check["trigger"], check["kind"]) == ("ingested", "quality")
    assert check["rules"]
    results = json.loads((ARTIFACTS / "run_results.json").read_text())
    assert len(check["rules"]) <= len(results["results"])


def test_an_unknown_contract_is_refused_with_those_in_force(watched):
    refused = watched("contract", "check", "promised", "gone")

    assert refused.code == 2
    assert "'gone'" in refused.err
    assert "orders" in refused.err
