"""What a database hides that is consistent in itself, checkpoints kept elsewhere show.

Each attack is made whole, as somebody who owns the database would: entries, heads and rows. Each
test holds first that verification without a checkpoint finds nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from psycopg import sql
from sqlalchemy import make_url

from datasource_governance.composition import Application
from datasource_governance.domain.actor import Role
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.checkpoint import PAYLOAD_TYPE, Checkpoint, KeptCheckpoints
from datasource_governance.domain.envelope import seal
from datasource_governance.domain.evidence import TENANT_CHAIN, BreakKind
from datasource_governance.persistence.checkpoint_files import CheckpointFiles
from datasource_governance.persistence.provisioning import restrict
from datasource_governance.persistence.tables import metadata
from datasource_governance.persistence.verification import Verification
from datasource_governance.services.checkpointing import write_checkpoint
from datasource_governance_tests.postgres import admin_connection, drop_database, unique_name
from datasource_governance_tests.world import World, settings, triggers_of

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
ORDERS, COUNTRIES = "datasource/orders", "datasource/countries"


class Kept:
    """A world whose checkpoints are kept in a directory."""

    def __init__(self, world: World, directory: Path) -> None:
        self.world = world
        self.directory = directory
        self.signer = world.admit("checkpointer", Role.VIEWER)
        world.declare()
        replace(world, datasource="countries").declare()

    def checkpoint(self) -> Checkpoint:
        work = self.world.application.work()
        return write_checkpoint(work, self.signer, CheckpointFiles(str(self.directory)))

    def verify(self, application: Application | None = None, **options) -> Verification:
        application = application or self.world.application
        files = CheckpointFiles(str(self.directory)).read()
        return application.verify_evidence(kept=KeptCheckpoints(files=files, **options))

    def breaks(self, application: Application | None = None, **options):
        found = self.verify(application, **options).breaks
        return [(one.kind, one.key) for one in found]


@pytest.fixture
def kept(world: World, tmp_path: Path) -> Kept:
    return Kept(world, tmp_path / "kept")


def cut(world: World, chain: str, length: int) -> None:
    """Cut a chain off behind its first entries: with its head, and the rows that the rest wrote."""
    with world.application.work() as work:
        tail = [one for one in work.evidence.entries() if one.chain == chain][length:]
    with admin_connection(world.database.admin_url) as connection, connection.transaction():
        connection.execute("SET LOCAL search_path = governance")
        for table in metadata.tables.values():
            connection.execute(f"ALTER TABLE {table.name} DISABLE TRIGGER ALL")
        for row in (row for entry in reversed(tail) for row in entry.rows() if row.immutable):
            key = metadata.tables[f"governance.{row.table}"].primary_key
            where = " AND ".join(f"{column.name} = %s" for column in key)
            connection.execute(f"DELETE FROM {row.table} WHERE {where}", row.key)
        place = (chain, length)
        connection.execute("DELETE FROM evidence WHERE chain = %s AND sequence > %s", place)
        connection.execute(
            "UPDATE evidence_head h SET sequence = e.sequence, entry_hash = e.entry_hash"
            " FROM evidence e WHERE e.chain = h.chain AND e.chain = %s AND e.sequence = %s",
            place,
        )
        if length == 0:
            connection.execute("DELETE FROM evidence_head WHERE chain = %s", (chain,))
        for table in metadata.tables.values():
            connection.execute(f"ALTER TABLE {table.name} ENABLE TRIGGER ALL")
            for trigger in triggers_of(table.name):
                connection.execute(f"ALTER TABLE {table.name} ENABLE ALWAYS TRIGGER {trigger}")


def length_of(world: World, chain: str) -> int:
    with world.application.work() as work:
        return work.evidence.heads()[chain].sequence


@contextmanager
def backup(world: World) -> Iterator[Application]:
    """Copy the whole database as it is now; yield the application on the copy."""
    world.application.close()
    database = world.database
    name = unique_name("backup")
    with admin_connection(database.admin_url, "postgres") as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {}").format(
                *map(sql.Identifier, (name, database.owner_role, database.name))
            )
        )
        restrict(connection, name, to=(database.application_role,))
    url = make_url(database.application_url).set(database=name)
    copied = replace(database, application_url=url.render_as_string(hide_password=False))
    application = Application(settings(copied, world.application.settings.state))
    try:
        yield application
    finally:
        application.close()
        with admin_connection(database.admin_url, "postgres") as connection:
            drop_database(connection, name)


def test_an_untouched_database_holds_against_all_its_checkpoints(kept):
    kept.checkpoint()
    kept.world.stage()
    newest = kept.checkpoint()
    kept.world.stage()

    verification = kept.verify()

    assert verification.holds
    assert (verification.checkpoints, verification.recorded) == (2, 2)
    assert verification.newest == newest
    assert verification.unproved == ()


def test_without_a_checkpoint_verification_says_what_it_did_not_look_for(kept):
    verification = kept.world.verification()

    assert verification.holds
    assert verification.document()["unproved"] == [
        "truncated_chain",
        "dropped_chain",
        "rewritten_chain",
        "restored_backup",
    ]


def test_a_tail_cut_off_with_its_head_is_found(kept):
    kept.world.stage()
    length = length_of(kept.world, ORDERS)
    kept.world.stage()
    kept.checkpoint()
    cut(kept.world, ORDERS, length)

    assert kept.world.verification().holds
    assert kept.breaks() == [(BreakKind.TRUNCATED_CHAIN, ("default", ORDERS, str(length + 1)))]


def test_a_tail_that_was_written_anew_is_found(kept):
    length = length_of(kept.world, ORDERS)
    kept.world.stage()
    checkpoint = kept.checkpoint()
    cut(kept.world, ORDERS, length)
    for _ in range(2):
        kept.world.stage()

    (listed,) = [head.sequence for head in checkpoint.heads if head.chain == ORDERS]
    assert kept.world.verification().holds
    assert kept.breaks() == [(BreakKind.REWRITTEN_CHAIN, ("default", ORDERS, str(listed)))]


def test_a_dropped_chain_is_found(kept):
    kept.checkpoint()
    cut(kept.world, COUNTRIES, 0)

    assert kept.world.verification().holds
    assert kept.breaks() == [(BreakKind.DROPPED_CHAIN, ("default", COUNTRIES))]


def test_a_restored_old_backup_is_found(kept):
    with backup(kept.world) as restored:
        kept.world.stage()
        checkpoint = kept.checkpoint()

        assert restored.verify_evidence().holds
        found = kept.breaks(restored)

    (orders,) = [head.sequence for head in checkpoint.heads if head.chain == ORDERS]
    assert found == [
        (BreakKind.TRUNCATED_CHAIN, ("default", ORDERS, str(orders - 1))),
        (BreakKind.TRUNCATED_CHAIN, ("default", TENANT_CHAIN, str(checkpoint.sequence))),
        (BreakKind.RESTORED_BACKUP, ("default", TENANT_CHAIN)),
    ]


def test_a_backup_is_found_even_if_nothing_but_a_checkpoint_came_after_it(kept):
    kept.checkpoint()
    with backup(kept.world) as restored:
        assert kept.verify(restored).holds
        kept.checkpoint()

        assert BreakKind.RESTORED_BACKUP in {kind for kind, _ in kept.breaks(restored)}


def test_a_backup_that_was_put_back_and_worked_on_is_found(kept):
    with backup(kept.world) as restored:
        kept.world.stage()
        kept.checkpoint()
        forked = replace(kept.world, application=restored)
        forked.stage()
        forked.admit("newcomer", Role.VIEWER)

        assert restored.verify_evidence().holds
        assert {kind for kind, _ in kept.breaks(restored)} == {BreakKind.REWRITTEN_CHAIN}


def test_an_older_checkpoint_alone_finds_what_it_covers_and_no_more(kept):
    kept.checkpoint()
    length = length_of(kept.world, ORDERS)
    kept.world.stage()
    cut(kept.world, ORDERS, length)

    assert kept.verify().holds


Forgery = Callable[[Kept, Checkpoint, bytes], bytes]


def a_flipped_bit(_kept: Kept, _checkpoint: Checkpoint, content: bytes) -> bytes:
    return content[:100] + bytes([content[100] ^ 1]) + content[101:]


def emptied(_kept: Kept, _checkpoint: Checkpoint, _content: bytes) -> bytes:
    return b""


def signed_by_a_stranger(kept: Kept, checkpoint: Checkpoint, _content: bytes) -> bytes:
    stranger = kept.world.signer("creator")
    return seal(PAYLOAD_TYPE, checkpoint.payload(), key="0" * 64, sign=stranger.sign).encoded()


def signed_by_a_stranger_in_another_name(
    kept: Kept, checkpoint: Checkpoint, _content: bytes
) -> bytes:
    stranger, key = kept.world.signer("creator"), kept.signer.key
    return seal(PAYLOAD_TYPE, checkpoint.payload(), key=key, sign=stranger.sign).encoded()


def of_another_tenant(kept: Kept, checkpoint: Checkpoint, _content: bytes) -> bytes:
    payload = replace(checkpoint, tenant="other").payload()
    return seal(PAYLOAD_TYPE, payload, key=kept.signer.key, sign=kept.signer.sign).encoded()


def shortened(kept: Kept, checkpoint: Checkpoint, _content: bytes) -> bytes:
    """Leave a chain out, under the genuine key, which whoever holds it might."""
    payload = replace(checkpoint, heads=checkpoint.heads[1:]).payload()
    return seal(PAYLOAD_TYPE, payload, key=kept.signer.key, sign=kept.signer.sign).encoded()


def of_another_form(kept: Kept, checkpoint: Checkpoint, _content: bytes) -> bytes:
    payload = canonical_bytes({**checkpoint.document(), "more": 1})
    return seal(PAYLOAD_TYPE, payload, key=kept.signer.key, sign=kept.signer.sign).encoded()


@pytest.mark.parametrize(
    ("forgery", "kind"),
    [
        (a_flipped_bit, BreakKind.ALTERED_CHECKPOINT),
        (emptied, BreakKind.ALTERED_CHECKPOINT),
        (signed_by_a_stranger, BreakKind.UNTRUSTED_CHECKPOINT),
        (signed_by_a_stranger_in_another_name, BreakKind.ALTERED_CHECKPOINT),
        (of_another_tenant, BreakKind.FOREIGN_CHECKPOINT),
        (of_another_form, BreakKind.ALTERED_CHECKPOINT),
        (shortened, BreakKind.REWRITTEN_CHAIN),
    ],
)
def test_a_checkpoint_that_is_not_ours_is_named(kept, forgery: Forgery, kind):
    checkpoint = kept.checkpoint()
    path = kept.directory / checkpoint.name
    path.write_bytes(forgery(kept, checkpoint, path.read_bytes()))

    ((found, _),) = kept.breaks()

    assert found is kind


def test_a_genuine_checkpoint_still_counts_beside_an_altered_one(kept):
    genuine = kept.checkpoint()
    (kept.directory / "9.json").write_bytes(b"{}")
    cut(kept.world, COUNTRIES, 0)

    verification = kept.verify()

    assert [one.kind for one in verification.breaks] == [
        BreakKind.ALTERED_CHECKPOINT,
        BreakKind.DROPPED_CHAIN,
    ]
    assert (verification.checkpoints, verification.newest) == (1, genuine)


def test_a_revoked_key_still_proves_what_it_signed_before(kept):
    kept.checkpoint()
    kept.world.revoke(kept.signer.key)

    assert kept.verify().holds


def test_a_pinned_key_is_the_only_one_that_is_believed(kept):
    kept.checkpoint()

    assert kept.verify(public_key=kept.signer.public_key).holds
    assert [kind for kind, _ in kept.breaks(public_key=bytes(32))] == [
        BreakKind.UNTRUSTED_CHECKPOINT
    ]


def test_a_pinned_key_is_believed_though_an_old_backup_does_not_know_it(world, tmp_path):
    with backup(world) as restored:
        kept = Kept(world, tmp_path / "kept")
        kept.checkpoint()
        pinned = kept.breaks(restored, public_key=kept.signer.public_key)

        assert [kind for kind, _ in kept.breaks(restored)] == [BreakKind.UNTRUSTED_CHECKPOINT]
        assert BreakKind.RESTORED_BACKUP in {kind for kind, _ in pinned}


def test_verifying_against_checkpoints_writes_nothing(kept):
    kept.checkpoint()
    before = kept.world.count_rows()

    kept.verify()

    assert kept.world.count_rows() == before
