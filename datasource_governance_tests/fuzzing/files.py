"""The bytes of a file: a typed table that holds what it promises, or a refusal that says no value.

Native code may end the process that it runs in, so inputs are judged in a child process, many in
one; what ends it is a finding.
"""

import multiprocessing
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from random import Random
from typing import Any

from datasource_governance_tests.fuzzing.breeding import Breed, breed_bytes, breed_text
from datasource_governance_tests.fuzzing.campaign import BrokenPromiseError, Sample
from datasource_governance_tests.fuzzing.judging import read_all_ways, serve

SECONDS = 30.0
"""When a file counts as one that hangs; on a busy machine the libraries take some to load."""
STARTING_SECONDS = 120.0

_SIGNS = (
    ",",
    ";",
    '"',
    '""',
    "\n",
    "\r",
    "\r\n",
    " ",
    "\t",
    "-",
    "+",
    "e",
    ".",
    "\u2028",
    "\ufeff",
    "é",
)
_CELLS = (
    "0",
    "007",
    "1e309",
    "9" * 40,
    ".5",
    "1.000,5",
    "NaN",
    "inf",
    "true",
    "TRUE",
    "null",
    "1_0",
)
_TIMES = ("2024-02-30", "0000-01-01", "9999-12-31", "24:00", "T23:59:60Z", "+14:00", ".123456789")
_breed_csv = breed_text([piece.encode() for piece in (*_SIGNS, *_CELLS, *_TIMES)])


def breed_file(sample: Sample, pool: Sequence[Sample], random: Random) -> bytes:
    """Damage the text of a CSV file mostly as text, since no other bytes get past its decoding."""
    is_text = sample.name.endswith(".csv") and random.random() < 0.9
    return (_breed_csv if is_text else breed_bytes)(sample, pool, random)


@dataclass
class Files:
    """The target. `judge` looks at one sample in the child; it can be exchanged for another."""

    judge: Callable[[Sample], Hashable] = read_all_ways
    seconds: float = SECONDS
    seeds: list[Sample] = field(default_factory=list)
    breed: Breed = breed_file
    _child: SpawnProcess | None = None
    _pipe: Connection | None = None

    def check(self, sample: Sample) -> Hashable:
        """Return what became of the file in each way of reading it."""
        pipe = self._pipe or self._start()
        try:
            pipe.send(sample)
            answered = pipe.poll(self.seconds)
            kept, said = pipe.recv() if answered else (False, "a file took too long")
        except (EOFError, OSError):
            answered, kept, said = False, False, self._last_words()
        if not answered:
            self.stop()
        if not kept:
            raise BrokenPromiseError(said)
        return said

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._child = context.Process(target=serve, args=(theirs, self.judge), daemon=True)
        self._child.start()
        theirs.close()
        if not self._pipe.poll(STARTING_SECONDS):
            raise RuntimeError("the judging process did not start")
        self._pipe.recv()
        return self._pipe

    def _last_words(self) -> str:
        self._child.join(self.seconds)
        return f"a file ended the process with status {self._child.exitcode}"

    def stop(self) -> None:
        """End the child, whatever it does."""
        if self._child is not None:
            self._child.kill()
            self._child.join()
            self._pipe.close()
        self._child = self._pipe = None


@contextmanager
def files(**given: Any) -> Iterator[Files]:
    """Yield the target; its child ends with the block."""
    target = Files(**given)
    try:
        yield target
    finally:
        target.stop()
