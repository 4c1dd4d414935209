"""Turns are taken without waiting; all other locks in one order, whoever takes them."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from datasource_governance.composition import Application
from datasource_governance.domain.evidence import TENANT_CHAIN, datasource_chain
from datasource_governance.errors import GovernanceError, ServiceUnavailableError
from datasource_governance.persistence import connection as border
from datasource_governance.persistence.locks import Place
from datasource_governance_tests.world import settings

pytestmark = pytest.mark.postgres


@pytest.fixture
def application(governance_database, tmp_path):
    made = Application(settings(governance_database, tmp_path))
    yield made
    made.close()


def test_while_one_has_a_turn_another_does_not_get_it_and_does_not_wait(application):
    with application.work() as first, application.work() as second:
        assert first.take_turn("sensor/x")
        assert not second.take_turn("sensor/x")


def test_a_turn_ends_with_its_transaction(application):
    with application.work() as first:
        assert first.take_turn("sensor/x")

    with application.work() as second:
        assert second.take_turn("sensor/x")


def test_other_names_and_tenants_have_turns_of_their_own(
    application, tmp_path, governance_database
):
    other = Application(settings(governance_database, tmp_path, tenant="other"))
    with application.work() as first, application.work() as second, other.work() as third:
        assert first.take_turn("sensor/x")
        assert second.take_turn("sensor/y")
        assert third.take_turn("sensor/x")
    other.close()


@pytest.mark.parametrize("name", [f"sensor/{number}" for number in range(8)])
def test_keys_are_signed_64_bit_integers_whatever_the_name(application, name):
    with application.work() as work:
        assert work.take_turn(name)


def test_of_many_at_once_one_gets_it(application):
    with application.work() as holder:
        assert holder.take_turn("sensor/x")

        def attempt(_):
            with application.work() as work:
                return work.take_turn("sensor/x")

        with ThreadPoolExecutor(8) as pool:
            assert not any(pool.map(attempt, range(16)))


ORDER = {
    "retention": lambda work, _: work.retention.lock(),
    "keys and grants, to change them": lambda work, _: work.authority.lock(),
    "keys and grants, to rely on them": lambda work, _: work.authority.hold(),
    "a datasource": lambda work, _: work.datasources.get_for_update("orders"),
    "a stage": lambda work, stage: work.stages.get_for_update(stage),
    "a datasource's chain": lambda work, _: work.evidence.heads_with_lock(
        datasource_chain("orders")
    ),
    "the tenant's chain": lambda work, _: work.evidence.heads_with_lock(TENANT_CHAIN),
}


@pytest.fixture(scope="module")
def orders(shared_world):
    """The id of a stage of datasource `orders`."""
    shared_world.declare()
    return shared_world.stage().id


def test_locks_in_their_order_are_taken_once_each(shared_world, orders):
    with shared_world.application.work() as work:
        for take in [*ORDER.values(), *ORDER.values()]:
            take(work, orders)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (later, earlier)
        for number, later in enumerate(ORDER)
        for earlier in list(ORDER)[:number]
        # Whoever holds a datasource holds keys and grants with it.
        if (later, earlier) != ("a datasource", "keys and grants, to rely on them")
    ],
)
def test_a_lock_out_of_order_is_refused_before_it_could_wait(shared_world, orders, first, second):
    with shared_world.application.work() as work:
        ORDER[first](work, orders)

        with pytest.raises(GovernanceError, match="locks are taken in one order"):
            ORDER[second](work, orders)


def test_the_next_transaction_of_a_unit_of_work_begins_anew(shared_world, orders):
    work = shared_world.application.work()
    with work:
        work.evidence.heads_with_lock(TENANT_CHAIN)

    with work:
        work.authority.lock()


def test_datasources_are_locked_by_name(shared_world):
    with shared_world.application.work() as work:
        work.datasources.find("b")
        with pytest.raises(GovernanceError, match="datasource a comes before datasource b"):
            work.datasources.find("a")


def test_the_order_of_places_is_the_documented_one():
    assert [place.name for place in Place] == [
        *("RETENTION", "PUBLICATION", "AUTHORITY", "DATASOURCE", "STAGE", "CHAIN"),
    ]


def test_any_number_may_rely_on_keys_and_grants_at_once(application):
    with application.work() as first, application.work() as second:
        first.authority.hold()
        second.authority.hold()


@pytest.mark.parametrize("relying", list(ORDER)[1:3])
def test_who_changes_keys_and_grants_waits_for_whoever_has_them(application, monkeypatch, relying):
    monkeypatch.setattr(border, "LOCK_TIMEOUT", "100ms")
    with application.work() as first, application.work() as second:
        ORDER[relying](first, None)
        first.now()  # what was only held goes with what is asked next

        with pytest.raises(ServiceUnavailableError) as refused:
            second.authority.lock()

    assert refused.value.code == "busy"


def test_keys_and_grants_of_another_tenant_are_not_waited_for(
    application, tmp_path, governance_database
):
    other = Application(settings(governance_database, tmp_path, tenant="other"))
    with application.work() as first, other.work() as second:
        first.authority.lock()
        second.authority.lock()
    other.close()
