"""`POST /datasources/{id}/refresh/stage`, asked of a real webserver over a real Dagster."""

import pytest

from datasource_governance.orchestration.coordinator import ACTOR_TAG, launch_of
from datasource_governance.services.launching import launcher_of
from datasource_governance.web.settings import WebSettings
from datasource_governance_tests.web.conftest import ROLES
from datasource_governance_tests.web.serving import serving, with_accounts, workspace
from datasource_governance_tests.web.test_launcher import COORDINATOR

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
PATH = "/datasources/feeds/refresh/stage"
CODE = """
from datasource_governance import governed_definitions
from datasource_governance.domain.datasource import parse_datasource

feeds = {
    "id": "feeds",
    "kind": "cached",
    "source": {"origin": {"address": {"url": "memory://feeds.csv"}}},
}
orders = {"id": "orders", "kind": "static", "source": {"folder": "deliveries"}}
defs = governed_definitions([parse_datasource(one, {}.__getitem__) for one in (feeds, orders)])
"""


@pytest.fixture(scope="module")
def running(web_world, tmp_path_factory):
    settings = WebSettings(directory=tmp_path_factory.mktemp("refreshing"))
    with_accounts(settings, *ROLES)
    gateway = web_world.gateway(settings.directory)
    directory = tmp_path_factory.mktemp("code")
    with (
        workspace(directory, CODE, run_coordinator=COORDINATOR) as context,
        serving(context, settings, web_world.application, gateway=gateway) as served,
    ):
        yield served


def post(running, name, path=PATH, body="", **headers):
    return running.client(name).fetch("POST", path, body, headers)


def run_of(running, answer):
    return running.context.instance.get_run_by_id(answer.json()["run_id"])


@pytest.mark.parametrize(("body", "force"), [("", False), ("{}", False), ('{"force":true}', True)])
def test_the_job_is_launched_for_whoever_signed_in(web_world, running, body, force):
    spoofed = {"X-Forwarded-User": "operator"}

    answer = post(running, "steward", body=body, **spoofed)

    run = run_of(running, answer)
    assert (answer.status, answer.json()["datasource"]) == (202, "feeds")
    assert answer.headers["Location"] == f"/runs/{run.run_id}"
    assert (run.job_name, run.tags[ACTOR_TAG]) == ("refresh_stage_feeds", "steward")
    assert run.run_config["ops"]["feeds__stage"]["config"]["force"] is force
    with web_world.application.work() as work:
        assert launcher_of(work, launch_of(run)).actor == "steward"
    assert launch_of(run).stages("feeds")


@pytest.mark.parametrize("name", sorted(ROLES.keys() - {"steward"}))
def test_who_may_not_stage_may_not_refresh(running, name):
    assert post(running, name).status == 403


def test_who_is_not_signed_in_is_told_to(running):
    assert post(running, None).status == 401


@pytest.mark.parametrize("name", ["orders", "nowhere"])
def test_a_datasource_without_an_origin_is_not_found(running, name):
    answer = post(running, "steward", f"/datasources/{name}/refresh/stage")

    assert answer.status == 404


@pytest.mark.parametrize(
    "body", ["[]", "force", '{"force":"yes"}', '{"force":true,"actor":"boss"}', "{" * 2000]
)
def test_another_body_is_refused(running, body):
    before = running.context.instance.get_runs_count()

    assert post(running, "steward", body=body).status == 400
    assert running.context.instance.get_runs_count() == before


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
        {"Origin": None, "Sec-Fetch-Site": None},
    ],
)
def test_no_page_of_another_origin_refreshes(running, headers):
    assert post(running, "steward", **headers).status == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_it_is_asked_by_post_alone(running, method):
    assert running.client("steward").fetch(method, PATH).status == 403
