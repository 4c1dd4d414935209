"""The hash chains in Postgres: append last, read segments, look for breaks.

The head row is locked by the append and held until commit, so the append is the last statement of
every transaction; the heads of different datasources do not wait for each other.

Source: SPEC section 13; facts on evidence chains.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Table, bindparam, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.evidence import (
    Break,
    Committed,
    Entry,
    Head,
    Key,
    find_chain_breaks,
    find_row_breaks,
    fold_rows,
    genesis,
    link,
)
from datasource_governance.persistence import mapping, tables
from datasource_governance.persistence.locks import Place
from datasource_governance.persistence.rows import (
    Rows,
    immutable_commitment,
    mutable_commitment,
    row_key,
)
from datasource_governance.persistence.statements import inserted, insertion

_BATCH = 1000
_BY_STAGE = {"stage": "id", "stage_payload": "stage", "decision": "stage"}
"""The tables, and the column naming the stage, that a decision about a stage rests on."""
_APPEND = (
    update(tables.evidence_head)
    .where(tables.evidence_head.c.tenant == bindparam("0_tenant"))
    .where(tables.evidence_head.c.chain == bindparam("0_chain"))
    .values(sequence=bindparam("0_sequence"), entry_hash=bindparam("0_entry_hash"))
    .add_cte(insertion((tables.evidence, tuple(tables.evidence.c.keys()))).cte("entry"))
)
"""An entry and the head that it becomes, in one statement, because everybody else of its chain
waits until the commit."""

RowCommitments = dict[tuple[str, Key], tuple[Sha256, Sha256 | None]]


class PostgresEvidence:
    """See ports.Evidence."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def append(
        self, chain: str, *, kind: str, subject: str, facts: Mapping[str, object], at: datetime
    ) -> Entry:
        head = self._lock_head(chain)
        entry = link(head, kind=kind, subject=subject, facts=facts, rows=self._rows.notes, at=at)
        columns = {column.name: getattr(entry, column.name) for column in tables.evidence.columns}
        self._rows.connection.later(_APPEND, inserted(columns))
        self._rows.notes.clear()
        return entry

    def _lock_head(self, chain: str) -> Head:
        self._rows.locks.take(Place.CHAIN, chain)
        known = self._rows.find_and_lock(tables.evidence_head, chain=chain)
        if known is not None:
            return Head(**known)
        first = {
            "tenant": self._rows.tenant,
            "chain": chain,
            "sequence": 0,
            "entry_hash": genesis(self._rows.tenant, chain),
        }
        self._rows.connection.execute(upsert(tables.evidence_head).on_conflict_do_nothing(), first)
        added = self._rows.find_and_lock(tables.evidence_head, chain=chain)
        return Head(**self._rows.known(added, f"chain {chain!r}"))

    def heads_with_lock(self, chain: str) -> Mapping[str, Head]:
        self._lock_head(chain)
        return self.heads()

    def head(self, chain: str) -> Head | None:
        row = self._rows.first(self._rows.of(tables.evidence_head, chain=chain))
        return Head(**row) if row else None

    def segment(self, chain: str, subject: str) -> Sequence[Entry]:
        table = tables.evidence
        query = self._rows.of(table, chain=chain, subject=subject).order_by(table.c.sequence)
        return [mapping.entry(row) for row in self._rows.all(query)]

    def since(self, chain: str, sequence: int, limit: int) -> Sequence[Entry]:
        table = tables.evidence
        query = self._rows.of(table, chain=chain).where(table.c.sequence > sequence)
        rows = self._rows.all(query.order_by(table.c.sequence).limit(limit))
        return [mapping.entry(row) for row in rows]

    def span(self, chain: str, first: int, last: int) -> Sequence[Entry]:
        table = tables.evidence
        query = self._rows.of(table, chain=chain).where(table.c.sequence.between(first, last))
        return [mapping.entry(row) for row in self._rows.all(query.order_by(table.c.sequence))]

    def breaks_about(self, chain: str, subject: str) -> Sequence[Break]:
        entries = self._since(chain, subject)
        committed: Committed = {}
        places: set[tuple[str, Key]] = set()
        for entry in entries:
            fold_rows(committed, entry)
            if entry.subject == subject:
                places |= {(row.table, row.key) for row in entry.rows() if row.table in _BY_STAGE}
        spoken_of: Committed = {place: committed[place] for place in places}
        first = entries[0].sequence if entries else 1
        return [
            *find_chain_breaks(entries, self.head(chain), first=first),
            *find_row_breaks(spoken_of, self._rows_about(subject)),
        ]

    def _since(self, chain: str, subject: str) -> Sequence[Entry]:
        """Return every entry from the first one about a subject on, so that none can be missing."""
        table = tables.evidence
        first = (
            select(func.min(table.c.sequence))
            .where(self._rows.mine(table, chain=chain, subject=subject))
            .scalar_subquery()
        )
        query = self._rows.of(table, chain=chain).where(table.c.sequence >= first)
        return [mapping.entry(row) for row in self._rows.all(query.order_by(table.c.sequence))]

    def _rows_about(self, stage: str) -> RowCommitments:
        found: RowCommitments = {}
        for name, column in _BY_STAGE.items():
            table = tables.metadata.tables[f"governance.{name}"]
            query = self._rows.comparable(table, **{column: stage})
            found.update(_commitments(table, self._rows.all(query)))
        return found

    def entries(self) -> Iterator[Entry]:
        """Yield every entry of the tenant in order of chain and sequence, read in batches."""
        table = tables.evidence
        chain, sequence = "", 0
        while True:
            after = (table.c.chain > chain) | (
                (table.c.chain == chain) & (table.c.sequence > sequence)
            )
            query = self._rows.of(table).where(after)
            batch = self._rows.all(query.order_by(table.c.chain, table.c.sequence).limit(_BATCH))
            for row in batch:
                yield mapping.entry(row)
            if len(batch) < _BATCH:
                return
            chain, sequence = batch[-1]["chain"], batch[-1]["sequence"]

    def heads(self) -> Mapping[str, Head]:
        """Return the stored head of every chain."""
        rows = self._rows.all(self._rows.of(tables.evidence_head))
        return {row["chain"]: Head(**row) for row in rows}

    def present_rows(self) -> RowCommitments:
        """Return the commitments of every governed row as it is now."""
        found: RowCommitments = {}
        for table in tables.GOVERNED:
            found.update(_commitments(table, self._rows.all(self._rows.comparable(table))))
        return found


def _commitments(table: Table, rows: Sequence[Mapping[str, Any]]) -> RowCommitments:
    found: RowCommitments = {}
    for row in rows:
        place = (table.name, row_key(table, row))
        # Only without its primary key has a table two rows of one key; neither is the right one.
        unique = place not in found
        immutable = immutable_commitment(table, row) if unique else Sha256("")
        found[place] = (immutable, mutable_commitment(table, row))
    return found
