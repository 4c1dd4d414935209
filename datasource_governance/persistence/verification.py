"""Verify all evidence of a tenant: every link, every head, every governed row, and checkpoints.

Source: SPEC section 13 (`evidence verify`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Engine

from datasource_governance.domain.attestation import KeyKind, key_id
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.checkpoint import (
    Checkpoint,
    KeptCheckpoints,
    TrustedKey,
    open_checkpoint,
)
from datasource_governance.domain.evidence import (
    Break,
    Committed,
    Entry,
    Head,
    find_chain_breaks,
    find_row_breaks,
    fold_rows,
)
from datasource_governance.domain.witness import ONLY_BY_CHECKPOINT, Witness
from datasource_governance.persistence.authority import PostgresAuthority
from datasource_governance.persistence.chains import PostgresEvidence
from datasource_governance.persistence.connection import Connection
from datasource_governance.persistence.destruction import find_unaccounted, find_unplanned
from datasource_governance.persistence.rows import Rows
from datasource_governance.persistence.signatures import find_unsigned


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was verified and what is broken.

    Without a checkpoint, nothing broken does not prove that nothing is gone: `unproved` names what
    was not looked for. With some, nothing is proved of what was written after the `newest` one.
    `checkpoints` were held against the chains, of the `recorded` ones that they speak of.
    """

    chains: int
    entries: int
    rows: int
    breaks: tuple[Break, ...]
    heads: tuple[Head, ...]
    checkpoints: int = 0
    recorded: int = 0
    newest: Checkpoint | None = None

    @property
    def holds(self) -> bool:
        """Whether no break was found."""
        return not self.breaks

    @property
    def unproved(self) -> tuple[str, ...]:
        """The kinds of breaks that could not be found without a checkpoint."""
        return () if self.newest else tuple(map(str, ONLY_BY_CHECKPOINT))

    def document(self) -> dict[str, object]:
        """Return the JSON form of the report."""
        newest = self.newest
        return {
            "format": "datasource_governance/verification/v1",
            "holds": self.holds,
            "chains": self.chains,
            "entries": self.entries,
            "rows": self.rows,
            "breaks": [one.document() for one in self.breaks],
            "unproved": list(self.unproved),
            "checkpoints": {
                "held": self.checkpoints,
                "recorded": self.recorded,
                "newest": newest and {"sequence": newest.sequence, "at": newest.at.isoformat()},
            },
            "heads": [
                {"chain": head.chain, "sequence": head.sequence, "hash": head.entry_hash}
                for head in self.heads
            ],
        }


def verify_evidence(
    engine: Engine,
    tenant: str,
    progress: Callable[[int], None] | None = None,
    kept: KeptCheckpoints | None = None,
) -> Verification:
    """Verify everything a tenant has, over one snapshot, and hold kept checkpoints against it.

    `progress` is told of entries read. Checkpoints are read first, because each was recorded before
    it was kept: whatever is read is no newer than the snapshot.
    """
    witness = Witness(tenant)
    breaks = [] if kept is None else _hold(witness, kept, tenant, _trusted(engine, tenant, kept))
    connection = Connection(engine, tenant)
    connection.begin(snapshot=True)
    try:
        return _verify(Rows(connection, tenant), witness, breaks, progress)
    finally:
        connection.close()


def _hold(
    witness: Witness, kept: KeptCheckpoints, tenant: str, keys: dict[Sha256, TrustedKey]
) -> list[Break]:
    unusable: list[Break] = []
    for name, content in kept.files:
        opened = open_checkpoint(name, content, tenant=tenant, keys=keys)
        if isinstance(opened, Checkpoint):
            witness.hold(opened)
        else:
            unusable.append(opened)
    return unusable


def _trusted(engine: Engine, tenant: str, kept: KeptCheckpoints) -> dict[Sha256, TrustedKey]:
    if kept.public_key is not None:
        return {key_id(kept.public_key): TrustedKey(public_key=kept.public_key)}
    connection = Connection(engine, tenant)
    connection.begin()
    try:
        keys = PostgresAuthority(Rows(connection, tenant)).keys(None)
    finally:
        connection.close()
    return {
        key.id: TrustedKey(public_key=key.public_key, revoked_at=key.revoked_at)
        for key in keys
        if key.kind is KeyKind.ACTOR
    }


def _verify(
    rows: Rows, witness: Witness, breaks: list[Break], progress: Callable[[int], None] | None
) -> Verification:
    evidence = PostgresEvidence(rows)
    stored = evidence.heads()
    heads = dict(stored)
    committed: Committed = {}
    chains = count = 0
    chain: list[Entry] = []
    for entry in evidence.entries():
        if chain and chain[0].chain != entry.chain:
            breaks += _chain_breaks(chain, heads)
            chains += 1
            chain = []
        chain.append(entry)
        fold_rows(committed, entry)
        witness.see(entry)
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
    breaks += find_unplanned(rows)
    breaks += find_unaccounted(committed, present)
    breaks += witness.breaks()
    return Verification(
        chains=chains,
        entries=count,
        rows=len(present),
        breaks=tuple(breaks),
        heads=tuple(stored.values()),
        checkpoints=witness.held,
        recorded=witness.recorded,
        newest=witness.newest,
    )


def _chain_breaks(chain: list[Entry], heads: dict[str, Head]) -> list[Break]:
    return find_chain_breaks(chain, heads.pop(chain[0].chain, None))
