"""Children are forked from one server, which survives them and not its parent."""

import os
import select
import signal
import socket
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest

from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.sources import forked
from datasource_governance.sources.child import (
    ChildLimits,
    Content,
    Task,
    ask_child,
    decode_in_child,
)
from datasource_governance_tests.sources.refusals import kinds_and_names

HOSTILE = "datasource_governance_tests.sources.hostile"


def content(cell="1"):
    return Content(name="a.csv", stored=f"a\n{cell}\n".encode(), csv=CsvOptions())


def decoded_by(decoder, **child):
    return decode_in_child(content(), ChildLimits(**child), f"{HOSTILE}:{decoder}")


def server():
    (found,) = decoded_by("server").to_pylist()
    return found


def asked(function, descriptor, **child):
    """Ask a child that has a descriptor, which is closed here then."""
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        task = Task(function=f"{HOSTILE}:{function}", file=file, arguments={}, written_bytes=2**20)
        return ask_child("the file", task, ChildLimits(**child))


def assert_ends(descriptor):
    """Wait until nobody has the other end of a pipe any more."""
    with os.fdopen(descriptor, "rb") as file:
        assert file.read() == b""


def test_a_server_has_one_thread_nothing_of_its_parent_and_nothing_open_but_its_sockets(
    monkeypatch,
):
    monkeypatch.setenv("GOVERNANCE_DATABASE_URL", "secret")
    forked.SERVER.stop()

    found = server()

    names = {entry.partition("=")[0] for entry in found["environment"] if entry}
    assert found["threads"] == 1
    assert names == {
        *("PYTHONPATH", "ARROW_DEFAULT_MEMORY_POOL", "MALLOC_ARENA_MAX"),
        *("OPENBLAS_NUM_THREADS", "JE_ARROW_MALLOC_CONF"),
    }
    # Its own and one of the child that is asking; the pipe tells it of children that end.
    kinds = [name.partition(":")[0] for name in found["files"]]
    assert kinds == ["/dev/null", "/dev/null", "pipe", "pipe", "socket", "socket"]


@pytest.mark.parametrize("end", ["crash", "fail", "allocate"])
def test_the_death_of_a_child_is_nothing_to_its_server_and_to_the_next(end):
    before = server()["pid"]

    assert kinds_and_names(lambda: decoded_by(end, memory_bytes=2**30)) == [("decoder_died", ())]
    assert server()["pid"] == before


def test_many_threads_ask_at_once_and_each_gets_its_own_answer():
    with ThreadPoolExecutor(8) as pool:
        tables = list(pool.map(lambda cell: decode_in_child(content(cell)), range(24)))

    assert [table["a"].to_pylist() for table in tables] == [[cell] for cell in range(24)]


def test_children_run_side_by_side():
    ends = [end.detach() for end in socket.socketpair()]

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda end: asked("meet", end), ends))

    assert answers == [b"x", b"x"]


def test_a_child_takes_its_session_with_it_when_it_ends():
    theirs, ours = os.pipe()

    assert asked("leave_a_child", ours) == b"left"
    assert_ends(theirs)


def test_a_child_that_is_stopped_has_no_file_any_more():
    theirs, ours = os.pipe()

    assert kinds_and_names(lambda: asked("hang_over_a_file", ours, seconds=0.5)) == [
        ("too_slow", ())
    ]
    assert_ends(theirs)


def test_with_its_server_a_child_dies_and_another_server_serves_the_next():
    before = server()["pid"]

    assert kinds_and_names(lambda: decoded_by("kill_server")) == [("decoder_died", ())]
    assert server()["pid"] != before


def test_a_server_that_died_while_nobody_asked_is_not_missed():
    before = server()["pid"]
    os.kill(before, signal.SIGKILL)

    assert server()["pid"] != before


def test_a_server_that_does_not_answer_is_given_up(monkeypatch):
    monkeypatch.setattr(forked, "_PATIENCE_SECONDS", 0.1)
    before = server()["pid"]

    assert kinds_and_names(lambda: decoded_by("stop_server", seconds=1)) == [("too_slow", ())]
    assert server()["pid"] != before


def test_a_server_ends_when_nothing_is_asked_and_another_is_started_when_something_is(monkeypatch):
    forked.SERVER.stop()
    with monkeypatch.context() as patch:
        patch.setattr(
            forked,
            "_PROGRAM",
            forked._PROGRAM.replace(
                " fork_server.serve", " fork_server._IDLE_SECONDS = 0.5; fork_server.serve"
            ),
        )
        before = server()["pid"]
    with os.fdopen(os.pidfd_open(before)) as ended:
        select.select([ended], [], [])

    assert server()["pid"] != before


def test_no_program_that_is_started_gets_the_socket():
    server()

    assert not os.get_inheritable(forked.SERVER._control.fileno())


def program(text):
    return [
        *(sys.executable, "-c"),
        "from datasource_governance_tests.sources.test_forked import *\n" + textwrap.dedent(text),
    ]


def test_a_process_that_is_killed_leaves_neither_a_server_nor_a_child():
    theirs, ours = os.pipe()
    hang = program(f"asked('say_and_hang', {ours})")

    with subprocess.Popen(hang, pass_fds=[ours]) as process:
        os.close(ours)
        its_server = os.pidfd_open(int(os.read(theirs, 16)))
        process.kill()

    assert_ends(theirs)
    with os.fdopen(its_server) as ended:
        select.select([ended], [], [])


def test_a_process_that_was_forked_starts_a_server_of_its_own():
    forks = program("""
        before = server()["pid"]
        pid = os.fork()
        if not pid:
            os._exit(server()["pid"] == before)
        _, status = os.waitpid(pid, 0)
        print(status, server()["pid"] == before)
    """)

    printed = subprocess.run(forks, capture_output=True, text=True, check=True)

    assert (printed.stdout, printed.stderr) == ("0 True\n", "")
