"""Datasources, stages, decisions and materializations in Postgres.

Source: ports.lifecycle, which says what each method promises.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from sqlalchemy import (
    ARRAY,
    JSON,
    ColumnElement,
    Select,
    Table,
    Text,
    and_,
    any_,
    bindparam,
    case,
    cast,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    tuple_,
)

from datasource_governance.domain.approval import Decision
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.materialization import Materialization
from datasource_governance.domain.policy_version import PolicyKind, PolicySource, PolicyVersion
from datasource_governance.domain.quality_provider import EVALUATOR_VERSION
from datasource_governance.domain.schema import TableSchema
from datasource_governance.domain.schema_document import parse_schema
from datasource_governance.domain.stage import OPEN_STATES, Stage, StageState
from datasource_governance.domain.target import Governance, Target
from datasource_governance.persistence import mapping, tables
from datasource_governance.persistence.governance import governance
from datasource_governance.persistence.locks import Place
from datasource_governance.persistence.rows import Row, Rows
from datasource_governance.persistence.statements import lookup

_SCHEMA = lookup(tables.materialization, ("tenant", "id")).with_only_columns(
    tables.materialization.c.schema
)

_ABOUT = lookup(tables.decision, ("tenant", "stage")).order_by(
    tables.decision.c.decided_at, tables.decision.c.id
)


@cache
def _stages(asked: Collection[str]) -> Select[Any]:
    """Select stages, newest first, by those of `datasource`, `state` and `partition` asked for."""
    table = tables.stage
    query = lookup(table, ("tenant",)).order_by(table.c.created_at.desc(), table.c.id)
    if "datasource" in asked:
        query = query.where(table.c.datasource == bindparam("datasource"))
    if "state" in asked:
        query = query.where(table.c.state == any_(bindparam("state", type_=ARRAY(Text))))
    if "partition" in asked:
        query = query.where(table.c.partition.is_not_distinct_from(bindparam("partition")))
    return query


class PostgresDatasources:
    """See ports.Datasources."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def get(self, datasource: str, partition: str = "") -> Target:
        row = self._rows.find(tables.datasource, id=datasource)
        return self._target(self._rows.known(row, f"datasource {datasource!r}"), partition)

    def governance(self, datasource: str, partition: str) -> Governance:
        return governance(self._rows, datasource, partition)

    def get_for_update(self, datasource: str, partition: str = "") -> Target:
        row = self._locked(datasource)
        return self._target(self._rows.known(row, f"datasource {datasource!r}"), partition)

    def _target(self, row: Row, partition: str) -> Target:
        if not partition:
            return mapping.target(row)
        # In a statement of its own, so that it sees what was committed before the lock was given.
        named = {"datasource": row["id"], "partition": partition}
        found = self._rows.find(tables.current_partition, **named)
        return mapping.target(row, partition, found["materialization"] if found else None)

    def find(self, datasource: str) -> Target | None:
        row = self._locked(datasource)
        return mapping.target(row) if row else None

    def _locked(self, datasource: str) -> Row | None:
        self._rows.locks.hold_authority()
        self._rows.locks.take(Place.DATASOURCE, datasource)
        return self._rows.find_and_lock(tables.datasource, id=datasource)

    def list(self) -> Sequence[Target]:
        query = self._rows.of(tables.datasource).order_by(tables.datasource.c.id)
        return [mapping.target(row) for row in self._rows.all(query)]

    def add(self, target: Target) -> None:
        self._rows.insert(tables.datasource, mapping.target_row(target))

    def change(self, target: Target, *, revision: int) -> None:
        self._rows.change(tables.datasource, mapping.target_row(target), revision=revision)

    def move(self, target: Target, materialization: str) -> Target:
        moved = target.moved_to(materialization)
        self.change(moved, revision=target.revision)
        if target.partition:
            row = {
                "datasource": target.datasource,
                "partition": target.partition,
                "materialization": materialization,
                "revision": moved.revision,
            }
            write = self._rows.insert if target.current is None else self._rows.change
            write(tables.current_partition, row)
        return moved

    def policy(
        self,
        datasource: str,
        kind: PolicyKind,
        policy_hash: Sha256,
        source: PolicySource = PolicySource.INHERITED,
    ) -> PolicyVersion:
        kept = mapping.policy_kind(kind, source)
        row = self._rows.find(
            tables.policy_version, datasource=datasource, kind=kept, hash=policy_hash
        )
        what = f"{kind} policy {policy_hash[:12]} of datasource {datasource!r}"
        return mapping.policy_version(self._rows.known(row, what))

    def policies(self, datasource: str) -> Sequence[PolicyVersion]:
        table = tables.policy_version
        query = self._rows.of(table, datasource=datasource)
        rows = self._rows.all(query.order_by(table.c.created_at, table.c.kind))
        return [mapping.policy_version(row) for row in rows]

    def add_policy(self, version: PolicyVersion) -> None:
        row = mapping.policy_version_row(version)
        named = {name: row[name] for name in ("datasource", "kind", "hash")}
        if self._rows.find(tables.policy_version, **named) is None:
            self._rows.insert(tables.policy_version, row)


class PostgresStages:
    """See ports.Stages."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def get(self, stage: str) -> Stage:
        row = self._rows.find(tables.stage, id=stage)
        return mapping.stage(self._rows.known(row, f"stage {stage!r}"))

    def get_for_update(self, stage: str) -> Stage:
        self._rows.locks.take(Place.STAGE, stage)
        row = self._rows.find_and_lock(tables.stage, id=stage)
        return mapping.stage(self._rows.known(row, f"stage {stage!r}"))

    def attested_by(self, attestation_id: str, datasource: str) -> Stage | None:
        created = {"attestation_id": attestation_id, "datasource": datasource}
        row = self._rows.find(tables.stage, **created)
        return mapping.stage(row) if row else None

    def last_read(self, datasource: str, origin: Sha256) -> Stage | None:
        read = self._rows.of(tables.stage, datasource=datasource, origin=origin)
        return next(iter(self._newest(read, None, 1)), None)

    def version_read(self, stage: str) -> str | None:
        row = self._rows.find(tables.origin_version, stage=stage)
        return row["version"] if row else None

    def of_publication(self, publication: str) -> Stage | None:
        row = self._rows.find(tables.stage, publication=publication)
        return mapping.stage(row) if row else None

    def list(
        self,
        datasource: str | None,
        states: Collection[StageState],
        partition: str | None = None,
    ) -> Sequence[Stage]:
        asked: dict[str, object] = {"tenant": self._rows.tenant}
        if datasource is not None:
            asked["datasource"] = datasource
        if states:
            asked["state"] = sorted(states)
        if partition is not None:
            asked["partition"] = partition or None
        rows = self._rows.all(_stages(frozenset(asked)), asked)
        return [mapping.stage(row) for row in rows]

    def unsettled(self, datasource: str) -> Sequence[Stage]:
        stage, target, decision = tables.stage, tables.datasource, tables.decision
        part = tables.current_partition
        decided = exists().where(self._rows.mine(decision), decision.c.stage == stage.c.id)
        current = case(
            (stage.c.partition.is_(None), target.c.current_materialization),
            else_=part.c.materialization,
        )
        moved = or_(
            stage.c.base.is_distinct_from(current),
            and_(
                stage.c.policy_source == PolicySource.INHERITED,
                stage.c.quality_policy_hash.is_distinct_from(target.c.quality_policy_hash),
            ),
            stage.c.approval_policy_hash.is_distinct_from(target.c.approval_policy_hash),
            stage.c.evaluator_version != _evaluator_version(target),
        )
        query = (
            self._rows.of(stage, datasource=datasource)
            .join(target, and_(self._rows.mine(target), target.c.id == stage.c.datasource))
            .outerjoin(
                part,
                and_(
                    self._rows.mine(part, datasource=datasource),
                    part.c.partition == stage.c.partition,
                ),
            )
            .where(stage.c.state.in_(sorted(OPEN_STATES)))
            .where(or_(decided, moved, stage.c.state == StageState.READY))
            .order_by(stage.c.created_at, stage.c.id)
        )
        return [mapping.stage(row) for row in self._rows.all(query)]

    def awaiting_approval(
        self, datasources: Collection[str], *, before: Stage | None, limit: int
    ) -> Sequence[Stage]:
        table = tables.stage
        query = self._rows.of(table, state=str(StageState.AWAITING_APPROVAL))
        named = query.where(table.c.datasource.in_(sorted(datasources)))
        return self._newest(named, before, limit)

    def page(self, datasource: str, *, before: Stage | None, limit: int) -> Sequence[Stage]:
        return self._newest(self._rows.of(tables.stage, datasource=datasource), before, limit)

    def _newest(self, query: Select[Any], before: Stage | None, limit: int) -> Sequence[Stage]:
        table = tables.stage
        if before is not None:
            place = tuple_(table.c.created_at, table.c.id)
            query = query.where(place < tuple_(literal(before.created_at), literal(before.id)))
        ordered = query.order_by(table.c.created_at.desc(), table.c.id.desc()).limit(limit)
        return [mapping.stage(row) for row in self._rows.all(ordered)]

    def known(self, datasource: str, stages: Collection[str]) -> Collection[str]:
        table = tables.stage
        query = self._rows.of(table, datasource=datasource).where(table.c.id.in_(sorted(stages)))
        return {row["id"] for row in self._rows.all(query.with_only_columns(table.c.id))}

    def add(self, stage: Stage, payload: bytes | None, version: str | None = None) -> None:
        self._rows.insert(tables.stage, mapping.partitioned_row(stage))
        if payload is not None:
            self._rows.insert(tables.stage_payload, {"stage": stage.id, "payload": payload})
        if version is not None:
            self._rows.insert(tables.origin_version, {"stage": stage.id, "version": version})

    def change_state(self, stage: Stage, state: StageState) -> None:
        row = mapping.partitioned_row(replace(stage, state=state))
        self._rows.change(tables.stage, row, state=str(stage.state))

    def payload_sha256(self, stage: str) -> Sha256:
        table = tables.stage_payload
        digest = func.encode(func.sha256(table.c.payload), "hex").label("sha256")
        query = select(digest).where(self._rows.mine(table, stage=stage))
        return Sha256(self._rows.one(query, f"payload of stage {stage!r}")["sha256"])


class PostgresDecisions:
    """See ports.Decisions."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def about(self, stage: str) -> Sequence[Decision]:
        rows = self._rows.all(_ABOUT, {"tenant": self._rows.tenant, "stage": stage})
        return [mapping.decision(row) for row in rows]

    def about_any(self, stages: Collection[str]) -> Sequence[Decision]:
        table = tables.decision
        query = self._rows.of(table).where(table.c.stage.in_(sorted(stages)))
        rows = self._rows.all(query.order_by(table.c.decided_at, table.c.id))
        return [mapping.decision(row) for row in rows]

    def about_open(self, datasource: str) -> Sequence[Decision]:
        table, stage = tables.decision, tables.stage
        query = (
            select(table)
            .join(stage, and_(self._rows.mine(table), table.c.stage == stage.c.id))
            .where(self._rows.mine(stage, datasource=datasource))
            .where(stage.c.state.in_(sorted(OPEN_STATES)))
            .order_by(table.c.decided_at, table.c.id)
        )
        return [mapping.decision(row) for row in self._rows.all(query)]

    def add(self, decision: Decision) -> None:
        self._rows.insert(tables.decision, mapping.decision_row(decision))


class PostgresMaterializations:
    """See ports.Materializations."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def get(self, materialization: str) -> Materialization:
        row = self._rows.find(tables.materialization, id=materialization)
        return mapping.materialization(
            self._rows.known(row, f"materialization {materialization!r}")
        )

    def schema(self, materialization: str) -> TableSchema:
        named = {"tenant": self._rows.tenant, "id": materialization}
        row = self._rows.known(
            self._rows.first(_SCHEMA, named), f"materialization {materialization!r}"
        )
        return parse_schema(row["schema"])

    def of_stage(self, stage: str) -> Materialization | None:
        row = self._rows.find(tables.materialization, stage=stage)
        return mapping.materialization(row) if row else None

    def page(
        self, datasource: str, *, before: Materialization | None, limit: int
    ) -> Sequence[Materialization]:
        table = tables.materialization
        query = self._rows.of(table, datasource=datasource).limit(limit)
        query = query.where(table.c.revision.is_not(None))
        if before is not None:
            query = query.where(table.c.revision < before.revision)
        rows = self._rows.all(query.order_by(table.c.revision.desc()))
        return [mapping.materialization(row) for row in rows]

    def known(self, datasource: str, materializations: Collection[str]) -> Collection[str]:
        table = tables.materialization
        query = self._rows.of(table, datasource=datasource)
        named = query.where(table.c.id.in_(sorted(materializations)))
        return {row["id"] for row in self._rows.all(named.with_only_columns(table.c.id))}

    def artifacts(self) -> Collection[str]:
        table = tables.materialization
        reference = cast(func.convert_from(table.c.artifact, "UTF8"), JSON)
        locator = reference["locator"].as_string().label("locator")
        query = self._rows.of(table).where(table.c.artifact.is_not(None))
        return {row["locator"] for row in self._rows.all(query.with_only_columns(locator))}

    def of_publication(self, publication: str) -> Materialization:
        row = self._rows.find(tables.materialization, publication=publication)
        what = f"materialization of publication {publication!r}"
        return mapping.materialization(self._rows.known(row, what))

    def add(self, materialization: Materialization) -> None:
        self._rows.insert(tables.materialization, mapping.partitioned_row(materialization))
        if materialization.artifact is None:
            self._copy_payload(materialization)

    def _copy_payload(self, materialization: Materialization) -> None:
        # Inside the server: the payload never travels to the client and back.
        source, copy = tables.stage_payload, tables.materialization_payload
        selected = select(source.c.tenant, literal(materialization.id), source.c.payload).where(
            self._rows.mine(source, stage=materialization.stage)
        )
        self._rows.connection.execute(
            insert(copy).from_select(["tenant", "materialization", "payload"], selected)
        )
        row = {"materialization": materialization.id, "payload": materialization.payload_sha256}
        self._rows.note(copy, row)

    def payload_size(self, materialization: str) -> int:
        table = tables.materialization_payload
        size = func.octet_length(table.c.payload).label("size")
        query = select(size).where(self._rows.mine(table, materialization=materialization))
        return int(self._rows.one(query, f"payload of materialization {materialization!r}")["size"])

    def payload(self, materialization: str) -> bytes:
        query = self._rows.of(tables.materialization_payload, materialization=materialization)
        row = self._rows.one(query, f"payload of materialization {materialization!r}")
        return bytes(row["payload"])


def _evaluator_version(target: Table) -> ColumnElement[str]:
    """Return who evaluates for a datasource now, as `mapping.target` says."""
    settings = cast(func.convert_from(target.c.settings, "UTF8"), JSON)
    return func.coalesce(settings["evaluator_version"].as_string(), EVALUATOR_VERSION)
