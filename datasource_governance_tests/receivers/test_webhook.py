"""The webhook, against a real server and a verifier that shares no line with the package."""

import base64
import hashlib
import hmac
import json
import time
from dataclasses import replace

import pytest

from datasource_governance.domain.event import event
from datasource_governance.errors import GuardError, ServiceUnavailableError
from datasource_governance.receivers.subscription import Subscription
from datasource_governance.receivers.webhook import Webhook
from datasource_governance_tests.domain.lifecycle import MIDDAY
from datasource_governance_tests.receivers.servers import http_server

SECRET = bytes(range(32))
TOLD = event(
    "event-1",
    "governance.applied",
    datasource="orders",
    facts={"quality_policy_hash": "é" * 3},
    now=MIDDAY,
)


@pytest.fixture
def server():
    with http_server() as running:
        yield running


def webhook(server, **options) -> Subscription:
    transport = Webhook(url=server.url, secret=SECRET, public_url="https://governance.example")
    return Subscription(name="hook", transport=transport, **options)


def is_authentic(headers, body, secret, *, tolerance_seconds=300) -> bool:
    """Verify as https://www.standardwebhooks.com says, with what a receiver has at hand."""
    age = abs(time.time() - int(headers["webhook-timestamp"]))
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{body.decode()}"
    computed = hmac.new(secret, content.encode(), hashlib.sha256).digest()
    expected = "v1," + base64.b64encode(computed).decode()
    return age < tolerance_seconds and expected in headers["webhook-signature"].split(" ")


def test_the_event_arrives_signed_with_its_id(server):
    webhook(server).deliver(TOLD)

    ((path, headers, body),) = server.requests
    assert path == "/hook"
    assert headers["webhook-id"] == "event-1"
    assert headers["content-type"] == "application/json"
    assert is_authentic(headers, body, SECRET)
    assert not is_authentic(headers, body, SECRET[:-1])
    assert not is_authentic(headers, body + b" ", SECRET)
    assert not is_authentic({**headers, "webhook-id": "event-2"}, body, SECRET)
    assert json.loads(body) == json.loads(TOLD.body) | {"notification": None}


def test_the_same_event_has_the_same_body_each_time(server):
    for _ in range(2):
        webhook(server).deliver(TOLD)

    (_, _, first), (_, _, second) = server.requests
    assert first == second


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_every_2xx_accepts(server, status):
    server.status = status

    webhook(server).deliver(TOLD)


@pytest.mark.parametrize("status", [301, 302, 307, 400, 401, 404, 410])
def test_any_other_answer_refuses_the_event_and_no_redirect_is_followed(server, status):
    server.status = status

    with pytest.raises(GuardError) as refused:
        webhook(server).deliver(TOLD)

    assert refused.value.code == "receiver_refused"
    assert str(status) in str(refused.value)
    assert [path for path, _, _ in server.requests] == ["/hook"]


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_an_answer_of_a_server_in_trouble_is_about_the_server(server, status):
    server.status = status

    with pytest.raises(ServiceUnavailableError) as away:
        webhook(server).deliver(TOLD)

    assert away.value.code == "receiver_unavailable"


def test_a_server_that_never_answers_is_left(server):
    server.is_silent = True

    with pytest.raises(ServiceUnavailableError) as away:
        webhook(server, timeout_seconds=0.2).deliver(TOLD)

    assert "0.2 seconds" in str(away.value)
    assert away.value.facts == {"receiver": "hook"}


def test_nobody_there_is_told_without_the_address_and_without_a_foreign_cause():
    with http_server() as server:
        gone = server.url
    away = Webhook(url=f"{gone}?token=zq-secret", secret=SECRET, public_url="")

    with pytest.raises(ServiceUnavailableError) as raised:
        Subscription(name="hook", transport=away).deliver(TOLD)

    assert "zq-secret" not in str(raised.value) + repr(away)
    assert (raised.value.__cause__, raised.value.__context__) == (None, None)


def test_credentials_of_the_machine_are_not_sent(server, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login zq password zq\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))

    webhook(server).deliver(TOLD)

    ((_, headers, _),) = server.requests
    assert "authorization" not in {name.lower() for name in headers}


def test_a_stage_that_needs_approval_is_announced_beside_the_event(server):
    facts = {
        "stage": "s/1",
        "state": "awaiting_approval",
        "stage_fingerprint": "f",
        "outcome": "review",
        "validation_hash": "v",
        "quality_policy_hash": "q",
        "approval_policy_hash": None,
    }
    created = event("event-1", "stage.created", datasource="orders", facts=facts, now=MIDDAY)

    webhook(server).deliver(created)

    told = json.loads(server.requests[0][2])["notification"]
    assert told["link"] == "https://governance.example/governance/stages/s%2F1"
    assert told["subject"].startswith("orders: approval needed")


def test_an_id_that_came_before_is_seen_as_such(server):
    webhook(server).deliver(TOLD)
    webhook(server).deliver(replace(TOLD, id="event-2"))
    webhook(server).deliver(TOLD)

    assert [headers["webhook-id"] for _, headers, _ in server.requests] == [
        "event-1",
        "event-2",
        "event-1",
    ]
