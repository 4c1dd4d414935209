"""`refresh` and `stage refresh`, without Dagster."""

import json

import pytest

from datasource_governance.domain.actor import Role
from datasource_governance_tests.cli.conftest import ORDERS
from datasource_governance_tests.orchestration.test_client import webserver

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
GOOD = "id,amount\n1,10\n2,20\n"
OTHER = "id,amount\n1,10\n2,20\n3,30\n"


@pytest.fixture
def feed(office):
    """The office with a cached `feed` beside `orders`, which needs no approval."""
    state = office.world.application.settings.state
    quality = ORDERS["governance"]["quality_policy"]
    declare(office, "feed", {"quality_policy": quality})
    (state / "feed.csv").write_text(GOOD)
    office.world.admit("keeper", Role.STEWARD, Role.OPERATOR)
    return office


def declare(office, name, governance):
    settings = office.world.application.settings
    document = {
        "id": name,
        "kind": "cached",
        "source": {"origin": {"address": {"url": f"file://{settings.state / 'feed.csv'}"}}},
        "governance": governance,
    }
    (settings.datasources / name).mkdir()
    (settings.datasources / name / "datasource.json").write_text(json.dumps(document))
    assert office("datasource", "apply", by="admin").code == 0


def stage_refresh(office, *options, name="feed"):
    return office("stage", "refresh", name, "--in-process", "--json", *options, by="keeper")


def current(office, name="feed"):
    with office.world.application.work() as work:
        return work.datasources.get(name).current


def test_an_origin_is_read_into_a_stage_of_whoever_asks(feed):
    answer = stage_refresh(feed)

    assert answer.code == 0
    assert answer.document["state"] == "ready"
    assert answer.document["creator"] == "keeper"
    assert answer.document["not_modified"] is False
    assert current(feed) is None


def test_an_origin_that_was_not_modified_is_answered_with_its_stage(feed):
    first = stage_refresh(feed).document["stage"]

    again = stage_refresh(feed)

    assert (again.code, again.document["not_modified"]) == (0, True)
    assert again.document["stage"] == first
    shown = feed("stage", "refresh", "feed", "--in-process", by="keeper")
    assert f"not modified: stage {first} has it already" in shown.out
    assert stage_refresh(feed, "--force").document["stage"] != first


def test_refresh_makes_it_current_at_once(feed):
    answer = feed("refresh", "feed", "--json", by="keeper")

    assert answer.code == 0
    assert answer.document["state"] == "promoted"
    assert answer.document["materialization"] == current(feed)
    (feed.world.application.settings.state / "feed.csv").write_text(OTHER)
    assert "is now current" in feed("refresh", "feed", by="keeper").out


def test_refresh_of_what_is_blocked_keeps_it_and_its_exit_code_is_no(feed):
    (feed.world.application.settings.state / "feed.csv").write_text("id,amount\n7,1\n7,2\n")

    answer = feed("refresh", "feed", "--json", by="keeper")

    assert (answer.code, answer.document["state"]) == (1, "failed")
    assert current(feed) is None


def test_refresh_is_refused_where_approval_is_required_before_anything_is_written(feed):
    declare(feed, "gated", ORDERS["governance"])
    before = feed.world.count_rows()

    answer = feed("refresh", "gated", "--json", by="keeper")

    assert (answer.code, answer.document["kind"]) == (1, "approval_required")
    assert feed.world.count_rows() == before


def test_who_may_not_stage_may_not_refresh(feed):
    for command in (("refresh", "feed"), ("stage", "refresh", "feed", "--in-process")):
        answer = feed(*command, "--json", by="approver-1")

        assert (answer.code, answer.document["kind"]) == (1, "not_authorised")


def test_a_datasource_without_an_origin_is_refused_by_what_it_lacks(feed):
    answer = stage_refresh(feed, name="orders")

    assert answer.code == 2
    assert "source.origin" in answer.out


def run_that_ends(status):
    """Return what a webserver answers, of a run that stages nothing and ends so."""
    repository = {"name": "r", "location": {"name": "l"}, "jobs": [{"name": "refresh_stage_feed"}]}
    return (
        {"data": {"repositoriesOrError": {"nodes": [repository]}}},
        {"data": {"launchRun": {"run": {"runId": "r-1"}}}},
        {"data": {"runOrError": {"status": status}}},
    )


def test_a_run_that_ends_well_without_a_stage_found_nothing_new(feed, monkeypatch):
    first = stage_refresh(feed).document["stage"]

    with webserver(*run_that_ends("SUCCESS")) as server:
        monkeypatch.setenv("GOVERNANCE_DAGSTER_URL", server.url)
        answer = feed("stage", "refresh", "feed", "--json", by="keeper")

    config = server.asked[1]["variables"]["parameters"]["runConfigData"]["ops"]["feed__stage"]
    assert (answer.code, answer.document["not_modified"]) == (0, True)
    assert answer.document["stage"] == first
    assert config["config"].keys() == {"attestation", "force"}
    with feed.world.application.work() as work:
        attestation = work.authority.attestation(config["config"]["attestation"])
    assert (attestation.claims.actor, str(attestation.claims.action)) == ("keeper", "stage.refresh")


@pytest.mark.parametrize("status", ["FAILURE", "SUCCESS"])
def test_a_run_that_made_no_stage_of_an_origin_without_any_is_named(feed, monkeypatch, status):
    with webserver(*run_that_ends(status)) as server:
        monkeypatch.setenv("GOVERNANCE_DAGSTER_URL", server.url)
        answer = feed("stage", "refresh", "feed", "--json", by="keeper")

    assert (answer.code, answer.document["kind"]) == (1, "run_failed")
    assert "/runs/r-1" in answer.out
