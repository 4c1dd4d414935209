"""`decision request | sign | submit`: signed where no database is, checked where one is."""

import io
import json
import os
from datetime import UTC, datetime, timedelta

import pytest

from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance_tests.cli.conftest import Office

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
REASON = "zq-reason-5523"
BAIT = "zq-bait-9918"
FAULTY = f"id,amount\n1,10\n2,20\n{BAIT},30\n"


@pytest.fixture
def desk(office, tmp_path, monkeypatch):
    """An office beside a machine of approver-1 that reaches nothing."""
    return Desk(office, tmp_path, monkeypatch)


class Desk:
    def __init__(self, office: Office, directory, monkeypatch):
        self.office = office
        self.request = directory / "request.json"
        self.signed = directory / "signed.json"
        self._directory = directory
        self._monkeypatch = monkeypatch

    def ask(self, stage, *options, by=None):
        self.request.unlink(missing_ok=True)
        return self.office("decision", "request", stage, "--out", self.request, *options, by=by)

    def sign(self, *options, by="approver-1", verdict="approve", reason=REASON):
        """Sign on a machine whose environment names no database."""
        self.signed.unlink(missing_ok=True)
        key = self._directory / "keys" / f"{by}.pem"
        with self._monkeypatch.context() as away:
            for name in [*os.environ]:
                if name.startswith("GOVERNANCE_"):
                    away.delenv(name)
            away.setenv("GOVERNANCE_STATE", str(self._directory / "nothing"))
            return self.office(
                *("decision", "sign", self.request, "--verdict", verdict, "--reason", reason),
                *("--key", key, "--out", self.signed, *options),
            )

    def submit(self, file=None):
        return self.office("decision", "submit", file or self.signed, "--json")

    def signed_for(self, stage, **how):
        self.ask(stage)
        assert self.sign("--yes", **how).code == 0
        return self.signed


def test_a_decision_signed_elsewhere_counts_as_one_made_here(desk):
    stage = desk.office.stage()
    desk.signed_for(stage)

    answer = desk.submit()
    online = desk.office("approve", stage, "--reason", REASON, "--json", by="approver-2")

    assert (answer.code, answer.document["actor"]) == (0, "approver-1")
    assert (answer.document["missing"], online.document["missing"]) == (1, 0)
    assert desk.office("promote", stage, by="operator").code == 0
    assert desk.office("evidence", "verify").code == 0


def test_a_rejection_signed_elsewhere_closes_the_stage(desk):
    stage = desk.office.stage()
    desk.signed_for(stage, verdict="reject")

    assert desk.submit().document["verdict"] == "reject"
    assert desk.office("stage", "show", stage, "--json").document["state"] == "rejected"


def test_a_request_holds_no_value_no_reason_and_counts_for_stewards_only(desk):
    stage = desk.office.stage(FAULTY.replace(BAIT, "2"), by="creator")
    assert desk.office("stage", "show", stage, "--json").document["state"] == "failed"
    waiting = desk.office.stage(f"id,amount,note\n1,10,{BAIT}\n2,20,{BAIT}\n")
    desk.office("approve", waiting, "--reason", REASON, by="approver-2")

    desk.ask(waiting, by="approver-1")
    without = desk.request.read_text()
    desk.ask(waiting, by="creator")
    with_counts = desk.request.read_text()

    assert '"affected"' not in without
    assert '"affected"' in with_counts
    for text in (without, with_counts):
        assert BAIT not in text
        assert REASON not in text
        assert json.loads(text)["approval"]["approved_by"] == ["approver-2"]


def test_the_signer_sees_what_is_signed_and_is_asked(desk, monkeypatch):
    stage = desk.office.stage()
    digest = desk.ask(stage, "--json").document["digest"]
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))

    answer = desk.sign()

    assert "Sign as approver-1: approve?" in answer.err

    fingerprint = json.loads(desk.request.read_text())["subject"]["stage_fingerprint"]
    for shown in ("id-unique", "orders", stage, fingerprint, digest):
        assert shown in answer.out
    assert REASON not in answer.out


@pytest.mark.parametrize("answered", ["", "n\n", "\n"])
def test_without_a_yes_nothing_is_signed(desk, answered, monkeypatch):
    desk.ask(desk.office.stage())
    monkeypatch.setattr("sys.stdin", io.StringIO(answered))

    answer = desk.sign()

    assert answer.code == 2
    assert not desk.signed.exists()


def test_files_are_new_and_for_their_owner_only(desk):
    stage = desk.office.stage()
    desk.signed_for(stage)

    again = desk.office("decision", "request", stage, "--out", desk.request)

    assert again.code == 2
    assert {path.stat().st_mode & 0o777 for path in (desk.request, desk.signed)} == {0o600}


def test_a_signed_decision_is_used_once(desk):
    desk.signed_for(desk.office.stage())
    desk.submit()
    before = desk.office.world.count_rows()

    again = desk.submit()

    assert (again.code, again.document["kind"]) == (1, "attestation_used")
    assert desk.office.world.count_rows() == before


@pytest.mark.parametrize("place", [5, 60, 200, 400, -200, -100, -30, -3, -1])
def test_a_file_that_was_altered_by_a_byte_is_refused(desk, place):
    desk.signed_for(desk.office.stage())
    before = desk.office.world.count_rows()
    data = bytearray(desk.signed.read_bytes())
    data[place] ^= 1
    desk.signed.write_bytes(data)

    answer = desk.submit()

    assert answer.code in (1, 2)
    assert desk.office.world.count_rows() == before
    assert REASON not in answer.out + answer.err


def test_after_a_policy_change_what_was_signed_is_refused(desk):
    desk.signed_for(desk.office.stage())
    path = desk.office.world.application.settings.datasources / "orders" / "datasource.json"
    path.write_text(path.read_text().replace("orders-v1", "orders-v2"))
    desk.office("datasource", "apply", by="admin")

    assert desk.submit().document["kind"] == "stage_outdated"


def test_after_another_promotion_what_was_signed_is_refused(desk):
    desk.signed_for(desk.office.stage())
    other = desk.office.stage("id,amount\n5,1\n6,2\n")
    for approver in ("approver-1", "approver-2"):
        desk.office("approve", other, "--reason", REASON, by=approver)
    assert desk.office("promote", other, by="operator").code == 0

    assert desk.submit().document["kind"] == "not_awaiting_approval"


@pytest.mark.parametrize(("hours", "kind"), [(70, None), (73, "attestation_expired")])
def test_what_was_signed_can_be_carried_for_hours_but_not_for_ever(desk, hours, kind):
    desk.signed_for(desk.office.stage())
    desk.office.world.set_clock(datetime.now(UTC) + timedelta(hours=hours))

    answer = desk.submit()

    assert answer.document.get("kind") == kind


def test_a_creator_signs_in_vain(desk):
    desk.signed_for(desk.office.stage(by="casey"), by="casey")

    assert desk.submit().document["kind"] == "creator_cannot_approve"


def test_who_may_not_approve_signs_in_vain(desk):
    desk.signed_for(desk.office.stage(), by="operator")

    assert desk.submit().document["kind"] == "not_authorised"


def test_a_revoked_key_signed_in_vain(desk):
    desk.signed_for(desk.office.stage())
    desk.office.world.revoke(desk.office.world.signer("approver-1").key)

    assert desk.submit().document["kind"] == "attestation_invalid"


def test_an_altered_request_is_not_signed(desk):
    desk.ask(desk.office.stage())
    document = json.loads(desk.request.read_bytes())
    document["stage"]["row_count"] = 1_000_000
    desk.request.write_bytes(canonical_bytes(document) + b"\n")

    assert desk.sign("--yes").code == 2
    assert not desk.signed.exists()


def test_nothing_is_asked_about_a_stage_that_does_not_wait(desk):
    blocked = desk.office.stage("id,amount\n1,10\n1,20\n")

    answer = desk.ask(blocked, "--json")

    assert (answer.code, answer.document["kind"]) == (1, "not_awaiting_approval")
    assert not desk.request.exists()


def test_nothing_is_asked_about_an_outdated_stage(desk):
    stage = desk.office.stage()
    path = desk.office.world.application.settings.datasources / "orders" / "datasource.json"
    path.write_text(path.read_text().replace("orders-v1", "orders-v2"))
    desk.office("datasource", "apply", by="admin")

    assert desk.ask(stage, "--json").document["kind"] == "stage_outdated"


@pytest.mark.parametrize("name", ["approver-1.key", "nobody.pem"])
def test_a_key_is_a_pem_file_named_after_its_actor(desk, tmp_path, name):
    desk.ask(desk.office.stage())

    answer = desk.office(
        *("decision", "sign", desk.request, "--verdict", "approve", "--reason", REASON),
        *("--key", tmp_path / name, "--out", desk.signed, "--yes"),
    )

    assert answer.code == 2
    assert name.split(".")[0] in answer.err
