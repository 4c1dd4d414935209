"""Results as the Markdown of `docs/performance.md`."""

import itertools
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.datasets import WIDE, Scenario
from benchmarks.engines import DUCKDB, ENGINES, LIMIT, Input, yardstick
from benchmarks.goals import GOALS, RULE_COUNTS, Goal, cpu_milliseconds_per_rule, wide
from benchmarks.results import (
    Results,
    Spread,
    cpu_seconds,
    peak_mib,
    seconds,
    spread,
)

_NONE = "-"


def report(results: Results) -> str:
    """Return all tables that the results have something for, each under its heading."""
    sections = [
        ("Machine", _machine_table(results)),
        ("Goals, measured", _goal_table(results)),
        *_scenario_sections(results),
        ("Growth with rows", _growth_table(results)),
        ("Every row failing", _failing_table(results)),
        ("Further rules", _rule_table(results)),
        ("Start-up", _start_up_table(results)),
    ]
    return "\n\n".join(f"### {title}\n\n{table}" for title, table in sections if table) + "\n"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, or nothing where it would have no rows."""
    lines = [f"| {' | '.join(cells)} |" for cells in rows]
    rule = f"| {' | '.join('---' for _ in head)} |"
    return "\n".join([f"| {' | '.join(head)} |", rule, *lines]) if lines else ""


def _machine_table(results: Results) -> str:
    return markdown(("what", "which"), results.machine)


def _goal_table(results: Results) -> str:
    measured = [(goal, goal.measured(results)) for goal in GOALS]
    rows = [_goal_row(goal, found) for goal, found in measured if found]
    return markdown(("goal", "bound", "measured", "met"), rows)


def _goal_row(goal: Goal, found: Spread) -> tuple[str, ...]:
    bound = f"{'≥' if goal.at_least else '≤'} {goal.bound:g}"
    return goal.title, bound, spread_text(found), "yes" if goal.met(found) else "no"


def _scenario_sections(results: Results) -> Iterable[tuple[str, str]]:
    for scenario in results.scenarios():
        if scenario.variant == WIDE:
            continue
        for name, start in ((Input.FRAME, "loaded data"), (Input.FILE, "from Parquet")):
            engines = [one for one in results.engines(scenario) if ENGINES[one].input is name]
            title = f"{scenario.rows:,} rows, {scenario.variant}, {start}"
            yield title, _scenario_table(results, scenario, engines)


def _scenario_table(results: Results, scenario: Scenario, engines: Sequence[str]) -> str:
    head = (
        "engine",
        "seconds",
        "to hand-written Polars",
        "to hand-written DuckDB",
        "CPU s",
        "CPU to hand-written Polars",
        "load s",
        "peak MiB",
        "above imports MiB",
        "evidence",
    )
    return markdown(head, [_scenario_row(results, scenario, engine) for engine in engines])


def _scenario_row(results: Results, scenario: Scenario, engine: str) -> tuple[str, ...]:
    series = (scenario, engine)
    limit, duckdb = ((scenario, yardstick(engine, of)) for of in (LIMIT, DUCKDB))
    return (
        f"{ENGINES[engine].title} (`{engine}`)",
        spread_text(results.spread(series, seconds), 3),
        spread_text(results.ratio(series, limit)),
        spread_text(results.ratio(series, duckdb)),
        _median(results.spread(series, cpu_seconds), 3),
        spread_text(results.ratio(series, limit, cpu_seconds)),
        _median(results.spread(series, lambda one: one.load_seconds)),
        _median(results.spread(series, peak_mib), 0),
        _median(results.spread(series, lambda one: one.peak_mib - one.baseline_mib), 0),
        _evidence(results, scenario, engine),
    )


def _evidence(results: Results, scenario: Scenario, engine: str) -> str:
    measured = list(results.of((scenario, engine)).values())
    if not measured:
        return f"failed: {results.failure((scenario, engine))}"
    if any(one.differs is None for one in measured):
        return _NONE
    differs = sorted({rule for one in measured for rule in one.differs or ()})
    return f"differs: {', '.join(differs)}" if differs else f"exact, {len(measured)} rounds"


def _growth_table(results: Results) -> str:
    steps = {
        f"{fewer:,} to {more:,} rows": (Scenario(more, "dirty"), Scenario(fewer, "dirty"))
        for fewer, more in itertools.pairwise(_sizes(results, "dirty"))
    }
    return _comparison(results, steps)


def _failing_table(results: Results) -> str:
    pairs = {
        f"{rows:,} rows": (Scenario(rows, "all-failing"), Scenario(rows, "clean"))
        for rows in _sizes(results, "all-failing")
    }
    return _comparison(results, pairs)


def _sizes(results: Results, variant: str) -> list[int]:
    return sorted({one.rows for one in results.scenarios() if one.variant == variant})


def _comparison(results: Results, columns: Mapping[str, tuple[Scenario, Scenario]]) -> str:
    """Return for every engine the ratio of its seconds over two scenarios, one column per pair."""
    engines = dict.fromkeys(
        engine for measured, _ in columns.values() for engine in results.engines(measured)
    )
    rows = [
        (
            f"`{engine}`",
            *(
                spread_text(results.ratio((measured, engine), (to, engine)))
                for measured, to in columns.values()
            ),
        )
        for engine in engines
    ]
    return markdown(("engine", *columns), rows)


def _rule_table(results: Results) -> str:
    few, some, many = RULE_COUNTS
    head = (
        "engine",
        *(f"CPU s, {rules} rules" for rules in RULE_COUNTS),
        f"CPU ms per rule, {few} to {some}",
        f"CPU ms per rule, {some} to {many}",
        "evidence",
    )
    rows = [
        (
            f"`{engine}`",
            *(
                _median(results.spread((wide(rules), engine), cpu_seconds), 3)
                for rules in RULE_COUNTS
            ),
            spread_text(cpu_milliseconds_per_rule(results, engine, few, some)),
            spread_text(cpu_milliseconds_per_rule(results, engine, some, many)),
            _evidence(results, wide(many), engine),
        )
        for engine in results.engines(wide(many))
    ]
    return markdown(head, rows)


def _start_up_table(results: Results) -> str:
    measured = results.start_up
    if not measured:
        return ""
    rows = [
        ("the interpreter alone, s", spread_text(spread([one.interpreter for one in measured]))),
        ("`validate` over 1,000 rows, s", spread_text(spread([one.command for one in measured]))),
        ("of that, importing", spread_text(spread([one.importing_share for one in measured]))),
    ]
    return markdown(("what", f"median of {len(measured)}"), rows)


def spread_text(found: Spread | None, digits: int = 2) -> str:
    """Return a median with the least and the greatest value in brackets."""
    if found is None:
        return _NONE
    median, least, greatest = (f"{number:.{digits}f}" for number in found)
    return f"{median} ({least} to {greatest})"


def _median(found: Spread | None, digits: int = 2) -> str:
    return _NONE if found is None else f"{found.median:.{digits}f}"
