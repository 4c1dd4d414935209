"""What an artifact costs a producer, beside a plain `write_parquet` and a hash of the file.

`python -m benchmarks.artifacts [ROWS]` takes a Polars frame of the register (default 10,000,000
rows) and measures three ways, each in a process of its own, in rounds A B C … A B C …:

- `plain`: `write_parquet`, SHA-256 of the file, validation of the frame.
- `artifact`: the same through `store_artifact` and `producer_evidence`, and the verification with
  which a publication begins.
- `here`: an artifact that is validated after it was verified, in batches, instead of evidence.
"""

import dataclasses
import hashlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from benchmarks import memory
from benchmarks.datasets import Dataset, Scenario, dataset
from benchmarks.measurement import WARM_UP
from datasource_governance import producer_evidence, validate
from datasource_governance.artifacts.local import LocalArtifacts
from datasource_governance.domain.artifact import ArtifactReference, MediaType
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.evaluation.artifacts import ArtifactReader
from datasource_governance.services.artifacts import (
    ArtifactRequest,
    VerifiedArtifact,
    store_artifact,
    verified_artifact,
)

if TYPE_CHECKING:
    import polars as pl

GOAL: Final = 1.5
_TENANT: Final = "default"
_DATASOURCE: Final = "measured"
_LINE: Final = "{:<9} {:>9} {:>10} {:>9} {:>9} {:>10}"
_READER: Final = ArtifactReader()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Seconds on the wall by part, and the most MiB that the process had, its children apart."""

    write: float
    validate: float
    verify: float
    peak_mib: float

    @property
    def seconds(self) -> float:
        """All parts together."""
        return self.write + self.validate + self.verify


Parts = Mapping[str, float]


def plain(frame: "pl.DataFrame", measured: Dataset, folder: Path) -> Parts:
    """Write a file, hash it, and validate the frame."""
    clock = _Clock()
    path = folder / "plain.parquet"
    frame.write_parquet(path)
    with path.open("rb") as file:
        hashlib.file_digest(file, "sha256")
    written = clock.lap()
    validate(measured.policy, frame)
    return {"write": written, "validate": clock.lap(), "verify": 0.0}


def artifact(frame: "pl.DataFrame", measured: Dataset, folder: Path) -> Parts:
    """Store an artifact, produce evidence about it, and verify it."""
    clock = _Clock()
    backend, reference = _stored(frame, folder)
    written = clock.lap()
    producer_evidence(measured.policy, frame, reference.sha256)
    validated = clock.lap()
    with _verified(backend, reference):
        return {"write": written, "validate": validated, "verify": clock.lap()}


def here(frame: "pl.DataFrame", measured: Dataset, folder: Path) -> Parts:
    """Store an artifact, verify it, and validate it in batches."""
    clock = _Clock()
    backend, reference = _stored(frame, folder)
    written = clock.lap()
    with _verified(backend, reference) as verified:
        taken = clock.lap()
        _READER.validate(measured.policy, verified.file, reference.media_type, None)
    return {"write": written, "validate": clock.lap(), "verify": taken}


WAYS: Final[Mapping[str, Callable[["pl.DataFrame", Dataset, Path], Parts]]] = {
    "plain": plain,
    "artifact": artifact,
    "here": here,
}


class _Clock:
    def __init__(self) -> None:
        self._at = time.perf_counter()

    def lap(self) -> float:
        """Return the seconds since the last lap."""
        before, self._at = self._at, time.perf_counter()
        return self._at - before


def _stored(frame: "pl.DataFrame", folder: Path) -> tuple[LocalArtifacts, ArtifactReference]:
    backend = LocalArtifacts(folder, _TENANT)
    request = ArtifactRequest(tenant=_TENANT, datasource=_DATASOURCE, media_type=MediaType.PARQUET)
    return backend, store_artifact(backend, _READER, request, frame.write_parquet)


def _verified(
    backend: LocalArtifacts, reference: ArtifactReference
) -> AbstractContextManager[VerifiedArtifact]:
    return verified_artifact(backend, _READER, reference, tenant=_TENANT, datasource=_DATASOURCE)


def measure(way: str, rows: int) -> Measured:
    """Measure one way in this process, after a run over a tiny frame that imports everything."""
    import polars as pl

    run = WAYS[way]
    with tempfile.TemporaryDirectory() as folder:
        tiny, measured = dataset(WARM_UP), dataset(Scenario(rows, "dirty"))
        run(pl.read_parquet(tiny.path), tiny, Path(folder))
        frame = pl.read_parquet(measured.path)
        memory.reset_peak()
        parts = run(frame, measured, Path(folder))
    return Measured(**parts, peak_mib=memory.peak_mib())


def _in_a_process(way: str, rows: int) -> Measured:
    ended = subprocess.run(  # noqa: S603 - our own worker
        [sys.executable, "-m", "benchmarks.artifacts", str(rows), "--only", way],
        stdout=subprocess.PIPE,
        check=True,
    )
    return Measured(**json.loads(ended.stdout))


def main(
    rows: Annotated[int, typer.Argument(min=40)] = 10_000_000,
    rounds: Annotated[int, typer.Option(min=1, help="How often each way is measured.")] = 3,
    only: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    """Measure all ways and print medians; the ratio is of the totals within a round."""
    if only:
        found = dataclasses.asdict(measure(only, rows))
        sys.stdout.write(canonical_bytes(found).decode())
        return
    dataset(Scenario(rows, "dirty"))
    measured = [{way: _in_a_process(way, rows) for way in WAYS} for _ in range(rounds)]
    heads = ("way", "write s", "validate s", "verify s", "total s", "peak MiB")
    typer.echo(_LINE.format(*heads))
    for way in WAYS:
        typer.echo(_line(way, [one[way] for one in measured]))
    for way in ("artifact", "here"):
        ratios = [one[way].seconds / one["plain"].seconds for one in measured]
        least, greatest = min(ratios), max(ratios)
        median = statistics.median(ratios)
        typer.echo(f"{way} to plain: {median:.2f} ({least:.2f} to {greatest:.2f})")
    typer.echo(f"goal: artifact to plain at most {GOAL}")


def _line(way: str, measured: list[Measured]) -> str:
    parts = [
        [one.write for one in measured],
        [one.validate for one in measured],
        [one.verify for one in measured],
        [one.seconds for one in measured],
    ]
    seconds = [f"{statistics.median(part):.2f}" for part in parts]
    return _LINE.format(way, *seconds, f"{statistics.median(one.peak_mib for one in measured):.0f}")


if __name__ == "__main__":
    typer.run(main)
