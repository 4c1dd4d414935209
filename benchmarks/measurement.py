"""One measurement: one engine over one dataset, once, in a process of its own."""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from benchmarks import memory
from benchmarks.datasets import Dataset, Scenario, dataset
from benchmarks.engines import ENGINES, Engine
from benchmarks.evidence import differing

WARM_UP: Final = Scenario(rows=1_000, variant="dirty")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What one engine took. Seconds are of the clock on the wall; memory is in MiB.

    `baseline_mib` is resident after imports and warm-up, `peak_mib` the most of the whole process,
    loading included, `evaluating_mib` the most while the clock ran. `differs` names the rules whose
    finding is not the truth, and is None for an engine without findings.
    """

    load_seconds: float
    seconds: float
    cpu_seconds: float
    baseline_mib: float
    peak_mib: float
    evaluating_mib: float
    differs: tuple[str, ...] | None


def measure(name: str, scenario: Scenario) -> Measurement:
    """Measure an engine in this process, after a run over a tiny table that imports everything."""
    engine, measured, tiny = ENGINES[name], dataset(scenario), dataset(WARM_UP)
    engine.evaluate(engine.load(tiny.path), tiny.policy)
    gc.collect()
    return _measure(engine, measured)


def _measure(engine: Engine, measured: Dataset) -> Measurement:
    baseline = memory.resident_mib()
    memory.reset_peak()
    loaded, load_seconds, _ = _timed(lambda: engine.load(measured.path))
    gc.collect()
    loading = memory.peak_mib()
    memory.reset_peak()
    found, seconds, cpu_seconds = _timed(lambda: engine.evaluate(loaded, measured.policy))
    evaluating = memory.peak_mib()
    return Measurement(
        load_seconds=load_seconds,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        baseline_mib=baseline,
        peak_mib=max(loading, evaluating),
        evaluating_mib=evaluating,
        differs=None if found is None else differing(found, measured.truth),
    )


def _timed(work: Callable[[], Result]) -> tuple[Result, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - cpu
