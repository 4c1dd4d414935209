"""The option that names the acceptance cases, what is begun first, and how Hypothesis runs."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from datasource_governance_tests import case_files
from datasource_governance_tests.postgres import (  # noqa: F401 - fixtures are found by name
    cloned_governance,
    cluster,
    dagster_database,
    dagster_template,
    template,
    unique_name,
)
from datasource_governance_tests.world import copied_world, new_world

# The first draw on a small machine takes longer than Hypothesis expects of a whole example.
settings.register_profile(
    "datasource_governance",
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("datasource_governance")


def pytest_addoption(parser):
    parser.addoption(
        "--cases",
        metavar="DIR",
        type=Path,
        default=case_files.PACKAGED,
        help="folder of acceptance cases, DIR/<topic>/<id>.json (default: the packaged copy)",
    )


@pytest.hookimpl(trylast=True)  # the order is random before, and stays so within both parts
def pytest_collection_modifyitems(items):
    """Begin with the files that have slow tests, so that no worker ends long after the others."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def origin_world(template, tmp_path_factory):  # noqa: F811 - pytest hands fixtures over by name
    """What `world` and `shared_world` are copies of; nothing connects to its database."""
    for database in cloned_governance(template):
        made = new_world(database, tmp_path_factory.mktemp("origin"))
        made.application.close()
        yield made


@pytest.fixture
def governance_database(template, request):  # noqa: F811 - pytest hands fixtures over by name
    """A database of its own for one test: empty, unless it is that of its `world`."""
    has_world = "world" in request.fixturenames
    source = request.getfixturevalue("origin_world").database.name if has_world else None
    yield from cloned_governance(template, source)


@pytest.fixture(scope="module")
def shared_world(template, origin_world, tmp_path_factory):  # noqa: F811 - as above
    """A world for the tests of one module, which keep out of each other's datasources."""
    for database in cloned_governance(template, origin_world.database.name):
        made = copied_world(origin_world, database, tmp_path_factory.mktemp("world"))
        yield made
        made.application.close()


@pytest.fixture
def own_corner(shared_world):
    """The module's world with a datasource of its own, not declared yet, and a clock that runs."""
    yield replace(shared_world, datasource=unique_name("orders"))
    shared_world.release_clock()


@pytest.fixture
def world(origin_world, governance_database, tmp_path):
    """A database of its own with actors in it; connections are given back."""
    made = copied_world(origin_world, governance_database, tmp_path)
    yield made
    made.application.close()
