"""Great Expectations: frames as pandas batches, Postgres tables as queries for failed rows.

It cannot read DuckDB, so that tables of it are read here and checked as frames are.

Source: SPEC section 14; facts on the quality plugin, 8.3 and 8.8.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from datasource_governance.domain.quality_check import Evaluated
from datasource_governance.domain.quality_expectation import QualityExpectation
from datasource_governance.domain.rules import RowCountRule
from datasource_governance.domain.validation import MAXIMUM_ROWS_LISTED
from datasource_governance.evaluation.boundary import attempt
from datasource_governance.quality.failed_rows import failed_rows, relation_name
from datasource_governance.quality.plugin import DataQualityPlugin
from datasource_governance.quality.providers.gx_columns import GxColumn
from datasource_governance.quality.providers.gx_expectations import (
    Found,
    Part,
    no_rows_of,
    parts_of,
    validated,
)
from datasource_governance.quality.targets import FrameTarget, SqlTarget, Target

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    from great_expectations.core.batch_definition import BatchDefinition
    from great_expectations.data_context import EphemeralDataContext


class GreatExpectationsPlugin(DataQualityPlugin):
    """Runs expectations of Great Expectations; only those about frames tell row numbers."""

    name = "great_expectations"
    distributions = ("great_expectations",)
    extra = "datasource-governance[great_expectations]"
    dialects: ClassVar[frozenset[str]] = frozenset({"postgresql", "duckdb"})
    environment: ClassVar[Mapping[str, str]] = MappingProxyType({"GX_ANALYTICS_ENABLED": "false"})

    @override
    def run(
        self, target: Target, expectations: Sequence[QualityExpectation], folder: Path
    ) -> Iterable[Evaluated]:
        if isinstance(target, FrameTarget):
            return _of_frame(target.table, expectations)
        if target.dialect == "postgresql":
            return _of_table(target, expectations)
        found = _of_frame(_read(target, expectations), expectations)
        return [Evaluated(id=one.id, affected=one.affected) for one in found]


def _context() -> "EphemeralDataContext":
    """Return a context that keeps nothing on disk."""
    import great_expectations as gx

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    return context


def _of_frame(table: "pa.Table", expectations: Sequence[QualityExpectation]) -> Iterator[Evaluated]:
    """Evaluate rules in one batch for each set of fields, so that no more is copied at a time."""
    asset = _context().data_sources.add_pandas("frames").add_dataframe_asset("fields")
    batches = asset.add_batch_definition_whole_dataframe("rows")
    by_fields: dict[tuple[str, ...], list[QualityExpectation]] = {}
    for one in expectations:
        by_fields.setdefault(one.fields, []).append(one)
    for fields, asked in by_fields.items():
        yield from attempt(partial(_of_fields, batches, table, fields, asked)) or ()


def _of_fields(
    batches: "BatchDefinition",
    table: "pa.Table",
    fields: Sequence[str],
    asked: Sequence[QualityExpectation],
) -> list[Evaluated]:
    import pandas as pd

    columns = [GxColumn(table.schema.field(name), table.column(name)) for name in fields]
    series = {str(place): column.series for place, column in enumerate(columns)}
    frame = pd.DataFrame(series, index=pd.RangeIndex(table.num_rows))
    parts = [parts_of(one.rule, columns) for one in asked]
    found = validated(batches.get_batch({"dataframe": frame}), parts)
    return [
        _evaluated(one, table.num_rows, list(zip(parts[place], found[place], strict=True)))
        for place, one in enumerate(asked)
    ]


def _evaluated(
    one: QualityExpectation, row_count: int, found: Sequence[tuple[Part, Found | None]]
) -> Evaluated:
    results = [(part, result) for part, result in found if result is not None]
    if len(results) < len(found):
        return Evaluated(id=one.id, affected=None)
    if isinstance(one.rule, RowCountRule):
        return Evaluated(id=one.id, affected=int(not results[0][1]["success"]))
    places = _places(
        row_count,
        [
            result["unexpected_index_list"]
            for part, result in results
            if result["unexpected_count"] >= part.least
        ],
    )
    lowest = tuple(int(place) + 1 for place in places[:MAXIMUM_ROWS_LISTED])
    return Evaluated(id=one.id, affected=len(places), rows=lowest)


def _places(row_count: int, listed: Iterable[Sequence[int]]) -> "npt.NDArray[np.intp]":
    """Return the places that any of the lists names, each once and ascending."""
    import numpy as np

    is_listed = np.zeros(row_count, dtype=np.bool_)
    for places in listed:
        is_listed[np.asarray(places, dtype=np.intp)] = True
    return np.flatnonzero(is_listed)


def _read(target: SqlTarget, expectations: Iterable[QualityExpectation]) -> "pa.Table":
    """Return the columns of a table that rules name; one where they name none, for its rows.

    Raises:
        UnreadableSourceError: as `read_sql`.
    """
    from datasource_governance.sources.sql.read import SqlSource, read_sql
    from datasource_governance.sources.sql.selection import Selection

    named = {name for one in expectations for name in one.fields}
    names = [name for name in target.columns.names if name in named] or target.columns.names[:1]
    relation = Selection("", relation_name(target.schema, target.table, target.dialect), ())
    return read_sql(SqlSource(target.url, query=relation.of(names))).table


def _of_table(target: SqlTarget, expectations: Iterable[QualityExpectation]) -> list[Evaluated]:
    """Let the database count the failed rows of each rule; a row count out of bounds is one."""
    relation = relation_name(target.schema, target.table, target.dialect)
    queries = {
        one.id: query
        for one in expectations
        if (query := failed_rows(one.rule, target.columns, target.dialect, relation)) is not None
    }
    tables = _context().data_sources.add_postgres("tables", connection_string=_address(target))
    # Every query names its table itself; a batch is but a way to the database.
    asset = tables.add_query_asset("database", query="SELECT 1 AS one")
    batch = asset.add_batch_definition_whole_table("database").get_batch()
    found = validated(batch, [[no_rows_of(query)] for query in queries.values()])
    return [
        Evaluated(id=rule_id, affected=None if result is None else result["observed_value"])
        for rule_id, [result] in zip(queries, found, strict=True)
    ]


def _address(target: SqlTarget) -> str:
    """Return the URL of connections that write nothing and give up in time.

    Great Expectations takes a word behind a dollar sign for a variable.
    """
    from sqlalchemy import make_url

    url = make_url(target.url)
    settings = {
        "default_transaction_read_only": "on",
        "statement_timeout": target.timeout_seconds * 1000,
    }
    given = url.normalized_query.get("options", ())
    options = [*given, *(f"-c {name}={value}" for name, value in settings.items())]
    url = url.update_query_dict({"options": " ".join(options)})
    return url.render_as_string(hide_password=False).replace("$", "%24")
