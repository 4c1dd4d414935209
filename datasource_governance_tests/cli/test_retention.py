"""`retention …` and `hold …`, over real rows that were due years ago."""

import csv
import json

import pytest

from datasource_governance.domain.actor import Role
from datasource_governance.domain.stage import StageState
from datasource_governance_tests.retiring import KEEPER, admit_keeper, declare_kept, stage_at

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@pytest.fixture
def archive(office):
    """The office, with a stage that is due by a policy of long ago."""
    admit_keeper(office.world)
    declare_kept(office.world)
    stage = stage_at(office.world)
    office.world.release_clock()
    return office, stage


def planned(office):
    return office("retention", "plan", "--json", by="operator").document


def test_a_plan_is_made_listed_shown_and_exported(archive):
    office, stage = archive
    shown = office("retention", "plan", by="operator")
    assert shown.code == 0
    assert stage.id in shown.out

    plan = planned(office)
    beginning = plan["plan"][:12]
    listed = office("retention", "list", "--json", by="operator").document
    html = office("retention", "show", beginning, "--format", "html", by="operator").out
    body = office("retention", "show", beginning, "--format", "json", by="operator").out
    table = office("retention", "show", beginning, "--format", "csv", by="operator").out

    assert len(listed) == 2
    assert [one["id"] for one in plan["body"]["targets"]] == [stage.id]
    assert html.startswith("<!doctype html>")
    assert stage.id in html
    assert "<script" not in html
    assert json.loads(body) == plan["body"]
    (record,) = csv.DictReader(table.splitlines())
    assert (record["id"], record["blockers"]) == (stage.id, "")


def test_a_plan_is_written_to_a_new_file_only(archive, tmp_path):
    office, _ = archive
    plan, file = planned(office)["plan"], tmp_path / "plan.html"

    first = office("retention", "show", plan, "--format", "html", "--out", file, by="operator")
    content = file.read_bytes()
    again = office("retention", "show", plan, "--format", "html", "--out", file, by="operator")

    assert (first.code, again.code) == (0, 2)
    assert file.read_bytes() == content


def test_an_administrator_applies_certifies_and_verifies(archive, tmp_path):
    office, stage = archive
    plan, file = planned(office)["plan"], tmp_path / "certificate.json"

    applied = office("retention", "apply", plan, "--yes", "--json", by=KEEPER)
    repeated = office("retention", "apply", plan, "--yes", "--json", by=KEEPER)
    certified = office("retention", "certificate", plan, "--out", file, by=KEEPER)
    verified = office("retention", "verify", file, "--json")
    explained = office("retention", "explain", stage.id, "--json", by=KEEPER)

    assert (applied.code, repeated.code, certified.code, verified.code) == (0, 1, 0, 0)
    assert repeated.document["kind"] == "already_applied"
    assert repeated.document["first"] == applied.document
    assert [one["id"] for one in verified.document["targets"]] == [stage.id]
    assert explained.document["plan"] == plan
    assert office.world.present(stage).state is StageState.DELETED
    assert office.world.verification().holds


def test_a_certificate_that_was_edited_does_not_hold(archive, tmp_path):
    office, _ = archive
    plan, file = planned(office)["plan"], tmp_path / "certificate.json"
    office("retention", "apply", plan, "--yes", by=KEEPER)
    office("retention", "certificate", plan, "--out", file, by=KEEPER)
    envelope = json.loads(file.read_text())
    envelope["payload"] = envelope["payload"][:-8] + "AAAA" + envelope["payload"][-4:]
    file.write_text(json.dumps(envelope))

    answer = office("retention", "verify", file, "--json")

    assert answer.code != 0


@pytest.mark.parametrize("by", ["operator", "creator"])
def test_who_is_no_administrator_destroys_nothing(archive, by):
    office, _ = archive
    plan = planned(office)["plan"]
    before = office.world.count_rows()

    answer = office("retention", "apply", plan, "--yes", "--json", by=by)

    assert (answer.code, answer.document["kind"]) == (1, "not_authorised")
    assert office.world.count_rows() == before


def test_a_hold_makes_a_plan_stale_blocks_the_next_and_is_released_by_somebody_else(archive):
    office, stage = archive
    first = planned(office)
    hold = office("hold", "place", "--stage", stage.id, "--reason", "suit", "--json", by="operator")

    stale = office("retention", "apply", first["plan"], "--yes", "--json", by=KEEPER)
    second = planned(office)
    compared = office("retention", "compare", first["plan"], second["plan"], "--json", by=KEEPER)
    blocked = office("retention", "apply", second["plan"], stage.id, "--yes", "--json", by=KEEPER)
    why = office("retention", "explain", stage.id, by="operator")
    listed = office("hold", "list", "orders", "--json", by="operator").document
    release = ("hold", "release", hold.document["hold"], "--reason", "settled", "--json")
    released = office(*release, by=KEEPER)

    assert (stale.code, stale.document["kind"]) == (1, "plan_outdated")
    assert [one["after"]["id"] for one in compared.document["changed"]] == [stage.id]
    assert (blocked.code, blocked.document["kind"]) == (1, "target_blocked")
    assert hold.document["hold"] in why.out
    assert [one["hold"] for one in listed] == [hold.document["hold"]]
    assert released.document["released"]["actor"] == KEEPER
    assert office("hold", "list", "orders", "--json", by=KEEPER).document == []
    assert len(office("hold", "list", "--all", "--json", by=KEEPER).document) == 1


def test_a_reader_sees_what_is_held_and_who_places_or_releases_holds_sees_why(archive):
    office, _ = archive
    place = ("hold", "place", "orders", "--reason", "the canary 5510", "--json")
    hold = office(*place, by="operator").document["hold"]
    office.world.admit("passer-by")
    office.world.admit("reader", Role.VIEWER)

    def seen(by):
        table = office("hold", "list", by=by)
        listed = office("hold", "list", "--json", by=by).document
        assert ("canary" in table.out) == any(one["reason"] for one in listed)
        return [(one["hold"], one["reason"]) for one in listed]

    assert seen("operator") == seen(KEEPER) == [(hold, "the canary 5510")]
    assert seen("reader") == [(hold, None)]
    assert seen("passer-by") == seen(None) == []
    release = ("hold", "release", hold, "--reason", "the canary 5511")
    office(*release, by=KEEPER)
    (released,) = office("hold", "list", "--all", "--json", by="reader").document
    assert (released["released"]["actor"], released["released"]["reason"]) == (KEEPER, None)


def test_what_would_be_refused_is_refused_before_anybody_is_asked(archive):
    office, stage = archive
    plan, elsewhere = planned(office)["plan"], "00000000-0000-4000-8000-000000000000"
    before = office.world.count_rows()

    foreign = office("retention", "apply", plan, elsewhere, stage.id, by=KEEPER)

    assert foreign.code == 1
    assert f"has no such targets: {elsewhere};" in foreign.err
    assert "Sign as" not in foreign.err
    assert office.world.count_rows() == before


def test_who_placed_a_hold_does_not_release_it(archive):
    office, _ = archive
    place = ("hold", "place", "orders", "--reason", "suit", "--json")
    office.world.grant(KEEPER, Role.OPERATOR)
    hold = office(*place, by=KEEPER).document["hold"]

    answer = office("hold", "release", hold, "--reason", "mine", "--json", by=KEEPER)

    assert (answer.code, answer.document["kind"]) == (1, "second_actor_required")


def test_one_thing_is_held_at_a_time(archive):
    office, stage = archive
    place = ("hold", "place", "orders", "--stage", stage.id, "--reason", "suit")

    assert office(*place, by="operator").code == 2


def test_a_materialization_is_frozen_one_way(archive):
    office, _ = archive
    stage = office.world.stage()
    made = office.world.promote(stage).materialization
    freeze = ("retention", "freeze", made.id, "--reason", "an audit", "--json")

    first, again = office(*freeze, by="operator"), office(*freeze, by="operator")

    assert first.document == again.document
    explained = office("retention", "explain", made.id, "--json", by="operator").document
    assert explained["class"] == "frozen_evidence"


def test_a_plan_that_is_named_by_too_little_is_refused(archive):
    office, _ = archive

    assert office("retention", "show", planned(office)["plan"][:8], by="operator").code == 2
