"""The artifacts of dbt: JSON files of known kinds and versions.

Source: SPEC section 14; dbt, "Artifacts".
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from datasource_governance.errors import Problem

Artifact = Path | Mapping[str, Any]
"""A file that dbt wrote, or what is in it."""

_VERSIONS: Final = MappingProxyType({"run-results": range(4, 7), "manifest": range(10, 13)})
_SCHEMA = re.compile(r"https://schemas\.getdbt\.com/dbt/([a-z-]+)/v([0-9]{1,4})\.json")


def read_artifact(artifact: Artifact, kind: str, problems: list[Problem]) -> Mapping[str, Any]:
    """Return an artifact of a kind, `run-results` or `manifest`; report what is wrong with it."""
    if isinstance(artifact, Path):
        document, problem = _parsed(artifact)
    else:
        document, problem = artifact, None
    content = mapping(document)
    problem = problem or _version_problem(content, kind)
    if problem is not None:
        problems.append(problem)
    return content


def _parsed(path: Path) -> tuple[object, Problem | None]:
    """Return the content of a file; errors of the parser hold all of it, and end here."""
    try:
        return json.loads(path.read_bytes()), None
    except OSError:
        return None, Problem(kind="not_found", message=f"{path} cannot be read")
    except (ValueError, RecursionError):
        return None, Problem(kind="invalid_json", message=f"{path} is not JSON")


def _version_problem(document: Mapping[str, Any], kind: str) -> Problem | None:
    named = mapping(document.get("metadata")).get("dbt_schema_version")
    found = _SCHEMA.fullmatch(named) if isinstance(named, str) else None
    versions = _VERSIONS[kind]
    if found and found[1] == kind and int(found[2]) in versions:
        return None
    what = f"{found[1]} of version {found[2]}" if found else "no artifact of dbt"
    message = f"{what}, where {kind} of versions {versions[0]} to {versions[-1]} are read"
    return Problem(kind="unsupported_version", message=message)


def mapping(value: object) -> Mapping[str, Any]:
    """Return an object of a document, an empty one where there is something else."""
    return value if isinstance(value, Mapping) else {}
