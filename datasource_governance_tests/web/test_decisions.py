"""The pages on which people decide, asked as a browser asks them, over a real database."""

import logging
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from datasource_governance.domain.actor import Role
from datasource_governance.domain.approval import Verdict
from datasource_governance.domain.attestation import KeyKind
from datasource_governance.services.reviewing import PAGE
from datasource_governance_tests.builders import policy_document, rule
from datasource_governance_tests.web.deciding import (
    APPROVERS,
    CELL,
    HTML,
    PEOPLE,
    QUALITY,
    REASON,
    TABLE,
    alert,
    deciding,
    hidden_fields,
    status,
)
from datasource_governance_tests.world import TWO_APPROVALS

pytestmark = pytest.mark.postgres
ZEROS = "0" * 64
HOSTILE = "\"><script>alert('x')</script>"
REFRESH = '<meta http-equiv="refresh"'


@pytest.fixture
def orders(office):
    """A datasource of one's own, for which two approvals are needed; the clock runs on."""
    own = office.corner()
    own.world.declare(quality=QUALITY, approval=TWO_APPROVALS)
    yield own
    own.world.release_clock()


def redirected(orders, name, answer):
    """Follow the way from a posted form to the page that tells what was recorded."""
    assert answer.status == 303, answer.text
    return orders.serving.client(name).get(answer.headers["Location"])


def test_an_approval_is_recorded_for_whoever_signed_in_and_attested_by_the_gateway(orders):
    stage = orders.world.stage(table=TABLE)

    answer = orders.post("approver-1", stage)

    (decision,) = orders.decisions(stage)
    with orders.world.application.work() as work:
        attestation = work.authority.attestation(decision.attestation_id)
        key = work.authority.key(attestation.claims.key)
    assert (decision.actor, decision.verdict, decision.reason) == (
        "approver-1",
        Verdict.APPROVE,
        REASON,
    )
    assert (attestation.claims.actor, key.kind) == ("approver-1", KeyKind.GATEWAY)
    said = status(redirected(orders, "approver-1", answer))
    assert said == "Your approval is recorded. 1 more approval is needed."


def test_one_rejection_closes_the_stage(orders):
    stage = orders.world.stage(table=TABLE)

    answer = orders.post("approver-1", stage, "reject")

    page = redirected(orders, "approver-1", answer)
    assert status(page).startswith("Your rejection is recorded. It was rejected, for good")
    assert orders.world.present(stage).state == "rejected"


def test_the_last_approval_waits_on_the_page_for_the_promotion(orders):
    stage = orders.world.stage(table=TABLE)
    orders.post("approver-1", stage)

    answer = orders.post("approver-2", stage)

    awaited = redirected(orders, "approver-2", answer)
    assert "The quorum is complete; the promotion follows" in status(awaited)
    assert REFRESH in awaited.text
    assert REFRESH in orders.look("viewer", stage).text
    assert "/current" not in awaited.text

    orders.world.promote(stage)

    promoted = redirected(orders, "approver-2", answer)
    assert "It became the current materialization." in status(promoted)
    assert f'<a href="/assets/{stage.datasource}/current">' in promoted.text
    assert REFRESH not in promoted.text


def test_a_producers_output_is_decided_about_where_it_says_who_made_it_and_why_it_waits(orders):
    own = orders.corner()
    own.world.declare(quality=QUALITY, approval=TWO_APPROVALS, kind="published")
    maker = own.newcomer(Role.PRODUCER)
    signed = own.world.publication_attestation(maker, "key-7", TABLE)
    published = own.world.publish(TABLE, key="key-7", attestation=signed)
    with own.world.application.work() as work:
        stage = work.stages.get(published.stage)

    page = own.look("viewer", stage).text
    for told in ("Producer flow published it", "key-7", maker, published.publication.id):
        assert told in page
    assert CELL not in page
    for name in ("approver-1", "approver-2"):
        assert own.post(name, stage).status == 303
    own.world.promote(stage)

    closed = own.look("viewer", stage).text
    assert "It became the current materialization." in closed
    assert "Producer flow published it" not in closed


def test_no_page_reloads_under_a_reason_that_is_being_written(orders):
    stage = orders.world.stage(table=TABLE)
    orders.post("approver-1", stage)
    orders.post("approver-2", stage)

    page = orders.look("approver-3", stage).text

    assert hidden_fields(page)
    assert REFRESH not in page


def test_a_page_tells_of_a_recorded_decision_only_to_whoever_made_it(orders):
    stage = orders.world.stage(table=TABLE)
    told = orders.post("approver-1", stage).headers["Location"]

    assert "is recorded" in orders.serving.client("approver-1").get(told).text
    assert "is recorded" not in orders.serving.client("approver-2").get(told).text
    assert "is recorded" not in orders.look("approver-1", stage, "?decision=unknown").text


def test_a_reason_is_kept_with_the_line_ends_that_were_typed(orders):
    stage = orders.world.stage(table=TABLE)

    orders.post("approver-1", stage, reason="one\r\ntwo ä €")

    assert orders.decisions(stage)[0].reason == "one\ntwo ä €"


def test_a_reason_may_have_2000_characters_of_any_kind(orders):
    stage = orders.world.stage(table=TABLE)

    assert orders.post("approver-1", stage, reason="\U0001f4e6" * 2000).status == 303


def test_after_expiry_the_form_is_shown_again(orders):
    orders.world.declare(quality=QUALITY, approval={**TWO_APPROVALS, "expires_after_hours": 1})
    stage = orders.world.stage(table=TABLE)
    orders.post("approver-1", stage)
    assert not hidden_fields(orders.look("approver-1", stage).text)

    orders.world.set_clock(datetime.now(UTC) + timedelta(hours=1))

    page = orders.look("approver-1", stage).text
    assert "2 more approvals are needed." in page
    assert "<td>expired</td>" in page
    assert orders.post("approver-1", stage).status == 303


# Each arranges what is refused; the rows below say who posts, what comes of it, and what is said.
def nothing(orders, stage):
    return stage


def decided(orders, stage):
    orders.world.decide("approver-1", stage)
    return stage


def rejected(orders, stage):
    orders.world.decide("approver-3", stage, verdict=Verdict.REJECT)
    return stage


def promoted(orders, stage):
    for name in ("approver-2", "approver-3"):
        orders.world.decide(name, stage)
    orders.world.promote(stage)
    return stage


def superseded(orders, stage):
    other = orders.world.stage(table=TABLE)
    promoted(orders, other)
    return stage


def outdated(orders, stage):
    orders.world.declare(quality=QUALITY, approval={"version": "v9", "required": True})
    return stage


def expired(orders, stage):
    orders.world.set_clock(datetime.now(UTC) + timedelta(hours=73))
    return stage


def unknown(orders, stage):
    return replace(stage, id="no-such-stage")


REFUSALS = {
    "creator": (nothing, "creator", 403, "created stage"),
    "second decision": (decided, "approver-1", 409, "has already decided"),
    "rejected": (rejected, "approver-1", 409, "is rejected, not awaiting approval"),
    "promoted": (promoted, "approver-1", 409, "is promoted, not awaiting approval"),
    "superseded": (superseded, "approver-1", 409, "is superseded, not awaiting approval"),
    "outdated": (outdated, "approver-1", 409, "approval policy changed since it was validated"),
    "expired": (expired, "approver-1", 409, "signed 72 hours ago"),
    "unknown": (unknown, "approver-1", 404, "there is no stage 'no-such-stage'"),
    "no authority": (nothing, "viewer", 403, "has no grant as approver"),
    "no role here": (nothing, None, 403, "has no grant as approver"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_is_refused_is_told_in_one_sentence_and_leaves_nothing(orders, case):
    arrange, name, code, sentence = REFUSALS[case]
    name = name or orders.elsewhere().newcomer(Role.APPROVER)
    stage = arrange(orders, orders.world.stage(table=TABLE))
    before = orders.world.count_rows()

    answer = orders.post(name, stage)

    assert (answer.status, sentence in alert(answer)) == (code, True), answer.text
    assert orders.world.count_rows() == before


CHANGED = {
    "stage_fingerprint": (ZEROS, 409, "look again"),
    "quality_policy_hash": (ZEROS, 409, "look again"),
    "approval_policy_hash": ("", 409, "look again"),
    "base": ("another", 409, "look again"),
    "datasource": ("another", 404, "there is no datasource 'another'"),
    "verdict": ("maybe", 400, "approve or reject"),
    "token": ("forged", 403, "this form is too old"),
}


@pytest.mark.parametrize("field", CHANGED)
def test_a_form_that_says_something_else_than_was_shown_is_refused_and_the_reason_kept(
    orders, field
):
    value, code, sentence = CHANGED[field]
    stage = orders.world.stage(table=TABLE)

    answer = orders.post("approver-1", stage, **{field: value})

    assert (answer.status, sentence in alert(answer)) == (code, True), answer.text
    assert f"{REASON}</textarea>" in answer.text
    assert hidden_fields(answer.text).items() > orders.subject(stage).items()
    assert orders.decisions(stage) == []


@pytest.mark.parametrize("reason", ["", " \r\n\t", "x" * 2001, "a\0b", "ä" * 10_000])
def test_a_reason_that_cannot_be_recorded_is_kept_in_the_form(orders, reason):
    stage = orders.world.stage(table=TABLE)

    answer = orders.post("approver-1", stage, reason=reason)

    assert (answer.status, alert(answer)) == (
        400,
        "a decision needs a reason of 1 to 2000 characters",
    )
    assert f"\n{reason}</textarea>".replace("\r\n", "\n") in answer.text
    assert orders.decisions(stage) == []


def test_a_form_too_large_to_be_read_is_refused(orders):
    stage = orders.world.stage(table=TABLE)

    answer = orders.post("approver-1", stage, reason="x" * 200_000)

    assert (answer.status, "too long to be read" in alert(answer)) == (403, True)


def test_a_form_from_another_place_is_refused_before_it_is_read(orders):
    stage = orders.world.stage(table=TABLE)
    client = orders.serving.client("approver-1")
    fields = hidden_fields(orders.look("approver-1", stage).text) | {
        "verdict": "approve",
        "reason": REASON,
    }

    answer = client.post_form(
        f"/governance/stages/{stage.id}/decision", fields, Origin="https://evil.example"
    )

    assert answer.status == 403
    assert orders.decisions(stage) == []


@pytest.mark.parametrize("path", ["/governance/decisions", "/governance/stages/x"])
def test_whoever_is_not_signed_in_is_led_to_the_sign_in(office, path):
    answer = office.serving.client().get(path)

    assert (answer.status, answer.headers["Location"]) == (303, f"/signin?next={path}")


def test_a_decision_after_the_sign_in_ended_is_refused_on_a_page(orders):
    stage = orders.world.stage(table=TABLE)

    answer = orders.serving.client().post_form(
        f"/governance/stages/{stage.id}/decision", {"reason": REASON}, Accept=HTML
    )

    assert (answer.status, alert(answer)) == (401, "sign in first")


def test_a_gateway_whose_key_nobody_registered_decides_nothing(
    orders, web_context, tmp_path_factory
):
    stage = orders.world.stage(table=TABLE)
    directory = tmp_path_factory.mktemp("unregistered")

    with deciding(orders.world, web_context, directory, registered=False) as unregistered:
        answer = unregistered.post("approver-1", stage)

    assert (answer.status, "is not registered" in alert(answer)) == (403, True)
    assert f"{REASON}</textarea>" in answer.text
    assert orders.decisions(stage) == []


def test_whoever_cannot_decide_is_told_why_and_shown_no_form(orders):
    stage = orders.world.stage(table=TABLE)

    for name, sentence in (("creator", "created stage"), ("viewer", "no grant as approver")):
        page = orders.look(name, stage)
        assert page.status == 200
        assert hidden_fields(page.text) == {}
        assert re.search(f"You cannot decide: [^<]*{sentence}", page.text)


def test_a_stage_of_a_datasource_over_which_one_has_no_role_is_not_shown(orders):
    name = orders.elsewhere().newcomer(Role.APPROVER)
    stage = orders.world.stage(table=TABLE)

    answer = orders.look(name, stage)

    assert (answer.status, "has no role over datasource" in alert(answer)) == (403, True)
    assert "note-present" not in answer.text
    assert stage.id not in orders.serving.client(name).get("/governance/decisions").text


def test_an_unknown_stage_is_not_found(office):
    answer = office.serving.client("viewer").get("/governance/stages/no-such-stage")

    assert (answer.status, "there is no stage" in alert(answer)) == (404, True)


def test_only_a_steward_sees_counts_and_row_numbers(orders):
    orders.world.declare(
        quality=policy_document(rule("unique", id="once", field="id", severity="warning")),
        approval=TWO_APPROVALS,
    )
    table = pa.table({"id": [*range(5000), *([-1] * 4711)]})
    stage = orders.world.stage(table=table)
    numbers = ("4711", "5001", "9,711")

    assert all(number in orders.look("creator", stage).text for number in numbers)
    for name in ("approver-1", "viewer", "operator"):
        page = orders.look(name, stage).text
        assert "<td>duplicate</td>" in page
        assert not any(number in page for number in (*numbers, "9711"))


def test_a_page_shows_everything_that_a_decision_is_bound_to(orders):
    promoted(orders, orders.world.stage(table=pa.table({"id": [1], "gone": [1]})))
    orders.world.declare(
        quality={**QUALITY, "schema_policy": {"field_removed": "warning"}}, approval=TWO_APPROVALS
    )
    stage = orders.world.stage(table=TABLE)
    orders.world.decide("approver-1", stage)

    page = orders.look("approver-2", stage).text

    for value in (*orders.subject(stage).values(), stage.payload_fingerprint):
        assert value in page
    for text in (stage.validation_hash, stage.delivery_sha256, stage.payload_sha256, stage.creator):
        assert text in page
    assert "2 of 3 did not pass." in page
    assert "<td>gone</td>" in page
    assert "<td>integer, not null</td>" in page
    assert "As a whole: warning." in page
    assert "<td>approver-1</td>" in page


def test_what_waits_is_listed_with_what_the_reader_may_decide(orders):
    stage = orders.world.stage(table=TABLE)
    orders.world.decide("approver-1", stage)

    def row(name):
        page = orders.serving.client(name).get("/governance/decisions").text
        (found,) = (part for part in page.split("<tr>") if stage.id in part)
        return found

    assert "you can decide" in row("approver-2")
    assert "1 of 2" in row("approver-2")
    for name in ("approver-1", "creator", "viewer"):
        assert "others decide" in row(name)

    orders.world.decide("approver-2", stage)
    assert "promotion follows" in row("viewer")
    orders.world.declare(quality=QUALITY)
    assert "outdated" in row("approver-3")


def test_older_ones_are_behind_a_link(orders):
    stages = [orders.world.stage() for _ in range(PAGE + 1)]
    client = orders.serving.client(orders.newcomer(Role.VIEWER))

    newest = client.get("/governance/decisions").text
    (link,) = re.findall(r'<a href="(/governance/decisions\?before=[^"]+)">', newest)
    older = client.get(link).text

    assert f"/governance/stages/{stages[-1].id}" in newest
    assert f"/governance/stages/{stages[0].id}" not in newest
    assert f"/governance/stages/{stages[0].id}" in older
    assert '<a href="/governance/decisions">Newest ones</a>' in older


@pytest.mark.parametrize("before", ["unknown", "%00"])
def test_a_list_behind_a_stage_that_is_not_there_is_refused(office, before):
    answer = office.serving.client("viewer").get(f"/governance/decisions?before={before}")

    assert answer.status in (400, 404)
    assert alert(answer)


def test_where_nothing_waits_the_page_says_so(orders):
    client = orders.serving.client(orders.newcomer(Role.VIEWER))
    assert "Nothing waits for a decision." in client.get("/governance/decisions").text

    only = orders.world.stage()

    further = client.get(f"/governance/decisions?before={only.id}").text
    assert "Nothing waits for a decision further back." in further
    assert "Newest ones" in further


def test_neither_a_reason_nor_a_cell_is_on_a_page_or_in_the_log(orders, caplog):
    caplog.set_level(logging.DEBUG)
    stage, other = orders.world.stage(table=TABLE), orders.world.stage(table=TABLE)
    pages = [orders.serving.client(name).get("/governance/decisions") for name in APPROVERS]
    for name, verdict in (("approver-1", "approve"), ("approver-2", "approve")):
        pages.append(redirected(orders, name, orders.post(name, stage, verdict)))
    pages.append(redirected(orders, "approver-3", orders.post("approver-3", other, "reject")))
    pages += [orders.post("creator", stage), orders.post("approver-1", stage)]
    orders.world.promote(stage)
    pages += [orders.look(name, one) for name in PEOPLE for one in (stage, other)]

    assert len(orders.decisions(stage)) == 2
    assert '"event":"decided"' in caplog.text
    assert '"code":"creator_cannot_approve"' in caplog.text
    for text in (*(page.text for page in pages), caplog.text):
        assert REASON not in text
        assert CELL not in text


def test_nothing_that_is_shown_is_taken_for_html(orders):
    orders.world.declare(
        quality=policy_document(
            rule("not_null", id=HOSTILE, field=HOSTILE, severity="warning"), version=HOSTILE
        ),
        approval={**TWO_APPROVALS, "version": HOSTILE},
    )
    stage = orders.world.stage(table=pa.table({HOSTILE: [1, None]}))

    page = orders.look("approver-1", stage)
    refused = orders.post("approver-1", stage, reason=HOSTILE, base=HOSTILE)

    assert (page.status, refused.status) == (200, 409)
    for answer in (page, refused):
        assert "<script" not in answer.text
        assert "&lt;script&gt;" in answer.text


def test_a_page_needs_no_script_and_may_run_none(orders):
    stage = orders.world.stage(table=TABLE)

    for path in ("/governance/decisions", f"/governance/stages/{stage.id}"):
        answer = orders.serving.client("approver-1").get(path)
        policy = answer.headers.get_all("Content-Security-Policy")[0]
        assert policy.startswith("default-src 'none'; style-src 'sha256-")
        assert "form-action 'self'" in policy
        assert "<script" not in answer.text
        assert 'style="' not in answer.text
        assert answer.headers["Cache-Control"] == "no-store"
        assert 'name="viewport"' in answer.text
