"""Hash-chained evidence: link entries, commit to rows, find every break.

Every transition appends one entry to a chain. An entry's hash covers the previous one, its place
and its body; the body commits to the columns of every row that the transition wrote: once to those
that never change (`immutable`), and each time to those that may (`mutable`). So verification finds
an edited business row as well as an edited entry, and a row that nothing accounts for.

Source: SPEC section 13.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from datasource_governance.domain.canonical import (
    Json,
    Sha256,
    canonical_bytes,
    digest,
    load_canonical,
)
from datasource_governance.errors import GuardError

TENANT_CHAIN = "tenant"
"""The chain of what belongs to no datasource: actors, keys, grants, checkpoints."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Cell = None | bool | int | str | bytes | datetime
Key = tuple[str, ...]


def datasource_chain(datasource: str) -> str:
    """Return the chain of one datasource."""
    return f"datasource/{datasource}"


def monitor_chain(datasource: str) -> str:
    """Return the chain of the checks of a datasource's contracts.

    They are many, and nothing about a stage rests on them.
    """
    return f"monitor/{datasource}"


def microseconds(at: datetime) -> int:
    """Return whole microseconds since 1970-01-01 UTC."""
    return (at - _EPOCH) // timedelta(microseconds=1)


def commit_columns(table: str, columns: Mapping[str, Cell]) -> Sha256:
    """Return the digest of named column values; names and types are part of it.

    A null, an empty text and empty bytes differ; columns are taken in order of their names.
    """
    parts: list[bytes] = []
    for name in sorted(columns):
        parts += [name.encode(), *_cell(columns[name])]
    return digest(f"datasource_governance/row/{table}/v1", *parts)


def _cell(value: Cell) -> tuple[bytes, bytes]:
    if value is None:
        return b"null", b""
    if isinstance(value, bool):
        return b"boolean", b"true" if value else b"false"
    if isinstance(value, int):
        return b"integer", str(value).encode()
    if isinstance(value, str):
        return b"text", value.encode()
    if isinstance(value, datetime):
        return b"instant", str(microseconds(value)).encode()
    return b"bytes", value


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCommitment:
    """What an entry says about one row. `immutable` is given when the row is born, else None.

    `deleted`: the row, which is a payload, was purged; nothing else is ever deleted.
    """

    table: str
    key: Key
    immutable: Sha256 | None
    mutable: Sha256 | None
    deleted: bool = False

    def document(self) -> dict[str, Json]:
        """Return the JSON form kept in an entry's body; `deleted` is in it only where true."""
        return {
            "table": self.table,
            "key": list(self.key),
            "immutable": self.immutable,
            "mutable": self.mutable,
            **({"deleted": True} if self.deleted else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One link. `body` are canonical bytes of ids, hashes, counts, states and instants only."""

    tenant: str
    chain: str
    sequence: int
    previous_hash: Sha256
    kind: str
    subject: str
    body: bytes
    at: datetime
    entry_hash: Sha256

    def document(self) -> dict[str, Json]:
        """Return the form in which a segment travels, enough to recompute the hash."""
        return {
            "tenant": self.tenant,
            "chain": self.chain,
            "sequence": self.sequence,
            "previous_hash": self.previous_hash,
            "kind": self.kind,
            "subject": self.subject,
            "body": load_canonical(self.body),
            "at_microseconds": microseconds(self.at),
            "entry_hash": self.entry_hash,
        }

    def recomputed_hash(self) -> Sha256:
        """Return the hash that the entry's own content has now."""
        return _entry_hash(self)

    def rows(self) -> Iterator[RowCommitment]:
        """Return what the entry says about rows; nothing if its body was spoiled."""
        try:
            document = load_canonical(self.body)
        except (ValueError, ArithmeticError, RecursionError):
            return
        rows = document.get("rows") if isinstance(document, dict) else None
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and isinstance(row.get("key"), list):
                yield RowCommitment(
                    table=str(row.get("table")),
                    key=tuple(str(part) for part in row["key"]),  # type: ignore[union-attr]  # a list, as tested
                    immutable=_hash_or_none(row.get("immutable")),
                    mutable=_hash_or_none(row.get("mutable")),
                    deleted=row.get("deleted") is True,
                )


def _hash_or_none(value: Json | None) -> Sha256 | None:
    return Sha256(value) if isinstance(value, str) else None


def _entry_hash(entry: Entry) -> Sha256:
    return digest(
        "datasource_governance/evidence/v1",
        entry.tenant.encode(),
        entry.chain.encode(),
        entry.sequence.to_bytes(8, "big", signed=True),
        entry.previous_hash.encode(),
        entry.kind.encode(),
        entry.subject.encode(),
        microseconds(entry.at).to_bytes(8, "big", signed=True),
        entry.body,
    )


def genesis(tenant: str, chain: str) -> Sha256:
    """Return the previous hash of a chain's first entry; it differs for every chain."""
    return digest("datasource_governance/genesis/v1", tenant.encode(), chain.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The last sequence and hash of a chain, as stored beside it."""

    tenant: str
    chain: str
    sequence: int
    entry_hash: Sha256


def link(
    head: Head,
    *,
    kind: str,
    subject: str,
    facts: Mapping[str, object],
    rows: Iterable[RowCommitment],
    at: datetime,
) -> Entry:
    """Return the entry that follows `head`."""
    body = {
        "kind": kind,
        "subject": subject,
        "facts": facts,
        "rows": [row.document() for row in rows],
    }
    unhashed = Entry(
        tenant=head.tenant,
        chain=head.chain,
        sequence=head.sequence + 1,
        previous_hash=head.entry_hash,
        kind=kind,
        subject=subject,
        body=canonical_bytes(body),
        at=at,
        entry_hash=Sha256(""),
    )
    return _with_hash(unhashed)


def _with_hash(entry: Entry) -> Entry:
    from dataclasses import replace

    return replace(entry, entry_hash=_entry_hash(entry))


class BreakKind(StrEnum):
    """What is wrong at one place."""

    GAP = "gap"
    ALTERED_ENTRY = "altered_entry"
    WRONG_HEAD = "wrong_head"
    ALTERED_ROW = "altered_row"
    MISSING_ROW = "missing_row"
    ORPHAN_ROW = "orphan_row"
    FORGED_ATTESTATION = "forged_attestation"
    UNSIGNED_ROW = "unsigned_row"
    TRUNCATED_CHAIN = "truncated_chain"
    DROPPED_CHAIN = "dropped_chain"
    REWRITTEN_CHAIN = "rewritten_chain"
    RESTORED_BACKUP = "restored_backup"
    ALTERED_CHECKPOINT = "altered_checkpoint"
    UNTRUSTED_CHECKPOINT = "untrusted_checkpoint"
    FOREIGN_CHECKPOINT = "foreign_checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """One break, named by table and key. `time_regression` is not one: clocks may step back."""

    kind: BreakKind
    table: str
    key: Key
    message: str

    def document(self) -> dict[str, Json]:
        """Return the JSON form of a report."""
        return {
            "kind": str(self.kind),
            "table": self.table,
            "key": list(self.key),
            "message": self.message,
        }


def find_chain_breaks(
    entries: Sequence[Entry], head: Head | None, *, first: int = 1
) -> list[Break]:
    """Check one chain, given in order of sequence: every link, every hash, the stored head.

    Entries from `first` on are given; of an earlier one nothing is known, so only the chain's very
    first entry is held against the genesis.
    """
    breaks: list[Break] = []
    expected, previous = first, None
    for entry in entries:
        key = (entry.tenant, entry.chain, str(entry.sequence))
        if entry.sequence != expected:
            missing = f"{expected}" if entry.sequence == expected + 1 else f"{expected} onwards"
            breaks.append(
                _broken(
                    BreakKind.GAP,
                    "evidence",
                    (entry.tenant, entry.chain, str(expected)),
                    f"entry {missing} is missing before entry {entry.sequence}",
                )
            )
        if entry.recomputed_hash() != entry.entry_hash:
            breaks.append(
                _broken(BreakKind.ALTERED_ENTRY, "evidence", key, "its hash is not its content's")
            )
        elif entry.sequence == expected and not _follows(entry, previous):
            breaks.append(
                _broken(
                    BreakKind.ALTERED_ENTRY, "evidence", key, "it does not follow the entry before"
                )
            )
        expected, previous = entry.sequence + 1, entry.entry_hash
    return breaks + _head_breaks(entries, head)


def _follows(entry: Entry, previous: Sha256 | None) -> bool:
    if previous is None and entry.sequence > 1:
        return True
    return entry.previous_hash == (previous or genesis(entry.tenant, entry.chain))


def _head_breaks(entries: Sequence[Entry], head: Head | None) -> list[Break]:
    last = entries[-1] if entries else None
    if head is None and last is None:
        return []
    place = (head or last).tenant, (head or last).chain  # type: ignore[union-attr]  # one of them exists
    if head is None:
        return [_broken(BreakKind.WRONG_HEAD, "evidence_head", place, "the chain has no head")]
    if last is None or head.sequence > last.sequence:
        found = last.sequence if last else 0
        message = f"the head says {head.sequence} entries, {found} are there"
        gap = (*place, str(found + 1))
        return [
            _broken(BreakKind.GAP, "evidence", gap, message),
            _broken(BreakKind.WRONG_HEAD, "evidence_head", place, message),
        ]
    if (head.sequence, head.entry_hash) != (last.sequence, last.entry_hash):
        return [
            _broken(BreakKind.WRONG_HEAD, "evidence_head", place, "the head is not the last entry")
        ]
    return []


RowState = tuple[Sha256, Sha256 | None]
"""The commitments (immutable, mutable) of a row at one time."""
Place = tuple[str, Key]
"""A table and a key in it."""
Committed = dict[Place, RowState | None]
"""What the chains say of rows; None stands for a payload that was purged."""
_PURGEABLE = frozenset({"stage_payload", "materialization_payload"})


def find_row_breaks(committed: Committed, present: Mapping[Place, RowState]) -> list[Break]:
    """Hold the rows that are there against what the chains say about them."""
    breaks = [
        _broken(kind, *place, message)
        for place, said in committed.items()
        for kind, message in _row_break(said, present.get(place))
    ]
    breaks += [
        _broken(BreakKind.ORPHAN_ROW, table, key, "no evidence speaks of it")
        for table, key in present
        if (table, key) not in committed
    ]
    return sorted(breaks, key=lambda one: (one.table, one.key))


def _row_break(said: RowState | None, now: RowState | None) -> Iterator[tuple[BreakKind, str]]:
    """Yield what is wrong with a row that evidence speaks of: one thing, or nothing."""
    if said is None:
        if now is not None:
            yield BreakKind.ORPHAN_ROW, "evidence says it was purged, and it is there"
    elif now is None:
        yield BreakKind.MISSING_ROW, "evidence speaks of it, it is gone"
    elif now[0] != said[0]:
        yield BreakKind.ALTERED_ROW, "what never changes was changed"
    elif now[1] != said[1]:
        yield BreakKind.ALTERED_ROW, "it is not as the last transition left it"


def fold_rows(committed: Committed, entry: Entry) -> None:
    """Take over into `committed` what one more entry says about rows; None if it was purged.

    What was first said of the columns that never change holds for ever: a later entry that speaks
    of them again would make an edited row look right. A purge holds for ever, too, and counts for
    payloads alone: of anything else it would hide that a row is gone.
    """
    for row in entry.rows():
        place = (row.table, row.key)
        if row.deleted and row.table in _PURGEABLE:
            committed[place] = None
            continue
        first = committed.get(place, (row.immutable or Sha256(""), None))
        if first is not None:
            committed[place] = (first[0], row.mutable)


def check_unbroken(breaks: Sequence[Break]) -> None:
    """Refuse to go on over broken evidence.

    Raises:
        GuardError: code `evidence_chain_broken`, naming the first break.
    """
    if breaks:
        first = breaks[0]
        raise GuardError(
            f"evidence is broken: {first.kind} in {first.table} at {'/'.join(first.key)}; "
            "run: evidence verify",
            code="evidence_chain_broken",
            breaks=tuple(breaks),
        )


def _broken(kind: BreakKind, table: str, key: Key, message: str) -> Break:
    return Break(kind=kind, table=table, key=key, message=message)
