"""Generated Parquet files with the truth beside them, kept between runs outside the checkout."""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import register, wide
from benchmarks.evidence import PASSED, ROWS_LISTED, Finding, Findings
from datasource_governance import parse_quality_policy
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.quality_policy import QualityPolicy

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

WIDE = "wide"
_ROW_GROUP = 1 << 18
_GENERATOR = 1
"""Changes whenever other files come out for the same scenario."""


@dataclass(frozen=True, slots=True, order=True)
class Scenario:
    """What is validated: so many rows of one variant, by so many rules."""

    rows: int
    variant: str
    rules: int = len(register.RULE_IDS)

    @property
    def title(self) -> str:
        """The scenario in words."""
        return f"{self.variant}, {self.rows:,} rows, {self.rules} rules"


@dataclass(frozen=True, slots=True)
class Dataset:
    """A Parquet file, the policy about it, and what every rule has to find."""

    path: Path
    policy: QualityPolicy
    truth: Findings


def dataset(scenario: Scenario) -> Dataset:
    """Return the dataset of a scenario; its files are generated when they are not there yet."""
    path = _path(scenario)
    truth_path = path.with_suffix(".json")
    if not truth_path.exists():
        _generate(scenario, path, truth_path)
    policy = parse_quality_policy(canonical_bytes(_policy(scenario)))
    listed = json.loads(truth_path.read_bytes())
    truth = {rule.id: _finding(listed.get(rule.id)) for rule in policy.rules}
    return Dataset(path, policy, truth)


def cache_folder() -> Path:
    """Return where generated files are kept: `$XDG_CACHE_HOME`, or else the temporary folder."""
    base = os.environ.get("XDG_CACHE_HOME") or tempfile.gettempdir()
    return Path(base) / "datasource-governance-benchmarks"


def _path(scenario: Scenario) -> Path:
    parameters = [_GENERATOR, scenario.variant, scenario.rows, _ROW_GROUP]
    tag = hashlib.sha256(canonical_bytes(parameters)).hexdigest()[:12]
    return cache_folder() / f"{scenario.variant}-{scenario.rows}-{tag}.parquet"


def _policy(scenario: Scenario) -> Mapping[str, object]:
    return wide.policy(scenario.rules) if scenario.variant == WIDE else register.POLICY


def _generate(scenario: Scenario, path: Path, truth_path: Path) -> None:
    """Write the file and then its truth, each whole or not at all."""
    table, truth = _build(scenario)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        written = Path(folder) / path.name
        _write_parquet(table, written)
        written.replace(path)
        written.write_bytes(canonical_bytes({rule: _listed(at) for rule, at in truth.items()}))
        written.replace(truth_path)


def _build(scenario: Scenario) -> tuple["pa.Table", Mapping[str, "npt.NDArray[np.int64]"]]:
    if scenario.variant == WIDE:
        return wide.build(scenario.rows)
    return register.build(scenario.rows, scenario.variant)


def _write_parquet(table: "pa.Table", path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, path, row_group_size=_ROW_GROUP, compression="snappy")


def _listed(places: "npt.NDArray[np.int64]") -> list[object]:
    import numpy as np

    return [len(places), [int(place) + 1 for place in np.sort(places)[:ROWS_LISTED]]]


def _finding(listed: tuple[int, list[int]] | None) -> Finding:
    affected, rows = listed or (0, [])
    return Finding(passed=False, affected=affected, rows=tuple(rows)) if affected else PASSED
