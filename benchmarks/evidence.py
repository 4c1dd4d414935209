"""The evidence that every engine has to produce, and whether it is exact."""

from collections.abc import Mapping
from dataclasses import dataclass

ROWS_LISTED = 25


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule found: all affected rows counted, the first 25 of them listed, one-based.

    `passed` is told apart from a count of 0 for rules that are not about rows.
    """

    passed: bool
    affected: int = 0
    rows: tuple[int, ...] = ()


PASSED = Finding(passed=True)

Findings = Mapping[str, Finding]
"""Findings by rule id."""


def differing(found: Findings, truth: Findings) -> tuple[str, ...]:
    """Return the ids of the rules whose finding is absent or anything but the truth, sorted."""
    return tuple(sorted(rule for rule in truth if found.get(rule) != truth[rule]))
