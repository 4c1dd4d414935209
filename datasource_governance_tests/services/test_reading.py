import hashlib
from dataclasses import replace

import pyarrow as pa
import pytest

from datasource_governance.domain.actor import SYSTEM, ActorId, Role
from datasource_governance.errors import GovernanceError
from datasource_governance.services.reading import Bounds, Wanted, read_current
from datasource_governance_tests.postgres import unique_name
from datasource_governance_tests.publishing import (
    declare_published,
    publish_rows,
    publish_stored,
)
from datasource_governance_tests.world import TWO_APPROVALS, new_world

pytestmark = pytest.mark.postgres

READER = ActorId("creator")
TABLE = pa.table({"id": [1, 2]})


@pytest.fixture
def promoted(own_corner):
    """Two rows are current."""
    own_corner.declare()
    own_corner.promote(own_corner.stage())
    return own_corner


@pytest.fixture
def published(own_corner):
    """A datasource that is published to."""
    declare_published(own_corner)
    return own_corner


def read(world, actor=READER, bounds=None, **wanted):
    work = world.application.work()
    return read_current(work, world.datasource, actor, Wanted(**wanted), bounds or Bounds())


def rows(reading):
    return pa.ipc.open_stream(reading.payload).read_all().to_pylist()


def test_a_steward_reads_what_is_current(promoted):
    reading = read(promoted)

    assert rows(reading) == [{"id": 1}, {"id": 2}]
    digest = hashlib.sha256(reading.payload).hexdigest()
    assert digest == reading.materialization.payload_sha256


def test_readers_keep_what_is_current_while_a_stage_waits(promoted):
    stage = promoted.stage(table=pa.table({"id": [3]}))
    waiting = rows(read(promoted))
    promoted.promote(stage)

    assert waiting == [{"id": 1}, {"id": 2}]
    assert rows(read(promoted)) == [{"id": 3}]


def test_before_the_first_promotion_there_is_nothing_to_read(own_corner):
    own_corner.declare()
    own_corner.stage()

    with own_corner.refuses("not_found"):
        read(own_corner)


@pytest.mark.parametrize("actor", ["operator", "approver-1", "admin", "nobody", SYSTEM])
def test_without_a_steward_s_grant_nothing_is_read(promoted, actor):
    with promoted.refuses("not_authorised"):
        read(promoted, ActorId(actor))


def test_a_grant_for_another_datasource_reads_nothing_here(promoted):
    other = replace(promoted, datasource=unique_name("other"))
    other.declare()
    promoted.admit("neighbour")
    promoted.grant("neighbour", Role.STEWARD, other.datasource)

    with promoted.refuses("not_authorised"):
        read(promoted, ActorId("neighbour"))


def test_every_reading_is_authorised_anew(promoted):
    grant = promoted.grant(SYSTEM, Role.STEWARD, promoted.datasource)
    first = read(promoted, SYSTEM)
    promoted.withdraw(grant)

    assert rows(first) == [{"id": 1}, {"id": 2}]
    with promoted.refuses("not_authorised"):
        read(promoted, SYSTEM)


def test_reading_is_bounded_by_rows_and_bytes(promoted):
    reading = read(promoted)
    made, size = reading.materialization, len(reading.payload)

    for bounds in (Bounds(rows=made.row_count), Bounds(bytes=size)):
        assert read(promoted, bounds=bounds).materialization == made
    for bounds in (Bounds(rows=made.row_count - 1), Bounds(bytes=size - 1)):
        with promoted.refuses("payload_too_large"):
            read(promoted, bounds=bounds)


def test_an_altered_payload_is_not_given_out(promoted):
    made = read(promoted).materialization
    promoted.tamper(
        "materialization_payload",
        "UPDATE governance.materialization_payload SET payload = payload || '\\x00'"
        f" WHERE materialization = '{made.id}'",
    )

    with promoted.refuses("payload_altered"):
        read(promoted)


@pytest.mark.parametrize("disposition", ["purging", "purged"])
def test_a_payload_that_is_gone_is_said_to_be_gone(promoted, disposition):
    made = read(promoted).materialization
    promoted.as_superuser(
        f"UPDATE governance.materialization SET disposition = '{disposition}'"
        f" WHERE id = '{made.id}'"
    )

    with promoted.refuses("payload_purged"):
        read(promoted)
    with promoted.refuses("payload_purged"):
        read(promoted, materialization=made.id)


def test_columns_that_are_no_fields_are_all_named(promoted):
    assert read(promoted, columns=["id"]).materialization.row_count == 2
    for columns, named in (
        (["gone", "id", "lost"], "'gone', 'lost'"),
        (["id", "id"], "'id'"),
        ([], "no list of names"),
        ("id", "'i', 'd'"),
    ):
        refused = refusal(promoted, columns=columns)
        assert (refused.code, named in str(refused)) == ("invalid_argument", True)


def refusal(world, **wanted):
    with pytest.raises(GovernanceError) as refused:
        read(world, **wanted)
    return refused.value


def test_a_revision_is_read_by_its_id_after_it_was_replaced(promoted):
    first = read(promoted).materialization
    promoted.promote(promoted.stage(table=pa.table({"id": [3]})))

    assert rows(read(promoted)) == [{"id": 3}]
    pinned = read(promoted, materialization=first.id)
    assert pinned.materialization == first
    assert rows(pinned) == [{"id": 1}, {"id": 2}]


def test_a_revision_of_another_datasource_looks_like_none(promoted):
    other = replace(promoted, datasource=unique_name("other"))
    other.declare()
    foreign = other.promote(other.stage()).materialization.id

    answered = str(refusal(promoted, materialization=foreign))

    nobodys = "00000000-0000-4000-8000-000000000000"
    assert answered.replace(foreign, nobodys) == str(refusal(promoted, materialization=nobodys))


def test_every_partition_has_what_is_current_in_it(published):
    for partition, number in (("a", 1), ("b", 2), ("a", 3)):
        publish_rows(published, pa.table({"id": [number]}), partition)

    assert rows(read(published, partition="a")) == [{"id": 3}]
    assert rows(read(published, partition="b")) == [{"id": 2}]
    for partition in ("c", ""):
        with published.refuses("not_found"):
            read(published, partition=partition)


def test_a_pinned_revision_must_be_the_partition_s(published):
    made = publish_rows(published, TABLE, "a").materialization

    assert read(published, partition="a", materialization=made.id).materialization == made
    with published.refuses("not_found"):
        read(published, partition="b", materialization=made.id)


def test_what_waits_for_review_is_read_by_its_id_only(own_corner):
    declare_published(own_corner, TWO_APPROVALS)
    made = publish_rows(own_corner, TABLE).materialization

    with own_corner.refuses("not_found"):
        read(own_corner)
    assert rows(read(own_corner, materialization=made.id)) == TABLE.to_pylist()
    with own_corner.refuses("not_authorised"):
        read(own_corner, ActorId("operator"), materialization=made.id)


def test_of_an_artifact_the_reference_is_given_and_its_rows_are_bounded(published):
    made = publish_stored(published, TABLE).materialization

    reference = read(published, bounds=Bounds(rows=2, bytes=1)).payload
    assert (reference.sha256, reference.row_count) == (made.payload_fingerprint, 2)
    with published.refuses("payload_too_large"):
        read(published, bounds=Bounds(rows=1))


def test_a_reference_to_another_artifact_than_the_published_one_is_not_given_out(published):
    older = publish_stored(published, TABLE).materialization
    newer = publish_stored(published, pa.table({"id": [3, 4]})).materialization
    published.tamper(
        "materialization",
        "UPDATE governance.materialization SET artifact = (SELECT artifact FROM"
        f" governance.materialization WHERE id = '{older.id}') WHERE id = '{newer.id}'",
    )

    with published.refuses("payload_altered"):
        read(published)


def test_another_tenant_s_data_looks_like_none(promoted, governance_database, tmp_path):
    other = new_world(governance_database, tmp_path / "other", tenant="other")

    with other.refuses("not_found"):
        read(other)
    other.application.close()
