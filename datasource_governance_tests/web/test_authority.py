"""Grants are those of the database, at most seconds old."""

import pytest

from datasource_governance.composition import Application
from datasource_governance.domain.actor import ActorId, Role
from datasource_governance.errors import GuardError, ServiceUnavailableError
from datasource_governance.web.authority import FRESH_SECONDS, RememberedGrants
from datasource_governance.web.policy import OPERATE
from datasource_governance_tests.web.serving import unique_actor
from datasource_governance_tests.web.test_tokens import Clock
from datasource_governance_tests.world import settings

pytestmark = pytest.mark.postgres


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def remembered(shared_world, clock) -> RememberedGrants:
    return RememberedGrants(shared_world.application.work, clock)


def roles(remembered: RememberedGrants, name: str) -> set[Role]:
    return {grant.role for grant in remembered.of(ActorId(name)).grants}


def test_a_withdrawal_shows_exactly_when_what_was_known_is_old(shared_world, remembered, clock):
    name = unique_actor()
    shared_world.admit(name)
    grant = shared_world.grant(name, Role.OPERATOR)
    assert roles(remembered, name) == {Role.OPERATOR}
    shared_world.withdraw(grant)

    clock.seconds += FRESH_SECONDS - 0.001
    assert roles(remembered, name) == {Role.OPERATOR}
    clock.seconds += 0.001

    assert roles(remembered, name) == set()
    with pytest.raises(GuardError, match="needs the role operator"):
        remembered.of(ActorId(name)).demand(OPERATE, "this")


def test_an_actor_that_is_not_registered_has_no_grants(remembered):
    with pytest.raises(GuardError) as refused:
        remembered.of(ActorId("stranger"))

    assert refused.value.code == "not_authorised"


def test_an_actor_that_is_registered_later_is_not_refused_from_memory(shared_world, remembered):
    name = unique_actor()
    with pytest.raises(GuardError):
        remembered.of(ActorId(name))

    shared_world.admit(name, Role.VIEWER)

    assert roles(remembered, name) == {Role.VIEWER}


def test_without_the_database_nobody_is_granted_anything(governance_database, tmp_path, clock):
    unreachable = governance_database.application_url.replace(governance_database.name, "nowhere")
    application = Application(settings(governance_database, tmp_path))
    object.__setattr__(application.settings, "database_url", unreachable)

    with pytest.raises(ServiceUnavailableError):
        RememberedGrants(application.work, clock).of(ActorId("admin"))
