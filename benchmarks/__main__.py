"""`python -m benchmarks`: measure, and print the tables of `docs/performance.md`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from benchmarks.datasets import WIDE, Scenario, dataset
from benchmarks.engines import COMPARED, ENGINES, FRAMEWORKS, PLAIN, WIDE_ENGINES
from benchmarks.evidence import differing
from benchmarks.goals import RULE_COUNTS, SIZES, wide
from benchmarks.machine import machine
from benchmarks.register import VARIANTS
from benchmarks.results import Results, read_results
from benchmarks.rounds import Plan, run_rounds
from benchmarks.startup import measure_start_up
from benchmarks.tables import report

_DUPLICATED: Final = Scenario(SIZES[1], "duplicated")
app = typer.Typer(
    help="What validation costs, against hand-written limits and plain Pandera.",
    no_args_is_help=True,
    add_completion=False,
)
Rounds = Annotated[int, typer.Option(min=1, help="How often every engine is measured.")]
Chosen = Annotated[str, typer.Option(help="Names of engines, separated by commas; all of them.")]
Out = Annotated[Path | None, typer.Option(help="A JSON file for what was measured.")]


@app.command()
def run(
    rows: Annotated[int, typer.Option(min=40)] = 1_000_000,
    variant: Annotated[str, typer.Option(help=", ".join(VARIANTS))] = "dirty",
    rounds: Rounds = 5,
    engines: Chosen = "",
    out: Out = None,
) -> None:
    """Measure one scenario and print its tables."""
    if variant not in VARIANTS:
        raise typer.BadParameter(f"one of {', '.join(VARIANTS)}", param_hint="--variant")
    results = _measured({Scenario(rows, variant): _chosen(engines)}, rounds, out)
    _conclude(results)


@app.command(name="all")
def everything(
    out: Annotated[Path, typer.Option(help="A JSON file for what was measured.")],
    rounds: Rounds = 5,
    engines: Chosen = "",
) -> None:
    """Measure everything that the goals are about, into a JSON file; takes an hour or two."""
    chosen = _chosen(engines)
    plan: dict[Scenario, Sequence[str]] = {}
    for rows in SIZES:
        plan[Scenario(rows, "dirty")] = chosen
        for variant in ("clean", "all-failing"):
            # Plain Pandera writes out every failure, of which there are ten million twice.
            compared = COMPARED if rows == SIZES[-1] else (*COMPARED, *PLAIN)
            plan[Scenario(rows, variant)] = [one for one in chosen if one in compared]
    plan[_DUPLICATED] = [one for one in chosen if one in COMPARED]
    plan |= {wide(rules): [one for one in WIDE_ENGINES if one in chosen] for rules in RULE_COUNTS}
    results = _measured(plan, rounds, out)
    for start_up in measure_start_up(rounds):
        results.start_up.append(start_up)
    results.save(out)
    _conclude(results)


@app.command()
def table(file: Path) -> None:
    """Print the tables of results that were saved."""
    typer.echo(report(read_results(file)), nl=False)


@app.command()
def check(rows: Annotated[int, typer.Option(min=40)] = 4_000) -> None:
    """Run engines once over each variant in this process; exit 1 unless exact and all there."""
    wrong: list[str] = []
    for scenario in (*(Scenario(rows, one) for one in VARIANTS), Scenario(rows, WIDE, 50)):
        for name in _checked(scenario):
            if missing := ENGINES[name].missing():
                typer.echo(f"{scenario.title}: {name}: {missing}")
                wrong.append(name)
                continue
            differs = _differing(name, scenario)
            answer = "no findings" if differs is None else ", ".join(differs) or "exact"
            typer.echo(f"{scenario.title}: {name}: {answer}")
            wrong += (differs or ()) if ENGINES[name].exact else ()
    raise typer.Exit(bool(wrong))


def _checked(scenario: Scenario) -> Sequence[str]:
    if scenario.variant == WIDE:
        return WIDE_ENGINES
    # Every scenario costs seconds with the other frameworks, and only this one tells much.
    return [one for one in ENGINES if scenario.variant == "dirty" or one not in FRAMEWORKS]


def _differing(name: str, scenario: Scenario) -> tuple[str, ...] | None:
    measured, engine = dataset(scenario), ENGINES[name]
    found = engine.evaluate(engine.load(measured.path), measured.policy)
    return None if found is None else differing(found, measured.truth)


def _chosen(engines: str) -> Sequence[str]:
    names = [name for name in engines.split(",") if name] or list(ENGINES)
    if unknown := [name for name in names if name not in ENGINES]:
        known = ", ".join(ENGINES)
        raise typer.BadParameter(
            f"{', '.join(unknown)}: expected some of {known}", param_hint="--engines"
        )
    return names


def _measured(plan: Plan, rounds: int, out: Path | None) -> Results:
    results = Results(machine())
    for record in run_rounds(plan, rounds, lambda line: typer.echo(line, err=True)):
        results.records.append(record)
        if out is not None:
            results.save(out)
    return results


def _conclude(results: Results) -> None:
    """Print the tables; exit with 1 where evidence that has to be exact is not."""
    typer.echo(report(results), nl=False)
    wrong = results.inexact()
    for line in wrong:
        typer.echo(f"not exact: {line}", err=True)
    raise typer.Exit(bool(wrong))


if __name__ == "__main__":
    app()
