"""Whatever somebody changes behind the application's back is named by `evidence verify`.

Every constraint and trigger is switched off, so that nothing stands in the way of the smallest
change of every column, one at a time. The columns are the catalogue's, so a new one is tried too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pytest

from datasource_governance.domain.evidence import Break, BreakKind, Entry, datasource_chain
from datasource_governance.persistence.tables import GOVERNED, metadata
from datasource_governance_tests.postgres import admin_connection
from datasource_governance_tests.world import World

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

TABLES = sorted(table.name for table in metadata.tables.values())
NO_EVIDENCE = ("outbox_position", "dead_letter", "contract_watch")
"""How far the delivery of events got, which is no evidence."""
ORDERS = datasource_chain("orders")

# The smallest change of a value: one bit of one character or byte, one step, one microsecond.
NUDGE = {
    "text": "overlay({0} PLACING chr(ascii(right({0}, 1)) # 1) FROM length({0}))",
    "bytea": "set_bit({0}, length({0}) * 4, 1 - get_bit({0}, length({0}) * 4))",
    "bigint": "{0} + 1",
    "boolean": "NOT {0}",
    "timestamp with time zone": "{0} + interval '1 microsecond'",
}
# What differs least from having no value.
FIRST = {"text": "''", "bytea": "''", "bigint": "0", "timestamp with time zone": "'epoch'"}


@dataclass(frozen=True)
class Change:
    """One change of one value: a column of the row with this key, and what it is set to."""

    table: str
    column: str
    key: tuple[str, ...]
    to: str


class Ledger:
    """A database in which a story happened, with nothing left that protects it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.connection = admin_connection(world.database.admin_url)
        self.connection.execute("SET search_path = governance")

    def unprotect(self) -> None:
        """Drop every constraint but NOT NULL, disable triggers and keep a copy of everything."""
        constraints = self.all(
            "SELECT conrelid::regclass::text, conname FROM pg_constraint"
            " WHERE connamespace = 'governance'::regnamespace AND contype <> 'n'"
        )
        for table, name in constraints:
            self.run(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name} CASCADE")
        # Of the constraints, one is no more than an index, for it holds where a value is there; and
        # one index reads artifacts, so that none could be spoiled.
        for index in ("publication_attested", "materialization_artifact"):
            self.run(f"DROP INDEX {index}")
        self.run("CREATE SCHEMA untouched")
        for table in TABLES:
            self.run(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
            self.run(f"CREATE TABLE untouched.{table} AS TABLE {table}")

    def restore(self, *tables: str) -> None:
        for table in tables or TABLES:
            self.run(f"DELETE FROM {table}")
            self.run(f"INSERT INTO {table} TABLE untouched.{table}")

    def make(self, change: Change) -> None:
        """Make one change; it touches one row."""
        where = " AND ".join(f"{name}::text = %s" for name in key_of(change.table))
        statement = f"UPDATE {change.table} SET {change.column} = {change.to} WHERE {where}"
        assert self.run(statement, change.key) == 1

    def run(self, statement: str, values: Sequence[object] = ()) -> int:
        """Run a statement as superuser; return the number of its rows."""
        return self.connection.execute(statement, values or None).rowcount

    def all(self, query: str) -> list[tuple]:
        return self.connection.execute(query).fetchall()

    def breaks(self) -> tuple[Break, ...]:
        return self.world.verification().breaks

    def named(self) -> set[tuple[BreakKind, str, tuple[str, ...]]]:
        return {(one.kind, one.table, one.key) for one in self.breaks()}

    def entries(self, chain: str) -> list[Entry]:
        """Return the entries of a chain as the application reads them."""
        with self.world.application.work() as work:
            return [entry for entry in work.evidence.entries() if entry.chain == chain]

    @cached_property
    def columns(self) -> dict[str, list[tuple[str, str, bool]]]:
        """By table: name, type and whether it may be empty, of all that evidence follows."""
        found: dict[str, list[tuple[str, str, bool]]] = {}
        for table, *column in self.all(
            "SELECT table_name, column_name, data_type, is_nullable = 'YES'"
            " FROM information_schema.columns NATURAL JOIN information_schema.tables"
            " WHERE table_schema = 'governance' AND table_type = 'BASE TABLE'"
            " AND table_name <> 'alembic_version' ORDER BY table_name, ordinal_position"
        ):
            if table not in NO_EVIDENCE:
                found.setdefault(table, []).append(tuple(column))
        return found

    def changes(self, table: str) -> list[Change]:
        """Return the smallest changes of every column, and every way between value and none."""
        found: list[Change | None] = []
        for column, kind, nullable in self.columns[table]:
            nudge = self._change(table, column, "IS NOT NULL", NUDGE[kind].format(column))
            assert nudge is not None, f"the story leaves {table}.{column} empty"
            found.append(nudge)
            if nullable:
                found.append(replace(nudge, to="NULL"))
                found.append(self._change(table, column, "IS NULL", FIRST[kind]))
        return [change for change in found if change is not None]

    def _change(self, table: str, column: str, which: str, to: str) -> Change | None:
        """Change the row in the middle of those whose value is there, or is not."""
        key = key_of(table)
        rows = self.all(
            f"SELECT {', '.join(f'{name}::text' for name in key)} FROM {table}"
            f" WHERE {column} {which} ORDER BY {', '.join(key)}"
        )
        return Change(table, column, rows[len(rows) // 2], to) if rows else None


def key_of(table: str) -> list[str]:
    return [column.name for column in metadata.tables[f"governance.{table}"].primary_key]


def expected_kind(table: str, column: str) -> BreakKind:
    if table == "evidence_head":
        return BreakKind.WRONG_HEAD
    if table == "evidence":
        return BreakKind.GAP if column in key_of(table) else BreakKind.ALTERED_ENTRY
    return BreakKind.MISSING_ROW if column in key_of(table) else BreakKind.ALTERED_ROW


@pytest.fixture(scope="module")
def unprotected(told_world: World) -> Iterator[Ledger]:
    ledger = Ledger(told_world)
    ledger.unprotect()
    yield ledger
    ledger.connection.close()


@pytest.fixture
def ledger(unprotected: Ledger) -> Iterator[Ledger]:
    """The ledger as the story left it. Each test is a control: nothing is found around it."""
    assert unprotected.breaks() == ()
    yield unprotected
    unprotected.restore()
    assert unprotected.breaks() == ()


def test_the_story_and_this_test_know_every_table(ledger: Ledger) -> None:
    assert sorted([*ledger.columns, *NO_EVIDENCE]) == TABLES
    assert [table for table in TABLES if not ledger.all(f"SELECT 1 FROM {table}")] == []


@pytest.mark.parametrize("table", [table for table in TABLES if table not in NO_EVIDENCE])
def test_the_smallest_change_of_any_column_is_named_by_table_and_key(
    ledger: Ledger, table: str
) -> None:
    unnoticed = []
    for change in ledger.changes(table):
        ledger.make(change)

        if (expected_kind(table, change.column), table, change.key) not in ledger.named():
            unnoticed.append(change)
        ledger.restore(table)

    assert unnoticed == []


def test_an_instant_that_the_driver_cannot_read_is_named_too(ledger: Ledger) -> None:
    unnoticed = []
    for change in (
        replace(change, to=f"'{beyond}'")
        for beyond in ("infinity", "-infinity", "10000-01-01", "0044-03-15 BC")
        for table in ("evidence", "decision", "actor_key")
        for change in ledger.changes(table)
        if change.column in {"at", "decided_at", "created_at"}
    ):
        ledger.make(change)

        if (expected_kind(change.table, change.column), change.table, change.key) not in (
            ledger.named()
        ):
            unnoticed.append(change)
        ledger.restore(change.table)

    assert unnoticed == []


def test_a_deleted_entry_leaves_a_gap(ledger: Ledger) -> None:
    ledger.run("DELETE FROM evidence WHERE chain = %s AND sequence = 3", [ORDERS])

    assert (BreakKind.GAP, "evidence", ("default", ORDERS, "3")) in ledger.named()


def test_entries_deleted_at_the_end_are_missed_by_the_head(ledger: Ledger) -> None:
    last = len(ledger.entries(ORDERS))
    ledger.run("DELETE FROM evidence WHERE chain = %s AND sequence >= %s", [ORDERS, last - 1])

    assert ledger.named() >= {
        (BreakKind.GAP, "evidence", ("default", ORDERS, str(last - 1))),
        (BreakKind.WRONG_HEAD, "evidence_head", ("default", ORDERS)),
    }


def test_a_deleted_chain_is_missed_by_its_head(ledger: Ledger) -> None:
    ledger.run("DELETE FROM evidence WHERE chain = %s", [ORDERS])

    assert (BreakKind.GAP, "evidence", ("default", ORDERS, "1")) in ledger.named()


def test_a_chain_without_its_head_is_named(ledger: Ledger) -> None:
    ledger.run("DELETE FROM evidence_head WHERE chain = %s", [ORDERS])

    assert ledger.named() == {(BreakKind.WRONG_HEAD, "evidence_head", ("default", ORDERS))}


def test_rows_of_a_chain_cut_off_with_its_head_are_orphans(ledger: Ledger) -> None:
    stages = set(ledger.all("SELECT id FROM stage WHERE datasource = 'orders'"))
    ledger.run("DELETE FROM evidence WHERE chain = %s", [ORDERS])
    ledger.run("DELETE FROM evidence_head WHERE chain = %s", [ORDERS])

    orphans = {(table, key) for kind, table, key in ledger.named() if kind is BreakKind.ORPHAN_ROW}

    assert {("stage", ("default", stage)) for (stage,) in stages} <= orphans


def test_an_entry_inserted_at_the_end_is_not_the_heads(ledger: Ledger) -> None:
    last = len(ledger.entries(ORDERS))
    ledger.run(
        "INSERT INTO evidence SELECT tenant, chain, sequence + 1, entry_hash, kind, subject, body,"
        " at, entry_hash FROM evidence WHERE chain = %s AND sequence = %s",
        [ORDERS, last],
    )

    assert ledger.named() == {
        (BreakKind.ALTERED_ENTRY, "evidence", ("default", ORDERS, str(last + 1))),
        (BreakKind.WRONG_HEAD, "evidence_head", ("default", ORDERS)),
    }


def test_an_entry_inserted_in_the_middle_does_not_follow(ledger: Ledger) -> None:
    ledger.run(
        "UPDATE evidence SET sequence = sequence + 1 WHERE chain = %s AND sequence >= 3", [ORDERS]
    )
    ledger.run(
        "INSERT INTO evidence SELECT * FROM untouched.evidence WHERE chain = %s AND sequence = 3",
        [ORDERS],
    )

    assert (BreakKind.ALTERED_ENTRY, "evidence", ("default", ORDERS, "4")) in ledger.named()


def test_two_swapped_entries_are_both_altered(ledger: Ledger) -> None:
    ledger.run(
        "UPDATE evidence SET sequence = 5 - sequence WHERE chain = %s AND sequence IN (2, 3)",
        [ORDERS],
    )

    assert ledger.named() >= {
        (BreakKind.ALTERED_ENTRY, "evidence", ("default", ORDERS, "2")),
        (BreakKind.ALTERED_ENTRY, "evidence", ("default", ORDERS, "3")),
    }


def test_an_entry_whose_hash_was_computed_anew_no_longer_leads_to_the_next(
    ledger: Ledger,
) -> None:
    forged = replace(ledger.entries(ORDERS)[1], subject="another")
    ledger.run(
        "UPDATE evidence SET subject = %s, entry_hash = %s WHERE chain = %s AND sequence = 2",
        [forged.subject, forged.recomputed_hash(), ORDERS],
    )

    assert ledger.named() == {(BreakKind.ALTERED_ENTRY, "evidence", ("default", ORDERS, "3"))}


@pytest.mark.parametrize("table", [table.name for table in GOVERNED])
def test_a_deleted_row_is_missing(ledger: Ledger, table: str) -> None:
    (key,) = ledger.all(f"SELECT {', '.join(key_of(table))} FROM {table} LIMIT 1")
    ledger.run(
        f"DELETE FROM {table} WHERE {' AND '.join(f'{name} = %s' for name in key_of(table))}", key
    )

    assert (BreakKind.MISSING_ROW, table, key) in ledger.named()


@pytest.mark.parametrize("table", [table.name for table in GOVERNED])
def test_a_row_that_no_entry_speaks_of_is_an_orphan(ledger: Ledger, table: str) -> None:
    last = key_of(table)[-1]
    columns = [name for name, *_ in ledger.columns[table]]
    values = ["'forged'" if name == last else name for name in columns]
    ledger.run(
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)} FROM {table}"
        " LIMIT 1"
    )

    orphans = [key for kind, _, key in ledger.named() if kind is BreakKind.ORPHAN_ROW]

    assert [key[-1] for key in orphans] == ["forged"]
