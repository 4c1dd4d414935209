"""Soda: one contract with a check of failed rows for each rule, over a table of a database.

A table in memory is one of DuckDB's here. Checks are called by their places in the contract, which
is how they are found again; what a check counts is written by this package, because Soda's own
checks count other things: values instead of rows, and nulls for neither.

Source: SPEC section 14; facts on the quality plugin, 8.4, 8.6 and 8.9.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from typing_extensions import override

from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.quality_check import Evaluated
from datasource_governance.domain.quality_expectation import QualityExpectation
from datasource_governance.domain.schema import DataType
from datasource_governance.quality.duckdb_frames import DuckDbFrame, duckdb_frame
from datasource_governance.quality.failed_rows import failed_rows, relation_name
from datasource_governance.quality.plugin import DataQualityPlugin
from datasource_governance.quality.targets import FrameTarget, SqlTarget, Target

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa
    from soda_core.common.data_source_impl import DataSourceImpl

_SOURCE: Final = "data"
_VIEW: Final = "checked_rows"
"""What a table is called where a name of its own could not be written in a contract."""
_COUNT: Final = "failed_rows_count"
_EVALUATED: Final = frozenset({"PASSED", "FAILED"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A data source of Soda's, and what the queries of checks read from.

    `dataset` is what the contract says it is about. Soda counts its rows, and cannot write every
    name, so that it need not be the relation. `frame` is what it was made of, where it is one.
    """

    source: "DataSourceImpl"
    dataset: str
    dialect: str
    relation: str
    columns: "pa.Schema"
    frame: DuckDbFrame | None = None

    def query(self, one: QualityExpectation) -> str | None:
        """Return the query for the rows that violate a rule, None where it would not be exact."""
        if self.frame is not None:
            return self.frame.query(one.rule, self.relation)
        return failed_rows(one.rule, self.columns, self.dialect, self.relation)


class SodaPlugin(DataQualityPlugin):
    """Runs contracts of Soda 4; it tells no row numbers."""

    name = "soda"
    distributions = ("soda-core", "soda-postgres", "soda-duckdb")
    extra = "datasource-governance[soda]"
    dialects: ClassVar[frozenset[str]] = frozenset({"postgresql", "duckdb"})
    inexact_types: ClassVar[frozenset[DataType]] = frozenset(
        {DataType.UNKNOWN, DataType.LIST, DataType.OBJECT}
    )
    environment: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"SODA_CORE_TELEMETRY_ENABLED": "false", "PYTHON_DOTENV_DISABLED": "true"}
    )

    @override
    def run(
        self, target: Target, expectations: Sequence[QualityExpectation], folder: Path
    ) -> Iterable[Evaluated]:
        with _opened(target) as opened:
            queries = {place: opened.query(one) for place, one in enumerate(expectations)}
            counts = _counts(opened, queries)
        return [
            Evaluated(id=one.id, affected=counts.get(str(place)))
            for place, one in enumerate(expectations)
        ]


def _counts(opened: _Opened, queries: Mapping[int, str | None]) -> Mapping[str, int]:
    """Return how many rows each query has, by its place; none for one that could not be run."""
    from soda_core.common.yaml import ContractYamlSource
    from soda_core.contracts.contract_verification import ContractVerificationSession

    checks = [
        {"failed_rows": {"qualifier": str(place), "query": query}}
        for place, query in queries.items()
        if query is not None
    ]
    if not checks:
        return {}
    # JSON is YAML.
    contract = canonical_bytes(
        {"dataset": f"{_SOURCE}/{opened.dataset}", "columns": [], "checks": checks}
    )
    found = ContractVerificationSession.execute(
        contract_yaml_sources=[ContractYamlSource.from_str(contract.decode())],
        data_source_impls=[opened.source],
    )
    return {
        result.check.qualifier: int(result.diagnostic_metric_values[_COUNT])
        for verified in found.contract_verification_results
        for result in verified.check_results
        if result.outcome.name in _EVALUATED
    }


@contextmanager
def _opened(target: Target) -> Iterator[_Opened]:
    if isinstance(target, SqlTarget) and target.dialect == "postgresql":
        with _postgres(target) as opened:
            yield opened
        return
    frame = duckdb_frame(target.table) if isinstance(target, FrameTarget) else None
    with closing(_connected(target, frame)) as connection:
        yield _Opened(
            source=_of_duckdb(connection),
            dataset=f"main/{_VIEW}",
            dialect="duckdb",
            relation=relation_name(None, _VIEW),
            columns=target.columns,
            frame=frame,
        )


def _connected(target: Target, frame: DuckDbFrame | None) -> "duckdb.DuckDBPyConnection":
    """Return a connection of DuckDB with the table under a plain name; files are only read."""
    import duckdb
    from sqlalchemy import make_url

    if frame is not None:
        connection = duckdb.connect()
        connection.register(_VIEW, frame.table)
        return connection
    assert isinstance(target, SqlTarget)  # noqa: S101 - what is no frame
    url = make_url(target.url)
    connection = duckdb.connect(url.database or "", read_only=True, config=dict(url.query))
    relation = relation_name(target.schema, target.table)
    connection.execute(f"CREATE TEMPORARY VIEW {_VIEW} AS SELECT * FROM {relation}")  # noqa: S608 - quoted
    return connection


def _of_duckdb(connection: "duckdb.DuckDBPyConnection") -> "DataSourceImpl":
    from soda_duckdb.common.data_sources.duckdb_data_source import DuckDBDataSourceImpl
    from soda_duckdb.common.data_sources.duckdb_data_source_connection import (
        DuckDBDataSource,
        DuckDBExistingConnectionProperties,
    )

    properties = DuckDBExistingConnectionProperties(duckdb_connection=connection)
    source = DuckDBDataSourceImpl(
        data_source_model=DuckDBDataSource(name=_SOURCE, type="duckdb", connection=properties)
    )
    source.open_connection()
    return source


@contextmanager
def _postgres(target: SqlTarget) -> Iterator[_Opened]:
    """Open a connection that writes nothing and gives up in time."""
    import psycopg
    from soda_postgres.common.data_sources.postgres_data_source import PostgresDataSourceImpl
    from soda_postgres.common.data_sources.postgres_data_source_connection import (
        PostgresDataSource,
        PostgresDataSourceConnection,
    )
    from sqlalchemy import create_engine

    engine = create_engine(target.url)
    given, options = engine.dialect.create_connect_args(engine.url)

    class Connection(PostgresDataSourceConnection):  # type: ignore[misc]  # it is untyped
        """Connects as the URL says: Soda's own settings have no place for all of it."""

        def _create_connection(self, config: Any) -> Any:  # noqa: ANN401, ARG002 - of Soda
            opened = psycopg.connect(*given, **options)
            opened.read_only = True
            opened.execute(f"SET statement_timeout = {int(target.timeout_seconds) * 1000}")
            opened.commit()
            return opened

    model = PostgresDataSource.model_construct(
        name=_SOURCE, type="postgres", connection_properties=None
    )
    connection = Connection(_SOURCE, None)
    yield _Opened(
        source=PostgresDataSourceImpl(data_source_model=model, connection=connection),
        dataset="postgres/pg_catalog/pg_am",
        dialect="postgresql",
        relation=relation_name(target.schema, target.table, "postgresql"),
        columns=target.columns,
    )
    connection.close_connection()
