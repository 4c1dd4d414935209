"""Ask for a child of a clean interpreter, which imports the decoders once and then only forks.

There is one such fork server for each process that asks, from its first question until it ends, or
nothing has been asked for a while. A process that was forked itself starts its own.

Source: SPEC section 3, "Hostile files".
"""

import atexit
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from threading import Lock

from datasource_governance.domain.canonical import canonical_bytes

_PROGRAM = "from datasource_governance.sources import fork_server; fork_server.serve_forks()"
_ATTEMPTS = 2
"""A server may have ended, or end just when it is asked; its successor not that soon."""
_PATIENCE_SECONDS = 10
"""How long a server may be deaf, or take to end a child, before it is ended itself."""
_STATUS_BYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What a child is forked for: a function of `child`, found by name, and its arguments.

    The server imports the modules before, once and for all; none may start a thread or read data.
    """

    life: str
    arguments: Sequence[str]
    imports: Sequence[str]


def run_forked(errand: Errand, files: Sequence[int], seconds: float) -> int | None:
    """Return the exit status of a child, or None if it ran for longer than that and was killed.

    The status is that of `subprocess`: a signal's number, negated, for a child that died of one. A
    child whose server died counts as killed. The child has the files as 0, 1, 3 and so on.
    """
    deadline = time.monotonic() + seconds
    message = canonical_bytes(asdict(errand))
    for _ in range(_ATTEMPTS):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            with theirs:
                SERVER.send(message, (theirs.fileno(), *files))
            try:
                if _heard(ours, deadline):
                    return int(_heard(ours, deadline) or -signal.SIGKILL)
            except TimeoutError:
                _give_up(ours)
                return None
    return -signal.SIGKILL


def _heard(status: socket.socket, deadline: float) -> bytes:
    """Return what the server says next about a child, or nothing if it died."""
    # Zero would mean not to wait at all, and to fail differently.
    status.settimeout(max(deadline - time.monotonic(), 0.001))
    try:
        return status.recv(_STATUS_BYTES)
    except ConnectionError:
        return b""


def _give_up(status: socket.socket) -> None:
    """Have a child killed, and wait until it is: its files are the caller's again."""
    status.shutdown(socket.SHUT_WR)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    try:
        while _heard(status, deadline):
            pass
    except TimeoutError:
        SERVER.stop()


class Server:
    """The fork server of this process, which is started when it is needed."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        # No copy of this process may hold the socket, or the server would outlive this one.
        os.register_at_fork(
            before=self._lock.acquire,
            after_in_parent=self._lock.release,
            after_in_child=self._disown,
        )
        atexit.register(self.stop)

    @property
    def pid(self) -> int | None:
        """The server's process, if one was started."""
        return None if self._process is None else self._process.pid

    def send(self, message: bytes, files: Sequence[int]) -> None:
        """Hand files over to the server, or to another where it is dead or deaf."""
        with self._lock:
            for _ in range(_ATTEMPTS):
                try:
                    socket.send_fds(self._control or self._start(), [message], files)
                except OSError:
                    self._end()
                else:
                    return

    def stop(self) -> None:
        """End the server, and with it all children."""
        with self._lock:
            self._end()

    def _start(self) -> socket.socket:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(_PATIENCE_SECONDS)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and program
                [sys.executable, "-P", "-S", "-c", _PROGRAM],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=_environment(),
                start_new_session=True,
            )
        return self._control

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._control is not None:
            self._control.close()
        self._control = self._process = None

    def _disown(self) -> None:
        if self._process is not None:
            # It is no child of this process, which could wait for it in vain.
            self._process.returncode = 0
            self._process = None
        self._end()
        self._lock.release()


SERVER = Server()
"""The one that all questions of this process go to."""


def _environment() -> dict[str, str]:
    """Return what the server needs to find this package, and nothing of what the parent has."""
    return {
        "PYTHONPATH": os.pathsep.join(os.path.abspath(place) for place in sys.path if place),  # noqa: PTH100 - links stay links
        # The default pool reserves a gigabyte of addresses, which would count as memory.
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "MALLOC_ARENA_MAX": "2",
        # Threads that libraries start when they are imported, and that no fork would have.
        "OPENBLAS_NUM_THREADS": "1",
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
    }
