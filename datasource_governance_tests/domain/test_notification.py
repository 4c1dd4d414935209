from datetime import timedelta

import pytest

from datasource_governance.domain.canonical import load_canonical
from datasource_governance.domain.event import EVENT_TYPES, event
from datasource_governance.domain.notification import document, notification
from datasource_governance_tests.domain.lifecycle import MIDDAY

URL = "https://governance.example"
STAGE = "0a1b2c3d-0000"
COMMON = {"stage": STAGE, "stage_fingerprint": "f-1"}
CREATED = {
    **COMMON,
    "outcome": "review",
    "validation_hash": "v-1",
    "quality_policy_hash": "q-1",
    "approval_policy_hash": "a-1",
    "row_count": 77123,
}
DECIDED = {**COMMON, "actor": "ann", "reason_hash": "zq-hash-of-a-reason"}
PROMOTED = {
    **COMMON,
    "materialization": "m-2",
    "revision": 2,
    "approval": {"required": 2, "approvals": [{}, {}], "not_counted": [{}]},
    "superseded": ["s-2", "s-3"],
}
EXPIRING = {
    **COMMON,
    "decision": "d-1",
    "actor": "ann",
    "expires_at": (MIDDAY + timedelta(hours=1)).isoformat(),
    "approvals": 1,
    "required": 2,
}


def told(kind, facts, url=URL):
    return notification(event("e", kind, datasource="orders", facts=facts, now=MIDDAY), url)


@pytest.mark.parametrize(
    ("kind", "facts", "gist", "line"),
    [
        (
            "stage.created",
            {**CREATED, "state": "awaiting_approval"},
            "approval needed",
            "approval policy: a-1",
        ),
        (
            "stage.created",
            {**CREATED, "state": "failed", "approval_policy_hash": None},
            "blocked",
            "approval policy: none",
        ),
        ("stage.decided", {**DECIDED, "verdict": "reject"}, "rejected", "rejected by: ann"),
        (
            "stage.expiring",
            EXPIRING,
            "an approval expires soon",
            "approved by: ann, until 2026-03-01T13:00:00+00:00",
        ),
        (
            "stage.expiring",
            EXPIRING,
            "an approval expires soon",
            "approvals that count now: 1 of 2",
        ),
        ("stage.promoted", PROMOTED, "promoted", "materialization: m-2, revision 2"),
        ("stage.promoted", PROMOTED, "promoted", "approvals: 2 of 2"),
        ("stage.promoted", PROMOTED, "promoted", "other open stages superseded by it: 2"),
        (
            "stage.promoted",
            {**PROMOTED, "approval": "not required"},
            "promoted",
            "approval was not required",
        ),
        (
            "stage.superseded",
            {**COMMON, "base": "m-1", "current": None},
            "superseded",
            "current materialization: none",
        ),
    ],
)
def test_people_are_told(kind, facts, gist, line):
    found = told(kind, facts)

    assert found.subject == f"orders: {gist} (stage 0a1b2c3d)"
    assert found.link == f"{URL}/governance/stages/{STAGE}"
    assert {
        "datasource: orders",
        f"stage: {STAGE}",
        "at: 2026-03-01 12:00:00+00:00",
        "stage fingerprint: f-1",
        line,
    } <= set(found.text.splitlines())


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        ("stage.created", {**CREATED, "state": "ready"}),
        ("stage.decided", {**DECIDED, "verdict": "approve"}),
        ("governance.applied", {"author": "admin"}),
        ("unheard.of", COMMON),
    ],
)
def test_what_concerns_nobody_is_not_told(kind, facts):
    assert told(kind, facts) is None


def test_neither_rows_nor_anything_about_a_reason_is_told():
    created = told("stage.created", {**CREATED, "state": "failed"})
    rejected = told("stage.decided", {**DECIDED, "verdict": "reject"})

    assert "77123" not in str(created)
    assert "zq" not in str(rejected)


@pytest.mark.parametrize("url", [URL, f"{URL}/"])
def test_a_link_has_one_slash_and_an_id_cannot_change_where_it_leads(url):
    found = told("stage.expiring", {**EXPIRING, "stage": "../x?y"}, url)

    assert found.link == f"{URL}/governance/stages/..%2Fx%3Fy"


def test_programs_get_the_event_and_beside_it_what_people_get():
    made = event("e", "stage.expiring", datasource="orders", facts=EXPIRING, now=MIDDAY)

    found = document(made, URL)

    assert found.pop("notification") == notification(made, URL).document()
    assert found == load_canonical(made.body)


def test_programs_are_told_when_people_are_not():
    made = event("e", "governance.applied", datasource="orders", facts={}, now=MIDDAY)

    assert document(made, URL)["notification"] is None


def test_types_are_in_order_and_none_is_there_twice():
    assert sorted(set(EVENT_TYPES)) == list(EVENT_TYPES)


@pytest.mark.parametrize(
    ("kind", "gist"), [("contract.violated", "violated"), ("contract.resolved", "holds again")]
)
def test_people_are_told_of_contracts(kind, gist):
    facts = {
        "contract": "orders-for-finance",
        "contract_version": "1.2.0",
        "kind": "freshness",
        "severity": "critical",
        "message": "220 percent of the allowed age",
        "violation": "v-1",
        "opened_at": "2026-03-01T11:00:00+00:00",
    }

    found = told(kind, facts)

    assert gist in found.subject
    assert "orders-for-finance" in found.subject
    assert "(freshness, critical)" in found.subject
    assert "freshness: 220 percent of the allowed age" in found.text.splitlines()
    assert "contract: orders-for-finance 1.2.0" in found.text.splitlines()
    assert found.link == f"{URL}/governance/contracts"
