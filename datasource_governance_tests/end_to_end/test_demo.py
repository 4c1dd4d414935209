"""`datasource-governance demo`: the whole story, on a machine that may fail in the middle of it."""

import json
import os
import shutil
import signal
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from datasource_governance_tests.postgres import reachable_directory

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(900)]
COMMAND = Path(sysconfig.get_path("scripts")) / "datasource-governance"
SENTENCES = [
    "1. The first delivery needs two approvals, and gets them",
    "is current, launched by approval_quorum",
    "a downstream asset reads what is in force",
    "2. A delivery with faults is blocked, and readers notice nothing",
    "icao-unique",
    "the current materialization stays readable",
    "refused: ",
    "3. The corrected delivery goes through, but not on its creator's word",
    "refused: ",
    "is current, launched by approval_quorum",
    "4. A producer publishes what it makes of it: once, however often it tries",
    "rows, published, by pat",
    "published 1 time, replayed 2 times: 1 materialization, 1 event",
    "it is what readers get now",
    "5. Nothing is destroyed unless policy, a plan and a person say so",
    ": 0 due",
    "of policy airports-keep-v1 (",
    "it will be due at ",
    "held: materialization ",
    "refused: actor 'olga' placed hold ",
    "6. Consumers are promised something, and learn at once when it breaks",
    "percent of the promised freshness is used",
    "freshness passed: 0 percent",
    "contract_check.airport_zones.freshness",
    "7. Everything that happened is evidence, and the evidence holds",
]
LAST_CHAPTER = SENTENCES[-1]


@pytest.fixture
def state() -> Iterator[Path]:
    directory = reachable_directory()
    yield directory
    shutil.rmtree(directory)


def start(state: Path, *options: str) -> subprocess.Popen[str]:
    """Start the demo on a state of its own, as the leader of a process group."""
    ours = ("GOVERNANCE_", "DAGSTER_", "DATABASE_URL")
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    return subprocess.Popen(
        [COMMAND, "demo", "--port", "0", *options],
        cwd=state,
        env={**inherited, "GOVERNANCE_STATE": str(state)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def tell(state: Path, *options: str) -> str:
    """Run the demo to its end; return what it told."""
    demo = start(state, *options)
    told, complaints = demo.communicate(timeout=600)
    assert (demo.returncode, complaints) == (0, ""), told
    return told


def in_order(sentences: list[str], told: str) -> bool:
    """Whether every sentence is told after the one before it."""
    place = 0
    for sentence in sentences:
        place = told.find(sentence, place) + 1
        if place == 0:
            return False
    return True


def test_it_tells_its_story_and_after_a_crash_another_to_scripts_on_the_same_state(state):
    """The whole story takes a minute: it is told once, almost to its end, and once more."""
    crashed, told = start(state), ""
    for line in crashed.stdout:
        told += line
        if LAST_CHAPTER in line:
            break
    os.killpg(crashed.pid, signal.SIGKILL)
    crashed.communicate()

    again = json.loads(tell(state, "--json"))

    assert crashed.returncode == -signal.SIGKILL
    assert in_order(SENTENCES, told)
    assert len(again["promoted"]) == 2
    assert again["refused"] == [
        "not_awaiting_approval",
        "creator_cannot_approve",
        "second_actor_required",
    ]
    assert again["retention"]["due"] == 0
    assert again["contract"]["severity"] in ("error", "critical")
    assert again["contract"]["resolved"]
    assert {"START", "FAIL", "COMPLETE"} == set(again["contract"]["lineage"])
    counts = {
        name: again["publication"][name]
        for name in ("published", "replayed", "materializations", "events")
    }
    assert counts == {"published": 1, "replayed": 2, "materializations": 1, "events": 1}
    assert (again["publication"]["actor"], again["evidence"]["holds"]) == ("pat", True)
