"""No cell value comes out: bait goes through a whole life, then every channel is looked at.

Each channel has a control, which plants a leak in it that the same look must find.
"""

from collections.abc import Iterator

import dagster as dg
import pytest
from sqlalchemy import make_url

from datasource_governance_tests.end_to_end.canaries import leaks, new_canary
from datasource_governance_tests.end_to_end.channels import CHANNELS, SILENT, TABLES
from datasource_governance_tests.end_to_end.life import Scene
from datasource_governance_tests.end_to_end.plays import live
from datasource_governance_tests.sources.databases import Database, new_postgres

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
EACH_CHANNEL = pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)


@pytest.fixture(scope="module")
def origin(cluster) -> Iterator[Database]:
    """A database that somebody else's data come from."""
    yield from new_postgres(cluster)


@pytest.fixture(scope="module")
def dagster_url(cluster) -> Iterator[str]:
    """The address of an empty database, as Dagster's storage takes it."""
    for made in new_postgres(cluster):
        url = make_url(made.url).set(drivername="postgresql+psycopg2")
        yield url.render_as_string(hide_password=False)


@pytest.fixture(scope="module")
def scene(shared_world, dagster_url, origin, tmp_path_factory) -> Iterator[Scene]:
    """An installation after a whole life. Controls bring bait of their own into it."""
    folder = tmp_path_factory.mktemp("scene")
    home = folder / "home"
    home.mkdir()
    storage = {"postgres": {"postgres_url": dagster_url}}
    with dg.instance_for_test(overrides={"storage": storage}, temp_dir=str(home)) as instance:
        made = Scene(shared_world, instance, dagster_url, origin, folder)
        live(made)
        yield made


@pytest.fixture(scope="module")
def said(scene) -> dict[str, str]:
    """What each channel says after the life, before any control."""
    return {channel.name: channel.look(scene) for channel in CHANNELS}


@EACH_CHANNEL
def test_no_value_comes_out(scene, said, channel):
    assert leaks({channel.name: said[channel.name]}, scene.canary.values()) == {}


@EACH_CHANNEL
@pytest.mark.usefixtures("said")
def test_a_planted_leak_is_found(scene, channel):
    planted = new_canary()

    with scene.listening():
        channel.plant(scene, planted.bait)

    found = leaks({channel.name: channel.look(scene)}, planted.values())
    assert found == {channel.name: planted.kinds()}


def test_all_channels_say_something_but_those_that_are_known_to_be_silent(said):
    assert {name for name, text in said.items() if not text.strip()} == SILENT


def test_there_are_at_least_40_channels_each_of_its_own_name():
    assert len({channel.name for channel in CHANNELS}) == len(CHANNELS) >= 40


def test_every_table_is_a_channel(scene):
    # The one that says which revision the others are of, and those that are to hold the values.
    others = {"alembic_version", "stage_payload", "materialization_payload"}

    assert scene.world.count_rows().keys() - others == TABLES.keys()


def test_only_the_reason_of_a_decision_holds_its_text(scene):
    assert set(leaks(scene.places(), [scene.reason])) == {"governance.decision.reason"}


def test_no_place_at_all_holds_a_value(scene):
    assert leaks(scene.places(), scene.canary.values()) == {}
