"""Where an open stage stands: exact at every boundary, and about nothing that it does not need."""

from dataclasses import replace
from datetime import timedelta

import pytest

from datasource_governance.domain.approval import Verdict, subject_of, tally
from datasource_governance.domain.stage import StageState
from datasource_governance.domain.standing import standing
from datasource_governance.domain.validation import Outcome
from datasource_governance_tests.domain.lifecycle import (
    HOUR,
    MIDDAY,
    TENANT,
    TICK,
    decision,
    policy,
    sha,
    stage,
    target,
)

AUTHORISED = frozenset({"approver-1", "approver-2"})
QUARTER = HOUR / 4


def found(*decisions, now=MIDDAY, present=None, of=None, required=1):
    about = of or stage()
    quorum = tally(
        policy(required_approvals=required),
        subject_of(about, TENANT),
        decisions,
        creator=about.creator,
        authorised=AUTHORISED,
        now=now,
    )
    return standing(
        about,
        present or target(),
        decisions,
        subject=subject_of(about, TENANT),
        quorum=quorum if about.approval_required else None,
        now=now,
    )


def ready(**changes):
    return stage(state=StageState.READY, approval_required=False, **changes)


def test_a_stage_that_waits_for_its_first_decision_does_not_stand_out():
    waiting = found()

    assert not waiting.stands_out
    assert (waiting.missing, waiting.until) == (1, None)


def test_one_of_two_approvals_does_not_stand_out_and_turns_when_it_expires_soon():
    waiting = found(decision(), required=2)

    assert not waiting.stands_out
    assert waiting.until == MIDDAY + HOUR - QUARTER


@pytest.mark.parametrize(
    ("at", "expiring", "lapsed"),
    [
        (HOUR - QUARTER - TICK, (), ()),
        (HOUR - QUARTER, ("approver-1",), ()),
        (HOUR - TICK, ("approver-1",), ()),
        (HOUR, (), ("approver-1",)),
    ],
)
def test_an_approval_expires_soon_in_its_last_quarter_and_is_lapsed_at_its_end(
    at, expiring, lapsed
):
    waiting = found(decision(), now=MIDDAY + at, required=2)

    assert (waiting.expiring, waiting.lapsed) == (expiring, lapsed)


def test_every_turn_comes_after_now():
    turns = []
    now = MIDDAY
    while (until := found(decision(), now=now).until) is not None:
        turns.append(until)
        now = until

    assert turns == [MIDDAY + HOUR - QUARTER, MIDDAY + HOUR]


def test_who_renewed_has_not_lapsed():
    renewed = decision(id="again", decided_at=MIDDAY + HOUR, expires_at=MIDDAY + 2 * HOUR)

    assert found(decision(), renewed, now=MIDDAY + HOUR).lapsed == ()


def test_an_approval_without_expiry_never_turns():
    waiting = found(decision(expires_at=None), now=MIDDAY + timedelta(days=9999), required=2)

    assert (waiting.until, waiting.expiring, waiting.next_expiry) == (None, (), None)


def test_a_rejection_does_not_lapse():
    rejected = decision(verdict=Verdict.REJECT)

    assert found(rejected, now=MIDDAY + HOUR).lapsed == ()


def test_a_quorum_is_complete_since_the_approval_that_completed_it():
    approvals = [
        decision(),
        decision("approver-2", decided_at=MIDDAY + TICK, expires_at=None),
    ]

    assert found(*approvals, now=MIDDAY + 2 * TICK, required=2).complete_since == MIDDAY + TICK


def test_approvals_beyond_the_quorum_do_not_move_since_when_it_is_complete():
    approvals = [decision(), decision("approver-2", decided_at=MIDDAY + TICK)]

    assert found(*approvals, now=MIDDAY + TICK).complete_since == MIDDAY


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"current": "other"}, "base materialization"),
        ({"quality_policy_hash": sha("other")}, "quality policy"),
        ({"approval_policy_hash": None}, "approval policy"),
    ],
)
def test_what_changed_is_named_and_nothing_is_complete(change, named):
    waiting = found(decision(), present=target(**change))

    assert (waiting.changed, waiting.complete_since) == ((named,), None)
    assert waiting.lost_its_base == (named == "base materialization")


def test_a_decision_about_something_else_under_its_id_is_a_changed_subject():
    other = replace(decision().subject, stage_fingerprint=sha("other"))

    waiting = found(decision(), decision("approver-2", subject=other))

    assert (waiting.changed, waiting.complete_since) == (("subject",), None)


@pytest.mark.parametrize(
    ("promotion", "outcome", "complete"),
    [
        ("automatic", Outcome.READY, True),
        ("automatic", Outcome.REVIEW, False),
        ("manual", Outcome.READY, False),
    ],
)
def test_a_ready_stage_needs_nobody_where_it_promotes_by_itself(promotion, outcome, complete):
    waiting = found(of=ready(outcome=outcome), present=target(promotion=promotion))

    assert waiting.complete_since == (MIDDAY if complete else None)
