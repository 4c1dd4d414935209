"""What `execute_checks` is given to read, in one form.

Source: SPEC sections 3 and 14.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from datasource_governance.errors import InvalidArgumentError
from datasource_governance.quality.lineage import Dataset
from datasource_governance.sources.frames import from_data
from datasource_governance.sources.refusal import shielded

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlalchemy import URL

    from datasource_governance.sources.sql.read import SqlSource

_DIALECTS: Final[Mapping[str, str]] = MappingProxyType(
    {"postgresql": "postgresql", "postgresql+psycopg": "postgresql", "duckdb": "duckdb"}
)
"""By the scheme of a URL; as for `read_sql`, whose other drivers lose values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A typed table in memory, or a table of a database; `dialect` is None for the former."""

    dataset: Dataset
    dialect: str | None = None
    frame: "pa.Table | None" = field(default=None, repr=False)
    sql: "SqlSource | None" = None


def connection_to(data: object) -> Connection:
    """Return what checks are to read: a frame, an Arrow table, or a `SqlSource` of a table.

    Raises:
        InvalidArgumentError: data of another class, a query, a database that is not read, or one
            in the memory of this process.
        UnreadableSourceError: a frame that has no typed form.
    """
    if type(data).__name__ != "SqlSource":
        dataset = Dataset(namespace="memory", name=type(data).__name__)
        return Connection(dataset=dataset, frame=from_data(data))
    # Only a caller that has one has imported SQLAlchemy.
    source = cast("SqlSource", data)
    if source.table is None:
        raise InvalidArgumentError("checks run on a table or view, not on a query; create a view")
    url = _url(source)
    dialect = _DIALECTS.get(url.drivername)
    if dialect is None:
        raise InvalidArgumentError(
            "checks run on tables of Postgres and DuckDB; the URL must begin with "
            "postgresql+psycopg:// or duckdb://"
        )
    if dialect == "duckdb" and (url.database or ":memory:").startswith(":memory:"):
        raise InvalidArgumentError(
            "checks run in another process, which does not see a DuckDB database in memory; write "
            "it to a file, or hand over a frame"
        )
    return Connection(dataset=_dataset(source), dialect=dialect, sql=source)


def address_of(source: "SqlSource") -> dict[str, str | None]:
    """Return how another process finds a table, as JSON; it has the password in it."""
    return {"url": _address(source), "table": source.table, "schema": source.schema}


def _dataset(source: "SqlSource") -> Dataset:
    """Return what OpenLineage calls a table; no user and no password is in it."""
    url = _url(source)
    names = [part for part in (source.schema, source.table) if part]
    if url.host is None:
        return Dataset(namespace=url.get_backend_name(), name=".".join(names))
    name = ".".join([url.database or "", *names])
    return Dataset(namespace=f"postgres://{url.host}:{url.port or 5432}", name=name)


def _address(source: "SqlSource") -> str:
    url = _url(source)
    if url.drivername == "duckdb":
        # The other process is in a folder of its own.
        url = url.set(database=os.path.abspath(url.database or ""))  # noqa: PTH100 - links stay links
    return url.render_as_string(hide_password=False)


def _url(source: "SqlSource") -> "URL":
    from sqlalchemy import make_url

    if not isinstance(source.url, str):
        return source.url.url
    given = source.url
    return shielded(
        lambda: make_url(given), InvalidArgumentError("the URL is not a SQLAlchemy URL")
    )
