"""Holds come back as they were placed and released, each once."""

from dataclasses import replace

import pytest

from datasource_governance.domain.hold import HoldScope
from datasource_governance.errors import NotFoundError, ServiceUnavailableError
from datasource_governance_tests.retiring import (
    admit_keeper,
    declare_kept,
    freeze_as_evidence,
    hold,
    publish_at,
    release,
)
from datasource_governance_tests.world import World

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@pytest.fixture(scope="module")
def keepers(shared_world: World) -> World:
    admit_keeper(shared_world)
    return shared_world


@pytest.fixture
def kept(keepers: World, own_corner: World) -> World:
    """A datasource that is published to, with a retention policy."""
    declare_kept(own_corner, kind="published")
    return own_corner


def test_a_hold_comes_back_as_it_was_placed_and_then_with_its_release(kept: World) -> None:
    placed = hold(kept)
    with kept.application.work() as work:
        assert work.holds.get(placed.id) == placed

    released = release(kept, placed.id)

    with kept.application.work() as work:
        assert work.holds.get(placed.id) == released
    assert replace(released, released=None) == placed


def test_holds_are_listed_newest_first_by_datasource_and_by_whether_they_are_active(
    kept: World,
) -> None:
    made = publish_at(kept)
    first = hold(kept, made.id, HoldScope.MATERIALIZATION)
    kept.release_clock()
    second = hold(kept)
    other = replace(kept, datasource=f"{kept.datasource}_other")
    declare_kept(other)
    elsewhere = hold(other)
    first = release(kept, first.id)

    with kept.application.work() as work:
        assert work.holds.list(kept.datasource, active=False) == [second, first]
        assert work.holds.list(kept.datasource, active=True) == [second]
        everywhere = work.holds.list(None, active=True)

    assert {second, elsewhere} <= set(everywhere)
    assert first not in everywhere


def test_there_is_no_hold_that_nobody_placed(kept: World) -> None:
    with kept.application.work() as work, pytest.raises(NotFoundError):
        work.holds.get("nobody's")


def test_a_hold_is_released_and_a_materialization_frozen_once_whoever_asks(kept: World) -> None:
    released = release(kept, hold(kept).id).released
    frozen = freeze_as_evidence(kept, publish_at(kept).id)

    for again in (
        lambda work: work.holds.release(released),
        lambda work: work.holds.freeze(frozen),
    ):
        with kept.refuses("conflict"), kept.application.work() as work:
            again(work)
            work.now()  # what was to go later goes with what is asked next


def test_what_is_frozen_says_so_and_the_rest_does_not(kept: World) -> None:
    made, other = publish_at(kept), publish_at(kept)
    frozen = freeze_as_evidence(kept, made.id)

    with kept.application.work() as work:
        assert work.holds.frozen(made.id) == frozen
        assert work.holds.frozen(other.id) is None


def test_a_hold_on_a_datasource_is_on_that_one(kept: World) -> None:
    placed = hold(kept)
    forged = replace(placed, id="forged", subject="another", attestation_id="x")

    with kept.application.work() as work:
        work.holds.place(forged)
        with pytest.raises(ServiceUnavailableError, match="legal_hold_check"):
            work.now()
