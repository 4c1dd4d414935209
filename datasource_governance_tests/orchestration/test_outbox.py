"""The sensor that delivers: by state, whole, and without anything that nobody may see."""

import base64
import json
from dataclasses import replace

import pyarrow as pa
import pytest

from datasource_governance.composition import Application
from datasource_governance.domain.approval import Verdict
from datasource_governance.domain.outbox import MAXIMUM_ATTEMPTS
from datasource_governance.orchestration.outbox import OUTBOX
from datasource_governance.services.delivering import deliver
from datasource_governance_tests.orchestration.governed import declaration
from datasource_governance_tests.orchestration.ticking import Daemon, tick_twice_at_once
from datasource_governance_tests.receivers.servers import (
    HOST,
    PASSWORD,
    USER,
    certificate,
    http_server,
    smtp_server,
)
from datasource_governance_tests.receiving import Deaf
from datasource_governance_tests.world import TWO_APPROVALS, World

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
DECLARED = declaration()
REASON, CELL = "zq-reason-9043", "zq-cell-6132"
UNIQUE = {"version": "v1", "rules": [{"id": "r", "type": "unique", "field": "id"}]}
FILE = '[[receiver]]\nname = "archive"\nkind = "file"\npath = "events.jsonl"\n'


def told_by(world: World, settings: str) -> World:
    """Return the world with receivers as a settings file names them."""
    path = world.application.settings.state / "receivers.toml"
    path.write_text(settings)
    named = replace(
        world.application.settings, receivers=path, dagster_url="https://governance.example"
    )
    return replace(world, application=Application(named))


def tick(world: World) -> str:
    return Daemon(world.application, DECLARED, None).tick(OUTBOX).skip_message


def archived(world: World) -> list[dict]:
    path = world.application.settings.state / "events.jsonl"
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.fixture
def archiving(world):
    """A world with one event, whose receiver is a file."""
    made = told_by(world, FILE)
    made.declare()
    yield made
    made.application.close()


def test_without_receivers_the_sensor_says_so(world):
    assert tick(world) == "nobody is told of events: GOVERNANCE_RECEIVERS is not set"


def test_evaluated_twice_or_anew_it_delivers_once(archiving):
    first = tick(archiving)
    second = tick(archiving)

    assert first == "1 delivered, 0 waiting, 0 dead"
    assert second == "0 delivered, 0 waiting, 0 dead"
    assert [one["type"] for one in archived(archiving)] == ["datasource.governance.applied"]


def test_two_at_once_deliver_once(archiving):
    archiving.stage()

    tick_twice_at_once(archiving, Daemon(archiving.application, DECLARED, None), DECLARED, OUTBOX)
    tick(archiving)

    ids = [one["id"] for one in archived(archiving)]
    assert len(ids) == len(set(ids)) == 2


def test_it_says_how_many_wait_how_many_are_dead_and_what_is_wrong(archiving):
    for _ in range(MAXIMUM_ATTEMPTS):
        deliver(archiving.application.work, [Deaf("deaf")], heeds_pauses=False)
    archiving.stage()
    (archiving.application.settings.state / "events.jsonl").mkdir()

    said = tick(archiving)

    assert said.startswith("0 delivered, 2 waiting, 1 dead; receiver 'archive': its file cannot")


def test_settings_that_cannot_be_read_are_told(world):
    broken = told_by(world, FILE.replace("file", "pigeon"))

    assert "/receiver/0/kind" in tick(broken)


def test_without_postgres_a_tick_is_skipped_with_a_reason(archiving):
    url = "postgresql+psycopg://nobody@127.0.0.1:1/nowhere"
    away = Application(replace(archiving.application.settings, database_url=url))

    assert "127.0.0.1:1" in tick(replace(archiving, application=away))


ALL = """
[[receiver]]
name = "chat"
kind = "webhook"
url = "{url}"
secret_file = "chat.secret"

[[receiver]]
name = "people"
kind = "mail"
host = "{host}"
port = {port}
sender = "governance@data.example"
recipients = ["ann@data.example"]
user = "{user}"
password_file = "mail.secret"
"""


@pytest.fixture
def offices(world, tmp_path, monkeypatch):
    """A world that tells a webhook, people and a file, with what these received."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate(tmp_path)))
    state = world.application.settings.state
    secret = base64.b64encode(bytes(32)).decode()
    for name, text in {"chat.secret": f"whsec_{secret}", "mail.secret": PASSWORD}.items():
        (state / name).write_text(text)
        (state / name).chmod(0o600)
    with http_server() as chat, smtp_server(tmp_path) as (mailbox, port):
        text = ALL.format(url=chat.url, host=HOST, port=port, user=USER)
        made = told_by(world, text + FILE)
        yield made, chat, mailbox
        made.application.close()


def live(world: World) -> None:
    """Let one stage fail, one be rejected and one be promoted."""
    cells = pa.table({"id": [CELL, CELL]})
    world.declare(UNIQUE, TWO_APPROVALS)
    world.stage(table=cells)
    rejected = world.stage(table=cells.slice(0, 1))
    world.decide("approver-1", rejected, REASON, Verdict.REJECT)
    promoted = world.stage(table=cells.slice(1, 1))
    for number in (1, 2):
        world.decide(f"approver-{number}", promoted, REASON)
    world.promote(promoted)


def test_a_life_reaches_everybody_in_its_order_and_brings_no_value_and_no_reason(offices):
    world, chat, mailbox = offices
    live(world)

    said = tick(world)

    bodies = [body for _, _, body in chat.requests]
    gists = [message["Subject"].split(" (")[0] for message in mailbox.received]
    assert said == "24 delivered, 0 waiting, 0 dead"
    assert [json.loads(body)["type"] for body in bodies] == [
        "datasource.governance.applied",
        "datasource.stage.created",
        "datasource.stage.created",
        "datasource.stage.decided",
        "datasource.stage.created",
        "datasource.stage.decided",
        "datasource.stage.decided",
        "datasource.stage.promoted",
    ]
    assert [json.loads(body)["id"] for body in bodies] == [one["id"] for one in archived(world)]
    assert gists == [
        "orders: blocked",
        "orders: approval needed",
        "orders: rejected",
        "orders: approval needed",
        "orders: promoted",
    ]
    everything = repr((chat.requests, [str(one) for one in mailbox.received], archived(world)))
    assert REASON not in everything
    assert CELL not in everything


def test_a_mail_server_that_is_away_keeps_nothing_from_the_others(offices):
    world, chat, mailbox = offices
    mailbox.answer = "451 later"
    world.declare(UNIQUE, TWO_APPROVALS)
    world.stage()
    before = tick(world)

    mailbox.answer = "250 OK"
    deliver(world.application.work, world.application.receivers(), heeds_pauses=False)

    assert before.startswith("5 delivered, 1 waiting, 0 dead; receiver 'people': SMTPDataError")
    assert len(chat.requests) == 2
    assert len(mailbox.received) == 1
