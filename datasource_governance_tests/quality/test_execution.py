"""A provider's process: what comes of it when it behaves badly, and what it leaves behind."""

import base64
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import pandas as pd
import pytest

from datasource_governance.domain.quality_expectation import expectations
from datasource_governance.domain.validation import Reason, Status
from datasource_governance.errors import PluginExecutionError, UnreadableSourceError
from datasource_governance_tests.builders import quality_policy, rule
from datasource_governance_tests.quality.misbehaving import TEXT, Outer, misbehaving

NUMBER = 4821736450918273645
FRAME = pd.DataFrame({"a": [TEXT, TEXT, None], "b": [NUMBER, NUMBER, None]})
ASKED = expectations(quality_policy(rule("not_null", id="first", field="a"), rule(id="second")))


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path_factory, monkeypatch):
    """Hold every run to leaving no file and no process."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.iterdir()) == []
    assert processes_of(folder) == []


def processes_of(folder):
    """Return the processes that were told a place in that folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"HOME={folder}".encode() in (process / "environ").read_bytes():
                found.append(process.name)
        except OSError:
            pass
    return found


def refusal(does, frame=FRAME, asked=ASKED, **options):
    with pytest.raises(PluginExecutionError) as raised:
        misbehaving(does, **options).execute_checks(frame, asked)
    return raised.value


def all_of(error):
    """Return what a report of an error shows, of the locals of our own functions too."""
    inner = [repr(frame.f_locals) for frame, _ in traceback.walk_tb(error.__traceback__)][2:]
    return "\n".join([str(error), repr(vars(error)), *traceback.format_exception(error), *inner])


def leaked(told):
    bait = (TEXT, base64.b64encode(TEXT.encode()).decode().rstrip("="), str(NUMBER))
    return [one for one in bait if one in told]


def test_an_answer_counts_only_where_it_is_the_only_one_and_possible():
    rules = [
        rule("not_null", id=name, field="a")
        for name in ("none", "twice", "negative", "unknown", "too many", "row beyond", "row zero",
                     "rows descend", "rows repeat", "rows short", "rows long", "fraction",
                     "row fraction", "honest", "honest without rows", "honest zero")
    ]  # fmt: skip
    asked = expectations(
        quality_policy(
            *rules,
            rule("unique", id="one duplicate", field="a"),
            rule("unique", id="two duplicates", field="a"),
            rule(id="count in rows"),
            rule(id="count in bounds"),
        )
    )
    answers = [
        ["foreign", 1, [1]],
        ["twice", 0, []],
        ["twice", 0, []],
        ["negative", -1, None],
        ["unknown", None, None],
        ["too many", 4, None],
        ["row beyond", 1, [4]],
        ["row zero", 1, [0]],
        ["rows descend", 2, [2, 1]],
        ["rows repeat", 2, [1, 1]],
        ["rows short", 2, [1]],
        ["rows long", 1, [1, 2]],
        ["fraction", 0.5, None],
        ["row fraction", 1, [1.5]],
        ["honest", 1, [3]],
        ["honest without rows", 3, None],
        ["honest zero", 0, []],
        ["one duplicate", 1, None],
        ["two duplicates", 2, [1, 2]],
        ["count in rows", 2, None],
        ["count in bounds", 0, None],
    ]

    result = misbehaving("answer", answers=answers).execute_checks(FRAME, asked)

    assert [check.id for check in result.checks] == [one.id for one in asked]
    believed = {
        check.id: (str(check.status), check.affected, check.rows)
        for check in result.checks
        if check.status is not Status.ERROR
    }
    assert believed == {
        "honest": ("failed", 1, (3,)),
        "honest without rows": ("failed", 3, None),
        "honest zero": ("passed", 0, ()),
        "two duplicates": ("failed", 2, (1, 2)),
        "count in bounds": ("passed", None, None),
    }
    others = {check.reason for check in result.checks if check.status is Status.ERROR}
    assert others == {Reason.NOT_EVALUATED}
    assert result.status is Status.ERROR


def test_cells_that_a_provider_tells_go_nowhere(capfd, caplog):
    result = misbehaving("tell").execute_checks(FRAME, ASKED)

    assert result.status is Status.PASSED
    assert not leaked(
        repr(result) + repr(result.document()) + caplog.text + "".join(capfd.readouterr())
    )


@pytest.mark.parametrize("does", ["quote", "quote_late"])
def test_what_a_provider_raises_is_replaced(does, capfd, caplog):
    error = refusal(does)

    assert error.code == "provider_failed"
    assert error.facts["pending"] == ("first", "second")
    assert error.__cause__ is None
    assert error.__context__ is None
    assert not leaked(all_of(error) + caplog.text + "".join(capfd.readouterr()))


def test_of_a_refusal_by_a_provider_only_fields_and_known_words_are_kept():
    with pytest.raises(UnreadableSourceError) as raised:
        misbehaving("refuse").execute_checks(FRAME, ASKED)

    error = raised.value
    assert [(one.kind, one.names) for one in error.problems] == [
        ("unsupported_value", ("a",)),
        ("unreadable", ()),
    ]
    assert error.__context__ is None
    assert not leaked(all_of(error))


@pytest.mark.parametrize("status", [0, 1, 3])
def test_a_process_that_ends_without_an_answer_has_failed(status):
    assert refusal("exit", status=status).code == "provider_failed"


def test_a_provider_that_takes_too_long_is_stopped_and_its_rules_are_pending():
    began = time.monotonic()

    error = refusal("sleep", timeout_seconds=2)

    assert time.monotonic() - began < 10
    assert error.code == "provider_timeout"
    assert error.facts["pending"] == ("first", "second")
    assert "after 2 s; pending: first, second" in str(error)


def test_processes_that_a_provider_starts_end_with_it():
    assert misbehaving("leave").execute_checks(FRAME, ASKED).status is Status.PASSED


def test_a_provider_that_asks_people_gets_no_answer():
    result = misbehaving("ask").execute_checks(FRAME, ASKED[:1])

    assert result.checks[0].affected == 0


def test_a_provider_has_a_folder_and_an_environment_of_its_own(monkeypatch):
    monkeypatch.setenv("FOREIGN_SECRET", TEXT)
    seen = {
        "folder empty": 1,
        "working directory": 1,
        "home": 1,
        "foreign environment": 0,
        "own environment": 1,
        "columns": 1,
        "option": 2,
    }
    asked = expectations(quality_policy(*(rule("not_null", id=one, field="a") for one in seen)))

    result = misbehaving("look", number=2, provider=Outer.Nested).execute_checks(FRAME, asked)

    assert {check.id: check.affected for check in result.checks} == seen


def test_a_run_ends_with_the_process_that_asked_for_it(tmp_path):
    script = """
import sys, tempfile
import pyarrow as pa
from datasource_governance_tests.builders import quality_policy, rule
from datasource_governance.domain.quality_expectation import expectations
from datasource_governance_tests.quality.misbehaving import misbehaving
tempfile.tempdir = sys.argv[1]
asked = expectations(quality_policy(rule("not_null", field="a")))
misbehaving("sleep").execute_checks(pa.table({"a": [1]}), asked)
"""
    asking = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    until(lambda: processes_of(tmp_path))

    asking.send_signal(signal.SIGKILL)

    assert asking.wait() == -signal.SIGKILL
    until(lambda: not processes_of(tmp_path) and not list(tmp_path.iterdir()))


def until(true):
    ends = time.monotonic() + 30
    while not true():
        assert time.monotonic() < ends
        time.sleep(0.05)


def test_a_provider_is_not_asked_about_fields_that_are_missing():
    asked = expectations(
        quality_policy(
            rule("not_null", id="gone", fields=["a", "gone"], severity="warning"),
            rule("not_null", id="there", field="a"),
        )
    )
    answers = [["gone", 0, []], ["there", 1, [3]]]

    gone, there = misbehaving("answer", answers=answers).execute_checks(FRAME, asked).checks

    assert (gone.status, gone.reason, gone.fields) == (
        Status.FAILED,
        Reason.MISSING_FIELD,
        ("gone",),
    )
    assert (there.status, there.affected) == (Status.FAILED, 1)
