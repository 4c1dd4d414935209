"""One SQL statement written by hand for exactly the rules of the register, on DuckDB."""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.evidence import Finding, Findings
from datasource_governance.domain.quality_policy import QualityPolicy

if TYPE_CHECKING:
    import duckdb

_STATEMENT = """
with base as (
    select id, status, amount, customer_id, created_at, file_row_number + 1 as place from register
),
repeated_id as (select id from base group by all having count(*) > 1),
id_rows as (
    select place from base join repeated_id r on base.id is not distinct from r.id
),
repeated_key as (
    select customer_id, created_at from base
    where customer_id is not null and created_at is not null
    group by all having count(*) > 1
),
key_rows as (select place from base join repeated_key using (customer_id, created_at)),
values_seen as (
    select
        count(*) as total,
        count(*) filter (where id is null) as absent,
        min(place, 25) filter (where id is null) as absent_rows,
        count(*) filter (where amount < 0) as negative,
        min(place, 25) filter (where amount < 0) as negative_rows,
        count(*) filter (where unknown) as unknown,
        min(place, 25) filter (where unknown) as unknown_rows
    from (
        select *, coalesce(status not in (
            'new', 'open', 'held', 'review', 'approved', 'rejected', 'archived', 'closed'
        ), true) as unknown
        from base
    )
)
select
    values_seen.*,
    (select count(*) from id_rows), (select min(place, 25) from id_rows),
    (select count(*) from key_rows), (select min(place, 25) from key_rows)
from values_seen
"""


def load(path: Path) -> "duckdb.DuckDBPyConnection":
    """Return a database in memory with the file's rows in a table."""
    import duckdb

    connection = duckdb.connect()
    connection.read_parquet(str(path)).create("loaded")
    connection.execute("create view register as select *, rowid as file_row_number from loaded")
    return connection


def evaluate_file(path: Path, policy: QualityPolicy) -> Findings:
    """Evaluate the rules over the file, of which only the named columns are read."""
    import duckdb

    with duckdb.connect() as connection:
        connection.read_parquet(str(path), file_row_number=True).create_view("register")
        return evaluate(connection, policy)


def evaluate(connection: "duckdb.DuckDBPyConnection", _policy: QualityPolicy) -> Findings:
    """Return the findings of the register's rules, which the statement knows."""
    described = connection.execute("describe register").fetchall()
    types = {name: kind for name, kind, *_ in described}
    total, *counted = connection.execute(_STATEMENT).fetchall()[0]
    absent, negative, unknown, same_id, same_key = (
        _finding(affected, rows) for affected, rows in zip(counted[::2], counted[1::2], strict=True)
    )
    return {
        "non-empty": Finding(passed=total >= 1),
        "columns": Finding(passed={"id", "status"} <= types.keys()),
        "id-shape": absent if types["id"] == "BIGINT" else Finding(passed=False),
        "id-present": absent,
        "id-unique": same_id,
        "amount-range": negative,
        "known-status": unknown,
        "customer-time-unique": same_key,
    }


def _finding(affected: int, rows: list[int] | None) -> Finding:
    return Finding(passed=not affected, affected=affected, rows=tuple(sorted(rows or ())))
