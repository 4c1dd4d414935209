"""Asking a webserver: what it answers, what the gate refuses, and what nobody else gets to see."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from joserfc import jws

from datasource_governance.errors import GuardError, InvalidArgumentError, ServiceUnavailableError
from datasource_governance.orchestration.client import DagsterClient
from datasource_governance.orchestration.launching import launch, wait_for_run
from datasource_governance.orchestration.runs import newest_run_about
from datasource_governance.signing import Signer, create_key

QUERY = "{ version }"
REPOSITORY = {"name": "__repository__", "location": {"name": "here"}, "jobs": [{"name": "count"}]}
LOADED = {"repositoriesOrError": {"nodes": [REPOSITORY]}}


@dataclass
class Webserver:
    """Gives prepared answers, one after another, and keeps what it was asked."""

    answers: list[tuple[int, object]]
    port: int = 0
    asked: list[dict] = field(default_factory=list)
    headers: list[dict] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def webserver(*answers: object, status: int = 200, **headers: str) -> Iterator[Webserver]:
    """Serve answers: documents, or bytes as they are; the last one again and again."""
    made = Webserver([(status, answer) for answer in answers])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            made.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            made.headers.append({"path": self.path, **self.headers})
            code, answer = made.answers.pop(0) if len(made.answers) > 1 else made.answers[0]
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        made.port = server.server_port
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield made
        server.shutdown()
        thread.join()


@pytest.fixture
def signer(tmp_path) -> Signer:
    create_key(tmp_path, "casey")
    return Signer(tmp_path, "casey", "default")


def refusal(message: str, code: str | None) -> dict[str, object]:
    return {"data": None, "errors": [{"message": message, "extensions": {"code": code}}]}


def test_an_answer_is_its_data():
    with webserver({"data": {"version": "1"}}) as server:
        assert DagsterClient(server.url).ask(QUERY, a=1) == {"version": "1"}

    assert server.asked == [{"query": QUERY, "variables": {"a": 1}}]
    assert server.headers[0]["path"] == "/graphql"
    assert "Authorization" not in server.headers[0]


def test_a_webserver_below_a_path_is_asked_there():
    with webserver({"data": {}}) as server:
        DagsterClient(f"{server.url}/dagster/").ask(QUERY)

    assert server.headers[0]["path"] == "/dagster/graphql"


@pytest.mark.parametrize(
    ("spelling", "audience"),
    [
        ("http://127.0.0.1:{port}", "http://127.0.0.1:{port}"),
        ("http://127.0.0.1:{port}/", "http://127.0.0.1:{port}"),
        ("HTTP://LOCALHOST:{port}/dagster", "http://localhost:{port}"),
    ],
)
def test_every_request_has_a_token_of_its_own_for_that_address(signer, spelling, audience):
    with webserver({"data": {}}) as server:
        client = DagsterClient(spelling.format(port=server.port), signer)
        client.ask(QUERY)
        client.ask(QUERY)

    first, second = (headers["Authorization"] for headers in server.headers)
    scheme, _, token = first.partition(" ")
    claims = json.loads(jws.extract_compact(token.encode()).payload)
    assert (scheme, claims["aud"]) == ("Bearer", audience.format(port=server.port))
    assert first != second


@pytest.mark.parametrize("status", [200, 401, 403])
def test_what_the_gate_refuses_is_said_in_its_words(status):
    with webserver(refusal("casey may not", "not_authorised"), status=status) as server:
        client = DagsterClient(server.url)

        with pytest.raises(GuardError, match="casey may not") as caught:
            client.ask(QUERY)

    assert (caught.value.code, caught.value.exit_code) == ("not_authorised", 1)


def test_a_gate_that_cannot_decide_now_is_not_a_refusal():
    with webserver(refusal("no database", "service_unavailable"), status=503) as server:
        client = DagsterClient(server.url)

        with pytest.raises(ServiceUnavailableError, match="no database"):
            client.ask(QUERY)


@pytest.mark.parametrize(
    "answer",
    [
        refusal("zq-canary", None),
        {"errors": [{"message": "zq-canary"}]},
        {"errors": ["zq-canary"]},
        {"errors": "zq-canary"},
    ],
)
def test_what_others_say_of_an_error_is_not_repeated(answer):
    with webserver(answer) as server:
        client = DagsterClient(server.url)

        with pytest.raises(ServiceUnavailableError, match="could not answer") as caught:
            client.ask(QUERY)

    assert "zq-canary" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b'{"data": null}', b"\xff"])
def test_what_is_no_dagster_webserver_is_said_to_be_none(answer):
    with webserver(answer) as server:
        client = DagsterClient(server.url)

        with pytest.raises(ServiceUnavailableError, match="no Dagster webserver answers"):
            client.ask(QUERY)


def test_where_nobody_listens_it_says_so_without_the_errors_frames():
    client = DagsterClient("http://127.0.0.1:1")

    with pytest.raises(ServiceUnavailableError) as caught:
        client.ask(QUERY)

    assert caught.value.__context__ is None


def test_a_token_follows_no_redirect(signer):
    with webserver({"data": {}}) as elsewhere:
        with webserver(b"", status=307, Location=f"{elsewhere.url}/graphql") as server:
            client = DagsterClient(server.url, signer)

            with pytest.raises(ServiceUnavailableError):
                client.ask(QUERY)

        assert elsewhere.asked == []


@pytest.mark.parametrize(
    "url", ["", "nonsense", "http://", "http://a:x", "http://a:0", "ftp://a", "file:///etc/passwd"]
)
def test_an_address_of_another_form_is_refused(url):
    with pytest.raises(InvalidArgumentError, match="GOVERNANCE_DAGSTER_URL"):
        DagsterClient(url)


def test_a_job_is_launched_where_it_is_loaded():
    launched = {"data": {"launchRun": {"run": {"runId": "r-1"}}}}
    with webserver({"data": LOADED}, launched) as server:
        assert launch(DagsterClient(server.url), "count", {"ops": {}}) == "r-1"

    assert server.asked[1]["variables"]["parameters"] == {
        "selector": {
            "repositoryLocationName": "here",
            "repositoryName": "__repository__",
            "jobName": "count",
        },
        "runConfigData": {"ops": {}},
    }


@pytest.mark.parametrize(
    "answers",
    [
        [{"data": {"repositoriesOrError": {}}}],
        [{"data": {"repositoriesOrError": {"nodes": []}}}],
        [{"data": LOADED}, {"data": {"launchRun": {}}}],
        [{"data": LOADED}, {"data": {"launchRun": {"className": "Error", "message": "zq"}}}],
    ],
)
def test_a_job_that_is_not_launched_is_named(answers):
    with webserver(*answers) as server:
        client = DagsterClient(server.url)

        with pytest.raises(ServiceUnavailableError, match="did not launch count") as caught:
            launch(client, "count", {})

    assert "zq" not in str(caught.value)


def test_what_the_run_coordinator_refuses_is_said_in_its_words():
    refused = {"className": "GuardError", "message": "the gateway's key was revoked"}
    with webserver({"data": LOADED}, {"data": {"launchRun": refused}}) as server:
        client = DagsterClient(server.url)

        with pytest.raises(GuardError, match="the gateway's key was revoked") as caught:
            launch(client, "count", {})

    assert caught.value.exit_code == 1


def test_a_run_is_waited_for_over_what_goes_wrong_meanwhile():
    answers = [
        {"errors": [{"message": "busy"}]},
        {"data": {"runOrError": {}}},
        {"data": {"runOrError": {"status": "STARTED"}}},
        {"data": {"runOrError": {"status": "FAILURE"}}},
    ]
    with webserver(*answers) as server:
        assert wait_for_run(DagsterClient(server.url), "r-1") == "FAILURE"


def test_a_gate_that_refuses_meanwhile_ends_the_waiting():
    with webserver(refusal("revoked", "not_authorised")) as server:
        client = DagsterClient(server.url)

        with pytest.raises(GuardError):
            wait_for_run(client, "r-1")


def test_the_newest_run_about_a_stage_tells_which_sensor_launched_it():
    tags = [{"key": "dagster/sensor_name", "value": "approval_quorum"}]
    newest = {"runId": "r-2", "status": "SUCCESS", "tags": tags}
    with webserver({"data": {"runsOrError": {"results": [newest]}}}) as server:
        found = newest_run_about(DagsterClient(server.url), "s-1")

    assert (found.id, found.status, found.sensor) == ("r-2", "SUCCESS", "approval_quorum")
    wanted = {"key": "datasource_governance/stage", "value": "s-1"}
    assert server.asked[0]["variables"] == {"tags": [wanted]}


def test_a_stage_without_a_run_has_none():
    with webserver({"data": {"runsOrError": {"results": []}}}) as server:
        assert newest_run_about(DagsterClient(server.url), "s-1") is None
