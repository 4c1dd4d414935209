from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasource_governance.domain.actor import UNATTESTED, ActorId
from datasource_governance.domain.approval import (
    DecisionRequest,
    Verdict,
    check_reason,
    decide,
    subject_of,
    tally,
)
from datasource_governance.domain.attestation import reason_hash
from datasource_governance.domain.stage import StageState
from datasource_governance.errors import GuardError
from datasource_governance_tests.domain.lifecycle import (
    CREATOR,
    HOUR,
    MIDDAY,
    TENANT,
    TICK,
    decision,
    policy,
    stage,
    target,
)

APPROVERS = [f"approver-{number}" for number in range(1, 7)]
AUTHORISED = frozenset(map(ActorId, [*APPROVERS, CREATOR]))


def count(decisions, *, required=1, now=MIDDAY, authorised=AUTHORISED, **keys):
    return tally(
        policy(required_approvals=required, **keys),
        subject_of(stage(), TENANT),
        decisions,
        creator=CREATOR,
        authorised=authorised,
        now=now,
    )


def approvals(number):
    return [decision(actor) for actor in APPROVERS[:number]]


def again(made):
    return replace(made, id=f"second-{made.id}", decided_at=made.decided_at + TICK)


def about_another(made, **changes):
    return replace(made, subject=replace(made.subject, **changes))


@pytest.mark.parametrize("required", range(1, 6))
def test_one_approval_too_few_is_no_quorum_and_one_more_is(required):
    assert not count(approvals(required - 1), required=required).met
    assert count(approvals(required + 1), required=required).met


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (decision(CREATOR), "creator under separation of duties"),
        (decision("nobody"), "authority withdrawn"),
        (decision(expires_at=MIDDAY), "expired"),
        (about_another(decision(), stage="other"), "bound to another subject"),
    ],
)
def test_what_is_not_counted_says_why(made, why):
    assert count([made]).not_counted == ((made.id, why),)


def test_the_second_decision_of_one_actor_is_the_later_one():
    first = decision()

    quorum = count([again(first), first])

    assert quorum.approvals == (first,)
    assert quorum.not_counted == ((again(first).id, "second decision of one actor"),)


def test_a_creator_counts_without_separation_of_duties():
    assert count([decision(CREATOR)], separation_of_duties=False).met


def test_a_rejection_closes_even_when_it_expired_or_its_author_lost_authority():
    made = decision("nobody", verdict=Verdict.REJECT, expires_at=MIDDAY)

    assert not count([*approvals(3), made]).met


@given(st.permutations([*approvals(3), decision("nobody"), decision(CREATOR)]))
def test_the_order_in_which_decisions_are_given_does_not_count(shuffled):
    assert count(shuffled).document() == count(sorted(shuffled, key=lambda one: one.id)).document()


def test_a_snapshot_holds_the_hash_of_a_reason_and_not_the_reason():
    document = count([decision(reason="zq-canary")]).document()

    assert document["approvals"] == [
        {
            "decision": "decision-of-approver-1",
            "actor": "approver-1",
            "authority": "grant-of-approver-1",
            "reason_hash": reason_hash("zq-canary"),
            "attestation": "attestation-of-approver-1",
            "decided_at": "2026-03-01T12:00:00+00:00",
            "expires_at": "2026-03-01T13:00:00+00:00",
        }
    ]
    assert "zq-canary" not in str(document)


def asked(about=None, **changes):
    made = DecisionRequest(
        id="d",
        verdict=Verdict.APPROVE,
        actor=ActorId("approver-1"),
        grant_id="g",
        reason="checked",
        attestation_id="a",
        subject=subject_of(about or stage(), TENANT),
    )
    return replace(made, **changes)


def decided(request=None, *, about=None, where=None, under=None, earlier=(), now=MIDDAY):
    return decide(
        request or asked(about),
        about or stage(),
        target=where or target(),
        policy=under or policy(),
        earlier=earlier,
        tenant=TENANT,
        now=now,
    )


def refusal(*arguments, **keys):
    with pytest.raises(GuardError) as caught:
        decided(*arguments, **keys)

    return caught.value.code


def test_a_decision_expires_the_policy_s_hours_after_it_was_made():
    made = decided()

    assert (made.decided_at, made.expires_at) == (MIDDAY, MIDDAY + HOUR)
    assert [made.is_live(MIDDAY + HOUR + offset) for offset in (-TICK, 0 * TICK, TICK)] == [
        True,
        False,
        False,
    ]


def test_a_decision_does_not_age_where_the_policy_names_no_hours():
    assert decided(under=policy(expires_after_hours=None)).expires_at is None


@pytest.mark.parametrize("state", sorted(set(StageState) - {StageState.AWAITING_APPROVAL}))
def test_only_a_stage_that_waits_is_decided_about(state):
    assert refusal(about=stage(state=state)) == "not_awaiting_approval"


@pytest.mark.parametrize(
    "present",
    [{"current": "m"}, {"quality_policy_hash": None}, {"approval_policy_hash": "0" * 64}],
)
def test_an_outdated_stage_is_not_decided_about(present):
    assert refusal(where=target(**present)) == "stage_outdated"


def test_only_the_hashes_that_the_stage_has_can_be_decided_about():
    other = replace(asked().subject, stage_fingerprint="0" * 64)

    assert refusal(asked(subject=other)) == "stage_outdated"


@pytest.mark.parametrize("verdict", list(Verdict))
def test_separation_of_duties_keeps_the_creator_from_every_verdict(verdict):
    own = asked(verdict=verdict, actor=CREATOR)

    assert refusal(own) == "creator_cannot_approve"
    assert decided(own, under=policy(separation_of_duties=False)).actor == CREATOR


def test_nobody_decides_about_an_unproven_creator_under_separation_of_duties():
    unproven = stage(creator=UNATTESTED)

    assert refusal(about=unproven) == "creator_unknown"
    assert decided(about=unproven, under=policy(separation_of_duties=False)).id == "d"


@pytest.mark.parametrize(
    ("now", "code"),
    [(MIDDAY + HOUR - TICK, "already_approved"), (MIDDAY + HOUR, None)],
)
def test_an_actor_decides_again_only_after_the_first_decision_expired(now, code):
    keys = {"earlier": [decision()], "now": now}

    assert (refusal(**keys) if code else decided(**keys).decided_at) == (code or now)


@pytest.mark.parametrize(
    ("reason", "legal"),
    [
        *(("", False), (" \n", False), ("a\x00", False), ("a\ud800", False)),
        ("x" * 2001, False),
        *(("x", True), ("x" * 2000, True)),
    ],
)
def test_a_reason_has_1_to_2000_characters_and_is_not_blank(reason, legal):
    if legal:
        check_reason(reason)
    else:
        with pytest.raises(GuardError) as caught:
            check_reason(reason)
        assert caught.value.code == "reason_missing"
