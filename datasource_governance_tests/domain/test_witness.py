"""Chains held against checkpoints: what was cut off, dropped, rewritten or put back is named."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from datasource_governance.domain.checkpoint import CHECKPOINTED, Checkpoint
from datasource_governance.domain.evidence import (
    TENANT_CHAIN,
    BreakKind,
    Entry,
    Head,
    genesis,
    link,
)
from datasource_governance.domain.witness import Witness

AT = datetime(2026, 3, 1, tzinfo=UTC)
ORDERS, USERS = "datasource/orders", "datasource/users"


class Chains:
    """Chains in memory that grow, and of which checkpoints are taken."""

    def __init__(self) -> None:
        self.entries: dict[str, list[Entry]] = {}

    def head(self, chain: str) -> Head:
        entries = self.entries.get(chain)
        last = entries[-1].entry_hash if entries else genesis("default", chain)
        return Head(tenant="default", chain=chain, sequence=len(entries or ()), entry_hash=last)

    def append(self, chain: str, kind: str = "happened", subject: str = "x") -> None:
        entry = link(self.head(chain), kind=kind, subject=subject, facts={}, rows=(), at=AT)
        self.entries.setdefault(chain, []).append(entry)

    def grow(self, **counts: int) -> None:
        for name, count in counts.items():
            for _ in range(count):
                self.append(TENANT_CHAIN if name == "tenant" else f"datasource/{name}")

    def checkpoint(self) -> Checkpoint:
        heads = tuple(self.head(chain) for chain in sorted(self.entries))
        sequence = self.head(TENANT_CHAIN).sequence + 1
        made = Checkpoint(tenant="default", sequence=sequence, at=AT, heads=heads)
        self.append(TENANT_CHAIN, CHECKPOINTED, made.id)
        return made

    def cut(self, chain: str, length: int) -> None:
        del self.entries[chain][length:]
        if not length:
            del self.entries[chain]

    def witnessed_by(self, *checkpoints: Checkpoint) -> Witness:
        witness = Witness("default")
        for checkpoint in checkpoints:
            witness.hold(checkpoint)
        for entries in self.entries.values():
            for entry in entries:
                witness.see(entry)
        return witness

    def breaks(self, *checkpoints: Checkpoint) -> list[tuple[BreakKind, tuple[str, ...]]]:
        return [(one.kind, one.key) for one in self.witnessed_by(*checkpoints).breaks()]


@pytest.fixture
def chains() -> Chains:
    made = Chains()
    made.grow(tenant=3, orders=4, users=2)
    return made


def test_nothing_differs_right_after_a_checkpoint_and_later(chains):
    first = chains.checkpoint()
    assert chains.breaks(first) == []

    chains.grow(tenant=1, orders=2)
    second = chains.checkpoint()
    chains.grow(users=1)

    assert chains.breaks(first, second) == chains.breaks(second, first) == []


def test_without_a_checkpoint_nothing_is_said(chains):
    chains.cut(ORDERS, 1)

    assert chains.breaks() == []


def test_what_is_held_and_recorded_is_counted(chains):
    first, second = chains.checkpoint(), chains.checkpoint()

    witness = chains.witnessed_by(second)

    assert (witness.held, witness.recorded) == (1, 2)
    assert chains.witnessed_by(second, first).newest == second


@pytest.mark.parametrize("length", [3, 1])
def test_a_chain_that_is_cut_off_is_named_from_its_first_missing_entry(chains, length):
    checkpoint = chains.checkpoint()
    chains.cut(ORDERS, length)

    assert chains.breaks(checkpoint) == [
        (BreakKind.TRUNCATED_CHAIN, ("default", ORDERS, str(length + 1)))
    ]


def test_a_dropped_chain_is_named(chains):
    checkpoint = chains.checkpoint()
    chains.cut(USERS, 0)

    assert chains.breaks(checkpoint) == [(BreakKind.DROPPED_CHAIN, ("default", USERS))]


def test_a_chain_that_was_cut_off_and_went_on_is_rewritten(chains):
    checkpoint = chains.checkpoint()
    chains.cut(ORDERS, 2)
    for _ in range(5):
        chains.append(ORDERS, subject="another")

    assert chains.breaks(checkpoint) == [(BreakKind.REWRITTEN_CHAIN, ("default", ORDERS, "4"))]


def test_the_first_place_that_was_rewritten_is_named_once(chains):
    checkpoints = []
    for _ in range(3):
        checkpoints.append(chains.checkpoint())
        chains.grow(orders=1)
    chains.cut(ORDERS, 3)
    for _ in range(5):
        chains.append(ORDERS, subject="another")

    assert chains.breaks(*checkpoints) == [(BreakKind.REWRITTEN_CHAIN, ("default", ORDERS, "4"))]


def test_an_older_database_is_named_with_all_that_it_lacks(chains):
    backup = {chain: list(entries) for chain, entries in chains.entries.items()}
    chains.grow(orders=1, goods=1)
    checkpoint = chains.checkpoint()
    chains.entries = backup

    assert chains.breaks(checkpoint) == [
        (BreakKind.DROPPED_CHAIN, ("default", "datasource/goods")),
        (BreakKind.TRUNCATED_CHAIN, ("default", ORDERS, "5")),
        (BreakKind.TRUNCATED_CHAIN, ("default", TENANT_CHAIN, "4")),
        (BreakKind.RESTORED_BACKUP, ("default", TENANT_CHAIN)),
    ]


def test_a_backup_from_just_before_the_checkpoint_is_named_too(chains):
    backup = {chain: list(entries) for chain, entries in chains.entries.items()}
    checkpoint = chains.checkpoint()
    chains.entries = backup

    assert chains.breaks(checkpoint) == [
        (BreakKind.TRUNCATED_CHAIN, ("default", TENANT_CHAIN, "4")),
        (BreakKind.RESTORED_BACKUP, ("default", TENANT_CHAIN)),
    ]


def test_an_emptied_database_is_an_older_one(chains):
    checkpoint = chains.checkpoint()
    chains.entries = {}

    kinds = [kind for kind, _ in chains.breaks(checkpoint)]

    assert kinds == [*[BreakKind.DROPPED_CHAIN] * 3, BreakKind.RESTORED_BACKUP]


def test_a_tenants_chain_that_was_cut_off_while_others_went_on_is_no_backup(chains):
    checkpoint = chains.checkpoint()
    chains.cut(TENANT_CHAIN, 3)
    chains.grow(orders=1)

    assert chains.breaks(checkpoint) == [
        (BreakKind.TRUNCATED_CHAIN, ("default", TENANT_CHAIN, "4"))
    ]


def test_a_checkpoint_that_was_never_recorded_is_noticed(chains):
    forged = chains.checkpoint()
    chains.cut(TENANT_CHAIN, 3)
    chains.grow(tenant=2)

    assert chains.breaks(forged) == [(BreakKind.REWRITTEN_CHAIN, ("default", TENANT_CHAIN, "4"))]


def test_two_checkpoints_that_contradict_each_other_cannot_both_be_right(chains):
    first = chains.checkpoint()
    other = Chains()
    other.grow(tenant=3, orders=4, users=1)
    other.append(USERS, subject="another")
    second = other.checkpoint()

    assert chains.breaks(first, second) == [
        (BreakKind.REWRITTEN_CHAIN, ("default", USERS, "2")),
        (BreakKind.REWRITTEN_CHAIN, ("default", TENANT_CHAIN, "4")),
    ]


def test_every_single_cut_of_every_chain_is_found(chains):
    checkpoints = []
    for _ in range(3):
        chains.grow(tenant=1, orders=1, users=1)
        checkpoints.append(chains.checkpoint())
    whole = {chain: list(entries) for chain, entries in chains.entries.items()}

    for chain, entries in whole.items():
        for length in range(len(entries)):
            chains.entries = {name: list(kept) for name, kept in whole.items()}
            chains.cut(chain, length)
            assert chains.breaks(checkpoints[-1]), (chain, length)
    assert all(before.sequence < after.sequence for before, after in pairwise(checkpoints))
