"""Every row that is written is noted, with the digests that verification computes again."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import select

from datasource_governance.errors import NotFoundError
from datasource_governance.persistence import tables
from datasource_governance.persistence.connection import Connection
from datasource_governance.persistence.rows import (
    Rows,
    immutable_commitment,
    mutable_commitment,
    row_key,
)

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

ORDERS = {
    "id": "orders",
    "kind": "static",
    "created_at": datetime(2026, 1, 1, tzinfo=UTC),
    "quality_policy_hash": None,
    "approval_policy_hash": None,
    "retention_policy_hash": None,
    "settings": b"{}",
    "current_materialization": None,
    "revision": 0,
}


@pytest.fixture
def rows(told_world):
    """The rows of a tenant that has none yet; whatever is written is undone."""
    connection = Connection(told_world.application.engine, "other")
    connection.begin()
    yield Rows(connection, "other")
    connection.close()


def test_an_inserted_row_is_noted_whole(rows):
    rows.insert(tables.datasource, ORDERS)

    (note,) = rows.notes
    row = rows.one(rows.of(tables.datasource), "datasource")
    assert (note.table, note.key) == ("datasource", ("other", "orders"))
    assert note.immutable == immutable_commitment(tables.datasource, row)
    assert note.mutable == mutable_commitment(tables.datasource, row)


def test_a_change_is_noted_without_what_never_changes(rows):
    rows.insert(tables.datasource, ORDERS)
    before = rows.notes.pop()

    rows.change(tables.datasource, ORDERS | {"revision": 1, "quality_policy_hash": "ab"})

    (note,) = rows.notes
    row = rows.one(rows.of(tables.datasource), "datasource")
    assert (row["revision"], row["quality_policy_hash"]) == (1, "ab")
    assert (note.key, note.immutable) == (before.key, None)
    assert note.mutable == mutable_commitment(tables.datasource, row) != before.mutable


def test_a_change_writes_no_other_column(rows):
    rows.insert(tables.datasource, ORDERS)

    rows.change(tables.datasource, ORDERS | {"kind": "cached", "revision": 1})

    assert rows.one(rows.of(tables.datasource), "datasource")["kind"] == "static"


def test_a_table_without_mutable_columns_commits_to_none(rows):
    rows.insert(tables.actor, {"id": "a", "display_name": "A", "created_at": ORDERS["created_at"]})

    assert rows.notes[0].mutable is None


def test_a_payload_counts_by_its_digest_as_sent_and_as_the_server_computes_it(told_world):
    connection = Connection(told_world.application.engine, "default")
    connection.begin()
    rows = Rows(connection, "default")
    table = tables.stage_payload
    sent = rows.all(select(table).order_by(table.c.stage))
    digested = rows.all(rows.comparable(table).order_by("stage"))
    connection.close()

    assert sent
    assert [immutable_commitment(table, row) for row in sent] == [
        immutable_commitment(table, row) for row in digested
    ]


def test_a_key_is_the_primary_key_in_order_as_texts():
    row = {"tenant": "t", "chain": "c", "sequence": 7}

    assert row_key(tables.evidence, row) == ("t", "c", "7")


def test_a_row_of_another_tenant_is_not_found(rows):
    query = rows.of(tables.datasource, id="orders")

    with pytest.raises(NotFoundError, match="there is no datasource 'orders' in tenant 'other'"):
        rows.one(query, "datasource 'orders'")
