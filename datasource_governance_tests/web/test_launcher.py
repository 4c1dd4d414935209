"""Who signed in is who launches, through Dagster's own GraphQL and its queue."""

import dagster as dg
import pytest

from datasource_governance.orchestration.coordinator import ACTOR_TAG, launch_of
from datasource_governance.services.launching import launcher_of
from datasource_governance.web.settings import WebSettings
from datasource_governance_tests.web.schema import launch
from datasource_governance_tests.web.serving import serving, with_accounts, workspace

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
COORDINATOR = {
    "module": "datasource_governance.orchestration.coordinator",
    "class": "AttestingRunCoordinator",
}
FOUND = """__typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message className stack cause { message } }"""
ONE = f"mutation($p: ExecutionParams!) {{ launchRun(executionParams: $p) {{ {FOUND} }} }}"
SEVERAL = f"""mutation($p: [ExecutionParams!]!) {{ launchMultipleRuns(executionParamsList: $p) {{
    ... on LaunchMultipleRunsResult {{ launchMultipleRunsResult {{ {FOUND} }} }} }} }}"""
AGAIN = f"""mutation($p: ReexecutionParams) {{
    launchRunReexecution(reexecutionParams: $p) {{ {FOUND} }} }}"""
HOW_TO_REGISTER = "key register gateway --public-key FILE --kind gateway"


@pytest.fixture(scope="module")
def queueing(tmp_path_factory):
    with workspace(tmp_path_factory.mktemp("queue"), run_coordinator=COORDINATOR) as context:
        yield context


@pytest.fixture(scope="module")
def running(web_world, queueing, tmp_path_factory):
    settings = WebSettings(directory=tmp_path_factory.mktemp("attesting"))
    with_accounts(settings, "steward", "operator")
    gateway = web_world.gateway(settings.directory)
    with serving(queueing, settings, web_world.application, gateway=gateway) as served:
        yield served


def tagged(*tags: tuple[str, str]) -> dict[str, object]:
    return {"executionMetadata": {"tags": [{"key": key, "value": value} for key, value in tags]}}


def run_of(served, result) -> dg.DagsterRun:
    assert result["__typename"] == "LaunchRunSuccess", result
    return served.context.instance.get_run_by_id(result["run"]["runId"])


def launcher(world, run: dg.DagsterRun) -> str | None:
    with world.application.work() as work:
        found = launcher_of(work, launch_of(run))
    return found and found.actor


def test_a_launch_is_attested_for_whoever_signed_in_whatever_its_tags_say(web_world, running):
    spoofed = tagged((ACTOR_TAG, "operator"), ("user", "operator"))

    answer = running.client("steward").ask(ONE, p=launch("stage_orders", **spoofed))

    run = run_of(running, answer.json()["data"]["launchRun"])
    assert run.status is dg.DagsterRunStatus.QUEUED
    assert run.tags[ACTOR_TAG] == "steward"
    assert launcher(web_world, run) == "steward"


def test_each_of_several_launches_is_attested(web_world, running):
    several = [launch("stage_orders"), launch("stage_orders", ["orders", "stage"])]

    answer = running.client("steward").ask(SEVERAL, p=several)

    results = answer.json()["data"]["launchMultipleRuns"]["launchMultipleRunsResult"]
    runs = [run_of(running, result) for result in results]
    assert [launcher(web_world, run) for run in runs] == ["steward", "steward"]
    assert [launch_of(run).assets for run in runs] == [(), ("orders/stage",)]


def test_a_run_that_is_executed_again_is_whose_who_does_so(web_world, running):
    web_world.admit("second-steward")
    web_world.grant("second-steward", "steward")
    with_accounts(running.settings, "second-steward")
    first = running.client("steward").ask(ONE, p=launch("stage_orders")).json()
    parent = first["data"]["launchRun"]["run"]["runId"]
    wanted = {
        "parentRunId": parent,
        "strategy": "ALL_STEPS",
        "useParentRunTags": True,
        "extraTags": [{"key": ACTOR_TAG, "value": "steward"}],
    }

    answer = running.client("second-steward").ask(AGAIN, p=wanted)

    run = run_of(running, answer.json()["data"]["launchRunReexecution"])
    assert run.parent_run_id == parent
    assert run.tags[ACTOR_TAG] == "second-steward"
    assert launcher(web_world, run) == "second-steward"


@pytest.fixture
def refused(web_world, queueing, tmp_path):
    """Return the answer to a launch through a gateway that nobody registered."""
    settings = with_accounts(WebSettings(directory=tmp_path), "steward")
    with serving(queueing, settings, web_world.application) as served:
        answer = served.client("steward").ask(ONE, p=launch("stage_orders"))
    return answer.json()["data"]["launchRun"]


def test_a_launch_that_cannot_be_attested_is_refused_in_one_plain_sentence(refused):
    assert refused["__typename"] == "PythonError"
    assert refused["message"].endswith(HOW_TO_REGISTER)
    assert "\n" not in refused["message"]
    assert (refused["stack"], refused["cause"]) == ([], None)


def test_a_run_whose_launch_was_refused_has_failed_and_shows_the_sentence(queueing, refused):
    (record,) = queueing.instance.get_run_records(limit=1)
    told = [
        (event.dagster_event.event_type_value, event.message)
        for event in queueing.instance.all_logs(record.dagster_run.run_id)
    ]

    assert record.dagster_run.status is dg.DagsterRunStatus.FAILURE
    assert record.dagster_run.tags[ACTOR_TAG] == "unattested"
    assert "PIPELINE_ENQUEUED" not in [kind for kind, _ in told]
    assert ("ENGINE_EVENT", refused["message"]) in told
