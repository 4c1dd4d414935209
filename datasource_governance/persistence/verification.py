"""Verify all evidence of a tenant: every link, every head, every governed row.

Source: SPEC section 13 (`evidence verify`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Engine

from datasource_governance.domain.evidence import (
    Break,
    Entry,
    Head,
    find_chain_breaks,
    find_row_breaks,
    fold_rows,
)
from datasource_governance.persistence.chains import PostgresEvidence, RowCommitments
from datasource_governance.persistence.connection import Connection
from datasource_governance.persistence.rows import Rows
from datasource_governance.persistence.signatures import find_unsigned


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was verified and what is broken.

    Nothing broken does not prove that nothing is gone: a chain cut off together with its head is
    found only by `heads` that were kept elsewhere.
    """

    chains: int
    entries: int
    rows: int
    breaks: tuple[Break, ...]
    heads: tuple[Head, ...]

    @property
    def holds(self) -> bool:
        """Whether no break was found."""
        return not self.breaks

    def document(self) -> dict[str, object]:
        """Return the JSON form of the report."""
        return {
            "format": "datasource_governance/verification/v1",
            "holds": self.holds,
            "chains": self.chains,
            "entries": self.entries,
            "rows": self.rows,
            "breaks": [one.document() for one in self.breaks],
            "heads": [
                {"chain": head.chain, "sequence": head.sequence, "hash": head.entry_hash}
                for head in self.heads
            ],
        }


def verify_evidence(
    engine: Engine, tenant: str, progress: Callable[[int], None] | None = None
) -> Verification:
    """Verify everything a tenant has, over one snapshot. `progress` is told of entries read."""
    connection = Connection(engine, tenant, "REPEATABLE READ")
    connection.begin()
    try:
        return _verify(Rows(connection, tenant), progress)
    finally:
        connection.close()


def _verify(rows: Rows, progress: Callable[[int], None] | None) -> Verification:
    evidence = PostgresEvidence(rows)
    stored = evidence.heads()
    heads = dict(stored)
    committed: RowCommitments = {}
    breaks: list[Break] = []
    chains = count = 0
    chain: list[Entry] = []
    for entry in evidence.entries():
        if chain and chain[0].chain != entry.chain:
            breaks += _chain_breaks(chain, heads)
            chains += 1
            chain = []
        chain.append(entry)
        fold_rows(committed, entry)
        count += 1
        if progress is not None:
            progress(count)
    if chain:
        breaks += _chain_breaks(chain, heads)
        chains += 1
    for head in heads.values():
        breaks += find_chain_breaks([], head)
    present = evidence.present_rows()
    breaks += find_row_breaks(committed, present)
    breaks += find_unsigned(rows)
    return Verification(
        chains=chains,
        entries=count,
        rows=len(present),
        breaks=tuple(breaks),
        heads=tuple(stored.values()),
    )


def _chain_breaks(chain: list[Entry], heads: dict[str, Head]) -> list[Break]:
    return find_chain_breaks(chain, heads.pop(chain[0].chain, None))
