"""Every way to the evidence that is measured, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from benchmarks import (
    hand_duckdb,
    hand_polars,
    ours,
    plain_dbt,
    plain_gx,
    plain_pandera,
    plain_soda,
)
from benchmarks.evidence import Findings
from datasource_governance.domain.quality_policy import QualityPolicy


class Input(StrEnum):
    """What an engine's clock starts with, which decides whom it is compared with."""

    FRAME = "frame"
    """Loaded data."""
    FILE = "file"
    """A Parquet file; reading it is part of what is measured."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One way to the evidence: what is loaded before the clock starts, and what is then timed.

    `evaluate` returns the findings, or None where it computes something else. `exact` tells whether
    the findings have to be the truth; a framework's may differ, which the tables say. Of
    `distributions` the extra `test` installs all.
    """

    title: str
    load: Callable[[Path], Any]
    evaluate: Callable[[Any, QualityPolicy], Findings | None]
    input: Input = Input.FRAME
    exact: bool = True
    distributions: tuple[str, ...] = ()

    def missing(self) -> str:
        """Tell which distributions are not installed; nothing when all are."""
        missing = [name for name in self.distributions if not _is_installed(name)]
        return f"not installed: {', '.join(missing)}" if missing else ""


def _is_installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


def _path(path: Path) -> Path:
    return path


LIMIT: Final = "hand_polars"
DUCKDB: Final = "hand_duckdb"
ENGINES: Final[Mapping[str, Engine]] = {
    LIMIT: Engine("hand-written Polars", hand_polars.load, hand_polars.evaluate),
    "hand_faster": Engine(
        "hand-written Polars, NumPy and threads", hand_polars.load, hand_polars.evaluate_faster
    ),
    DUCKDB: Engine("hand-written DuckDB", hand_duckdb.load, hand_duckdb.evaluate),
    "plain_polars": Engine(
        "plain Pandera on Polars", hand_polars.load, plain_pandera.evaluate_polars, exact=False
    ),
    "plain_pandas": Engine(
        "plain Pandera on pandas, Arrow dtypes",
        ours.load_pandas,
        plain_pandera.evaluate_pandas,
        exact=False,
    ),
    "plain_numpy": Engine(
        "plain Pandera on pandas, default dtypes",
        ours.load_numpy,
        plain_pandera.evaluate_pandas,
        exact=False,
    ),
    "plain_gx": Engine(
        "Great Expectations on pandas",
        plain_gx.load,
        plain_gx.evaluate,
        exact=False,
        distributions=("great-expectations",),
    ),
    "plain_soda": Engine(
        "Soda on DuckDB",
        plain_soda.load,
        plain_soda.evaluate,
        exact=False,
        distributions=("soda-core", "soda-duckdb"),
    ),
    "plain_dbt": Engine(
        "dbt on DuckDB",
        plain_dbt.load,
        plain_dbt.evaluate,
        exact=False,
        distributions=("dbt-core", "dbt-duckdb"),
    ),
    "ours_polars": Engine("ours on Polars", hand_polars.load, ours.evaluate_polars),
    "ours_pandas": Engine("ours on pandas, Arrow dtypes", ours.load_pandas, ours.evaluate_pandas),
    "ours_numpy": Engine("ours on pandas, default dtypes", ours.load_numpy, ours.evaluate_pandas),
    "ours_fingerprint": Engine("our content fingerprint alone", ours.load_typed, ours.fingerprint),
    "ours_whole": Engine(
        "ours, rules with schema and fingerprint", ours.load_pandas, ours.evaluate_whole
    ),
    "hand_polars_file": Engine(
        "hand-written Polars scan", _path, hand_polars.evaluate_file, Input.FILE
    ),
    "hand_duckdb_file": Engine(
        "hand-written DuckDB scan", _path, hand_duckdb.evaluate_file, Input.FILE
    ),
    "ours_scan": Engine("ours on a Polars scan", ours.load_scan, ours.evaluate_polars, Input.FILE),
    "ours_file": Engine(
        "ours on a file, with schema and fingerprint", _path, ours.evaluate_file, Input.FILE
    ),
    "ours_batches": Engine(
        "ours on a file in batches, with schema and fingerprint",
        _path,
        ours.evaluate_batches,
        Input.FILE,
    ),
}
PLAIN: Final = ("plain_polars", "plain_pandas", "plain_numpy")
FRAMEWORKS: Final = ("plain_gx", "plain_soda", "plain_dbt")
"""Other frameworks, each as its own users run it."""
COMPARED: Final = (LIMIT, DUCKDB, "ours_polars", "ours_pandas")
"""Engines that are measured over clean, failing and duplicated rows, too."""
WIDE_ENGINES: Final = ("ours_polars", "ours_pandas")
"""Engines that read the policy; a program written by hand knows one only."""


def yardstick(engine: str, of: str = LIMIT) -> str:
    """Return the hand-written engine with the same input as an engine."""
    return f"{of}_file" if ENGINES[engine].input is Input.FILE else of
