"""What of an unchanged plan may be destroyed, and everything that refuses it as a whole."""

from itertools import combinations, permutations

import pytest

from datasource_governance.domain.plan_admission import admit, compare_plans, unknown_plan
from datasource_governance.domain.retention import Blocker, BlockerKind
from datasource_governance.errors import GuardError
from datasource_governance_tests.retained import (
    AS_OF,
    MICROSECOND,
    candidate,
    governing,
    plan_of,
)

HELD = candidate("held", blockers=(Blocker(kind=BlockerKind.LEGAL_HOLD, ids=("h1",)),))
WAITING = candidate("waiting", blockers=(Blocker(kind=BlockerKind.PENDING_APPROVAL),))
FREE = tuple(candidate(name) for name in ("s1", "s2", "s3"))
PLAN = plan_of(*FREE, HELD, WAITING)


def admitted(targets, plan=PLAN, present=PLAN, now=AS_OF):
    return [target.id for target in admit(plan, present, targets, now)]


def refusal(targets, plan=PLAN, present=PLAN, now=AS_OF):
    with pytest.raises(GuardError) as caught:
        admit(plan, present, targets, now)
    return caught.value


def test_without_targets_everything_that_is_not_blocked_is_admitted():
    assert admitted(None) == ["s1", "s2", "s3"]


PARTS = [part for count in (1, 2, 3) for part in combinations(("s1", "s2", "s3"), count)]


@pytest.mark.parametrize("part", PARTS, ids="+".join)
def test_any_part_is_admitted_in_whatever_order_and_however_often_it_is_named(part):
    for order in permutations(part):
        assert admitted([*order, *order]) == list(part)


@pytest.mark.parametrize("foreign", ["s4", "S1", "s1 ", "", "s1,s2"], ids=repr)
def test_one_id_that_is_not_in_the_plan_refuses_everything(foreign):
    refused = refusal(["s1", foreign])

    assert (refused.code, refused.facts["targets"]) == ("target_not_in_plan", (foreign,))


def test_every_foreign_id_is_named_at_once_even_beside_blocked_ones():
    refused = refusal(["x2", "held", "x1"])

    assert (refused.code, refused.facts["targets"]) == ("target_not_in_plan", ("x1", "x2"))


def test_one_blocked_target_refuses_everything_and_each_is_named_with_its_blockers():
    refused = refusal(["s1", "waiting", "held"])

    assert (refused.code, refused.facts["targets"]) == ("target_blocked", ("held", "waiting"))
    assert "held: legal holds are on it or its datasource: h1" in str(refused)
    assert "waiting: it awaits approval" in str(refused)


@pytest.mark.parametrize(
    ("plan", "targets"),
    [(PLAN, []), (plan_of(), None), (plan_of(HELD), None)],
    ids=["none asked for", "nothing due", "everything blocked"],
)
def test_a_request_that_comes_to_nothing_is_refused(plan, targets):
    assert refusal(targets, plan, plan).code == "nothing_to_apply"


def test_a_plan_can_be_applied_until_just_before_it_expires():
    assert admitted(["s1"], now=PLAN.expires_at - MICROSECOND) == ["s1"]
    for late in (PLAN.expires_at, PLAN.expires_at + MICROSECOND):
        assert refusal(["s1"], now=late).code == "plan_expired"


OTHERWISE = {
    "one more": (plan_of(*FREE, HELD, WAITING, candidate("s4")), "1 due now and not then (s4)"),
    "one less": (plan_of(*FREE, HELD), "1 due then and not now (waiting)"),
    "a new hold": (
        plan_of(candidate("s1", blockers=HELD.blockers), *FREE[1:], HELD, WAITING),
        "1 changed (s1)",
    ),
    "a hold released": (plan_of(*FREE, candidate("held"), WAITING), "1 changed (held)"),
    "another policy": (
        plan_of(*FREE, HELD, WAITING, policies=[governing(version="r2")]),
        "1 under another policy (orders)",
    ),
    "one more policy": (
        plan_of(*FREE, HELD, WAITING, policies=[governing(), governing("customers")]),
        "1 under another policy (customers)",
    ),
    "switched off": (
        plan_of(*FREE, HELD, WAITING, policies=[governing(enabled=False)]),
        "5 due then and not now (held, s1, s2, s3, waiting), 1 under another policy (orders)",
    ),
}


@pytest.mark.parametrize("difference", OTHERWISE)
@pytest.mark.parametrize("targets", [None, ["s2"], ["s4"], ["held"]], ids=str)
def test_any_difference_refuses_everything_whatever_was_asked_for(difference, targets):
    present, summary = OTHERWISE[difference]

    refused = refusal(targets, present=present)

    assert refused.code == "plan_outdated"
    assert refused.facts["present"] == present.hash != PLAN.hash
    assert summary in str(refused)


def test_what_changed_is_known_before_and_after():
    later = plan_of(candidate("s1", rows=3), *FREE[1:], HELD, WAITING, as_of=AS_OF + MICROSECOND)

    difference = compare_plans(PLAN, later)

    ((before, after),) = difference.changed
    assert (before.rows, after.rows) == (2, 3)
    assert (difference.added, difference.removed, difference.policies) == ((), (), ())


def test_plans_of_the_same_state_at_two_instants_differ_in_nothing():
    later = plan_of(*FREE, HELD, WAITING, as_of=AS_OF + MICROSECOND)

    assert compare_plans(PLAN, later).summary() == "nothing"


def test_a_long_difference_names_ten_and_counts_the_rest():
    later = plan_of(*(candidate(f"t{number:02}") for number in range(13)))

    assert compare_plans(plan_of(), later).summary() == (
        "13 due now and not then (t00, t01, t02, t03, t04, t05, t06, t07, t08, t09, and 3 more)"
    )


def test_a_hash_that_no_plan_has_is_an_outdated_plan():
    assert unknown_plan("f" * 64).code == "plan_outdated"
