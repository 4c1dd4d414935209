"""`evidence`: verified with every break named, kept elsewhere, and handed out sealed."""

import json

import pytest

from datasource_governance.domain.actor import Role
from datasource_governance_tests.postgres import admin_connection
from datasource_governance_tests.second_verifier import verify

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


@pytest.fixture
def promoted(office) -> str:
    """The id of a materialization."""
    stage = office.stage()
    for actor in ("approver-1", "approver-2"):
        assert office("approve", stage, "--reason", "fine", by=actor).code == 0
    return office("promote", stage, "--json", by="operator").document["materialization"]


def test_without_a_checkpoint_it_says_what_is_not_proved(office):
    answer = office("evidence", "verify")

    assert answer.code == 0
    assert "not proved without a checkpoint" in answer.out


def test_a_checkpoint_is_kept_where_it_is_told_and_held_against_the_evidence(office, tmp_path):
    office.world.admit("checkpointer", Role.VIEWER)
    place = tmp_path / "kept"

    written = office("evidence", "checkpoint", "--to", place, "--json")
    people = office("evidence", "checkpoint", "--to", place)

    assert (written.code, people.code) == (0, 0)
    assert "of 2 chains is kept" in people.out
    assert (place / written.document["checkpoint"]).is_file()
    verified = office("evidence", "verify", "--checkpoint", place, "--json")
    assert verified.code == 0
    assert verified.document["checkpoints"]["held"] == 2
    assert "held against 2 of 2" in office("evidence", "verify", "--checkpoint", place).out


def test_the_place_and_the_key_can_be_configured_and_pinned(office, tmp_path, monkeypatch):
    office.world.admit("notary", Role.VIEWER)
    monkeypatch.setenv("GOVERNANCE_CHECKPOINTS", str(tmp_path / "kept"))
    monkeypatch.setenv("GOVERNANCE_CHECKPOINT_ACTOR", "notary")
    keys = office.world.application.settings.keys

    written = office("evidence", "checkpoint", "--json")

    file = tmp_path / "kept" / written.document["checkpoint"]
    pinned = ("evidence", "verify", "--checkpoint", file, "--public-key")
    assert office(*pinned, keys / "notary.pub.pem").code == 0
    assert office(*pinned, keys / "creator.pub.pem").code == 1


def test_a_chain_that_the_checkpoint_has_and_the_database_has_not_is_named(office, tmp_path):
    office.world.admit("checkpointer", Role.VIEWER)
    assert office("evidence", "checkpoint", "--to", tmp_path / "kept").code == 0
    tamper(office, "DELETE FROM governance.evidence WHERE chain LIKE 'datasource/%'", "evidence")

    answer = office("evidence", "verify", "--checkpoint", tmp_path / "kept", "--json")

    assert answer.code == 1
    assert "dropped_chain" in {one["kind"] for one in answer.document["breaks"]}


@pytest.mark.parametrize(
    "arguments",
    [
        ("checkpoint",),
        ("checkpoint", "--to", "kept"),
        ("verify", "--checkpoint", "nothing"),
        ("verify", "--public-key", "key.pem"),
    ],
    ids=["no place", "no key", "no checkpoint", "no checkpoint for the key"],
)
def test_what_is_missing_is_said(office, arguments):
    answer = office("evidence", *arguments)

    assert answer.code == 2
    assert "Traceback" not in answer.err


def test_an_export_proves_the_promotion_without_the_database(office, promoted, tmp_path):
    out = tmp_path / "evidence.json"

    answer = office("evidence", "export", promoted, "--out", out, "--json", by="creator")

    assert answer.code == 0
    assert answer.document["file"] == str(out)
    statement = verify(
        out.read_bytes(),
        exporter=office.world.signer("creator").public_key,
        founder=office.world.signer("admin").public_key,
    )
    assert statement["predicate"]["materialization"]["id"] == promoted


def test_an_export_is_printed_or_written_once(office, promoted, tmp_path):
    key = office.world.application.settings.keys / "creator.pem"
    arguments = ("evidence", "export", promoted, "--key", key)

    printed = office(*arguments)
    assert set(printed.document) == {"payload", "payloadType", "signatures"}

    assert office(*arguments, "--out", tmp_path / "once").code == 0
    assert json.loads((tmp_path / "once").read_bytes()) == printed.document
    assert office(*arguments, "--out", tmp_path / "once").code == 2


def test_whoever_sees_no_counts_gets_no_export(office, promoted):
    answer = office("evidence", "export", promoted, by="approver-1")

    assert (answer.code, answer.out) == (1, "")


def test_the_schema_of_an_export_is_published(command):
    answer = command("evidence", "schema", "--json")

    assert answer.document["$id"] == "urn:datasource-governance:promotion-evidence:v1"
    assert json.loads(command("evidence", "schema").out) == answer.document
