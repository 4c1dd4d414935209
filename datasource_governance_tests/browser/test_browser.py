"""What a person sees in the Dagster UI after the demo's story, and that the daemon promoted."""

import pytest

from datasource_governance.domain.stage import StageState
from datasource_governance_tests.browser.pages import chromium
from datasource_governance_tests.browser.screenshots import (
    PICTURES,
    stewards_browser,
    take_lineage,
    told_story,
    unwanted,
)
from datasource_governance_tests.laptop import client_of

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.postgres,
    pytest.mark.timeout(900),
]
PNG = b"\x89PNG\r\n\x1a\n"
RUN = """query Run($id: ID!) { runOrError(runId: $id) { ... on Run {
  status jobName tags { key value }
  eventConnection { events { __typename ... on MessageEvent { message } } } } } }"""


@pytest.fixture(scope="module")
def told(cluster):
    """A running system on which the story was told; telling it takes a minute."""
    with told_story(cluster) as story:
        yield story


@pytest.fixture(scope="module")
def promotion_run(told):
    return client_of(told.system).ask(RUN, id=told.promotion.id)["runOrError"]


def test_every_picture_shows_what_it_promises_and_no_cell(told, tmp_path):
    with stewards_browser(told, unwanted()) as pages:
        for take in PICTURES:
            take(pages, told, tmp_path)

    pictures = {path.name: path.read_bytes()[:8] for path in tmp_path.iterdir()}
    assert pictures == {
        "lineage.png": PNG,
        "blocked_checks.png": PNG,
        "launchpad.png": PNG,
        "promotion_run.png": PNG,
        "current.png": PNG,
        "publication.png": PNG,
        "retention_plan.png": PNG,
        "stale_plan.png": PNG,
        "contract_check.png": PNG,
        "contracts.png": PNG,
    }
    assert told.blocked.state is StageState.FAILED


def test_a_page_that_shows_something_unwanted_is_noticed(told, tmp_path):
    with (
        stewards_browser(told, {"airport_countries"}) as pages,
        pytest.raises(AssertionError, match="holds 1 unwanted texts"),
    ):
        take_lineage(pages, told, tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_the_promotion_shown_was_launched_by_the_daemons_sensor(told, promotion_run):
    tags = {tag["key"]: tag["value"] for tag in promotion_run["tags"]}

    assert (promotion_run["jobName"], promotion_run["status"]) == ("promote_airports", "SUCCESS")
    assert tags["dagster/sensor_name"] == "approval_quorum"
    assert tags["datasource_governance/stage"] == told.promoted.id
    assert "dagster/tick" in tags


def test_the_promotion_shown_ran_in_a_process_of_its_own(promotion_run):
    messages = [event.get("message", "") for event in promotion_run["eventConnection"]["events"]]

    assert any(message.startswith("Started process for run") for message in messages)


def test_without_a_chromium_one_is_told_what_is_missing(monkeypatch):
    monkeypatch.setenv("PATH", "")

    with pytest.raises(RuntimeError, match="none of chromium"):
        chromium()
