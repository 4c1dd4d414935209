"""Memory of processes that this one starts, as Linux counts it."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Final

_PROCESSES: Final = Path("/proc")
_SECONDS_BETWEEN: Final = 0.05
_PARENT: Final = re.compile(r"^PPid:\s+(\d+)$", re.MULTILINE)
_PEAK: Final = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)
_KIBIBYTES_PER_MEBIBYTE: Final = 1024


class Peaks:
    """The most that each process was seen to have, in MiB, by its id."""

    def __init__(self) -> None:
        self._seen: dict[int, float] = {}

    def mib(self) -> float:
        """Return the sum over all processes, which need not have had it at once."""
        return sum(self._seen.values())

    def look(self, parent: int, but: frozenset[int]) -> None:
        """Look at all that a process has started, besides some and what those have started."""
        statuses = _statuses()
        children = _children(statuses)
        pending = [one for one in children.get(parent, ()) if one not in but]
        while pending:
            process = pending.pop()
            pending += children.get(process, ())
            # One that has ended and waits for its parent has no memory.
            if peak := _PEAK.search(statuses[process]):
                self._seen[process] = int(peak[1]) / _KIBIBYTES_PER_MEBIBYTE


@contextmanager
def watched(parent: int) -> Iterator[Peaks]:
    """Watch what a process starts meanwhile, some twenty times a second."""
    before = frozenset(_children(_statuses()).get(parent, ()))
    peaks, ended = Peaks(), Event()

    def watch() -> None:
        while not ended.wait(_SECONDS_BETWEEN):
            peaks.look(parent, before)

    thread = Thread(target=watch)
    thread.start()
    try:
        yield peaks
    finally:
        ended.set()
        thread.join()


def _statuses() -> Mapping[int, str]:
    """Return what the kernel tells of every process, by its id."""
    found = {}
    for path in _PROCESSES.glob("[0-9]*/status"):
        with suppress(OSError):
            found[int(path.parent.name)] = path.read_text()
    return found


def _children(statuses: Mapping[int, str]) -> Mapping[int, list[int]]:
    found: dict[int, list[int]] = {}
    for process, status in statuses.items():
        if parent := _PARENT.search(status):
            found.setdefault(int(parent[1]), []).append(process)
    return found
