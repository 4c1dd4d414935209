"""Resident memory of this process as Linux counts it: the whole process, imports included."""

from pathlib import Path

_STATUS = Path("/proc/self/status")
_KIBIBYTES_PER_MEBIBYTE = 1024


def resident_mib() -> float:
    """Return what is resident now, in MiB."""
    return _field("VmRSS")


def peak_mib() -> float:
    """Return the most that was resident since the last reset, in MiB."""
    return _field("VmHWM")


def reset_peak() -> None:
    """Let the peak start anew from what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")


def _field(name: str) -> float:
    lines = _STATUS.read_text().splitlines()
    value = next(line for line in lines if line.startswith(f"{name}:"))
    return int(value.split()[1]) / _KIBIBYTES_PER_MEBIBYTE
