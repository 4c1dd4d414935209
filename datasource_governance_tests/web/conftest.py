"""One webserver for the tests that only ask it; each takes actors of its own or shared ones."""

from collections.abc import Iterator

import pytest
from dagster._core.workspace.context import WorkspaceProcessContext
from playwright.sync_api import Browser

from datasource_governance.domain.actor import Role
from datasource_governance.web.settings import WebSettings
from datasource_governance_tests.browser import pages
from datasource_governance_tests.postgres import cloned_governance
from datasource_governance_tests.web.deciding import Deciding, deciding
from datasource_governance_tests.web.serving import Serving, serving, with_accounts, workspace
from datasource_governance_tests.world import World, new_world

ROLES = {
    "viewer": Role.VIEWER,
    "steward": Role.STEWARD,
    "approver": Role.APPROVER,
    "operator": Role.OPERATOR,
    "administrator": Role.ADMINISTRATOR,
    "producer": Role.PRODUCER,
}
"""Accounts by the one role that each has over all datasources."""


@pytest.fixture(scope="session")
def web_world(template, tmp_path_factory) -> Iterator[World]:
    """A world with `orders`, whose actors are called by their roles.

    `nobody` has none, `stranger` is unknown.
    """
    for database in cloned_governance(template):
        world = new_world(database, tmp_path_factory.mktemp("web_world"))
        for name, role in ROLES.items():
            if name == "operator":  # a new world has one
                continue
            world.admit(name, role)
        world.admit("nobody")
        world.declare()
        yield world
        world.application.close()


@pytest.fixture(scope="session")
def web_context(tmp_path_factory) -> Iterator[WorkspaceProcessContext]:
    with workspace(tmp_path_factory.mktemp("code")) as context:
        yield context


@pytest.fixture(scope="module")
def office(template, web_context, tmp_path_factory) -> Iterator[Deciding]:
    """A webserver of its own for a module in which people decide."""
    for database in cloned_governance(template):
        world = new_world(database, tmp_path_factory.mktemp("world"))
        with deciding(world, web_context, tmp_path_factory.mktemp("webserver")) as running:
            yield running
        world.application.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with pages.browser() as started:
        yield started


@pytest.fixture(scope="session")
def governed(web_world, web_context, tmp_path_factory) -> Iterator[Serving]:
    settings = WebSettings(directory=tmp_path_factory.mktemp("webserver"))
    with_accounts(settings, *ROLES, "nobody", "stranger")
    gateway = web_world.gateway(settings.directory)
    with serving(web_context, settings, web_world.application, gateway=gateway) as running:
        yield running
