"""What every test of two who act at once takes."""

import pytest

from datasource_governance_tests.services.rivals import rivals_in


@pytest.fixture
def rivals(world):
    with rivals_in(world) as both:
        yield both


@pytest.fixture
def no_deadlock(world):
    """Whatever happens at once, Postgres never has to break a deadlock."""
    yield
    statement = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    assert world.query(statement) == [(0,)]
