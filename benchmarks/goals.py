"""The goals: ratios that have to hold in one run on one machine, whatever the machine.

A goal speaks about the series of one run; where the run lacks them, it says nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from benchmarks.datasets import WIDE, Scenario
from benchmarks.engines import ENGINES, LIMIT
from benchmarks.ours import MEMORY_BYTES
from benchmarks.results import Results, Series, Spread, Value, peak_mib, seconds, spread

SIZES: Final = (100_000, 1_000_000, 10_000_000)
MILLION: Final = SIZES[1]
TEN_MILLION: Final = SIZES[2]
WIDE_ROWS: Final = 100_000
RULE_COUNTS: Final = (10, 100, 500)


@dataclass(frozen=True, slots=True)
class Goal:
    """What is promised, the bound on it, and how it is read from results.

    `at_least` tells that more is better; otherwise the bound is the most.
    """

    title: str
    bound: float
    measured: Callable[[Results], Spread | None]
    at_least: bool = False

    def met(self, found: Spread) -> bool:
        """Tell whether the median keeps the bound."""
        return found.median >= self.bound if self.at_least else found.median <= self.bound


def dirty(rows: int) -> Scenario:
    """Return the scenario in which 0.1% of the rows violate each rule."""
    return Scenario(rows, "dirty")


def wide(rules: int) -> Scenario:
    """Return the scenario of 500 columns with so many rules."""
    return Scenario(WIDE_ROWS, WIDE, rules)


def cpu_milliseconds_per_rule(
    results: Results, engine: str, fewer: int, more: int
) -> Spread | None:
    """Return the CPU milliseconds that each rule further than the fewer ones costs."""
    few, many = results.of((wide(fewer), engine)), results.of((wide(more), engine))
    return spread(
        [
            (many[number].cpu_seconds - few[number].cpu_seconds) / (more - fewer) * 1e3
            for number in sorted(few.keys() & many.keys())
        ]
    )


def _ratio(
    series: Series, to: Series, value: Value = seconds
) -> Callable[[Results], Spread | None]:
    return lambda results: results.ratio(series, to, value)


def _within(engine: str, limit: str, rows: int, bound: float, title: str) -> Goal:
    return Goal(
        f"{title}, {rows:,} rows", bound, _ratio((dirty(rows), engine), (dirty(rows), limit))
    )


def _growth(engine: str, fewer: int, more: int) -> Goal:
    measured = _ratio((dirty(more), engine), (dirty(fewer), engine))
    return Goal(f"{fewer:,} to {more:,} rows, `{engine}`", 11, measured)


def _all_failing(engine: str, rows: int) -> Goal:
    failing, clean = Scenario(rows, "all-failing"), Scenario(rows, "clean")
    measured = _ratio((failing, engine), (clean, engine))
    return Goal(f"every row failing to none failing, {rows:,} rows, `{engine}`", 1.5, measured)


def _per_rule(engine: str) -> Goal:
    return Goal(
        f"CPU ms per further rule, 10 to 500 rules, `{engine}`",
        0.5,
        lambda results: cpu_milliseconds_per_rule(results, engine, 10, 500),
    )


def _of_the_setting(rows: int) -> Goal:
    def measured(results: Results) -> Spread | None:
        found = results.of((dirty(rows), "ours_batches")).values()
        return spread([(one.peak_mib - one.baseline_mib) * 2**20 / MEMORY_BYTES for one in found])

    return Goal(f"memory in batches to its setting, besides libraries, {rows:,} rows", 1, measured)


def _beside(framework: str, bound: float) -> Goal:
    series = (dirty(TEN_MILLION), framework), (dirty(TEN_MILLION), "ours_pandas")
    title = f"{ENGINES[framework].title} to us on pandas, {TEN_MILLION:,} rows"
    return Goal(title, bound, _ratio(*series), at_least=True)


OURS: Final = ("ours_polars", "ours_pandas")
GOALS: Final = (
    *(
        _within("ours_polars", LIMIT, rows, 1.15, "Polars to hand-written Polars")
        for rows in (MILLION, TEN_MILLION)
    ),
    *(
        _within("ours_pandas", LIMIT, rows, 1.5, "pandas, Arrow dtypes, to hand-written Polars")
        for rows in (MILLION, TEN_MILLION)
    ),
    Goal(
        f"plain Pandera to us, pandas, {TEN_MILLION:,} rows",
        8,
        _ratio((dirty(TEN_MILLION), "plain_pandas"), (dirty(TEN_MILLION), "ours_pandas")),
        at_least=True,
    ),
    _beside("plain_gx", 8),
    _beside("plain_soda", 3),
    _beside("plain_dbt", 3),
    *(
        _within("ours_scan", f"{LIMIT}_file", rows, 1.1, "from Parquet to hand-written scan")
        for rows in (MILLION, TEN_MILLION)
    ),
    Goal(
        f"peak memory to hand-written Polars, {TEN_MILLION:,} rows",
        1.3,
        _ratio((dirty(TEN_MILLION), "ours_polars"), (dirty(TEN_MILLION), LIMIT), peak_mib),
    ),
    _of_the_setting(TEN_MILLION),
    *(_growth(engine, MILLION, TEN_MILLION) for engine in OURS),
    *(_all_failing(engine, rows) for engine in OURS for rows in (MILLION, TEN_MILLION)),
    *(_per_rule(engine) for engine in OURS),
    *(
        _within("ours_fingerprint", "ours_pandas", rows, 1.3, "content fingerprint to validation")
        for rows in (MILLION, TEN_MILLION)
    ),
)
