"""The machine and the versions that numbers belong to."""

import importlib.metadata
import os
import platform
import re
from pathlib import Path

_PACKAGES = (
    *("pandera", "pandas", "polars", "pyarrow", "numpy", "duckdb"),
    *("great-expectations", "soda-core", "dbt-core"),
)


def machine() -> list[tuple[str, str]]:
    """Return names and values of what the numbers depend on, from processor to versions."""
    cores = len(os.sched_getaffinity(0))
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return [
        ("processor", f"{_processor()}, {cores} cores"),
        ("memory", f"{memory_gib:.0f} GiB"),
        ("system", f"{platform.system()} {platform.machine()}"),
        ("Python", platform.python_version()),
        *((name, _version(name)) for name in _PACKAGES),
    ]


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    named = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return named[1] if named else platform.machine()
