"""dbt: rules as singular tests of a project that is made for the run, and thrown away after it.

dbt runs in a process of its own, because it imports every module named `dbt_` that it finds; it may
even be of another environment. Frames are checked as a DuckDB file.

Source: SPEC section 14; facts on the quality plugin, 8.5, 8.8 and 8.9.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Final

from typing_extensions import override

from datasource_governance.domain.canonical import Json
from datasource_governance.domain.quality_check import Evaluated
from datasource_governance.domain.quality_expectation import QualityExpectation
from datasource_governance.domain.schema import DataType
from datasource_governance.errors import PluginExecutionError, Problem
from datasource_governance.quality.dbt_results import read_dbt_results
from datasource_governance.quality.plugin import DataQualityPlugin
from datasource_governance.quality.providers import dbt_project
from datasource_governance.quality.targets import Target

EXECUTABLE = "executable"
"""The option that names the `dbt` to run, where it has an environment of its own."""
_VERSION = re.compile(r"installed:\s*([0-9][0-9A-Za-z.+]*)")
_SECONDS_FOR_VERSION = 60
_NO_INDEX: Final = MappingProxyType(
    dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
)
"""A proxy that is not there: asked for its version, dbt asks a package index for newer ones."""
_TESTS_FAILED = 1


class DbtPlugin(DataQualityPlugin):
    """Runs singular dbt tests, one for each expectation; they count rows, and tell no numbers.

    The option `executable` is the absolute path of the `dbt` of another environment, which has the
    adapter of the database that is read, for frames dbt-duckdb.
    """

    name = "dbt"
    distributions = ("dbt-core", "dbt-postgres", "dbt-duckdb")
    extra = "datasource-governance[dbt]"
    dialects: ClassVar[frozenset[str]] = frozenset({"postgresql", "duckdb"})
    inexact_types: ClassVar[frozenset[DataType]] = frozenset(
        {DataType.LIST, DataType.OBJECT, DataType.UNKNOWN}
    )

    @override
    def installed_version(self) -> str:
        executable = self.configuration.options.get(EXECUTABLE)
        if executable is None:
            return super().installed_version()
        version = _version_of(str(executable))
        if version is None:
            raise PluginExecutionError(
                f"{executable} is no dbt that tells its version; see the option {EXECUTABLE!r} of "
                f"provider {self.name!r}",
                code="provider_not_installed",
                provider=self.name,
                missing=("dbt-core",),
            )
        return version

    @override
    def validate_options(self, options: Mapping[str, Json]) -> list[Problem]:
        problems = super().validate_options(
            {name: value for name, value in options.items() if name != EXECUTABLE}
        )
        path = options.get(EXECUTABLE, os.sep)
        if isinstance(path, str) and Path(path).is_absolute():
            return problems
        message = "the absolute path of a dbt is expected"
        return [*problems, Problem(kind="invalid_value", message=message, pointer=f"/{EXECUTABLE}")]

    @override
    def run(
        self, target: Target, expectations: Sequence[QualityExpectation], folder: Path
    ) -> Iterable[Evaluated]:
        from datasource_governance.quality.providers.dbt_databases import database_of

        database = database_of(target, folder)
        queries = [database.query(one.rule) for one in expectations]
        if not any(queries):
            return []
        dbt_project.write_project(folder, database.profile)
        for number, (one, query) in enumerate(zip(expectations, queries, strict=True)):
            if query is not None:
                dbt_project.write_test(folder, number, one.severity, query)
        executable = self.configuration.options.get(EXECUTABLE)
        _run(str(executable or Path(sys.executable).with_name("dbt")), folder, database.environment)
        results = read_dbt_results(folder / dbt_project.RUN_RESULTS, folder / dbt_project.MANIFEST)
        affected = {check.id: check.affected for check in results.checks}
        return [
            Evaluated(id=one.id, affected=affected.get(dbt_project.id_of_test(number)))
            for number, one in enumerate(expectations)
        ]


def _run(executable: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Run the tests.

    Raises:
        CalledProcessError: dbt could not run any, which is not that some failed or were wrong.
    """
    done = subprocess.run(  # noqa: S603 - the dbt that was configured
        [executable, *dbt_project.ARGUMENTS],
        cwd=folder,
        env=_environment(environment),
        check=False,
    )
    if done.returncode > _TESTS_FAILED:
        done.check_returncode()


def _version_of(executable: str) -> str | None:
    """Return what another dbt says of itself, None where it says nothing of the kind."""
    try:
        told = subprocess.run(  # noqa: S603 - the dbt that was configured
            [executable, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env=_environment(_NO_INDEX),
            timeout=_SECONDS_FOR_VERSION,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(told)
    return None if found is None else found[1]


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return what dbt needs; where this process finds packages is none of its business."""
    kept = ("PATH", "LANG", "HOME", "TMPDIR")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        **dbt_project.ENVIRONMENT,
        **more,
    }
