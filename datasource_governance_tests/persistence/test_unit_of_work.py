"""One transaction: all of it or nothing, and never a row without evidence."""

import pytest

from datasource_governance.domain.actor import Actor
from datasource_governance.domain.evidence import TENANT_CHAIN
from datasource_governance.errors import GovernanceError, ServiceUnavailableError
from datasource_governance.persistence.connection import governance_engine
from datasource_governance.persistence.unit_of_work import PostgresUnitOfWork

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@pytest.fixture
def work(governance_database):
    engine = governance_engine(governance_database.application_url)
    yield PostgresUnitOfWork(engine, "default", iter(("one", "two")).__next__)
    engine.dispose()


def add_actor(work, name="dana"):
    work.authority.add_actor(Actor(id=name, display_name=name, created_at=work.now()))


def append(work):
    return work.evidence.append(
        TENANT_CHAIN, kind="key.registered", subject="dana", facts={}, at=work.now()
    )


def actors(work):
    with work:
        return [actor.id for actor in work.authority.actors()]


def test_what_was_committed_is_there(work):
    with work:
        add_actor(work)
        append(work)
        work.commit()

    assert actors(work) == ["dana"]


def test_a_row_that_evidence_was_not_told_of_is_refused_at_commit(work):
    with work:
        add_actor(work)
        with pytest.raises(GovernanceError, match="actor were written without evidence"):
            work.commit()

    assert actors(work) == []


def test_a_row_written_after_the_entry_is_refused_at_commit(work):
    with work:
        add_actor(work)
        append(work)
        add_actor(work, "erin")
        with pytest.raises(GovernanceError, match="without evidence"):
            work.commit()

    assert actors(work) == []


def test_leaving_without_commit_undoes_everything(work):
    with work:
        add_actor(work)
        append(work)

    assert actors(work) == []


def test_a_failure_inside_undoes_everything_and_is_passed_on(work):
    def fail():
        with work:
            add_actor(work)
            append(work)
            raise LookupError

    with pytest.raises(LookupError):
        fail()

    assert actors(work) == []


def test_a_transaction_owes_nothing_for_the_one_before(work):
    with work:
        add_actor(work)

    with work:
        entry = append(work)
        work.commit()

    assert list(entry.rows()) == []


def test_outside_a_transaction_it_is_refused(work):
    with pytest.raises(ServiceUnavailableError, match="with work"):
        work.authority.actors()


def test_a_transaction_that_cannot_begin_holds_no_connection(work, governance_database):
    with work:
        pass
    engine = work._connection._engine
    refusing = PostgresUnitOfWork(engine, "a\x00b", iter(()).__next__)

    with pytest.raises(GovernanceError), refusing:
        refusing.now()

    assert engine.pool.checkedout() == 0


def test_the_clock_is_the_databases_and_moves_within_a_transaction(work):
    with work:
        first, second = work.now(), work.now()

    assert first < second


def test_ids_are_those_of_the_given_source(work):
    assert (work.new_id(), work.new_id()) == ("one", "two")
