"""`DataQualityPlugin`: the one interface of quality frameworks.

A provider says what it is and how it runs checks; that is all it can say. Around that this class
puts what nobody gets around: names and types are judged natively first, checks run in a process of
their own which is killed when its time is over, every expectation is answered exactly once or
counts as not evaluated, and nothing but counts and row numbers comes back.

Source: SPEC section 14; the names are those of ADR-0044.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, final

from typing_extensions import override

from datasource_governance.domain.canonical import Json
from datasource_governance.domain.quality_check import Evaluated, QualityCheckResult, concluded
from datasource_governance.domain.quality_expectation import CONTENT_KINDS, QualityExpectation
from datasource_governance.domain.quality_gates import ValidationResult, gates_result
from datasource_governance.domain.quality_score import calculate_quality_score
from datasource_governance.domain.schema import DataType
from datasource_governance.errors import (
    GovernanceError,
    InvalidArgumentError,
    PluginExecutionError,
    Problem,
)
from datasource_governance.quality.configuration import configuration_problems
from datasource_governance.quality.connections import Connection, connection_to
from datasource_governance.quality.execution import Answer, Provider, run_in_child
from datasource_governance.quality.lineage import LineageEmitter, NoopEmitter
from datasource_governance.quality.targets import DIALECTS, Target

API_VERSION = "1.0"
"""A provider must be written for the same major version of this interface."""
_FINAL = ("execute_checks", "supports_sql_dialect", "version")


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginConfiguration:
    """How a provider is run. `options` are those of the provider itself."""

    timeout_seconds: int = 300
    options: Mapping[str, Json] = field(default_factory=lambda: MappingProxyType({}))


class DataQualityPlugin(ABC):
    """A quality framework behind the one interface; subclass it, and implement `run`.

    Attributes:
        name: What a platform manifest calls it.
        api_version: The version of this interface that it is written for.
        distributions: The Python distributions that it needs; the first one gives its version.
        extra: The extra of this package, or the distribution, that installs them.
        dialects: SQL dialects whose tables it reads, of `postgresql` and `duckdb`.
        reads_frames: Whether it reads tables in memory.
        kinds: The rule types that it evaluates; another one is never passed.
        inexact_types: Logical types of fields that it cannot always compare exactly; rules about
            these may be left not evaluated, and are not told wrong.
        environment: Variables that its process gets, such as those that turn telemetry off.
    """

    name: ClassVar[str]
    api_version: ClassVar[str] = API_VERSION
    distributions: ClassVar[tuple[str, ...]] = ("datasource-governance",)
    extra: ClassVar[str] = "datasource-governance"
    dialects: ClassVar[frozenset[str]] = frozenset()
    reads_frames: ClassVar[bool] = True
    kinds: ClassVar[frozenset[str]] = CONTENT_KINDS
    inexact_types: ClassVar[frozenset[DataType]] = frozenset()
    environment: ClassVar[Mapping[str, str]] = MappingProxyType({})

    @override
    def __init_subclass__(cls, **arguments: object) -> None:
        """Refuse a provider that replaces what every provider must go through."""
        super().__init_subclass__(**arguments)
        if replaced := [n for n in _FINAL if getattr(cls, n) is not getattr(DataQualityPlugin, n)]:
            raise TypeError(f"{cls.__name__} must not define {', '.join(replaced)}; implement run")

    def __init__(
        self,
        configuration: PluginConfiguration | None = None,
        emitter: LineageEmitter | None = None,
    ) -> None:
        self.configuration = configuration or PluginConfiguration()
        self._emitter = emitter or NoopEmitter()

    @abstractmethod
    def run(
        self, target: Target, expectations: Sequence[QualityExpectation], folder: Path
    ) -> Iterable[Evaluated]:
        """Evaluate expectations, in a process of its own; import the framework here.

        The fields of all of them exist. What is raised, printed or written is thrown away; an
        expectation that is not among what is returned counts as not evaluated.

        Args:
            target: What to read.
            expectations: Of types that the provider evaluates.
            folder: An empty working directory, deleted afterwards.
        """

    @property
    def version(self) -> str:
        """The installed version of the framework.

        Raises:
            PluginExecutionError: code `provider_not_installed`, naming what to install.
        """
        return self.installed_version()

    def installed_version(self) -> str:
        """Return the version of the framework; override it for one that is installed elsewhere.

        Raises:
            PluginExecutionError: as `version`.
        """
        missing = [name for name in self.distributions if _version(name) is None]
        if missing:
            raise PluginExecutionError(
                f"provider {self.name!r} needs {', '.join(missing)}, which is not installed; run: "
                f"pip install '{self.extra}'",
                code="provider_not_installed",
                provider=self.name,
                missing=tuple(missing),
            )
        return str(_version(self.distributions[0]))

    @final
    def execute_checks(
        self, connection: object, expectations: Sequence[QualityExpectation]
    ) -> QualityCheckResult:
        """Run checks against data, and return an outcome for each expectation.

        Args:
            connection: A pandas or Polars frame, an Arrow table, or a `SqlSource` of a table.
            expectations: What is expected, each id once; without any the result is an error.

        Raises:
            InvalidArgumentError: data of another class, an id that is repeated, or a provider that
                is defined in a function or a script.
            PluginExecutionError: nothing could be executed; see the error's codes.
            UnreadableSourceError: the data or the database was refused, as in `validate`.
        """
        ids = [one.id for one in expectations]
        if repeated := sorted({one for one in ids if ids.count(one) > 1}):
            raise InvalidArgumentError(f"expectations are repeated: {', '.join(repeated)}")
        source = connection_to(connection)
        self._check_reads(source)
        emitter, version = self.get_lineage_emitter(), self.version
        run = emitter.started(source.dataset)
        try:
            answer = self._answered(source, expectations)
        except GovernanceError:
            emitter.finished(run, None)
            raise
        row_count = None if source.frame is None else source.frame.num_rows
        result = QualityCheckResult(
            provider=self.name,
            provider_version=version,
            checks=tuple(
                answer.known.get(outcome.id, outcome)
                for outcome in concluded(expectations, answer.evaluated, row_count)
            ),
        )
        emitter.finished(run, result)
        return result

    def _answered(self, source: Connection, expectations: Sequence[QualityExpectation]) -> Answer:
        asked = [one for one in expectations if one.kind in self.kinds]
        if not asked:
            return Answer()
        path = f"{type(self).__module__}:{type(self).__qualname__}"
        if path.startswith("__main__:") or "<locals>" in path:
            raise InvalidArgumentError(
                f"provider {self.name!r} runs in another process, which cannot import {path}; move "
                "it to a module"
            )
        provider = Provider(
            name=self.name,
            path=path,
            timeout_seconds=self.configuration.timeout_seconds,
            options=self.configuration.options,
            environment=self.environment,
        )
        return run_in_child(provider, source, asked)

    def _check_reads(self, source: Connection) -> None:
        reads = self.reads_frames if source.dialect is None else source.dialect in self.dialects
        if not reads:
            what = "tables in memory" if source.dialect is None else f"{source.dialect} tables"
            raise PluginExecutionError(
                f"provider {self.name!r} does not read {what}; choose another provider",
                code="unsupported_connection",
                provider=self.name,
            )

    def validate_config(
        self, config_path: Path, manifest: Mapping[str, object]
    ) -> ValidationResult:
        """Check a quality policy or a datasource declaration, without data, network or framework.

        Args:
            config_path: The JSON file; policies that a declaration names are read beside it.
            manifest: Ours or one of dbt, whose fields the rules may name; `{}` knows none.

        Returns:
            Every problem, those of the configured options too; nothing is raised for them.
        """
        problems = configuration_problems(config_path, manifest, self.kinds)
        options = self.validate_options(self.configuration.options)
        return ValidationResult(problems=(*options, *problems))

    def validate_options(self, options: Mapping[str, Json]) -> list[Problem]:
        """Return what is wrong with options; a provider that has any overrides this."""
        return [
            Problem(
                kind="unknown_option",
                names=(name,),
                message=f"provider {self.name!r} has no option {name!r}",
            )
            for name in options
        ]

    def validate_quality_gates(
        self, manifest: Mapping[str, object], required_coverage: Mapping[str, float | str]
    ) -> ValidationResult:
        """Check that datasets have the tests that their tier needs, without data or network.

        Args:
            manifest: Ours or one of dbt.
            required_coverage: The share of fields that need a test, as "80%" or 0.8, by tier; the
                default for a tier that is left out. Required tests are the default ones.

        Returns:
            Every violation and the coverage; nothing is raised for them, or for bad arguments.
        """
        return gates_result(manifest, required_coverage)

    def calculate_quality_score(
        self, check_results: Sequence[QualityCheckResult], weights: Mapping[str, float]
    ) -> float:
        """Return the score of results, 0 to 100; see `quality_score.calculate_quality_score`.

        Raises:
            InvalidArgumentError: a ValueError; nothing was evaluated, or a weight is invalid.
        """
        return calculate_quality_score(check_results, weights)

    def supports_sql_dialect(self, dialect: str) -> bool:
        """Tell whether tables of a SQL dialect are read, by any name that it goes by."""
        return DIALECTS.get(dialect.lower()) in self.dialects

    def get_lineage_emitter(self) -> LineageEmitter:
        """Return who is told of check runs; by default nobody is."""
        return self._emitter


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
