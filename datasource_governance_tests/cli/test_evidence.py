"""`evidence verify`: yes with a count, or no with every break named."""

import pytest

from datasource_governance_tests.postgres import admin_connection

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


def tamper(office, statement, table):
    with admin_connection(office.world.database.admin_url) as connection:
        connection.execute(f"ALTER TABLE governance.{table} DISABLE TRIGGER USER")
        connection.execute(statement)


def test_evidence_that_holds_is_counted(office):
    office.stage()

    people = office("evidence", "verify")
    scripts = office("evidence", "verify", "--json")

    assert (people.code, scripts.code) == (0, 0)
    assert "evidence holds" in people.out
    assert scripts.document["holds"] is True
    assert scripts.document["breaks"] == []
    assert scripts.document["entries"] > 1


def test_an_altered_row_is_named(office):
    stage = office.stage()
    tamper(office, "UPDATE governance.stage SET delivery = 'mallory'", "stage")

    people = office("evidence", "verify")
    scripts = office("evidence", "verify", "--json")

    assert (people.code, scripts.code) == (1, 1)
    assert "BROKEN in 1 place" in people.out
    assert stage in people.out
    (broken,) = scripts.document["breaks"]
    assert (broken["kind"], broken["table"]) == ("altered_row", "stage")


def test_a_missing_entry_is_named(office):
    office.stage()
    tamper(office, "DELETE FROM governance.evidence WHERE sequence = 2", "evidence")

    answer = office("evidence", "verify", "--json")

    assert answer.code == 1
    assert "gap" in {one["kind"] for one in answer.document["breaks"]}
