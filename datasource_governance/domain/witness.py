"""Hold the chains as they are now against checkpoints of what they were.

Source: SPEC section 13 ("against one, truncation, a dropped chain and a restored old backup are
found too").
"""

from collections.abc import Iterator

from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.checkpoint import CHECKPOINTED, Checkpoint
from datasource_governance.domain.evidence import TENANT_CHAIN, Break, BreakKind, Entry

ONLY_BY_CHECKPOINT = (
    BreakKind.TRUNCATED_CHAIN,
    BreakKind.DROPPED_CHAIN,
    BreakKind.REWRITTEN_CHAIN,
    BreakKind.RESTORED_BACKUP,
)
"""What a database that is consistent in itself can hide."""


class Witness:
    """Holds a tenant's checkpoints, looks at every entry of its chains, says what differs.

    Links and hashes of the entries are verified elsewhere. `held` checkpoints were taken over, of
    which `newest` has the highest sequence; the tenant's chain speaks of `recorded` ones.
    """

    def __init__(self, tenant: str) -> None:
        self._tenant = tenant
        self._heads: dict[str, set[tuple[int, Sha256]]] = {}
        self._ids: dict[int, set[Sha256]] = {}
        self._places: set[tuple[str, int]] = set()
        self._found: dict[tuple[str, int], Sha256] = {}
        self._last: dict[str, int] = {}
        self.held = 0
        self.recorded = 0
        self.newest: Checkpoint | None = None

    def hold(self, checkpoint: Checkpoint) -> None:
        """Take over what a checkpoint says; before the first entry is looked at."""
        self.held += 1
        for head in checkpoint.heads:
            self._heads.setdefault(head.chain, set()).add((head.sequence, head.entry_hash))
            self._places.add((head.chain, head.sequence))
        self._ids.setdefault(checkpoint.sequence, set()).add(checkpoint.id)
        if self.newest is None or checkpoint.sequence > self.newest.sequence:
            self.newest = checkpoint

    def see(self, entry: Entry) -> None:
        """Look at one entry; those of one chain come in order."""
        place = entry.chain, entry.sequence
        self._last[entry.chain] = entry.sequence
        if place in self._places:
            self._found[place] = entry.entry_hash
        if entry.chain == TENANT_CHAIN and entry.kind == CHECKPOINTED:
            self.recorded += 1
            if self._ids.get(entry.sequence) == {entry.subject}:
                del self._ids[entry.sequence]

    def breaks(self) -> list[Break]:
        """Return what the checkpoints say of the chains that is no longer so."""
        found = [one for chain in sorted(self._heads) for one in self._chain_breaks(chain)]
        if self.newest is not None and self._is_older_than(self.newest):
            message = f"nothing here is newer than checkpoint {self.newest.sequence}, which is gone"
            found.append(self._break(BreakKind.RESTORED_BACKUP, TENANT_CHAIN, message))
        return found

    def _chain_breaks(self, chain: str) -> Iterator[Break]:
        last, longest = self._last.get(chain, 0), self._longest(chain)
        if last == 0:
            message = f"a checkpoint has {longest} entries of it, none is there"
            yield self._break(BreakKind.DROPPED_CHAIN, chain, message)
            return
        if last < longest:
            message = f"a checkpoint has {longest} entries of it, {last} are there"
            yield self._break(BreakKind.TRUNCATED_CHAIN, chain, message, last + 1)
        rewritten = min(self._rewritten(chain, last), default=None)
        if rewritten is not None:
            message = "a checkpoint has another entry there"
            yield self._break(BreakKind.REWRITTEN_CHAIN, chain, message, rewritten)

    def _longest(self, chain: str) -> int:
        longest = max(sequence for sequence, _ in self._heads[chain])
        # A checkpoint's own entry follows the head that it lists.
        own = self.newest.sequence if self.newest and chain == TENANT_CHAIN else 0
        return max(longest, own)

    def _rewritten(self, chain: str, last: int) -> Iterator[int]:
        """Yield places at which there is another entry; one that is missing is a gap."""
        for sequence, entry_hash in self._heads[chain]:
            if self._found.get((chain, sequence), entry_hash) != entry_hash:
                yield sequence
        if chain == TENANT_CHAIN:
            yield from (sequence for sequence in self._ids if sequence <= last)

    def _is_older_than(self, checkpoint: Checkpoint) -> bool:
        """Whether the checkpoint's own entry is gone and no chain goes beyond what it lists."""
        listed = {head.chain: head.sequence for head in checkpoint.heads}
        return self._last.get(TENANT_CHAIN, 0) < checkpoint.sequence and all(
            last <= listed.get(chain, 0) for chain, last in self._last.items()
        )

    def _break(
        self, kind: BreakKind, chain: str, message: str, sequence: int | None = None
    ) -> Break:
        key = (self._tenant, chain) if sequence is None else (self._tenant, chain, str(sequence))
        return Break(kind=kind, table="evidence", key=key, message=message)
