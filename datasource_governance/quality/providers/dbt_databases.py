"""The databases that dbt's tests read: Postgres and DuckDB, and a DuckDB file made of a frame.

Addresses and passwords are in the environment of dbt alone. Nothing is written to what is read.

Source: SPEC sections 3 and 14; facts on the quality plugin, 8.5.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from datasource_governance.domain.canonical import Json
from datasource_governance.domain.quality_expectation import ContentRule
from datasource_governance.quality.duckdb_frames import DuckDbFrame, duckdb_frame
from datasource_governance.quality.failed_rows import failed_rows, relation_name
from datasource_governance.quality.providers.dbt_project import variable
from datasource_governance.quality.targets import FrameTarget, SqlTarget, Target

if TYPE_CHECKING:
    import pyarrow as pa

_FILE = "DUCKDB_FILE"
_FRAME = "frame"
_DUCKDB: Final[Mapping[str, Json]] = MappingProxyType(
    {
        "type": "duckdb",
        "path": variable(_FILE),
        "config_options": {"access_mode": "READ_ONLY"},
    }
)
_POSTGRES: Final[Mapping[str, Json]] = MappingProxyType(
    {
        "type": "postgres",
        "host": variable("PGHOST"),
        "port": variable("PGPORT", "as_number"),
        "user": variable("PGUSER"),
        "password": variable("PGPASSWORD"),
        "dbname": variable("PGDATABASE"),
        # Where dbt would write, if it did.
        "schema": "public",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A table that tests read.

    Attributes:
        profile: What dbt is told of its database.
        environment: The variables that the profile and the driver read.
        dialect: `postgresql` or `duckdb`.
        relation: How SQL names the table.
        columns: Its columns, with the Arrow types of their typed form.
        frame: What the table was made of, where it is a frame.
    """

    profile: Mapping[str, Json]
    environment: Mapping[str, str]
    dialect: str
    relation: str
    columns: "pa.Schema"
    frame: DuckDbFrame | None = None

    def query(self, rule: ContentRule) -> str | None:
        """Return the query for the rows that violate a rule, None where it would not be exact."""
        if self.frame is not None:
            return self.frame.query(rule, self.relation)
        return failed_rows(rule, self.columns, self.dialect, self.relation)


def database_of(target: Target, folder: Path) -> Database:
    """Return the database of a table; a frame is written to a file in the folder."""
    if isinstance(target, FrameTarget):
        return _of_frame(target.table, folder / "frame.duckdb")
    is_duckdb = target.dialect == "duckdb"
    return Database(
        profile=_DUCKDB if is_duckdb else _POSTGRES,
        environment=_duckdb_environment(target) if is_duckdb else _postgres_environment(target),
        dialect=target.dialect,
        relation=relation_name(target.schema, target.table, target.dialect),
        columns=target.columns,
    )


def _of_frame(table: "pa.Table", file: Path) -> Database:
    import duckdb

    frame = duckdb_frame(table)
    with duckdb.connect(str(file)) as connection:
        connection.register("given", frame.table)
        connection.execute(f"CREATE TABLE {_FRAME} AS FROM given")
    return Database(
        profile=_DUCKDB,
        environment={_FILE: str(file)},
        dialect="duckdb",
        relation=_FRAME,
        columns=frame.table.schema,
        frame=frame,
    )


def _duckdb_environment(target: SqlTarget) -> dict[str, str]:
    from sqlalchemy import make_url

    return {_FILE: str(Path(make_url(target.url).database or "").absolute())}


def _postgres_environment(target: SqlTarget) -> dict[str, str]:
    """Return an address as the variables that every Postgres client reads."""
    from psycopg.pq import Conninfo
    from sqlalchemy import make_url

    url = make_url(target.url)
    given = url.get_dialect()().create_connect_args(url)[1]
    names = {
        one.keyword.decode(): one.envvar.decode() for one in Conninfo.get_defaults() if one.envvar
    }
    found = {names[key]: str(value) for key, value in given.items() if key in names}
    settings = (
        f"-c default_transaction_read_only=on -c statement_timeout={target.timeout_seconds * 1000}"
    )
    options = f"{found.get('PGOPTIONS', '')} {settings}".strip()
    return {"PGPORT": "5432", **found, "PGOPTIONS": options}
