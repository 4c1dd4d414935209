"""`outbox`: what waits is shown and delivered, what died is shown and tried again."""

import json

import pytest

from datasource_governance.domain.outbox import MAXIMUM_ATTEMPTS

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
SETTINGS = '[[receiver]]\nname = "archive"\nkind = "file"\npath = "kept/events.jsonl"\n'


@pytest.fixture
def archive(office, tmp_path, monkeypatch):
    """The folder of a file that events go to; it is not there yet."""
    (tmp_path / "receivers.toml").write_text(SETTINGS)
    monkeypatch.setenv("GOVERNANCE_RECEIVERS", str(tmp_path / "receivers.toml"))
    return tmp_path / "kept"


def events(archive):
    return [json.loads(line) for line in (archive / "events.jsonl").read_text().splitlines()]


def test_what_waits_is_shown_and_delivered(office, archive):
    archive.mkdir()
    before = office("outbox", "status", "--json").document

    delivered = office("outbox", "deliver", "--json")

    after = office("outbox", "status", "--json").document
    (position,) = before["positions"]
    assert (position["receiver"], position["datasource"]) == ("archive", "orders")
    assert (position["delivered"], position["waiting"], before["dead"]) == (0, 1, 0)
    assert position["since"]
    assert delivered.code == 0
    assert delivered.document["receivers"] == [
        {"receiver": "archive", "accepted": 1, "failed": 0, "set_aside": 0, "problem": None}
    ]
    assert (after["positions"][0]["delivered"], after["positions"][0]["waiting"]) == (1, 0)
    assert [one["type"] for one in events(archive)] == ["datasource.governance.applied"]


def test_a_receiver_that_fails_is_told_with_exit_code_1(office, archive):
    people, scripts = office("outbox", "deliver"), office("outbox", "deliver", "--json")
    status = office("outbox", "status", "--json").document

    assert (people.code, scripts.code) == (1, 1)
    assert "archive: 0 accepted, 1 failed; receiver 'archive': its file cannot" in people.out
    assert scripts.document["receivers"][0]["failed"] == 1
    assert status["positions"][0]["attempts"] == 2
    assert status["positions"][0]["retry_at"]


def test_a_dead_letter_is_listed_retried_and_gone(office, archive):
    for _ in range(MAXIMUM_ATTEMPTS):
        last = office("outbox", "deliver")
    listed = office("outbox", "dead")
    (letter,) = office("outbox", "dead", "--json").document["dead"]
    too_early = office("outbox", "retry", "archive", letter["event"])
    archive.mkdir()

    retried = office("outbox", "retry", "archive", letter["event"], "--json")

    again = office("outbox", "retry", "archive", letter["event"])
    assert "1 set aside" in last.out
    assert letter["event"] in listed.out
    assert (letter["problem"], letter["attempts"]) == ("receiver_unavailable", 12)
    assert (too_early.code, retried.code, again.code) == (3, 0, 2)
    assert retried.document["event"] == letter["event"]
    assert [one["id"] for one in events(archive)] == [letter["event"]]
    assert office("outbox", "dead", "--json").document == {"dead": []}


def test_people_are_shown_tables(office, archive):
    archive.mkdir()
    shown = office("outbox", "status")
    office("outbox", "deliver")

    assert "archive" in shown.out
    assert "0 dead letters" in shown.out


def test_a_receiver_that_is_not_named_cannot_be_retried(office, archive):
    answer = office("outbox", "retry", "nobody", "event")

    assert answer.code == 2
    assert "'nobody'" in answer.err


def test_without_receivers_there_is_nothing_to_deliver(office):
    assert office("outbox", "deliver", "--json").document == {"receivers": []}
    assert office("outbox", "status", "--json").document == {"positions": [], "dead": 0}


def test_settings_that_are_wrong_are_refused_whole(office, tmp_path, monkeypatch):
    (tmp_path / "receivers.toml").write_text(SETTINGS.replace("path", "paths"))
    monkeypatch.setenv("GOVERNANCE_RECEIVERS", str(tmp_path / "receivers.toml"))

    answer = office("outbox", "deliver", "--json")

    assert answer.code == 2
    assert [one["pointer"] for one in answer.document["problems"]] == [
        "/receiver/0/paths",
        "/receiver/0",
    ]
