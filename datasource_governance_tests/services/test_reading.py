import hashlib

import pyarrow as pa
import pytest

from datasource_governance.domain.actor import SYSTEM, ActorId, Role
from datasource_governance.services.reading import read_current
from datasource_governance_tests.world import new_world

pytestmark = pytest.mark.postgres

READER = ActorId("creator")


@pytest.fixture
def promoted(world):
    """Two rows are current."""
    world.declare()
    world.promote(world.stage())
    return world


def read(world, actor=READER, **bounds):
    return read_current(world.application.work(), world.datasource, actor, **bounds)


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


def test_before_the_first_promotion_there_is_nothing_to_read(world):
    world.declare()
    world.stage()

    with world.refuses("not_found"):
        read(world)


@pytest.mark.parametrize("actor", ["operator", "approver-1", "admin", "nobody", SYSTEM])
def test_without_a_steward_s_grant_nothing_is_read(promoted, actor):
    with promoted.refuses("not_authorised"):
        read(promoted, ActorId(actor))


def test_a_grant_for_another_datasource_reads_nothing_here(promoted):
    promoted.datasource = "other"
    promoted.declare()
    promoted.grant("operator", Role.STEWARD, "other")
    promoted.datasource = "orders"

    with promoted.refuses("not_authorised"):
        read(promoted, ActorId("operator"))


def test_every_reading_is_authorised_anew(promoted):
    grant = promoted.grant(SYSTEM, Role.STEWARD, "orders")
    first = read(promoted, SYSTEM)
    promoted.withdraw(grant)

    assert rows(first) == [{"id": 1}, {"id": 2}]
    with promoted.refuses("not_authorised"):
        read(promoted, SYSTEM)


def test_reading_is_bounded_by_rows_and_bytes(promoted):
    reading = read(promoted)
    made, size = reading.materialization, len(reading.payload)

    for bounds in (
        {"maximum_rows": made.row_count},
        {"maximum_bytes": size},
    ):
        assert read(promoted, **bounds).materialization == made
    for bounds in (
        {"maximum_rows": made.row_count - 1},
        {"maximum_bytes": size - 1},
    ):
        with promoted.refuses("payload_too_large"):
            read(promoted, **bounds)


def test_an_altered_payload_is_not_given_out(promoted):
    promoted.as_superuser(
        "ALTER TABLE governance.materialization_payload DISABLE TRIGGER USER;"
        "UPDATE governance.materialization_payload SET payload = payload || '\\x00'"
    )

    with promoted.refuses("payload_altered"):
        read(promoted)


@pytest.mark.parametrize("disposition", ["purging", "purged"])
def test_a_payload_that_is_gone_is_said_to_be_gone(promoted, disposition):
    promoted.as_superuser(f"UPDATE governance.materialization SET disposition = '{disposition}'")

    with promoted.refuses("payload_purged"):
        read(promoted)


def test_another_tenant_s_data_looks_like_none(promoted, governance_database, tmp_path):
    other = new_world(governance_database, tmp_path / "other", tenant="other")

    with other.refuses("not_found"):
        read(other)
    other.application.close()
