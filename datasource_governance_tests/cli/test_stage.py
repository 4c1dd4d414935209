"""`stage create | list | show`, without Dagster."""

import hashlib

import pytest

from datasource_governance_tests.postgres import admin_connection

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
BAIT = "zq-canary-7731"
BLOCKED = f"id,amount,note\n7,1,{BAIT}\n7,-5,{BAIT}\n"


def test_a_delivery_that_passes_waits_for_approval(office):
    answer = office(
        "stage", "create", "orders", office.deliver(), "--in-process", "--json", by="creator"
    )

    document = answer.document
    assert answer.code == 0
    assert (document["state"], document["outcome"]) == ("awaiting_approval", "ready")
    assert (document["creator"], document["row_count"]) == ("creator", 2)


def test_a_delivery_is_kept_under_its_digest(office, tmp_path):
    path = office.deliver()

    answer = office("stage", "create", "orders", path, "--in-process", "--json", by="creator")

    name = hashlib.sha256(path.read_bytes()).hexdigest() + ".csv"
    assert answer.document["delivery"] == name
    assert [one.name for one in (tmp_path / "deliveries" / "orders").iterdir()] == [name]


def test_a_blocked_delivery_is_kept_and_its_exit_code_is_no(office):
    path = office.deliver(BLOCKED)

    answer = office("stage", "create", "orders", path, "--in-process", by="creator")

    assert answer.code == 1
    assert "failed" in answer.out
    assert BAIT not in answer.out
    (listed,) = office("stage", "list", "orders", "--state", "failed", "--json").document
    assert listed["outcome"] == "blocked"


def test_stages_are_listed_newest_first_and_by_state(office):
    first = office.stage()
    second = office.stage("id,amount\n1,10\n2,20\n3,30\n")

    listed = office("stage", "list", "--json").document

    assert [one["stage"] for one in listed] == [second, first]
    assert office("stage", "list", "orders", "--state", "failed", "--json").document == []
    assert first in office("stage", "list").out


def test_counts_and_rows_are_shown_to_a_steward_only(office):
    office.deliver(BLOCKED)
    created = office(
        "stage", "create", "orders", "delivery.csv", "--in-process", "--json", by="creator"
    )
    stage = created.document["stage"]

    steward = office("stage", "show", stage, "--json", by="creator").document
    approver = office("stage", "show", stage, "--json", by="approver-1").document
    nobody = office("stage", "show", stage, "--json").document

    (found,) = [one for one in steward["validation"]["rules"] if one["id"] == "id-unique"]
    assert (found["affected"], found["rows"]) == (2, [1, 2])
    for view in (created.document, approver, nobody):
        assert all("affected" not in rule for rule in view["validation"]["rules"])
        assert {rule["status"] for rule in view["validation"]["rules"]} == {"passed", "failed"}


def test_a_stage_is_shown_with_what_a_decision_is_bound_to(office):
    stage = office.stage()
    office("approve", stage, "--reason", BAIT, by="approver-1")

    shown = office("stage", "show", stage, by="creator")

    for word in ("stage_fingerprint", "1 of 2 approvals hold", "approver-1", "id-unique"):
        assert word in shown.out
    assert BAIT not in shown.out


def test_a_file_that_is_not_there_is_named_and_nothing_is_done(office):
    before = office.world.count_rows()

    answer = office("stage", "create", "orders", "nowhere.csv", "--in-process", by="creator")

    assert (answer.code, answer.out) == (2, "")
    assert "nowhere.csv cannot be used: No such file" in answer.err
    assert office.world.count_rows() == before


def test_an_unknown_datasource_is_refused_naming_those_declared(office):
    answer = office("stage", "create", "nope", office.deliver(), "--in-process", by="creator")

    assert (answer.code, answer.out) == (2, "")
    assert "declared are: orders" in answer.err


def test_a_delivery_that_cannot_be_read_makes_no_stage_and_tells_no_value(office):
    path = office.deliver(f"id,amount\n1,2\n3,4,{BAIT}\n")

    answer = office("stage", "create", "orders", path, "--in-process", "--json", by="creator")

    assert answer.code == 3
    assert answer.document["problems"][0]["kind"] == "ragged_row"
    assert BAIT not in answer.out + answer.err
    assert office("stage", "list", "--json").document == []


def test_only_a_steward_stages(office):
    answer = office("stage", "create", "orders", office.deliver(), "--in-process", by="approver-1")

    assert (answer.code, answer.out) == (1, "")
    assert office("stage", "list", "--json").document == []


def test_without_dagster_it_says_how_to_do_without(office, monkeypatch):
    monkeypatch.setenv("GOVERNANCE_DAGSTER_URL", "http://127.0.0.1:1")

    answer = office("stage", "create", "orders", office.deliver(), by="creator")

    assert (answer.code, answer.out) == (3, "")
    assert "--in-process" in answer.err
    assert office("stage", "list", "--json").document == []


@pytest.mark.parametrize("url", ["nonsense", "http://", "http://127.0.0.1:x", "ftp://127.0.0.1"])
def test_an_address_of_dagster_that_is_none_is_refused_in_one_line(office, monkeypatch, url):
    monkeypatch.setenv("GOVERNANCE_DAGSTER_URL", url)

    answer = office("stage", "create", "orders", office.deliver(), by="creator")

    assert answer.code in (2, 3)
    assert "GOVERNANCE_DAGSTER_URL" in answer.err
    assert "unforeseen" not in answer.err


def test_a_delivery_folder_that_cannot_be_written_is_named(office, tmp_path):
    (tmp_path / "deliveries").touch()

    answer = office("stage", "create", "orders", office.deliver(), "--in-process", by="creator")

    assert (answer.code, answer.out) == (2, "")
    assert "deliveries" in answer.err
    assert "unforeseen" not in answer.err


def test_a_stage_that_is_not_there_is_named(office):
    answer = office("stage", "show", "no-such-stage")

    assert (answer.code, answer.out) == (2, "")
    assert "no-such-stage" in answer.err


def test_a_tampered_validation_is_no_traceback(office):
    stage = office.stage()
    with admin_connection(office.world.database.admin_url) as connection:
        connection.execute("ALTER TABLE governance.stage DISABLE TRIGGER USER")
        connection.execute("UPDATE governance.stage SET validation = 'zq'")

    answer = office("stage", "show", stage)

    assert answer.code == 3
    assert "Traceback" not in answer.err
