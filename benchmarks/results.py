"""The results of a run: what was measured where, kept as one JSON file."""

import dataclasses
import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from benchmarks.datasets import Scenario
from benchmarks.engines import ENGINES
from benchmarks.measurement import Measurement
from datasource_governance.domain.canonical import canonical_bytes


@dataclass(frozen=True, slots=True)
class Record:
    """One measurement in its place; without one, why it failed."""

    scenario: Scenario
    engine: str
    round: int
    measurement: Measurement | None
    failure: str = ""

    @property
    def differs(self) -> tuple[str, ...]:
        """The rules whose finding is not the truth."""
        return (self.measurement and self.measurement.differs) or ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StartUp:
    """Seconds that the command `validate` takes on a small file, and what of them is importing."""

    interpreter: float
    command: float
    importing_share: float


class Spread(NamedTuple):
    """A median with the least and the greatest of what it is the median of."""

    median: float
    least: float
    greatest: float


def spread(values: Sequence[float]) -> Spread | None:
    """Return the spread of values, or None when there are none."""
    return Spread(statistics.median(values), min(values), max(values)) if values else None


Value = Callable[[Measurement], float]


def seconds(measurement: Measurement) -> float:
    """Return the seconds on the wall."""
    return measurement.seconds


def cpu_seconds(measurement: Measurement) -> float:
    """Return the seconds of all processors."""
    return measurement.cpu_seconds


def peak_mib(measurement: Measurement) -> float:
    """Return the peak of the whole process, in MiB."""
    return measurement.peak_mib


Series = tuple[Scenario, str]
"""One engine over one scenario."""


@dataclass(slots=True)
class Results:
    """Records of one run on one machine."""

    machine: list[tuple[str, str]]
    records: list[Record] = field(default_factory=list)
    start_up: list[StartUp] = field(default_factory=list)

    def scenarios(self) -> list[Scenario]:
        """Return the scenarios in the order of their first record."""
        return list(dict.fromkeys(record.scenario for record in self.records))

    def engines(self, scenario: Scenario) -> list[str]:
        """Return the engines of a scenario in the order of their first record."""
        return list(dict.fromkeys(at.engine for at in self.records if at.scenario == scenario))

    def of(self, series: Series) -> dict[int, Measurement]:
        """Return the measurements of a series by round."""
        return {
            record.round: record.measurement
            for record in self.records
            if (record.scenario, record.engine) == series and record.measurement
        }

    def failure(self, series: Series) -> str:
        """Return why a series has failed, or nothing."""
        whys = [at.failure for at in self.records if (at.scenario, at.engine) == series]
        return next(filter(None, whys), "")

    def spread(self, series: Series, value: Value) -> Spread | None:
        """Return the spread of a value over the rounds."""
        return spread([value(measurement) for measurement in self.of(series).values()])

    def ratio(self, series: Series, to: Series, value: Value = seconds) -> Spread | None:
        """Return the spread of the ratios taken within each round that has both series."""
        these, those = self.of(series), self.of(to)
        shared = sorted(these.keys() & those.keys())
        return spread([value(these[number]) / value(those[number]) for number in shared])

    def inexact(self) -> list[str]:
        """Return what failed, or has to be the truth and is not, in words."""
        wrong = {
            f"{at.scenario.title}: {at.engine}": at.failure or ", ".join(at.differs)
            for at in self.records
            if at.failure or (at.differs and ENGINES[at.engine].exact)
        }
        return [f"{series}: {why}" for series, why in wrong.items()]

    def save(self, path: Path) -> None:
        """Write the results as JSON."""
        path.write_bytes(canonical_bytes(dataclasses.asdict(self)))


def read_results(path: Path) -> Results:
    """Return results that were saved."""
    document = json.loads(path.read_bytes())
    return Results(
        machine=[(name, value) for name, value in document["machine"]],
        records=[_record(record) for record in document["records"]],
        start_up=[StartUp(**one) for one in document["start_up"]],
    )


def _record(document: dict[str, object]) -> Record:
    scenario, measurement = document["scenario"], document["measurement"]
    if not isinstance(scenario, dict):
        raise TypeError("a scenario has to be an object")
    measured = Measurement(**measurement) if isinstance(measurement, dict) else None
    return Record(
        scenario=Scenario(**scenario),
        engine=str(document["engine"]),
        round=int(str(document["round"])),
        measurement=measured,
        failure=str(document["failure"]),
    )
