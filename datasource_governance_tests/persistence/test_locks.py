"""Turns: one at a time, without waiting, until the transaction ends."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from datasource_governance.composition import Application
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
