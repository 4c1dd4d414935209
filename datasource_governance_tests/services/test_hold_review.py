"""Readers see what is held; why, only who places and releases holds over it sees."""

from dataclasses import replace

import pytest

from datasource_governance.domain.actor import ActorId, Role
from datasource_governance.services.hold_review import list_holds
from datasource_governance_tests.postgres import unique_name
from datasource_governance_tests.retiring import admit_keeper, declare_kept, hold, release

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@pytest.fixture(scope="module")
def keepers(shared_world):
    admit_keeper(shared_world)


@pytest.fixture
def held(keepers, own_corner):
    """A datasource with a hold."""
    declare_kept(own_corner)
    return own_corner, hold(own_corner)


def somebody(world, *roles, datasource=None) -> str:
    """Return a new actor with roles over a datasource or over all."""
    name = unique_name("somebody")
    world.admit(name)
    for role in roles:
        world.grant(name, role, datasource)
    return name


def seen(world, actor, **which):
    work = world.application.work()
    found = list_holds(work, ActorId(actor), world.datasource, **which)
    return [(one.hold.id, one.tells_reasons) for one in found]


@pytest.mark.parametrize(
    ("role", "tells_reasons"),
    [
        (Role.VIEWER, False),
        (Role.STEWARD, False),
        (Role.APPROVER, False),
        (Role.OPERATOR, True),
        (Role.ADMINISTRATOR, True),
    ],
)
def test_a_role_over_the_datasource_sees_a_hold_and_one_that_holds_or_releases_why(
    held, role, tells_reasons
):
    world, placed = held

    actor = somebody(world, role, datasource=world.datasource)

    assert seen(world, actor) == [(placed.id, tells_reasons)]


def test_without_a_role_that_reads_nothing_is_seen(held):
    world, _ = held

    assert seen(world, somebody(world)) == []
    assert seen(world, somebody(world, Role.PRODUCER)) == []


def test_a_role_over_another_datasource_counts_there_alone(held):
    world, placed = held
    reader = somebody(world, Role.VIEWER)
    other = replace(world, datasource=unique_name("elsewhere"))
    other.declare()
    world.grant(reader, Role.OPERATOR, other.datasource)
    stranger = somebody(world, Role.OPERATOR, datasource=other.datasource)

    assert seen(world, reader) == [(placed.id, False)]
    assert seen(world, stranger) == []


def test_of_all_datasources_those_are_listed_that_an_actor_may_see(held):
    world, placed = held
    reader = somebody(world, Role.VIEWER, datasource=world.datasource)

    found = list_holds(world.application.work(), ActorId(reader))

    assert [one.hold for one in found] == [placed]


def test_a_hold_that_was_released_is_seen_only_where_those_are_asked_for(held):
    world, placed = held
    release(world, placed.id)
    reader = somebody(world, Role.VIEWER, datasource=world.datasource)

    assert seen(world, reader) == []
    assert seen(world, reader, active=False) == [(placed.id, False)]
