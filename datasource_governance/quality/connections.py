"""What `execute_checks` is given to read, in one form.

Source: SPEC sections 3 and 14.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from datasource_governance.errors import InvalidArgumentError
from datasource_governance.quality.lineage import Dataset
from datasource_governance.quality.targets import DIALECTS
from datasource_governance.sources.frames import from_data

if TYPE_CHECKING:
    import pyarrow as pa

    from datasource_governance.sources.sql.read import SqlSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A typed table in memory, or a table of a database; `dialect` is None for the former."""

    dataset: Dataset
    dialect: str | None = None
    frame: "pa.Table | None" = None
    sql: "SqlSource | None" = None


def connection_to(data: object) -> Connection:
    """Return what checks are to read: a frame, an Arrow table, or a `SqlSource` of a table.

    Raises:
        InvalidArgumentError: data of another class, a query, or a database that is not read.
        UnreadableSourceError: a frame that has no typed form.
    """
    if type(data).__name__ != "SqlSource":
        dataset = Dataset(namespace="memory", name=type(data).__name__)
        return Connection(dataset=dataset, frame=from_data(data))
    # Only a caller that has one has imported SQLAlchemy.
    source = cast("SqlSource", data)
    if source.table is None:
        raise InvalidArgumentError("checks run on a table or view, not on a query; create a view")
    dialect = DIALECTS.get(_address(source).partition("://")[0].partition("+")[0])
    if dialect is None:
        raise InvalidArgumentError(
            "checks run on tables of Postgres and DuckDB; the URL must begin with "
            "postgresql+psycopg:// or duckdb://"
        )
    return Connection(dataset=_dataset(source), dialect=dialect, sql=source)


def address_of(source: "SqlSource") -> dict[str, str | None]:
    """Return how another process finds a table, as JSON; it has the password in it."""
    return {"url": _address(source), "table": source.table, "schema": source.schema}


def _dataset(source: "SqlSource") -> Dataset:
    """Return what OpenLineage calls a table; no user and no password is in it."""
    from sqlalchemy import make_url

    url = make_url(source.url) if isinstance(source.url, str) else source.url.url
    names = [part for part in (source.schema, source.table) if part]
    if url.host is None:
        return Dataset(namespace=url.get_backend_name(), name=".".join(names))
    name = ".".join([url.database or "", *names])
    return Dataset(namespace=f"postgres://{url.host}:{url.port or 5432}", name=name)


def _address(source: "SqlSource") -> str:
    url = source.url
    return url if isinstance(url, str) else url.url.render_as_string(hide_password=False)
