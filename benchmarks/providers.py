"""What a quality provider costs: importing its framework, and running checks through the plugin.

`python -m benchmarks.providers [ROWS]` takes the register with violations (default 1,000,000 rows)
as a pandas frame and as a table of a Postgres server of its own, and lets every provider run the
rules about rows, in rounds A B C … A B C …. A run is a process that the plugin starts, so what it
imports counts. Memory is that of this process and of those that it starts, as dbt is one, each at
its most; what Postgres takes for itself is in the seconds only.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Final

import typer

from benchmarks.datasets import Dataset, Scenario, dataset
from benchmarks.evidence import Findings
from benchmarks.ours import load_pandas
from benchmarks.processes import watched
from benchmarks.results import Spread, spread
from benchmarks.tables import markdown, spread_text
from datasource_governance.domain.quality_check import QualityCheckResult
from datasource_governance.domain.quality_expectation import QualityExpectation, expectations
from datasource_governance.domain.rule_outcome import Status
from datasource_governance.errors import PluginExecutionError
from datasource_governance.persistence.administration import administrative_url, connect
from datasource_governance.persistence.embedded import EmbeddedPostgres
from datasource_governance.quality.plugin import DataQualityPlugin
from datasource_governance.quality.registry import provider
from datasource_governance.sources.sql.read import SqlSource

NATIVE: Final = "pandera"
IMPORTS: Final[Mapping[str, Sequence[str]]] = {
    NATIVE: ("pandera.pandas",),
    "great_expectations": ("great_expectations",),
    "soda": ("soda_core.contracts.contract_verification", "soda_postgres", "soda_duckdb"),
    "dbt": ("dbt.cli.main", "dbt.adapters.postgres", "dbt.adapters.duckdb"),
}
"""What the framework of a provider is to Python."""
_TABLE: Final = "register"
_CREATE: Final = f"""
create table {_TABLE} (
    id bigint, status text, amount float8, customer_id text, created_at timestamp, region text,
    note text, quantity bigint
)
"""
_SCRIPT: Final = """
import importlib, json, sys, time
before, began, cpu_began = len(sys.modules), time.perf_counter(), time.process_time()
for name in sys.argv[1:]:
    importlib.import_module(name)
seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
print("\\n" + json.dumps([seconds, cpu_seconds, len(sys.modules) - before]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """Seconds on the wall and of the processor in a fresh interpreter, and modules that came in."""

    seconds: float
    cpu_seconds: float
    modules: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a run of checks took, from the call to its result; `differs` are rules found wrong."""

    seconds: float
    cpu_seconds: float
    peak_mib: float
    differs: tuple[str, ...]
    has_rows: bool


def measure_import(plugin: DataQualityPlugin) -> Imported:
    """Import a provider's framework in a process of its own, with its telemetry off."""
    ended = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", _SCRIPT, *IMPORTS[plugin.name]],
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, **plugin.environment},
    )
    seconds, cpu_seconds, modules = json.loads(ended.stdout.splitlines()[-1])
    return Imported(seconds=seconds, cpu_seconds=cpu_seconds, modules=modules)


def measure_run(
    plugin: DataQualityPlugin,
    connection: object,
    asked: Sequence[QualityExpectation],
    truth: Findings,
) -> Ran:
    """Run checks, and compare what they find with what is there."""
    with watched(os.getpid()) as peaks:
        began, cpu_began = time.perf_counter(), _cpu_seconds()
        result = plugin.execute_checks(connection, asked)
        seconds, cpu_seconds = time.perf_counter() - began, _cpu_seconds() - cpu_began
    return Ran(
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        peak_mib=peaks.mib(),
        differs=tuple(_differing(result, truth)),
        has_rows=any(check.rows for check in result.checks),
    )


def _cpu_seconds() -> float:
    """Return what this process and those that it started and that have ended took."""
    taken = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in taken)


def _differing(result: QualityCheckResult, truth: Findings) -> Iterator[str]:
    for check in result.checks:
        expected = truth[check.id]
        found = (check.status, check.affected or 0)
        status = Status.PASSED if expected.passed else Status.FAILED
        if found != (status, expected.affected) or (check.rows or expected.rows) != expected.rows:
            yield check.id


@contextmanager
def _postgres(measured: Dataset) -> Iterator[SqlSource]:
    """Run a server with the dataset in a table."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    written = pa.BufferOutputStream()
    pyarrow.csv.write_csv(pq.read_table(measured.path), written)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)  # the server may run as another user
        with EmbeddedPostgres.start(Path(folder) / "postgres") as server:
            with connect(administrative_url(server.url)) as connection:
                connection.execute(_CREATE)
                with connection.cursor().copy(
                    f"copy {_TABLE} from stdin (format csv, header)"
                ) as to:
                    to.write(memoryview(written.getvalue()))
                connection.autocommit = True
                connection.execute(f"vacuum analyze {_TABLE}")
            url = administrative_url(server.url).render_as_string(hide_password=False)
            yield SqlSource(url, table=_TABLE)


def _imports(plugins: Sequence[DataQualityPlugin], rounds: int) -> Mapping[str, Sequence[Imported]]:
    found: dict[str, list[Imported]] = {plugin.name: [] for plugin in plugins}
    for _ in range(rounds):
        for plugin in plugins:
            found[plugin.name].append(measure_import(plugin))
    return found


def _runs(
    plugins: Sequence[DataQualityPlugin], measured: Dataset, rounds: int
) -> Mapping[tuple[str, str], Sequence[Ran]]:
    """Return the runs of every provider by what they read."""
    asked = expectations(measured.policy)
    found: dict[tuple[str, str], list[Ran]] = {}
    with _postgres(measured) as table:
        connections = {"pandas": load_pandas(measured.path), "Postgres": table}
        for _, (reads, connection), plugin in product(range(rounds), connections.items(), plugins):
            ran = measure_run(plugin, connection, asked, measured.truth)
            found.setdefault((reads, plugin.name), []).append(ran)
    return found


def _echo_imports(imported: Mapping[str, Sequence[Imported]]) -> None:
    rows = [
        (
            f"`{name}`",
            ", ".join(f"`{module}`" for module in IMPORTS[name]),
            spread_text(spread([one.seconds for one in found])),
            spread_text(spread([one.cpu_seconds for one in found])),
            f"{found[0].modules:,}",
        )
        for name, found in imported.items()
    ]
    typer.echo(markdown(("provider", "imports", "seconds", "CPU s", "modules"), rows))


def _echo_runs(ran: Mapping[tuple[str, str], Sequence[Ran]]) -> None:
    head = ("reads", "provider", "seconds", "to `pandera`", "CPU s", "peak MiB", "evidence")
    rows = [
        (
            reads,
            f"`{name}`",
            spread_text(spread([one.seconds for one in found])),
            spread_text(_ratio(found, ran.get((reads, NATIVE), ()))),
            spread_text(spread([one.cpu_seconds for one in found])),
            spread_text(spread([one.peak_mib for one in found]), 0),
            _evidence(found),
        )
        for (reads, name), found in ran.items()
    ]
    typer.echo(markdown(head, rows))


def _ratio(these: Sequence[Ran], to: Sequence[Ran]) -> Spread | None:
    """Return the ratios of seconds within each round; None where the native one did not run."""
    pairs = zip(these, to, strict=False)
    return spread([one.seconds / native.seconds for one, native in pairs])


def _evidence(found: Sequence[Ran]) -> str:
    if differs := sorted({rule for one in found for rule in one.differs}):
        return f"differs: {', '.join(differs)}"
    return "exact, with rows" if all(one.has_rows for one in found) else "exact counts"


def _installed(name: str) -> DataQualityPlugin | None:
    """Return a provider, or tell what it lacks."""
    plugin = provider(name)
    try:
        _ = plugin.version
    except PluginExecutionError as error:
        typer.echo(str(error), err=True)
        return None
    return plugin


def main(
    rows: Annotated[int, typer.Argument(min=40)] = 1_000_000,
    rounds: Annotated[int, typer.Option(min=1, help="How often everything is measured.")] = 3,
    providers: Annotated[str, typer.Option(help="Names, separated by commas; all of them.")] = "",
) -> None:
    """Print medians as tables; exit with 1 for a wrong count or a framework that is missing."""
    chosen = [name for name in providers.split(",") if name] or [*IMPORTS]
    if unknown := [name for name in chosen if name not in IMPORTS]:
        message = f"{', '.join(unknown)}: expected some of {', '.join(IMPORTS)}"
        raise typer.BadParameter(message, param_hint="--providers")
    plugins = [plugin for name in chosen if (plugin := _installed(name)) is not None]
    typer.echo(f"{rows:,} rows, {rounds} rounds\n")
    _echo_imports(_imports(plugins, rounds))
    ran = _runs(plugins, dataset(Scenario(rows, "dirty")), rounds)
    typer.echo()
    _echo_runs(ran)
    wrong = any(one.differs for found in ran.values() for one in found)
    raise typer.Exit(wrong or len(plugins) < len(chosen))


if __name__ == "__main__":
    typer.run(main)
