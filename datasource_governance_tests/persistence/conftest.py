"""A database in which something happened, shared by the tests of one module."""

import pytest

from datasource_governance_tests.persistence.story import tell
from datasource_governance_tests.postgres import cloned_governance
from datasource_governance_tests.world import new_world


@pytest.fixture(scope="module")
def told_world(template, tmp_path_factory):
    """A world after the story; every table has rows. Tests leave it as they found it."""
    for database in cloned_governance(template):
        world = new_world(database, tmp_path_factory.mktemp("world"))
        tell(world)
        yield world
        world.application.close()
