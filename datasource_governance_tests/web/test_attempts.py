"""Guessing passwords is slow, and nobody is locked out."""

import pytest

from datasource_governance.web import attempts
from datasource_governance.web.attempts import FREE_FAILURES, Attempts


def failed(times: int, at: float = 100.0) -> Attempts:
    made = Attempts()
    for _ in range(times):
        made.failed("ann", at)
    return made


@pytest.mark.parametrize(
    ("failures", "pause"),
    [(0, 0), (FREE_FAILURES - 1, 0), (5, 1), (6, 2), (7, 4), (10, 32), (11, 60), (10_000, 60)],
)
def test_pause_after_failures(failures, pause):
    assert failed(failures).pause("ann", 100.0) == pause


def test_pause_ends_exactly_when_it_is_over():
    made = failed(6)

    assert made.pause("ann", 101.999) == pytest.approx(0.001)
    assert made.pause("ann", 102.0) == 0


def test_success_forgets_and_others_are_not_concerned():
    made = failed(9)
    assert made.pause("bob", 100.0) == 0

    made.succeeded("ann")

    assert made.pause("ann", 100.0) == 0


def test_of_very_many_names_the_longest_unused_is_forgotten(monkeypatch):
    monkeypatch.setattr(attempts, "_MAXIMUM_NAMES", 2)
    made = failed(9)
    made.failed("bob", 100.0)
    made.failed("ann", 100.0)

    made.failed("eve", 100.0)

    assert made.pause("ann", 100.0) == 32
