"""Decoders that do what a hostile file might make a real one do, run in a child process."""

import os
import resource
import signal
import sys
import time
from pathlib import Path

import pyarrow as pa

from datasource_governance.sources.refusal import refused
from datasource_governance_tests.sources.refusals import CANARY


def hang(_content):
    time.sleep(600)


def burn(_content):
    while True:
        pass


def crash(_content):
    sys.stdout.buffer.write(CANARY.encode())
    os.kill(os.getpid(), signal.SIGSEGV)


def fail(content):
    raise ValueError(content.stored)


def allocate(_content):
    return pa.table({"b": [bytes(2**31)]})


def flood(_content):
    sys.stdout.buffer.write(bytes(2**24))


def answer_nonsense(_content):
    sys.stdout.buffer.write(CANARY.encode())
    sys.stdout.flush()
    os._exit(0)


def answer_nonsense_as_problems(_content):
    sys.stdout.buffer.write(b'[{"kind": "x"}]')
    sys.stdout.flush()
    os._exit(3)


def surroundings(_content):
    """Tell what the child has: its environment, open files, and what it may not do."""
    return pa.table(
        {
            "environment": [sorted(os.environ)],
            "files": [sorted(os.listdir("/proc/self/fd"))],  # noqa: PTH208 - their names
            "terminal": [os.isatty(0)],
            "session": [os.getsid(0) == os.getpid()],
            "core": [Path("/proc/self/limits").read_text().split("core file size")[1].split()[0]],
            "memory": [resource.getrlimit(resource.RLIMIT_AS)[0]],
            "processor": [resource.getrlimit(resource.RLIMIT_CPU)[0]],
            "opened": [resource.getrlimit(resource.RLIMIT_NOFILE)[1]],
            "alarm": [signal.alarm(0)],
        }
    )


def server(_content):
    """Tell of the process that this one was forked from."""
    process = Path("/proc") / str(os.getppid())
    return pa.table(
        {
            "pid": [os.getppid()],
            "threads": [len(list((process / "task").iterdir()))],
            "environment": [(process / "environ").read_text().split("\0")],
            "files": [sorted(str(file.readlink()) for file in (process / "fd").iterdir())],
        }
    )


def kill_server(_content):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)


def stop_server(_content):
    os.kill(os.getppid(), signal.SIGSTOP)
    time.sleep(600)


def leave_a_child(file, _arguments, answer):
    """Leave a process behind that has the file open, of the same session."""
    if not os.fork():
        time.sleep(600)
    answer.write(b"left")


def meet(file, _arguments, answer):
    """Send a word through a socket and wait for the one of whoever has the other end."""
    os.write(file.fileno(), b"x")
    answer.write(os.read(file.fileno(), 1))


def say_and_hang(file, _arguments, _answer):
    """Say which process this one was forked from, in 16 bytes."""
    os.write(file.fileno(), b"%16d" % os.getppid())
    time.sleep(600)


def echo(file, arguments, answer):
    """Answer with what the child was given."""
    file.seek(0)
    answer.write(file.read() + str(arguments["more"]).encode())


def hang_over_a_file(_file, _arguments, _answer):
    time.sleep(600)


def write_much(_file, _arguments, answer):
    answer.write(bytes(2**20))


def refuse(_file, _arguments, _answer):
    raise refused("content", "too_large", "as it was told", "a", "b")


def raise_what_it_read(file, _arguments, _answer):
    file.seek(0)
    raise ValueError(file.read())


def date_back(path: Path, before: os.stat_result) -> None:
    """Let a file look as if nobody had written to it since, as whoever owns it may."""
    while True:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        # The clock of a file system ticks every few milliseconds.
        if path.stat().st_ctime_ns != before.st_ctime_ns:
            return
