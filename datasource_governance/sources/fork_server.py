"""The process that children are forked from: a clean interpreter that has imported what they need.

It has no environment of its parent's, no terminal, no data, one thread, and nothing open but a
socket. Each message there asks for a child, whose files come with it; the first of them is a socket
on which the server says that the child began, and its exit status when it has ended. Whoever shuts
that socket down ends the child; whoever closes the other ends the server and all that it forked.

Source: SPEC section 3, "Hostile files".
"""

import ctypes
import fcntl
import gc
import importlib
import os
import resource
import selectors
import signal
import socket
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from datasource_governance.domain.canonical import load_canonical
from datasource_governance.sources import child

BEGAN = b"began"
"""Said of a child once there is one, before its exit status."""

_IDLE_SECONDS = 60
"""After so long without a child the server ends; another costs less than 1 % of that."""
_MESSAGE_BYTES, _FILES = 1 << 16, 8
_OPEN_FILES = 1024
"""What may be open here at once: a socket for each child, and all that a child has to close."""
_FAILED = 1
_PR_SET_PDEATHSIG = 1


def serve_forks() -> None:
    """Fork children as the socket on stdin asks until it is closed; the server's whole life."""
    # Both survive the start of a program, and could keep this one from hearing of its children.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if not 0 <= soft <= _OPEN_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, hard))
    with socket.socket(fileno=0) as control:
        _ForkServer(control).run()


class _ForkServer:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        # Descriptors, and no objects of which a child could close what it opens by that number.
        self._forked: dict[int, int] = {}
        self._selector = selectors.PollSelector()
        self._selector.register(control, selectors.EVENT_READ, self._take)
        woken, waker = os.pipe()
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        self._selector.register(woken, selectors.EVENT_READ, self._reap)

    def run(self) -> None:
        try:
            while ready := self._selector.select(None if self._forked else _IDLE_SECONDS):
                # One at a time, because what is done about one may close the others.
                key, _ = ready[0]
                key.data(key.fd)
        except EOFError:
            pass
        finally:
            for pid in self._forked.values():
                _kill(pid)

    def _take(self, _: int) -> None:
        """Fork the child that the next message asks for."""
        message, descriptors, *_ignored = socket.recv_fds(self._control, _MESSAGE_BYTES, _FILES)
        if not message:
            raise EOFError
        errand: Any = load_canonical(message)
        _import(errand["imports"])
        status, *files = descriptors
        server = os.getpid()
        pid = os.fork()
        if not pid:
            _live(server, errand["life"], errand["arguments"], files)
        for file in files:
            os.close(file)
        self._forked[status] = pid
        self._selector.register(status, selectors.EVENT_READ, self._stop)
        _say(status, BEGAN)

    def _stop(self, status: int) -> None:
        """End the child that nobody waits for any more."""
        self._selector.unregister(status)
        _kill(self._forked[status])

    def _reap(self, woken: int) -> None:
        """Say of each child that has ended how it did."""
        os.read(woken, _MESSAGE_BYTES)
        for status, pid in list(self._forked.items()):
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                continue
            # Its number is nobody else's until it is waited for.
            _kill(pid)
            _, ended = os.waitpid(pid, 0)
            _say(status, b"%d" % os.waitstatus_to_exitcode(ended))
            with suppress(KeyError):
                self._selector.unregister(status)
            os.close(status)
            del self._forked[status]


def _say(status: int, word: bytes) -> None:
    with suppress(OSError):
        os.write(status, word)


def _import(modules: Iterable[str]) -> None:
    if missing := [module for module in modules if module not in sys.modules]:
        for module in missing:
            importlib.import_module(module)
        # Whatever a collector touches, every child would have to copy.
        gc.collect()
        gc.freeze()


def _kill(pid: int) -> None:
    """Kill a child that was not waited for yet, and its session, which may not have begun."""
    for kill in (os.killpg, os.kill):
        with suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)


def _live(server: int, life: str, arguments: Sequence[str], files: Sequence[int]) -> NoReturn:
    status = _FAILED
    try:
        _leave(server, files)
        ended = getattr(child, life)(*arguments)
        sys.stdout.flush()
        status = ended
    finally:
        # Before anything of the server's is tidied up, or an exception printed.
        os._exit(status)


def _leave(server: int, files: Sequence[int]) -> None:
    """Make a process of its own of a copy of the server, with these files as 0, 1, 3 and so on."""
    os.setsid()
    _end_with(server)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    places = (0, 1, *range(3, len(files) + 1))
    # Out of the way first: a file may have the number that another is to get.
    free = [fcntl.fcntl(file, fcntl.F_DUPFD, len(files) + 1) for file in files]
    for file, place in zip(free, places, strict=True):
        os.dup2(file, place)
    os.closerange(max(3, len(files) + 1), _OPEN_FILES)
    # What was made for the socket believes that it is still one.
    sys.stdin = os.fdopen(0, closefd=False)


def _end_with(server: int) -> None:
    """Let the kernel kill this process when the server has died; elsewhere its alarm does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:
        os._exit(_FAILED)
