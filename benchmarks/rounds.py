"""Rounds of measurements: in each, every engine once over every scenario, A B C … A B C ….

What a busy machine does to one engine it does to its neighbours of the same round, so ratios are
taken within a round, and the median of the rounds is what counts.
"""

import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.datasets import Scenario, dataset
from benchmarks.engines import ENGINES
from benchmarks.measurement import WARM_UP, Measurement
from benchmarks.results import Record

ROOT = Path(__file__).parent.parent
_TIMEOUT_SECONDS = 900
Plan = Mapping[Scenario, Sequence[str]]
"""The engines to measure, by scenario."""


def run_rounds(plan: Plan, rounds: int, tell: Callable[[str], None]) -> Iterable[Record]:
    """Generate missing datasets, then yield a record per measurement as soon as it is made.

    An engine that fails over a scenario is not tried there again.
    """
    for scenario in (WARM_UP, *plan):
        tell(f"data: {scenario.title}")
        dataset(scenario)
    failed: set[tuple[Scenario, str]] = set()
    pairs = [(scenario, engine) for scenario, engines in plan.items() for engine in engines]
    for number, (scenario, engine) in itertools.product(range(1, rounds + 1), pairs):
        if (scenario, engine) in failed:
            continue
        record = Record(scenario, engine, number, *_measured(scenario, engine))
        if record.measurement is None:
            failed.add((scenario, engine))
        tell(f"round {number} of {rounds}: {scenario.title}: {engine}: {_outcome(record)}")
        yield record


def _measured(scenario: Scenario, engine: str) -> tuple[Measurement | None, str]:
    """Return the measurement of a fresh process, or None and why there is none."""
    if missing := ENGINES[engine].missing():
        return None, missing
    arguments = [engine, scenario.variant, str(scenario.rows), str(scenario.rules)]
    try:
        ended = subprocess.run(  # noqa: S603 - our own worker
            [sys.executable, "-m", "benchmarks.worker", *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return None, f"over {_TIMEOUT_SECONDS} s"
    if ended.returncode:
        # The last line names the exception; its message may quote a path of this machine.
        last = ended.stderr.strip().splitlines()[-1:] or ["no message"]
        return None, f"exit {ended.returncode}, {last[0].partition(':')[0]}"
    return Measurement(**json.loads(ended.stdout)), ""


def _outcome(record: Record) -> str:
    if record.measurement is None:
        return record.failure
    note = f", differs: {', '.join(record.differs)}" if record.differs else ""
    return f"{record.measurement.seconds:.3f} s{note}"
