"""Replay a corpus, breed from it, keep what breaks a promise."""

import hashlib
import math
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple, Protocol

CORPUS = Path(__file__).parent / "corpus"


class BrokenPromiseError(AssertionError):
    """An input for which a promise does not hold; the message says which."""


class Sample(NamedTuple):
    """One input. The suffix of its name says what it is."""

    name: str
    content: bytes


class Target(Protocol):
    """What is fuzzed."""

    @property
    def seeds(self) -> Sequence[Sample]:
        """What to start from, over and above the files of the corpus."""
        ...

    @property
    def breed(self) -> Callable[[Sample, Sequence[Sample], Random], bytes]:
        """What makes a new content of a sample and of its neighbours in the pool."""
        ...

    def check(self, sample: Sample) -> Hashable:
        """Return what became of the sample, in words that tell behaviours apart.

        Raises:
            BrokenPromiseError: a promise does not hold.
        """
        ...


@dataclass
class Report:
    """What a campaign saw. `findings` has the file with the first input of each message."""

    samples: int = 0
    outcomes: Counter[Hashable] = field(default_factory=Counter)
    findings: dict[str, Path] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [
            f"{message}\n  input: crashes/{path.name}, replayed from now on"
            for message, path in self.findings.items()
        ]
        seen = f"{self.samples} inputs, {len(self.outcomes)} kinds of outcome"
        return "\n".join([*lines, f"{seen}, {len(self.findings)} findings"])


def corpus_of(folder: Path) -> list[Sample]:
    """Return every file of a corpus, those that broke a promise once included."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name[0] != ".")
    return [Sample(path.name, path.read_bytes()) for path in paths]


def fuzz(
    target: Target, folder: Path, *, seconds: float, seed: int = 0, findings: float = math.inf
) -> Report:
    """Replay everything there is, however long it takes; then breed inputs for some seconds.

    Inputs of which something new became are bred from, too, so that a campaign gets deeper. It ends
    earlier when it has as many findings as are asked for.
    """
    report, random, pool = Report(), Random(seed), [*target.seeds, *corpus_of(folder)]
    for sample in tuple(pool):
        _judge(target, sample, report, folder)
    end = time.monotonic() + seconds
    while time.monotonic() < end and len(report.findings) < findings:
        parent = random.choice(pool)
        sample = Sample(parent.name, target.breed(parent, pool, random))
        if _judge(target, sample, report, folder):
            pool.append(sample)
    return report


def _judge(target: Target, sample: Sample, report: Report, folder: Path) -> bool:
    """Tell whether something new became of the sample."""
    report.samples += 1
    try:
        outcome = target.check(sample)
    except BrokenPromiseError as finding:
        if str(finding) not in report.findings:
            report.findings[str(finding)] = _kept(sample, folder)
        return False
    report.outcomes[outcome] += 1
    return report.outcomes[outcome] == 1


def _kept(sample: Sample, folder: Path) -> Path:
    crashes = folder / "crashes"
    crashes.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(sample.content).hexdigest()[:12]
    path = crashes / f"{digest}{Path(sample.name).suffix}"
    path.write_bytes(sample.content)
    return path
