"""`approve`, `reject` and `promote`: signed, guarded, and answered in one line."""

import pytest

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
REASON = "zq-reason-4410"


def approve(office, stage, by, *options):
    return office("approve", stage, "--reason", REASON, *options, by=by)


@pytest.fixture
def approved(office):
    """A stage with the two approvals that it needs."""
    stage = office.stage()
    assert approve(office, stage, "approver-1").code == 0
    assert approve(office, stage, "approver-2").code == 0
    return stage


def test_the_first_of_two_approvals_tells_that_one_more_is_needed(office):
    stage = office.stage()

    people = approve(office, stage, "approver-1")
    scripts = approve(office, stage, "approver-2", "--json")

    assert people.out.endswith("recorded; 1 more needed\n")
    assert (scripts.document["verdict"], scripts.document["missing"]) == ("approve", 0)
    assert REASON not in people.out + scripts.out


def test_an_operator_makes_an_approved_stage_current_once(office, approved):
    first = office("promote", approved, "--json", by="operator").document
    again = office("promote", approved, "--json", by="operator").document

    assert (first["created"], again["created"]) == (True, False)
    assert first["materialization"] == again["materialization"]
    assert "is now current" not in office("promote", approved, by="operator").out
    assert first["materialization"] in office("datasource", "show", "orders").out


def test_without_its_quorum_a_stage_is_not_promoted(office):
    stage = office.stage()
    approve(office, stage, "approver-1")
    before = office.world.count_rows()

    answer = office("promote", stage, "--json", by="operator")

    assert (answer.code, answer.document["kind"]) == (1, "quorum_not_met")
    assert office.world.count_rows() == before


def test_only_an_operator_promotes(office, approved):
    answer = office("promote", approved, "--json", by="casey")

    assert (answer.code, answer.document["kind"]) == (1, "not_authorised")


def test_a_creator_does_not_approve_the_own_stage(office):
    stage = office.stage(by="casey")

    answer = approve(office, stage, "casey", "--json")

    assert (answer.code, answer.document["kind"]) == (1, "creator_cannot_approve")


def test_a_rejected_stage_is_closed_for_good(office):
    stage = office.stage()

    answer = office("reject", stage, "--reason", REASON, "--json", by="approver-1")

    assert (answer.code, answer.document["verdict"]) == (0, "reject")
    assert approve(office, stage, "approver-2").code == 1
    assert office("promote", stage, "--json", by="operator").document["kind"] == "stage_rejected"


def test_what_was_reviewed_must_be_what_is_there(office):
    stage = office.stage()
    shown = office("stage", "show", stage, "--json").document

    other = approve(office, stage, "approver-1", "--reviewed", "0" * 64, "--json")
    same = approve(office, stage, "approver-1", "--reviewed", shown["stage_fingerprint"])

    assert (other.code, other.document["kind"]) == (1, "stage_outdated")
    assert same.code == 0


@pytest.mark.parametrize("reason", ["", "  ", "x" * 2001])
def test_a_decision_needs_a_reason_of_a_bearable_length(office, reason):
    stage = office.stage()
    before = office.world.count_rows()

    answer = office("approve", stage, "--reason", reason, by="approver-1")

    assert answer.code in (1, 2)
    assert answer.err.count("\n") == 1
    assert office.world.count_rows() == before


def test_the_same_actor_is_not_counted_twice(office):
    stage = office.stage()
    approve(office, stage, "approver-1")

    answer = approve(office, stage, "approver-1", "--json")

    assert (answer.code, answer.document["kind"]) == (1, "already_approved")


def test_a_key_of_somebody_unknown_decides_nothing(office):
    stage = office.stage()
    office("key", "create", "mallory")

    answer = approve(office, stage, "mallory")

    assert (answer.code, answer.out) == (1, "")
    assert answer.err.count("\n") == 1


def test_one_may_not_sign_with_anothers_key(office, tmp_path):
    stage = office.stage()
    office("key", "create", "mallory")
    stolen = (tmp_path / "keys" / "mallory.pem").read_bytes()
    (tmp_path / "keys" / "approver-1.pem").write_bytes(stolen)

    answer = approve(office, stage, "approver-1")

    assert answer.code == 1
    assert office("stage", "show", stage, "--json").document["decisions"] == []


@pytest.mark.parametrize("verb", ["approve", "reject", "promote"])
def test_a_stage_that_is_not_there_is_named(office, verb):
    reason = () if verb == "promote" else ("--reason", REASON)

    answer = office(verb, "no-such-stage", *reason, by="approver-1")

    assert (answer.code, answer.out) == (2, "")
    assert "no-such-stage" in answer.err


def test_after_a_policy_change_old_approvals_promote_nothing(office, approved):
    path = office.world.application.settings.datasources / "orders" / "datasource.json"
    path.write_text(path.read_text().replace("orders-v1", "orders-v2"))
    office("datasource", "apply", by="admin")

    answer = office("promote", approved, "--json", by="operator")

    assert (answer.code, answer.document["kind"]) == (1, "stage_outdated")
