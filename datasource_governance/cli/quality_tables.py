"""Providers, manifests and gates as tables for people.

Source: SPEC section 16; "Users look rather than read".
"""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from datasource_governance.cli.output import console
from datasource_governance.domain.canonical import Json, canonical_bytes
from datasource_governance.domain.manifest_document import covers
from datasource_governance.domain.platform_manifest import PlatformManifest
from datasource_governance.domain.quality_gates import ValidationResult


def provider_table(providers: Sequence[dict[str, Json]]) -> Table:
    """Return what is there, and what to install for the rest."""
    table = Table("provider", "version", "frames", "SQL", "to install", box=SIMPLE_HEAD)
    for one in providers:
        dialects = one["dialects"]
        table.add_row(
            str(one["name"]),
            str(one["version"] or "not installed"),
            "yes" if one["frames"] else "no",
            ", ".join(map(str, dialects)) if isinstance(dialects, list) else "",
            str(one["install"] or ""),
        )
    return table


def manifest_table(manifest: PlatformManifest) -> Table:
    """Return every value that some layer set, by whom, and who locked it."""
    table = Table("setting", "value", "set by", "locked by", box=SIMPLE_HEAD)
    document: Json = {"plugins": {"data_quality": manifest.data_quality()}}
    for path, layer in sorted(manifest.provenance.items()):
        value = canonical_bytes(_at(document, path)).decode()
        locked = [by for lock, by in manifest.locks.items() if covers(lock, path)]
        table.add_row(path, value, layer, ", ".join(locked))
    return table


def _at(document: Json, path: str) -> Json:
    """Return the value at a dotted path; only its last part may itself have points."""
    for place in range(len(path.split("."))):
        *parts, last = path.split(".", maxsplit=place)
        found = document
        for part in parts:
            found = found.get(part) if isinstance(found, dict) else None
        if isinstance(found, dict) and last in found:
            return found[last]
    return None


def coverage_table(found: ValidationResult) -> Table:
    """Return how far the fields of each dataset are tested."""
    table = Table("dataset", "tier", "tested", "fields", "without a test", box=SIMPLE_HEAD)
    for one in found.coverage.datasets:
        table.add_row(
            one.dataset,
            str(one.tier or "none"),
            f"{one.share:.0%}",
            str(len(one.eligible)),
            ", ".join(one.uncovered),
        )
    return table


def problem_lines(found: ValidationResult) -> None:
    """Print every problem and warning."""
    for problem in found.problems:
        console().print(f"problem: {problem.line()}", markup=False)
    for warning in found.warnings:
        console().print(f"warning: {warning.line()}", markup=False)
