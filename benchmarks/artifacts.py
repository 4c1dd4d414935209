"""What publishing an artifact costs, beside a plain `write_parquet`, a hash and validation.

`python -m benchmarks.artifacts [ROWS]` takes a Polars frame of the register without violations
(default 10,000,000 rows) and measures, each in a process of its own, in rounds A B C … A B C …:

- `plain`: `write_parquet`, SHA-256 of the file, validation of the frame; nothing is governed.
- `frame`: the frame is written into an artifact, which is published with evidence about the frame.
- `lazy`: a LazyFrame over the file is published, written in batches and never whole in memory; the
  evidence is produced from the same LazyFrame.
- `asset`: the same as `frame`, from a governed asset that Dagster runs in its process.

What is published is verified, judged by its evidence, and recorded on a server that waits for disk.
"""

import dataclasses
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final

import typer

from benchmarks import memory
from benchmarks.datasets import Dataset, Scenario, dataset
from benchmarks.servers import Served, found_publishing, published, served
from datasource_governance import producer_evidence, validate
from datasource_governance.composition import Application, read_settings
from datasource_governance.domain.canonical import Sha256, canonical_bytes
from datasource_governance.domain.producer_evidence import ProducerEvidence
from datasource_governance.services.publishing import PublicationRequest

if TYPE_CHECKING:
    import polars as pl

GOAL: Final = 1.5
_WARM_UP: Final = Scenario(1_000, "clean")
_DATASOURCE: Final = "measured"
_QUIET: Final = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}
_LINE: Final = "{:<9} {:>10} {:>10} {:>10}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Seconds on the wall and of the processor, and the most MiB that the process had."""

    seconds: float
    cpu_seconds: float
    peak_mib: float


def plain(_: Application, measured: Dataset) -> None:
    """Write a file, hash it, and validate the frame."""
    import polars as pl

    frame = pl.read_parquet(measured.path)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plain.parquet"
        frame.write_parquet(path)
        with path.open("rb") as file:
            hashlib.file_digest(file, "sha256")
    validate(measured.policy, frame)


def frame(application: Application, measured: Dataset) -> None:
    """Publish a frame as an artifact, with evidence."""
    import polars as pl

    _publish(application, measured, *_writing(pl.read_parquet(measured.path)))


def lazy(application: Application, measured: Dataset) -> None:
    """Publish a LazyFrame as an artifact, with evidence."""
    import polars as pl

    rows = pl.scan_parquet(measured.path)
    _publish(application, measured, rows, rows.sink_parquet)


def _writing(rows: "pl.DataFrame") -> tuple["pl.DataFrame", Callable[[BinaryIO], object]]:
    return rows, rows.write_parquet


def _publish(
    application: Application,
    measured: Dataset,
    rows: object,
    write: Callable[[BinaryIO], object],
) -> None:
    outlet = application.outlet()
    reference = outlet.store(_DATASOURCE, write)
    evidence = producer_evidence(measured.policy, rows, reference.sha256)
    request = PublicationRequest(
        producer="benchmark",
        idempotency_key=str(time.time_ns()),
        datasource=_DATASOURCE,
        evidence=evidence,
    )
    _check_current(outlet.publish(reference, request).publication.state.is_current)


def asset(application: Application, measured: Dataset) -> None:
    """Publish a frame from a governed asset."""
    import dagster as dg
    import polars as pl

    from datasource_governance import GovernedOutput, governed_asset, governed_definitions

    declared = published(_DATASOURCE, json.loads(measured.policy.canonical))

    @governed_asset(datasource=declared)
    def register() -> GovernedOutput:
        rows, write = _writing(pl.read_parquet(measured.path))

        def evidence(sha256: str) -> ProducerEvidence:
            return producer_evidence(measured.policy, rows, Sha256(sha256))

        return GovernedOutput(write, evidence=evidence)

    definitions = governed_definitions([declared], application, producers=[register])
    job = definitions.resolve_job_def(f"publish_{_DATASOURCE}")
    with dg.DagsterInstance.ephemeral() as instance:
        run = job.execute_in_process(run_config=_QUIET, instance=instance)
        _check_current(run.success)


def _check_current(is_current: bool) -> None:  # noqa: FBT001 - it is all that there is to say
    if not is_current:
        raise typer.Exit(1)


WAYS: Final[Mapping[str, Callable[[Application, Dataset], None]]] = {
    "plain": plain,
    "frame": frame,
    "lazy": lazy,
    "asset": asset,
}


def measure(way: str, rows: int) -> Measured:
    """Measure one way in this process, after a run over few rows that imports everything."""
    run = WAYS[way]
    with closing(Application(read_settings())) as application:
        run(application, dataset(_WARM_UP))
        measured = dataset(Scenario(rows, "clean"))
        memory.reset_peak()
        began, cpu_began = time.perf_counter(), time.process_time()
        run(application, measured)
        return Measured(
            seconds=time.perf_counter() - began,
            cpu_seconds=time.process_time() - cpu_began,
            peak_mib=memory.peak_mib(),
        )


def _in_a_process(server: Served, way: str, rows: int) -> Measured:
    ended = subprocess.run(  # noqa: S603 - our own worker
        [sys.executable, "-m", "benchmarks.artifacts", str(rows), "--only", way],
        stdout=subprocess.PIPE,
        check=True,
        env={
            **os.environ,
            "GOVERNANCE_DATABASE_URL": server.connections.governance_url,
            "GOVERNANCE_STATE": str(server.settings.state),
        },
    )
    return Measured(**json.loads(ended.stdout.splitlines()[-1]))


def main(
    rows: Annotated[int, typer.Argument(min=40)] = 10_000_000,
    rounds: Annotated[int, typer.Option(min=1, help="How often each way is measured.")] = 3,
    only: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    """Measure all ways and print medians; a ratio is taken within a round."""
    if only:
        found = dataclasses.asdict(measure(only, rows))
        sys.stdout.write("\n" + canonical_bytes(found).decode())
        return
    policy = dataset(Scenario(rows, "clean")).policy
    with served() as server:
        found_publishing(server, [published(_DATASOURCE, json.loads(policy.canonical))])
        measured = [{way: _in_a_process(server, way, rows) for way in WAYS} for _ in range(rounds)]
    typer.echo(_LINE.format("way", "seconds", "CPU s", "peak MiB"))
    for way in WAYS:
        typer.echo(_line(way, [one[way] for one in measured]))
    for way in [way for way in WAYS if way != "plain"]:
        on_the_wall = [one[way].seconds / one["plain"].seconds for one in measured]
        of_cpu = [one[way].cpu_seconds / one["plain"].cpu_seconds for one in measured]
        typer.echo(f"{way} to plain: {_spread(on_the_wall)}; CPU: {_spread(of_cpu)}")
    typer.echo(f"goal: each to plain at most {GOAL}")


def _spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def _line(way: str, measured: list[Measured]) -> str:
    seconds = statistics.median(one.seconds for one in measured)
    cpu = statistics.median(one.cpu_seconds for one in measured)
    peak = statistics.median(one.peak_mib for one in measured)
    return _LINE.format(way, f"{seconds:.2f}", f"{cpu:.2f}", f"{peak:.0f}")


if __name__ == "__main__":
    typer.run(main)
