"""Sixty-four publish at once; then the same with the key's lock removed, where it has to go wrong.

The outputs are two rows, so that nearly all of the time is spent where attempts meet.
"""

from collections import Counter
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest
from sqlalchemy import exists, func, select

from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.domain.evidence import datasource_chain
from datasource_governance.domain.publication import PublicationState
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.persistence import connection, mapping, tables
from datasource_governance.persistence.publications import PostgresPublications
from datasource_governance.persistence.repositories import PostgresDatasources
from datasource_governance.services.publishing import PublicationRequest, Published, publish
from datasource_governance_tests.services.rivals import Pause, Rivals, rivals_in
from datasource_governance_tests.world import ONE_ROW_AT_LEAST, TWO_ROWS, World, new_world

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

WORKERS, ROUNDS = 64, 50
ANY_KEY = 7  # of the control, in which all wait for one
UNIQUE = "publication_tenant_producer_idempotency_key_key"
PUBLISHED = "datasource.publication.published"
ONE_APPROVAL = {"version": "v1", "required": True}
FOUR_TABLES = [pa.table({"id": [number, 9]}) for number in range(4)]


@pytest.fixture(scope="module")
def crowd(shared_world):
    with rivals_in(shared_world, WORKERS) as all_of_them:
        yield all_of_them


@pytest.fixture(autouse=True)
def no_deadlock(request):
    """Whatever happens at once, Postgres never has to break a deadlock."""
    shared = "world" not in request.fixturenames
    world = request.getfixturevalue("shared_world" if shared else "world")
    yield
    statement = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    assert world.query(statement) == [(0,)]


@pytest.fixture
def corner(own_corner) -> World:
    """A datasource of the module's world that takes outputs of `system`."""
    return taking_outputs(own_corner)


def taking_outputs(world: World, **declared) -> World:
    world.declare(kind="published", **declared)
    world.grant(SYSTEM, Role.PRODUCER, world.datasource)
    return world


def publishing(world: World, key: str = "k", data: pa.Table | None = None, **request):
    """Return what a rival does who publishes to a world's datasource, by a producer of its own."""
    named = {"datasource": world.datasource, "producer": world.datasource, **request}
    return lambda own: own.publish(data, key, **named)


class Remembering:
    """Validates once, so that attempts meet where they have to wait, again and again."""

    provider = None

    def __init__(self, evaluator):
        self._evaluator = evaluator
        self._validated = []

    def validate(self, policy, payload, previous):
        if not self._validated:
            self._validated.append(self._evaluator.validate(policy, payload, previous))
        return self._validated[0]

    def fingerprint(self, _payload):
        return self._validated[0].fingerprint


def found_in(world: World, table: str) -> int:
    """Count a table's rows about the world's datasource, or the events of publications to it."""
    tenant = world.application.settings.tenant
    where = f"tenant = '{tenant}' AND datasource = '{world.datasource}'"
    if table == "outbox":
        where += f" AND type = '{PUBLISHED}'"
    return world.query(f"SELECT count(*) FROM governance.{table} WHERE {where}")[0][0]


def assert_published(world: World, number: int) -> None:
    """Hold that the datasource has just so many publications, with all that belongs to one."""
    for table in ("publication", "materialization", "outbox"):
        assert found_in(world, table) == number, table
    with world.application.work() as work:
        entries = work.evidence.since(datasource_chain(world.datasource), 0, 10_000)
    assert sum(one.kind == "publication.published" for one in entries) == number
    assert world.verification().holds


# --- One key --------------------------------------------------------------------------------------


def test_one_key_from_many_workers_is_published_once_and_everybody_gets_that(corner, crowd):
    evaluator, payload = Remembering(corner.application.evaluator()), TypedPayload(TWO_ROWS)

    def publish_one(own, key):
        named = {"producer": corner.datasource, "datasource": corner.datasource}
        request = PublicationRequest(idempotency_key=key, **named)
        return publish(own.application.work(), evaluator, payload, request)

    for number in range(ROUNDS):
        found = crowd.at_once(*[partial(publish_one, key=f"k{number}")] * WORKERS)

        (first,) = [one for one in found if not one.replayed]
        assert [one for one in found if one is not first] == [replace(first, replayed=True)] * 63

    assert_published(corner, ROUNDS)


def test_the_connections_of_one_application_are_enough_for_all_who_wait(corner, crowd):
    together = Rivals((corner,) * WORKERS, crowd.pool)

    found = together.at_once(*[publishing(corner)] * WORKERS)

    assert Counter(one.replayed for one in found) == {False: 1, True: WORKERS - 1}


def test_of_four_outputs_under_one_key_one_is_published_and_the_others_conflict(corner, crowd):
    for number in range(3):
        acts = [publishing(corner, f"k{number}", table) for table in FOUR_TABLES]
        found = crowd.at_once(*acts * (WORKERS // 4))

        made = [one for one in found if isinstance(one, Published)]
        assert sum(not one.replayed for one in made) == 1
        assert len({one.publication for one in made}) == 1
        assert len(made) == WORKERS // 4
        assert Counter(one for one in found if isinstance(one, str)) == {
            "idempotency_conflict": WORKERS - WORKERS // 4
        }

    assert_published(corner, 3)


def test_where_approval_is_required_one_key_makes_one_stage(own_corner, crowd):
    corner = taking_outputs(own_corner, approval=ONE_APPROVAL)

    found = crowd.at_once(*[publishing(corner)] * WORKERS)

    assert {one.publication.state for one in found} == {PublicationState.REVIEW_REQUIRED}
    assert len({one.stage for one in found}) == found_in(corner, "stage") == 1
    assert_published(corner, 1)


def test_one_attestation_from_many_workers_is_used_once_and_refused_to_none(corner, crowd):
    corner.admit("maker", Role.PRODUCER)
    signed = {"producer": "flow", "attestation": corner.publication_attestation("maker", "signed")}

    found = crowd.at_once(*[publishing(corner, "signed", **signed)] * 16)

    assert Counter(one.replayed for one in found) == {False: 1, True: 15}
    assert {one.publication.actor for one in found} == {"maker"}


# --- Other keys -----------------------------------------------------------------------------------


def test_other_keys_of_one_datasource_are_all_published_one_after_the_other(corner, crowd):
    found = crowd.at_once(*[publishing(corner, f"k{number}") for number in range(WORKERS)])

    revisions = sorted(one.materialization.revision for one in found)
    assert revisions == list(range(1, WORKERS + 1))
    (last,) = [one for one in found if one.materialization.revision == WORKERS]
    with corner.application.work() as work:
        assert work.datasources.get(corner.datasource).current == last.materialization.id
    assert_published(corner, WORKERS)


def test_partitions_of_one_datasource_all_become_current(corner, crowd):
    parts = [f"2026-{number}" for number in range(16)]

    found = crowd.at_once(*[publishing(corner, one, partition=one) for one in parts])

    with corner.application.work() as work:
        current = [work.datasources.get(corner.datasource, one).current for one in parts]
    assert current == [one.materialization.id for one in found]
    assert_published(corner, 16)


def test_a_key_is_its_producers_and_its_tenants_own(corner, crowd, shared_world, tmp_path):
    made = new_world(shared_world.database, tmp_path, "other")
    other = taking_outputs(replace(made, datasource=corner.datasource))
    producers = [f"producer-{number}" for number in range(4)]
    acts = [publishing(corner, producer=one) for one in producers] * 4

    with rivals_in(other, 16) as others:
        there = crowd.pool.submit(others.at_once, *acts)
        here = crowd.at_once(*acts)
        there = there.result()

    for found in (here, there):
        assert Counter(one.replayed for one in found) == {False: 4, True: 12}
        assert {one.publication.producer for one in found} == set(producers)
    assert not {one.publication.id for one in here} & {one.publication.id for one in there}
    assert_published(corner, 4)
    assert_published(other, 4)
    other.application.close()


def test_while_a_key_is_waited_for_other_keys_are_published(corner, crowd, monkeypatch):
    pause = Pause(monkeypatch, PostgresDatasources, "get_for_update")
    stuck = [publishing(corner)] * (WORKERS - 1)

    *found, other = crowd.at_once(*stuck, pause.meanwhile(publishing(corner, "other")))

    assert not other.replayed
    assert other.materialization.revision == 1
    assert Counter(one.replayed for one in found) == {False: 1, True: WORKERS - 2}
    assert_published(corner, 2)


def test_who_waits_too_long_for_a_key_is_told_to_try_again(corner, crowd, monkeypatch):
    monkeypatch.setattr(connection, "LOCK_TIMEOUT", "50ms")
    pause = Pause(monkeypatch, PostgresDatasources, "get_for_update")

    found = crowd.at_once(publishing(corner), pause.meanwhile(publishing(corner)))

    assert found[1] == "busy"
    assert publishing(corner)(corner) == replace(found[0], replayed=True)
    assert_published(corner, 1)


# --- Policies -------------------------------------------------------------------------------------


def test_an_output_is_judged_by_the_policy_that_is_in_force_where_it_stands_in_the_chain(
    corner, crowd
):
    for number in range(20):
        policy = {**ONE_ROW_AT_LEAST, "version": f"w{number}"}
        crowd.at_once(
            publishing(corner, f"k{number}"),
            lambda own, policy=policy: replace(own, datasource=corner.datasource).declare(
                policy, kind="published"
            ),
        )

    with corner.application.work() as work:
        entries = work.evidence.since(datasource_chain(corner.datasource), 0, 10_000)
    in_force, judged = None, []
    for entry in entries:
        facts = entry.document()["body"]["facts"]
        if entry.kind == "governance.applied":
            in_force = facts["quality_policy_hash"]
        else:
            judged.append(facts["quality_policy_hash"] == in_force)
    assert judged == [True] * 20


# --- Controls -------------------------------------------------------------------------------------


def without_lock(monkeypatch):
    """Let nobody wait for a key."""
    monkeypatch.setattr(PostgresPublications, "lock_key", lambda *_named: None)


def lock_and_lookup_in_one_statement(monkeypatch):
    """Look a key up in the statement that waits for it, which sees what was before the wait."""
    without_lock(monkeypatch)

    def find(self, producer, idempotency_key):
        lock = select(func.pg_advisory_xact_lock(ANY_KEY)).cte("lock")
        named = {"producer": producer, "idempotency_key": idempotency_key}
        query = self._rows.of(tables.publication, **named).where(exists(select(lock.c[0])))
        row = self._rows.first(query)
        return mapping.publication(row) if row else None

    monkeypatch.setattr(PostgresPublications, "find", find)


@pytest.mark.parametrize("broken", [without_lock, lock_and_lookup_in_one_statement])
def test_without_a_lock_of_its_own_before_the_lookup_somebody_is_told_of_a_conflict(
    world, monkeypatch, broken
):
    """The control: what comes too late is stopped by the unique index, and is no replay."""
    taking_outputs(world)
    broken(monkeypatch)

    with rivals_in(world, 8) as rivals:
        found = [rivals.at_once(*[publishing(world, f"k{n}")] * 8) for n in range(3)]

    assert "conflict" in {one for answers in found for one in answers}
    assert found_in(world, "publication") == 3


@pytest.mark.parametrize("broken", [without_lock, lock_and_lookup_in_one_statement])
def test_without_the_unique_index_as_well_one_key_is_published_more_than_once(
    world, monkeypatch, broken
):
    taking_outputs(world)
    world.as_superuser(f"ALTER TABLE governance.publication DROP CONSTRAINT {UNIQUE}")
    broken(monkeypatch)

    with rivals_in(world, 8) as rivals:
        for number in range(3):
            rivals.at_once(*[publishing(world, f"k{number}")] * 8)

    assert found_in(world, "publication") > 3


def test_with_the_lock_alone_one_key_is_published_once_whatever_the_database_prefers(world):
    """What the controls take away is enough, and the isolation is the package's own."""
    taking_outputs(world)
    world.as_superuser(f"ALTER TABLE governance.publication DROP CONSTRAINT {UNIQUE}")
    preferred = "SET default_transaction_isolation = 'repeatable read'"
    world.as_superuser(f"ALTER DATABASE {world.database.name} {preferred}")

    with rivals_in(world, 8) as rivals:
        for number in range(3):
            found = rivals.at_once(*[publishing(world, f"k{number}")] * 8)
            assert Counter(one.replayed for one in found) == {False: 1, True: 7}

    assert_published(world, 3)
