"""The dbt project of one run: a test for each expectation, whose number is in its name.

Everything that dbt reads goes through Jinja. So whatever is not ours is written as a text constant
of Jinja, or comes from the environment, where its values are not looked at once more.

Source: SPEC section 14; facts on the quality plugin, 8.5 and 8.9.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from datasource_governance.domain.canonical import Json, canonical_bytes
from datasource_governance.domain.rules import Severity
from datasource_governance.private_files import create

RUN_RESULTS, MANIFEST = Path("target", "run_results.json"), Path("target", "manifest.json")
"""Where dbt leaves what it found."""
ARGUMENTS: Final = (
    *("test", "--project-dir", ".", "--profiles-dir", ".", "--target-path", "target"),
    *("--log-path", "logs", "--log-level", "none", "--log-level-file", "none", "--threads", "2"),
    *("--no-partial-parse", "--no-version-check", "--no-populate-cache"),
)
"""How dbt is called in the project's folder: silent, and without what it keeps for another time."""
ENVIRONMENT: Final = MappingProxyType({"DBT_SEND_ANONYMOUS_USAGE_STATS": "false"})
_NAME = "expectations"
_SEVERITIES: Final = MappingProxyType({Severity.ERROR: "error", Severity.WARNING: "warn"})


def write_project(folder: Path, database: Mapping[str, Json]) -> None:
    """Write a project without tests, and the profile of the database that its tests read."""
    project: dict[str, Json] = {
        "name": _NAME,
        "version": "1.0",
        "config-version": 2,
        "profile": _NAME,
        "query-comment": None,
    }
    outputs: dict[str, Json] = {"here": dict(database)}
    profiles: dict[str, Json] = {_NAME: {"target": "here", "outputs": outputs}}
    (folder / "tests").mkdir()
    # JSON is YAML as well.
    (folder / "dbt_project.yml").write_bytes(canonical_bytes(project))
    create(folder / "profiles.yml", canonical_bytes(profiles))


def write_test(folder: Path, number: int, severity: Severity, query: str) -> None:
    """Write the test that fails with each row that a query returns."""
    config = f"{{{{ config(severity={_SEVERITIES[severity]!r}) }}}}"
    (folder / "tests" / f"rule_{number}.sql").write_text(f"{config}\n{constant(query)}", "ascii")


def id_of_test(number: int) -> str:
    """Return what dbt calls a test."""
    return f"test.{_NAME}.rule_{number}"


def constant(text: str) -> str:
    """Return the Jinja expression that is a text, in which no character means anything else."""
    return "{{ '" + "".join(map(_escaped, text)) + "' }}"


def variable(name: str, form: str = "as_text") -> str:
    """Return the Jinja expression that is a variable of the environment, empty without one."""
    return f"{{{{ env_var({name!r}, '') | {form} }}}}"


def _escaped(character: str) -> str:
    if character.isascii() and (character.isalnum() or character in " _,.()=<>"):
        return character
    return f"\\U{ord(character):08x}"
