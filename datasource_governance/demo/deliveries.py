"""Three deliveries of the public airport register, made from the package that ships it.

The register is the PyPI package `airportsdata` (MIT): about 28,000 airports with real gaps. The
first delivery is last month's: without the youngest entries. The second is this month's with faults
as they really happen; the third is the second, corrected.

Source: issue "The main job, end to end, on a real register".
"""

import csv
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from datasource_governance.errors import ServiceUnavailableError

_YOUNGEST = 50
_DROPPED = "tz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliveries:
    """The files that were written."""

    first: Path
    faulty: Path
    corrected: Path


def register_file() -> Path:
    """Return the register's CSV file.

    Raises:
        ServiceUnavailableError: when the package is not installed, naming the extra that brings it.
    """
    found = importlib.util.find_spec("airportsdata")
    if found is None or found.origin is None:
        raise ServiceUnavailableError(
            "the airport register is not installed: pip install 'datasource-governance[demo]'"
        )
    return Path(found.origin).parent / "airports.csv"


def write_deliveries(directory: Path) -> Deliveries:
    """Write the three deliveries as CSV files into a directory; equal input, equal bytes."""
    with register_file().open(encoding="utf-8", newline="") as file:
        header, *records = list(csv.reader(file))
    directory.mkdir(parents=True, exist_ok=True)
    deliveries = Deliveries(
        first=directory / "airports-last-month.csv",
        faulty=directory / "airports-this-month.csv",
        corrected=directory / "airports-this-month-corrected.csv",
    )
    _write(deliveries.first, header, records[:-_YOUNGEST])
    _write(deliveries.faulty, *_spoiled(header, records))
    _write(deliveries.corrected, header, records)
    return deliveries


def _write(path: Path, header: list[str], records: list[list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(records)


def _spoiled(header: list[str], records: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Return the register with a dropped column, repeated codes, a bad latitude, a bad country."""
    place = {name: position for position, name in enumerate(header)}
    spoiled = [list(record) for record in records]
    for repeated in (1_000, 2_000, 3_000):
        spoiled[repeated][place["icao"]] = spoiled[repeated - 1][place["icao"]]
    spoiled[4_000][place["lat"]] = "95.25"
    spoiled[5_000][place["country"]] = "ZZ"
    dropped = place[_DROPPED]
    return (
        [name for name in header if name != _DROPPED],
        [record[:dropped] + record[dropped + 1 :] for record in spoiled],
    )
