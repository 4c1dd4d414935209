"""The lineage receiver against a real catalogue's end, which dies and comes back."""

import json
import threading
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.lineage.events import LINEAGE_TYPES
from datasource_governance.monitoring.monitor import Monitor
from datasource_governance.receivers.file import File
from datasource_governance.receivers.openlineage import OpenLineage, ToldProducer
from datasource_governance.receivers.subscription import Subscription
from datasource_governance.services.delivering import backlogs, deliver
from datasource_governance_tests.domain.contracts import odcs
from datasource_governance_tests.lineage.openlineage_schemas import problems

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
HOST = "127.0.0.1"


class Catalogue:
    """Keeps run events, on one port; it can be killed and come back, and may die in between."""

    def __init__(self):
        self.events, self.port, self.dies_after = [], 0, None
        self.answer, self.keys = 201, []

    @contextmanager
    def alive(self):
        catalogue = self

        class Endpoint(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if catalogue.dies_after == 0:
                    self.connection.close()
                    return
                catalogue.events.append(json.loads(body))
                catalogue.keys.append(self.headers["authorization"])
                if catalogue.dies_after is not None:
                    catalogue.dies_after -= 1
                self.send_response(catalogue.answer)
                self.send_header("Location", "/sign-in")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer((HOST, self.port), Endpoint)
        self.port = server.server_port
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    @property
    def known(self):
        """Each event once, by run and type, in the order in which it first came."""
        return list(dict.fromkeys((one["run"]["runId"], one["eventType"]) for one in self.events))


@pytest.fixture
def watched(world):
    world.set_clock(NOW)
    world.grant(SYSTEM, Role.PRODUCER)
    world.grant(SYSTEM, Role.STEWARD)
    world.declare(kind="published", contracts=[odcs(schema=[{"name": "orders"}])])
    world.publish()
    return world


def check(world, minutes):
    world.set_clock(NOW + timedelta(minutes=minutes))
    return [*Monitor(application=world.application, environment={}).run_due()]


def receivers(world, catalogue, tmp_path):
    transport = {"type": "http", "url": f"http://{HOST}:{catalogue.port}"}
    lineage = OpenLineage(namespace="ours", transport=transport, work=world.application.work)
    return [
        Subscription(name="catalogue", transport=lineage, events=frozenset(LINEAGE_TYPES)),
        Subscription(name="archive", transport=File(path=tmp_path / "events.jsonl")),
    ]


def hand_over(world, told):
    return {one.receiver: one for one in deliver(world.application.work, told, heeds_pauses=False)}


def test_a_catalogue_that_dies_and_comes_back_has_all_events_in_order_and_once(watched, tmp_path):
    catalogue = Catalogue()
    with catalogue.alive():
        told = receivers(watched, catalogue, tmp_path)
        first = check(watched, 0)
        assert hand_over(watched, told)["catalogue"].is_clean
    assert len(catalogue.known) == 2 + 2 * len(first)

    missed = check(watched, 5) + check(watched, 15)
    rounds = hand_over(watched, told)
    assert "receiver_unavailable" not in str(rounds["archive"])
    assert (rounds["catalogue"].accepted, rounds["catalogue"].is_clean) == (0, False)
    assert rounds["archive"].is_clean
    assert {str(one.status) for one in missed} == {"passed"}
    work = watched.application.work()
    assert [one.waiting > 0 for one in backlogs(work, told[:1])] == [True]

    with catalogue.alive():
        # It dies once more, between the START of a run and its end.
        catalogue.dies_after = 1
        assert not hand_over(watched, told)["catalogue"].is_clean
        catalogue.dies_after = None
        assert hand_over(watched, told)["catalogue"].is_clean

    assert [problems(one) for one in catalogue.events] == [[] for _ in catalogue.events]
    runs = [run for run, _ in catalogue.known]
    assert catalogue.known == [
        (run, kind) for run in dict.fromkeys(runs) for kind in ("START", "COMPLETE")
    ]
    ended = [one["eventTime"] for one in catalogue.events if one["eventType"] == "COMPLETE"]
    assert ended == sorted(ended)
    assert len(catalogue.known) == 2 + 2 * len(first + missed)
    assert hand_over(watched, told)["catalogue"].accepted == 0


def test_what_the_environment_says_of_openlineage_is_left_out(watched, tmp_path, monkeypatch):
    (tmp_path / "openlineage.yml").write_text("transport: {type: console}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:9")
    path = tmp_path / "told"
    transport = {"type": "file", "log_file_path": str(path), "append": True}
    told = Subscription(
        name="file",
        transport=OpenLineage(namespace="ours", transport=transport, work=watched.application.work),
        events=frozenset(LINEAGE_TYPES),
    )

    assert hand_over(watched, [told])["file"].is_clean
    assert len(path.read_text().splitlines()) == 2

    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    check(watched, 5)
    assert "OPENLINEAGE_DISABLED" in hand_over(watched, [told])["file"].problem


@pytest.mark.parametrize(
    ("answer", "is_composed"), [(302, False), (302, True), (304, False), (404, False), (503, False)]
)
def test_only_an_answer_that_takes_an_event_delivers_it(watched, tmp_path, answer, is_composed):
    catalogue = Catalogue()
    with catalogue.alive():
        catalogue.answer = answer
        told = receivers(watched, catalogue, tmp_path)[:1]
        if is_composed:
            inner = told[0].transport.transport
            composed = {"type": "composite", "transports": {"inner": inner}}
            told = [replace(told[0], transport=replace(told[0].transport, transport=composed))]

        assert not hand_over(watched, told)["catalogue"].is_clean
        assert {one["eventType"] for one in catalogue.events} == {"START"}

        catalogue.answer = 201
        assert hand_over(watched, told)["catalogue"].is_clean
    assert [kind for _, kind in catalogue.known] == ["START", "COMPLETE"]


def test_the_key_of_the_settings_is_what_is_sent(watched, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text(f"machine {HOST} login somebody password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    catalogue = Catalogue()
    with catalogue.alive():
        (told, _) = receivers(watched, catalogue, tmp_path)
        keyed = {**told.transport.transport, "auth": {"type": "api_key", "apiKey": "key"}}
        told = replace(told, transport=replace(told.transport, transport=keyed))
        assert hand_over(watched, [told])["catalogue"].is_clean
    assert set(catalogue.keys) == {"Bearer key"}


class Broker:
    """What confluent-kafka's producer does: it tells of each message while it is flushed."""

    def __init__(self, error=None, waiting=0):
        self.error, self.waiting, self.queued, self.seconds = error, waiting, [], None

    def produce(self, *, on_delivery, **message):
        self.queued.append((on_delivery, message))

    def flush(self, timeout):
        self.seconds = timeout
        while self.queued:
            on_delivery, message = self.queued.pop()
            on_delivery(self.error, message)
        return self.waiting


@pytest.mark.parametrize(("error", "waiting"), [(None, 0), ("message timed out", 0), (None, 1)])
def test_what_a_broker_did_not_take_is_raised(error, waiting):
    broker = Broker(error, waiting)
    producer = ToldProducer(broker)
    producer.produce(topic="t", key="k", value=b"{}", on_delivery=print)

    if error is None and not waiting:
        assert producer.flush(timeout=-1) == 0
    else:
        with pytest.raises(ConnectionError, match=f"{waiting} waiting, {0 if waiting else 1}"):
            producer.flush(timeout=-1)
    # Without end a receiver would be given up while the message is still under way.
    assert broker.seconds == 4.0
