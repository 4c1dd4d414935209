"""Child processes that do not outlive this one, and locks that do not either.

`spawn` runs the command through this very file, as a script, so that what has to happen between
fork and exec needs no `preexec_fn`, which may deadlock a process that has threads. Therefore the
standard library only.
"""

import ctypes
import fcntl
import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def spawn(
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str],
    log: Path,
    account: pwd.struct_passwd | None = None,
    on_parent_death: signal.Signals = signal.SIGTERM,
) -> subprocess.Popen[bytes]:
    """Start `command` in a session of its own, with stdin closed and all output appended to `log`.

    The session keeps a terminal's Ctrl-C away from it; SIGINT and SIGTERM have their default
    meaning, whatever this process ignores. On Linux the child gets `on_parent_death` when the
    thread that called this ends, even by SIGKILL; elsewhere only a clean stop ends it. With an
    `account` (root only) it runs as that user, without further groups, in `/`. A command that
    cannot be executed ends at once with a status other than 0, its reason in `log`.
    """
    owner = (str(account.pw_uid), str(account.pw_gid)) if account else ("", "")
    launcher = (sys.executable, "-I", "-S", __file__, str(os.getpid()), str(int(on_parent_death)))
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        return subprocess.Popen(  # noqa: S603  callers build the command from their own constants
            [*launcher, *owner, *map(str, command)],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    finally:
        os.close(output)


def try_lock(path: Path) -> int | None:
    """Return a descriptor that holds `path`'s lock until it is closed; None if another has it.

    The lock goes with the process, however it ends; children do not inherit it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _become(parent: str, death_signal: str, uid: str, gid: str, *command: str) -> None:
    if uid:
        os.setgroups([])
        os.setgid(int(gid))
        os.setuid(int(uid))
        os.chdir("/")
    if sys.platform == "linux":
        # After the change of user, which clears it. A parent that died before has no one to tell.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(death_signal))
        if os.getppid() != int(parent):
            sys.exit(1)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.execvp(command[0], command)  # noqa: S606  a shell in between would get the signals


if __name__ == "__main__":
    _become(*sys.argv[1:])
