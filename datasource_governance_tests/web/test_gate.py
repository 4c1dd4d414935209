"""What passes the gate, asked of a real webserver over HTTP and WebSocket."""

import json
import socket
from urllib.parse import quote

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from datasource_governance.domain.actor import Role
from datasource_governance.web.messages import MAXIMUM_BODY_BYTES
from datasource_governance.web.policy import READERS
from datasource_governance_tests.web.conftest import ROLES
from datasource_governance_tests.web.schema import LAUNCH, launch, mutation
from datasource_governance_tests.web.serving import (
    LOCATION,
    REPOSITORY,
    Client,
    unique_actor,
    with_accounts,
    without_account,
)

pytestmark = pytest.mark.postgres
READING = [name for name, role in ROLES.items() if role in READERS]
JSON = "application/json"


@pytest.mark.parametrize("name", ROLES)
def test_pages_and_queries_are_for_readers(governed, name):
    client = governed.client(name)
    page, query = client.get("/overview/runs"), client.ask("{ version }")

    if name in READING:
        assert page.status == 200
        assert "<html" in page.text
        assert query.json() == {"data": {"version": ""}}
    else:
        assert page.status == 403
        assert "needs the role" in page.text
        assert "needs the role" in query.refusal


def test_who_has_no_grant_gets_a_plain_page(governed):
    answer = governed.client("nobody").get("/")

    assert answer.status == 403
    assert "<script" not in answer.text
    assert "an administrator can give it: actor grant nobody" in answer.text
    assert 'href="/signin"' in answer.text


def test_who_is_not_registered_gets_a_plain_page(governed):
    answer = governed.client("stranger").get("/")

    assert answer.status == 403
    assert "stranger is not registered here" in answer.text


def test_a_grant_and_its_withdrawal_show_within_seconds(web_world, governed, monkeypatch):
    from datasource_governance.web import authority

    monkeypatch.setattr(authority, "FRESH_SECONDS", 0.0)
    name = unique_actor()
    web_world.admit(name)
    with_accounts(governed.settings, name)
    client = governed.client(name)
    assert client.ask("{ version }").refusal

    grant = web_world.grant(name, Role.VIEWER)
    assert not client.ask("{ version }").refusal

    web_world.withdraw(grant)
    assert client.ask("{ version }").refusal


@pytest.mark.parametrize("path", ["/", "/assets?x=1&y=2", "/logs/a.out", "/anything"])
def test_a_page_leads_whoever_is_not_signed_in_to_sign_in(governed, path):
    answer = governed.client().get(path)

    assert answer.status == 303
    assert answer.headers["Location"].startswith("/signin?next=/")


@pytest.mark.parametrize("path", ["/", "/graphql", "/server_info", "/favicon.png", "/logs/a.out"])
def test_nothing_else_is_answered_to_whoever_is_not_signed_in(governed, path):
    client = governed.client()
    method = "POST" if path == "/graphql" else "GET"

    answer = client.fetch(method, path, headers={"Accept": "*/*"})

    assert answer.status == 401
    assert answer.json()["errors"][0]["message"] == "sign in first"


def test_health_tells_nothing_to_anybody(governed):
    answer = governed.client().get("/health")

    assert (answer.status, answer.text) == (200, "ok")


@pytest.mark.parametrize("name", READING)
@pytest.mark.parametrize("path", ["/logs/a/compute_logs/b.out", "/download_debug/a"])
def test_logs_are_for_stewards(governed, name, path):
    status = governed.client(name).get(path, accept="*/*").status

    assert (status == 403) is (name != "steward")


@pytest.mark.parametrize(
    "path",
    [
        "/notebook?path=/etc/passwd.ipynb&repoLocName=any",
        "/dagit/notebook",
        "/report_asset_materialization/orders/current",
        "/report_asset_check/orders/stage",
        "/report_asset_observation/orders/stage",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
def test_forging_routes_are_refused_to_every_role(governed, path, method):
    for name in ("operator", "administrator"):
        answer = governed.client(name).fetch(method, path, "{}", {"Accept": "*/*"})

        assert answer.status == 403


@pytest.mark.parametrize(
    "path", ["/notebook%0a", "/report_asset_check/orders%00", "/%0d%0aSet-Cookie:x=y", "/a%7f"]
)
def test_control_characters_in_a_path_are_refused(governed, path):
    assert governed.client("administrator").get(path).status == 400


@pytest.mark.parametrize("path", ["/signin/", "//signin", "/Signin", "/signin/../", "/health/x"])
def test_no_spelling_of_an_open_path_opens_another(governed, path):
    assert governed.client().get(path, accept="*/*").status == 401


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "OPTIONS"])
@pytest.mark.parametrize("query", ["", "?query=mutation%7BsetNuxSeen%7D", "?query=%7Bversion%7D"])
def test_graphql_is_asked_by_post_alone(governed, method, query):
    answer = governed.client("operator").fetch(method, f"/graphql{query}")

    assert method == "HEAD" or answer.refusal
    assert "data" not in answer.text or answer.json()["data"] is None


@pytest.mark.parametrize(
    "media_type",
    [
        "text/plain",
        "text/plain; application/json",
        "application/graphql",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonx",
        "",
        None,
    ],
)
def test_only_json_is_read(governed, media_type):
    body = json.dumps({"query": "{ version }"})

    answer = governed.client("viewer").fetch(
        "POST", "/graphql?query=%7Bversion%7D", body, {"Content-Type": media_type}
    )

    assert answer.status == 400
    assert "application/json" in answer.refusal


@pytest.mark.parametrize(
    "media_type",
    ["Application/JSON", "APPLICATION/JSON; x=application/graphql", "application/json; x=y"],
)
@pytest.mark.parametrize("asked", [mutation("reportRunlessAssetEvents"), "{ version }"])
def test_what_was_judged_is_what_dagster_reads(governed, media_type, asked):
    """Dagster takes the request from the address for any spelling that it does not know."""
    body = json.dumps({"query": "{ __typename }"})

    answer = governed.client("viewer").fetch(
        "POST", f"/graphql?query={quote(asked)}", body, {"Content-Type": media_type}
    )

    assert answer.json() == {"data": {"__typename": "Query"}}


@pytest.mark.parametrize(
    "body", ["", "{", "null", "[]", "1", '"a"', '[{"query": "{ version }"}]', "[" * 100_000]
)
def test_a_body_that_is_no_request_is_refused(governed, body):
    answer = governed.client("viewer").fetch("POST", "/graphql", body, {"Content-Type": JSON})

    assert answer.status == 400


def test_a_body_that_is_too_large_is_refused(governed):
    body = json.dumps({"query": "{ version }", "variables": {"a": "x" * MAXIMUM_BODY_BYTES}})

    answer = governed.client("viewer").fetch("POST", "/graphql", body, {"Content-Type": JSON})

    assert answer.status == 400
    assert "at most" in answer.refusal


@pytest.mark.parametrize(
    "name", ["wipeAssets", "deleteRun", "reportRunlessAssetEvents", "setSensorCursor"]
)
def test_a_refused_mutation_is_answered_as_graphql_answers(governed, name):
    answer = governed.client("administrator").ask(mutation(name))

    assert answer.status == 200
    assert answer.refusal == f"{name} is not allowed through the governed webserver"
    assert answer.json()["errors"][0]["extensions"] == {"code": "refused"}


@pytest.mark.parametrize(
    ("job", "name"),
    [
        ("stage_orders", "steward"),
        ("promote_orders", "operator"),
        ("apply_retention_plan", "administrator"),
    ],
)
def test_a_job_is_launched_by_its_role_and_no_other(governed, job, name):
    for other in READING:
        if other != name:
            assert "needs the role" in governed.client(other).ask(LAUNCH, p=launch(job)).refusal

    answer = governed.client(name).ask(LAUNCH, p=launch(job, runConfigData="{}"))

    assert answer.json() == {"data": {"launchRun": {"__typename": "LaunchRunSuccess"}}}


def test_a_run_is_executed_again_by_the_role_of_its_job(governed):
    run_id = "launchRun(executionParams: $p) { ... on LaunchRunSuccess { run { runId } } }"
    launched = governed.client("steward").ask(
        f"mutation($p: ExecutionParams!) {{ {run_id} }}", p=launch("stage_orders")
    )
    again = """mutation($p: ReexecutionParams) {
      launchRunReexecution(reexecutionParams: $p) { __typename }
    }"""
    parent = launched.json()["data"]["launchRun"]["run"]["runId"]
    parameters = {"parentRunId": parent, "strategy": "ALL_STEPS"}

    assert "needs the role steward" in governed.client("operator").ask(again, p=parameters).refusal
    assert not governed.client("steward").ask(again, p=parameters).refusal


def test_an_operator_toggles_a_sensor_and_nobody_else_does(governed):
    selector = {
        "sensorName": "waiting",
        "repositoryName": REPOSITORY,
        "repositoryLocationName": LOCATION,
    }
    start = """mutation($s: SensorSelector!) {
      startSensor(sensorSelector: $s) { __typename }
    }"""

    for name in READING:
        answer = governed.client(name).ask(start, s=selector)
        assert bool(answer.refusal) is (name != "operator")


FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null", "Sec-Fetch-Site": None},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {"Origin": None, "Sec-Fetch-Site": None},
    {"Origin": None, "Sec-Fetch-Site": "cross-site"},
]


@pytest.mark.parametrize("headers", FOREIGN)
@pytest.mark.parametrize("path", ["/graphql", "/signin", "/signout"])
def test_a_request_from_elsewhere_changes_nothing(governed, headers, path):
    client = governed.client("operator")
    body = json.dumps({"query": "mutation { setNuxSeen }"})

    answer = client.fetch("POST", path, body, {"Content-Type": JSON, **headers})

    assert answer.refusal == "the request does not come from a page of this server"
    assert client.ask("{ version }").status == 200


HOSTILE = {
    "X-Governance-Actor": "administrator",
    "X-Forwarded-User": "administrator",
    "Remote-User": "administrator",
    "X-Auth-Request-User": "administrator",
    "X-Amzn-Oidc-Identity": "administrator",
    "X-Amzn-Oidc-Data": "e30.e30.",
    "X-Forwarded-For": "127.0.0.1",
    "Authorization": "Bearer e30.e30.",
}


def test_headers_that_name_somebody_change_nobody(governed):
    assert governed.client().fetch("GET", "/", headers=HOSTILE).status == 401
    viewer = governed.client("viewer")
    assert "needs the role" in viewer.ask(LAUNCH, HOSTILE, p=launch("promote_orders")).refusal


def websocket(client: Client, **headers: str):
    cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    given = {"Cookie": cookies, "Origin": client.origin, **headers}
    return connect(
        f"ws://127.0.0.1:{client.port}/graphql",
        subprotocols=["graphql-ws"],
        additional_headers={name: value for name, value in given.items() if name != "Origin"},
        origin=given["Origin"],
        proxy=None,
    )


def subscribe(client: Client, query: str, **variables: object) -> dict[str, object]:
    """Send one operation and return the first answer to it."""
    payload = {"query": query, "variables": variables}
    with websocket(client) as connection:
        connection.send(json.dumps({"type": "connection_init", "payload": {}}))
        assert json.loads(connection.recv(10)) == {"type": "connection_ack"}
        connection.send(json.dumps({"type": "start", "id": "1", "payload": payload}))
        return json.loads(connection.recv(10))


SUBSCRIPTION = 'subscription { pipelineRunLogs(runId: "none") { __typename } }'


@pytest.mark.parametrize("name", READING)
def test_a_reader_subscribes(governed, name):
    answer = subscribe(governed.client(name), SUBSCRIPTION)

    assert answer["type"] == "data"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("mutation { wipeAssets }", "only subscriptions"),
        ("mutation { setNuxSeen }", "only subscriptions"),
        ("{ version }", "only subscriptions"),
        (f"{SUBSCRIPTION} mutation {{ setNuxSeen }}", "only subscriptions"),
        ('subscription { capturedLogs(logKey: ["a"]) { stdout } }', "reading compute logs"),
        ("subscription {", "no GraphQL document"),
    ],
)
def test_anything_else_over_the_websocket_is_refused(governed, query, reason):
    answer = subscribe(governed.client("viewer"), query)

    assert answer["type"] == "error"
    assert reason in answer["payload"]["message"]


@pytest.mark.parametrize("text", ["{", "[]", "1", '{"type": "start"}', b"\x00"])
def test_a_message_of_another_form_is_answered_and_not_handed_on(governed, text):
    with websocket(governed.client("viewer")) as connection:
        connection.send(text)
        assert json.loads(connection.recv(10))["type"] == "error"

        connection.send(json.dumps({"type": "connection_init"}))
        assert json.loads(connection.recv(10)) == {"type": "connection_ack"}


@pytest.mark.parametrize("name", [None, "nobody", "stranger", "producer"])
def test_whoever_may_not_read_opens_no_websocket(governed, name):
    with pytest.raises(InvalidStatus, match="403"), websocket(governed.client(name)):
        pass


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}],
)
def test_a_foreign_page_opens_no_websocket(governed, headers):
    with pytest.raises(InvalidStatus, match="403"), websocket(governed.client("viewer"), **headers):
        pass


def test_hostile_headers_open_no_websocket(governed):
    with pytest.raises(InvalidStatus, match="403"), websocket(governed.client(), **HOSTILE):
        pass


def test_an_open_websocket_of_a_removed_account_subscribes_to_nothing_more(web_world, governed):
    name = unique_actor()
    web_world.admit(name, Role.VIEWER)
    with_accounts(governed.settings, name)
    with websocket(governed.client(name)) as connection:
        without_account(governed.settings, name)

        payload = {"query": SUBSCRIPTION}
        connection.send(json.dumps({"type": "start", "id": "1", "payload": payload}))
        answer = json.loads(connection.recv(10))

    assert answer["payload"]["message"] == "sign in first"


def test_a_request_that_ends_early_reaches_nothing(governed):
    cookie = governed.client("viewer").cookies["governance"]
    head = (
        f"POST /graphql HTTP/1.1\r\nHost: a\r\nOrigin: http://127.0.0.1:{governed.port}\r\n"
        f"Cookie: governance={cookie}\r\nContent-Type: {JSON}\r\nContent-Length: 100\r\n\r\n{{"
    )
    with socket.create_connection(("127.0.0.1", governed.port)) as connection:
        connection.sendall(head.encode())

    assert governed.client().get("/health").status == 200


def test_two_cookies_of_one_name_name_at_most_one(governed):
    client = governed.client("viewer")
    real = client.cookies["governance"]

    answer = client.fetch("GET", "/", headers={"Cookie": f"governance=x; governance={real}"})

    assert answer.status in (200, 401)
