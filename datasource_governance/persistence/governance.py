"""A datasource with everything that an output is judged by, in one read.

Source: ports.lifecycle, `Datasources.governance`.
"""

from typing import Final

from sqlalchemy import ColumnElement, FromClause, Select, and_, bindparam, case, select

from datasource_governance.domain.policy_version import PolicyKind, PolicyVersion
from datasource_governance.domain.schema_document import parse_schema
from datasource_governance.domain.target import Governance
from datasource_governance.persistence import mapping, tables
from datasource_governance.persistence.rows import Row, Rows

_DATASOURCE, _PARTITION = tables.datasource, tables.current_partition
_POLICIES: Final = {kind: tables.policy_version.alias(kind) for kind in ("quality", "approval")}
_MATERIALIZATION = tables.materialization


def governance(rows: Rows, datasource: str, partition: str) -> Governance:
    """See ports.Datasources."""
    named = {"tenant": rows.tenant, "datasource": datasource, "partition": partition}
    row = rows.known(rows.first(_GOVERNANCE, named), f"datasource {datasource!r}")
    target = mapping.target(row, partition, row["in_partition"])
    schema = None
    if target.current is not None:
        current = row if row["current_schema"] is not None else None
        what = f"materialization {target.current!r}"
        schema = parse_schema(rows.known(current, what)["current_schema"])
    return Governance(
        target=target,
        quality_policy=_policy(rows, row, PolicyKind.QUALITY),
        approval_policy=_policy(rows, row, PolicyKind.APPROVAL),
        schema=schema,
    )


def _policy(rows: Rows, row: Row, kind: PolicyKind) -> PolicyVersion | None:
    wanted = row[f"{kind}_policy_hash"]
    if wanted is None:
        return None
    named = {column.name: row[f"{kind}_{column.name}"] for column in tables.policy_version.c}
    what = f"{kind} policy {wanted[:12]} of datasource {row['id']!r}"
    return mapping.policy_version(rows.known(named if named["hash"] else None, what))


def _statement() -> Select[tuple[object, ...]]:
    current = case(
        (bindparam("partition") == "", _DATASOURCE.c.current_materialization),
        else_=_PARTITION.c.materialization,
    )
    joined = _DATASOURCE.outerjoin(
        _PARTITION,
        and_(
            _PARTITION.c.tenant == _DATASOURCE.c.tenant,
            _PARTITION.c.datasource == _DATASOURCE.c.id,
            _PARTITION.c.partition == bindparam("partition"),
        ),
    ).outerjoin(
        _MATERIALIZATION,
        and_(_MATERIALIZATION.c.tenant == _DATASOURCE.c.tenant, _MATERIALIZATION.c.id == current),
    )
    columns: list[ColumnElement[object]] = []
    for kind, policy in _POLICIES.items():
        joined = joined.outerjoin(policy, _in_force(kind, policy))
        columns += [column.label(f"{kind}_{column.name}") for column in policy.c]
    return (
        select(
            _DATASOURCE,
            _PARTITION.c.materialization.label("in_partition"),
            _MATERIALIZATION.c.schema.label("current_schema"),
            *columns,
        )
        .select_from(joined)
        .where(_DATASOURCE.c.tenant == bindparam("tenant"))
        .where(_DATASOURCE.c.id == bindparam("datasource"))
    )


def _in_force(kind: str, policy: FromClause) -> ColumnElement[bool]:
    return and_(
        policy.c.tenant == _DATASOURCE.c.tenant,
        policy.c.datasource == _DATASOURCE.c.id,
        policy.c.kind == kind,
        policy.c.hash == _DATASOURCE.c[f"{kind}_policy_hash"],
    )


_GOVERNANCE = _statement()
