"""Every event reaches every receiver, in order, whoever fails, dies or delivers meanwhile."""

import multiprocessing
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.dialects import postgresql

from datasource_governance.composition import Application
from datasource_governance.domain.outbox import FIRST_PAUSE, MAXIMUM_ATTEMPTS, Position
from datasource_governance.errors import GovernanceError, NotFoundError
from datasource_governance.persistence.deliveries import PostgresDeliveries
from datasource_governance.persistence.unit_of_work import PostgresUnitOfWork
from datasource_governance.services.delivering import backlogs, dead_letters, deliver, retry
from datasource_governance.services.recording import record
from datasource_governance_tests.receiving import Away, Deaf, Ledger

pytestmark = pytest.mark.postgres
MIDDAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
forks = multiprocessing.get_context("forkserver")


def tell(world, number=1):
    """Write events, each in a transaction of its own."""
    for _ in range(number):
        with world.application.work() as work:
            work.datasources.get_for_update(world.datasource)
            facts = {"stage": "s"}
            record(work, world.datasource, "stage.told", subject="s", facts=facts, at=work.now())
            work.commit()


def written(world):
    """Return the ids of a datasource's events in their order."""
    query = f"SELECT id FROM governance.outbox WHERE datasource = '{world.datasource}'"
    return [found for (found,) in world.query(f"{query} ORDER BY number")]


def serve(world, *receivers, **options):
    return deliver(world.application.work, receivers, **options)


def waiting(world, receiver):
    (found,) = backlogs(world.application.work(), [receiver])
    return found.waiting


def position(world, receiver):
    (found,) = backlogs(world.application.work(), [receiver])
    return found.position


@pytest.fixture
def declared(world):
    """A datasource with one event."""
    world.declare()
    return world


@pytest.fixture
def elsewhere(declared):
    """The same world, acting on another datasource with one event."""
    other = replace(declared, datasource="users")
    other.declare()
    return other


def test_every_receiver_gets_every_event_once_and_in_order(declared):
    tell(declared, 20)
    one, other = Ledger("one"), Ledger("other")

    serve(declared, one, other)
    serve(declared, one, other)

    assert one.ids("orders") == other.ids("orders") == written(declared)


def test_what_happened_is_told(declared):
    (ledger, deaf) = serve(declared, Ledger("ledger"), Deaf("deaf"))

    assert (ledger.accepted, ledger.failed, ledger.is_clean) == (1, 0, True)
    assert (deaf.accepted, deaf.failed, deaf.problem) == (0, 1, "no")


def test_without_receivers_nothing_is_done(declared):
    assert serve(declared) == ()


def test_delivery_is_no_evidence_and_leaves_it_whole(declared):
    entries = declared.verification().entries

    serve(declared, Ledger("ledger"), Deaf("deaf"))

    assert declared.verification().holds
    assert declared.verification().entries == entries


def test_a_new_receiver_begins_at_the_beginning_and_a_restart_goes_on(declared):
    serve(declared, Ledger("ledger"))
    tell(declared)
    restarted, new = Ledger("ledger"), Ledger("new")

    serve(declared, restarted, new)

    assert restarted.ids("orders") == written(declared)[1:]
    assert new.ids("orders") == written(declared)


def test_a_round_is_bounded_in_events_and_datasources_take_turns(declared, elsewhere):
    tell(declared, 5)
    tell(elsewhere, 5)
    ledger = Ledger("ledger")

    serve(declared, ledger, maximum_events=4)

    assert [event.datasource for event in ledger.events] == ["orders", "users"] * 2


def test_a_receiver_that_fails_stops_only_its_own_later_events_of_that_datasource(
    declared, elsewhere
):
    tell(declared, 2)
    poison = frozenset({written(declared)[1]})
    sick, well = Ledger("sick", poison), Ledger("well")

    serve(declared, sick, well)
    serve(declared, sick, well)

    assert sick.ids("orders") == written(declared)[:1]
    assert sick.ids("users") == written(elsewhere)
    assert well.ids("orders") == written(declared)


def test_a_receiver_that_is_away_is_asked_once_a_round_and_others_do_not_notice(
    declared, elsewhere
):
    away, well = Away("away"), Ledger("well")

    serve(declared, away, well)

    assert away.asked == 1
    assert len(well.events) == 2


def test_a_failed_event_is_left_alone_until_its_pause_ends_exactly(declared):
    deaf = Deaf("deaf")
    declared.set_clock(MIDDAY)
    serve(declared, deaf)
    declared.set_clock(MIDDAY + FIRST_PAUSE - timedelta(microseconds=1))
    serve(declared, deaf)
    before = deaf.asked

    declared.set_clock(MIDDAY + FIRST_PAUSE)
    serve(declared, deaf)

    assert (before, deaf.asked) == (1, 2)
    assert position(declared, deaf).attempts == 2


def test_a_command_does_not_wait_for_the_pause(declared):
    deaf = Deaf("deaf")

    for _ in range(3):
        serve(declared, deaf, heeds_pauses=False)

    assert deaf.asked == 3


def bury(world, receiver):
    """Let a receiver refuse as often as it may."""
    for _ in range(MAXIMUM_ATTEMPTS):
        serve(world, receiver, heeds_pauses=False)


def test_an_event_refused_every_time_is_set_aside_and_lets_the_next_ones_pass(declared):
    tell(declared, 2)
    first, *rest = written(declared)
    ledger = Ledger("ledger", frozenset({first}))
    for _ in range(MAXIMUM_ATTEMPTS - 1):
        serve(declared, ledger, heeds_pauses=False)
    before = dead_letters(declared.application.work())

    (told,) = serve(declared, ledger, heeds_pauses=False)

    (letter,) = dead_letters(declared.application.work())
    assert before == []
    assert (letter.receiver, letter.event.id, letter.attempts) == ("ledger", first, 12)
    assert letter.problem == "receiver_refused"
    assert ledger.ids("orders") == rest
    assert (told.accepted, told.set_aside, waiting(declared, ledger)) == (2, 1, 0)
    assert position(declared, ledger) == Position(
        receiver="ledger", datasource="orders", delivered=3
    )


def test_a_dead_letter_that_is_retried_and_accepted_is_one_no_longer(declared):
    bury(declared, Deaf("ledger"))
    (event_id,) = written(declared)
    cured = Ledger("ledger")

    letter = retry(declared.application.work(), cured, event_id)

    assert cured.ids("orders") == [letter.event.id] == [event_id]
    assert dead_letters(declared.application.work()) == []
    with pytest.raises(NotFoundError):
        retry(declared.application.work(), cured, event_id)
    assert len(cured.events) == 1


def test_a_dead_letter_that_is_refused_again_stays_one(declared):
    bury(declared, Deaf("deaf"))
    (event_id,) = written(declared)
    before = declared.query("SELECT * FROM governance.dead_letter")

    with pytest.raises(GovernanceError) as refused:
        retry(declared.application.work(), Deaf("deaf"), event_id)

    assert refused.value.code == "receiver_refused"
    assert declared.query("SELECT * FROM governance.dead_letter") == before


def test_a_dead_letter_is_not_retried_while_its_receiver_is_served(declared):
    bury(declared, Deaf("deaf"))
    (event_id,) = written(declared)

    with declared.application.work() as other:
        assert other.take_turn("outbox/deaf/orders")
        with pytest.raises(GovernanceError) as refused:
            retry(declared.application.work(), Ledger("deaf"), event_id)

    assert refused.value.code == "busy"


def test_what_a_receiver_has_no_dead_letter_of_is_not_found(declared):
    with pytest.raises(NotFoundError):
        retry(declared.application.work(), Ledger("ledger"), written(declared)[0])


def test_another_tenants_events_are_not_delivered(declared):
    settings = replace(declared.application.settings, tenant="other")
    other, ledger = Application(settings), Ledger("ledger")

    deliver(other.work, [ledger])
    other.close()

    assert ledger.events == []


def test_what_waits_is_found_without_reading_what_was_delivered(declared):
    declared.as_superuser(
        "INSERT INTO governance.outbox SELECT tenant, 'copy-' || n, datasource, n, type, body,"
        " created_at FROM governance.outbox, generate_series(2, 10000) n; ANALYZE",
        triggers=False,
    )

    with declared.application.work() as work:
        (found,) = work.deliveries.backlogs("ledger")
        query = work.deliveries._backlogs("ledger").compile(
            dialect=postgresql.dialect(), compile_kwargs={"literal_binds": True}
        )
        plan = work._connection.execute(text(f"EXPLAIN {query}")).scalars().all()

    assert found.waiting == 10_000
    assert sum("using outbox_tenant_datasource_number_key" in line for line in plan) == 2


@dataclass
class Slow(Ledger):
    """Says how many handed over to it at once, at most, and gives others the time to do so."""

    inside: int = 0
    most: int = 0

    def deliver(self, event):
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        threading.Event().wait(0.01)
        super().deliver(event)
        with self.lock:
            self.inside -= 1


@pytest.mark.slow
def test_deliverers_at_the_same_time_send_nothing_twice_and_keep_the_order(declared):
    tell(declared, 40)
    slow, start = Slow("slow"), threading.Barrier(4)

    def run(_):
        application = Application(declared.application.settings)
        start.wait(timeout=30)
        for _ in range(20):
            deliver(application.work, [slow])
        application.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4)))

    assert slow.ids("orders") == written(declared)
    assert slow.most == 1


@pytest.mark.slow
def test_without_turns_deliverers_send_twice(declared, monkeypatch):
    monkeypatch.setattr(PostgresUnitOfWork, "take_turn", lambda *_: True)
    both_are_in = threading.Barrier(2)

    class Meeting(Ledger):
        def deliver(self, event):
            both_are_in.wait(timeout=30)
            super().deliver(event)

    meeting = Meeting("meeting")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: serve(declared, meeting, maximum_events=1), range(2)))

    assert meeting.ids("orders") == written(declared) * 2


@pytest.mark.slow
def test_a_number_that_is_visible_has_all_earlier_ones_visible(declared):
    done = threading.Event()
    seen = []

    def watch():
        query = "SELECT array_agg(number ORDER BY number) FROM governance.outbox"
        while not done.is_set():
            ((numbers,),) = declared.query(query)
            seen.append(numbers == list(range(1, len(numbers) + 1)))

    def write(_):
        own = replace(declared, application=Application(declared.application.settings))
        tell(own, 15)
        own.application.close()

    with ThreadPoolExecutor(5) as pool:
        watching = pool.submit(watch)
        list(pool.map(write, range(4)))
        done.set()
        watching.result()

    assert len(written(declared)) == 61
    assert len(seen) > 1
    assert all(seen)


def deliver_and_die(settings, path):
    """Accept an event, and end before anybody is told."""

    class Killer(Ledger):
        def deliver(self, event):
            path.write_text(event.id)
            os.kill(os.getpid(), signal.SIGKILL)

    deliver(Application(settings).work, [Killer("ledger")])


@pytest.mark.slow
def test_killed_between_acceptance_and_commit_the_event_comes_again_with_the_same_id(
    declared, tmp_path
):
    process = forks.Process(
        target=deliver_and_die, args=(declared.application.settings, tmp_path / "accepted")
    )
    process.start()
    process.join(60)
    again = Ledger("ledger")

    serve(declared, again)

    assert process.exitcode == -signal.SIGKILL
    assert again.ids("orders") == [(tmp_path / "accepted").read_text()] == written(declared)


def test_an_acceptance_that_could_not_be_written_down_comes_again(declared, monkeypatch):
    ledger = Ledger("ledger")
    with monkeypatch.context() as broken:
        broken.setattr(PostgresDeliveries, "keep", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            serve(declared, ledger)

    serve(declared, ledger)

    assert ledger.ids("orders") == written(declared) * 2
