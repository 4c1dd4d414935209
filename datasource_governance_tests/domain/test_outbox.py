from datetime import timedelta

import pytest

from datasource_governance.domain.outbox import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    MAXIMUM_ATTEMPTS,
    Position,
)
from datasource_governance_tests.domain.lifecycle import MIDDAY

START = Position(receiver="hook", datasource="orders")
MICROSECOND = timedelta(microseconds=1)


def failed(times: int) -> Position:
    position = START
    for _ in range(times):
        position = position.failed(MIDDAY)
    return position


@pytest.mark.parametrize(
    ("times", "seconds"), [(1, 10), (2, 20), (3, 40), (9, 2560), (10, 3600), (11, 3600)]
)
def test_each_pause_is_twice_the_one_before_up_to_an_hour(times, seconds):
    assert failed(times).retry_at == MIDDAY + timedelta(seconds=seconds)
    assert FIRST_PAUSE <= failed(times).retry_at - MIDDAY <= LONGEST_PAUSE


def test_at_the_end_of_its_pause_an_event_may_be_tried():
    ends = MIDDAY + FIRST_PAUSE

    assert not failed(1).is_due(ends - MICROSECOND)
    assert failed(1).is_due(ends)
    assert START.is_due(MIDDAY)


def test_the_twelfth_failure_is_the_last():
    assert not failed(MAXIMUM_ATTEMPTS - 1).is_exhausted
    assert failed(MAXIMUM_ATTEMPTS).is_exhausted


def test_behind_an_event_nothing_is_remembered_of_its_failures():
    assert failed(3).passed() == Position(receiver="hook", datasource="orders", delivered=1)
    assert (START.next, failed(3).passed().next) == (1, 2)
