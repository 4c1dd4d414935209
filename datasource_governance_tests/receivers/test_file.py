"""The file: one whole line for each event, whatever crashed before."""

import json
import stat
import threading
from dataclasses import replace

import pytest

from datasource_governance.domain.event import event
from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.receivers.file import File
from datasource_governance_tests.domain.lifecycle import MIDDAY

CREATED = event("e", "stage.created", datasource="orders", facts={"stage": "s"}, now=MIDDAY)


def test_each_event_is_a_line_of_its_canonical_json(tmp_path):
    receiver = File(path=tmp_path / "events.jsonl")

    for _ in range(2):
        receiver.deliver(CREATED)

    assert receiver.path.read_bytes() == (CREATED.body + b"\n") * 2
    assert stat.S_IMODE(receiver.path.stat().st_mode) == 0o600


def test_behind_a_line_that_a_crash_cut_short_a_new_one_begins(tmp_path):
    receiver = File(path=tmp_path / "events.jsonl")
    receiver.path.write_bytes(CREATED.body[:10])

    receiver.deliver(CREATED)

    assert receiver.path.read_bytes().splitlines() == [CREATED.body[:10], CREATED.body]


def test_lines_of_two_writers_do_not_mix(tmp_path):
    receiver = File(path=tmp_path / "events.jsonl")
    large = replace(CREATED, body=b'"' + b"x" * 100_000 + b'"')

    threads = [threading.Thread(target=receiver.deliver, args=(large,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    lines = receiver.path.read_bytes().splitlines()
    assert len(lines) == 8
    assert {len(json.loads(line)) for line in lines} == {100_000}


def test_a_file_that_cannot_be_written_to_is_told(tmp_path):
    with pytest.raises(ServiceUnavailableError) as raised:
        File(path=tmp_path / "missing" / "events.jsonl").deliver(CREATED)

    assert raised.value.code == "receiver_unavailable"
    assert (raised.value.__cause__, raised.value.__context__) == (None, None)
