"""Postgres is killed under writers, on a disk that it waits for: what was acknowledged is there."""

import pytest

from benchmarks.power_cuts import survive

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

# More of them take minutes on a busy machine: `python -m benchmarks.power_cuts`.
PUBLICATIONS, CUTS, WRITERS = 320, 5, 8


def test_what_was_acknowledged_before_the_power_went_is_there_once_and_as_it_was():
    found = survive(PUBLICATIONS, CUTS, WRITERS)

    assert len(found.told) == PUBLICATIONS
    assert found.lost() == set()
    # Publications, materializations and events: nothing that nobody was told of.
    assert found.counted == (PUBLICATIONS, PUBLICATIONS, PUBLICATIONS)
    assert found.verifies
    assert found.cuts == CUTS
    assert found.cut_off > 0
