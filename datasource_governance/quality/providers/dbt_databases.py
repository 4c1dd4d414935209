"""The databases that dbt's tests read: Postgres and DuckDB, and a DuckDB file made of a frame.

Addresses and passwords are in the environment of dbt alone. Nothing is written to what is read.

Source: SPEC sections 3 and 14; facts on the quality plugin, 8.5.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from datasource_governance.domain.canonical import Json
from datasource_governance.domain.quality_expectation import ContentRule
from datasource_governance.domain.rules import NotNullRule, RangeRule, ReferentialRule, UniqueRule
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
        names: What its columns are called there, by field.
        opaque: The fields of which only nulls are known.
    """

    profile: Mapping[str, Json]
    environment: Mapping[str, str]
    dialect: str
    relation: str
    columns: "pa.Schema"
    names: Mapping[str, str]
    opaque: frozenset[str] = frozenset()

    def query(self, rule: ContentRule) -> str | None:
        """Return the query for the rows that violate a rule, None where it would not be exact."""
        if not isinstance(rule, NotNullRule) and not self.opaque.isdisjoint(rule.fields):
            return None
        return failed_rows(_renamed(rule, self.names), self.columns, self.dialect, self.relation)


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
        names={name: name for name in target.columns.names},
    )


def _of_frame(table: "pa.Table", file: Path) -> Database:
    """Write a table whose columns are named by their places: DuckDB ignores the case of names."""
    import duckdb
    import pyarrow as pa

    opaque = frozenset(field.name for field in table.schema if not _is_kept(field.type))
    columns = [
        _validity(table.column(name)) if name in opaque else table.column(name)
        for name in table.column_names
    ]
    names = {name: str(place) for place, name in enumerate(table.column_names)}
    written = pa.table(columns, list(names.values()))
    with duckdb.connect(str(file)) as connection:
        connection.register("given", written)
        connection.execute(f"CREATE TABLE {_FRAME} AS FROM given")
    return Database(
        profile=_DUCKDB,
        environment={_FILE: str(file)},
        dialect="duckdb",
        relation=_FRAME,
        columns=written.schema,
        names=names,
        opaque=opaque,
    )


def _is_kept(kind: "pa.DataType") -> bool:
    """Tell whether DuckDB holds every value of a type as it is, and compares it as one."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return bool(types.is_large_string(kind.value_type))
    if types.is_timestamp(kind):
        return kind.tz is None or kind.unit != "ns"
    kept = (types.is_integer, types.is_float32, types.is_float64, types.is_decimal128)
    also = (
        types.is_boolean,
        types.is_large_string,
        types.is_large_binary,
        types.is_date32,
        types.is_null,
    )
    return kind == pa.time64("us") or any(is_of(kind) for is_of in (*kept, *also))


def _validity(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Return true where there is a value, and null where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    valid = pc.is_valid(column)
    return pc.if_else(valid, valid, pa.scalar(None, pa.bool_()))


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


def _renamed(rule: ContentRule, names: Mapping[str, str]) -> ContentRule:
    match rule:
        case NotNullRule() | UniqueRule():
            return replace(rule, fields=tuple(names[field] for field in rule.fields))
        case RangeRule() | ReferentialRule():
            return replace(rule, field=names[rule.field])
    return rule
