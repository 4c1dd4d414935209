"""A commit that nobody answered: it is not called undone, and trying again does no harm."""

import pytest
from sqlalchemy import text

from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.persistence.connection import Connection
from datasource_governance_tests.world import TWO_APPROVALS

pytestmark = pytest.mark.postgres


def test_a_commit_that_was_not_answered_is_not_called_undone(world, monkeypatch):
    world.declare(approval=TWO_APPROVALS)
    stage = world.stage()
    before = world.count_rows()
    commit = Connection.commit

    def cut_off(self):
        backend = self.execute(text("SELECT pg_backend_pid()")).scalar_one()
        world.as_superuser(f"SELECT pg_terminate_backend({backend}, 5000)")
        commit(self)

    with monkeypatch.context() as patched:
        patched.setattr(Connection, "commit", cut_off)
        with pytest.raises(ServiceUnavailableError) as refused:
            world.decide("approver-1", stage)

    assert refused.value.code == "outcome_unknown"
    assert refused.value.__context__ is None
    assert world.count_rows() == before
    assert world.decide("approver-1", stage).actor == "approver-1"
