"""Every way in which an approval may fail to count, crossed with quorums of one to five.

What has to come out is written beside each way. The last tests plant faults in the code and hold
that the matrix sees them.
"""

import inspect
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from types import CodeType, FunctionType

import pytest

from datasource_governance.domain import actor, approval, materialization, stage
from datasource_governance.domain.actor import ActorId
from datasource_governance.domain.approval import Verdict, subject_of, tally
from datasource_governance.errors import GovernanceError
from datasource_governance_tests.domain import lifecycle
from datasource_governance_tests.domain.ballot import APPROVERS, OBJECTOR, Ballot
from datasource_governance_tests.domain.courses import COURSES, OTHER
from datasource_governance_tests.domain.lifecycle import (
    CREATOR,
    HOUR,
    MIDDAY,
    TENANT,
    TICK,
    decision,
    policy,
)

QUORUMS = range(1, 6)


# --- What counts, among decisions that are there by whatever way they came -----------------------


def again(made):
    return replace(made, id=f"second-{made.id}", decided_at=made.decided_at + TICK)


def first(**changes):
    """Return a change of the first approval."""
    return lambda made: [replace(made[0], **changes), *made[1:]]


def first_about(**changes):
    """Return a change of what the first approval is about."""
    return lambda made: [
        replace(made[0], subject=replace(made[0].subject, **changes)),
        *made[1:],
    ]


# How one of the approvals differs, and how many of them then do not count.
DIFFERENCES = {
    "all distinct": (lambda made: made, 0),
    "one person twice": (lambda made: [again(made[0]), *made[:-1]], 1),
    "one person twice with two keys": (
        lambda made: [replace(again(made[0]), attestation_id="of another key"), *made[:-1]],
        1,
    ),
    "one person twice with two grants": (
        lambda made: [replace(again(made[0]), grant_id="another"), *made[:-1]],
        1,
    ),
    "the creator in place of one": (lambda made: [decision(CREATOR), *made[1:]], 1),
    "one lost authority": (first(actor=ActorId("nobody")), 1),
    "one a tick before expiry": (first(expires_at=MIDDAY + TICK), 0),
    "one at the instant of expiry": (first(expires_at=MIDDAY), 1),
    "one a tick after expiry": (first(expires_at=MIDDAY - TICK), 1),
    "one that never expires": (first(expires_at=None), 0),
    "one of another stage": (first_about(stage="other"), 1),
    "one of another datasource": (first_about(datasource="other"), 1),
    "one of other content": (first_about(stage_fingerprint=OTHER), 1),
    "one under another quality policy": (first_about(quality_policy_hash=OTHER), 1),
    "one under another approval policy": (first_about(approval_policy_hash=OTHER), 1),
    "one under no approval policy": (first_about(approval_policy_hash=None), 1),
    "one with another base": (first_about(base="other"), 1),
}
REJECTIONS = {
    "no rejection": (),
    "a rejection first": (MIDDAY - TICK,),
    "a rejection in the middle": (MIDDAY,),
    "a rejection last": (MIDDAY + TICK,),
    "a rejection that expired": (MIDDAY - HOUR,),
}
COUNTING = [
    case
    for case in product(QUORUMS, DIFFERENCES, REJECTIONS)
    if not (case[0] == 1 and "twice" in case[1])
]


def check_counting(required, difference, rejected):
    differ, lost = DIFFERENCES[difference]
    made = differ([decision(name) for name in APPROVERS[:required]])
    made += [
        decision(OBJECTOR, verdict=Verdict.REJECT, decided_at=at) for at in REJECTIONS[rejected]
    ]

    quorum = tally(
        policy(required_approvals=required),
        subject_of(lifecycle.stage(), TENANT),
        made,
        creator=CREATOR,
        authorised=frozenset(map(ActorId, [*APPROVERS, CREATOR, OBJECTOR])),
        now=MIDDAY,
    )

    found = (quorum.required, len(quorum.approvals), quorum.missing, quorum.met)
    assert found == (required, required - lost, lost, lost == 0 and rejected == "no rejection")
    assert len(quorum.not_counted) == lost


@pytest.mark.parametrize(("required", "difference", "rejected"), COUNTING)
def test_a_quorum_is_met_exactly_by_what_counts(required, difference, rejected):
    check_counting(required, difference, rejected)


# --- What can be decided, and what becomes of it --------------------------------------------------


DECIDING = [
    (required, name)
    for required, name in product(QUORUMS, COURSES)
    if required >= COURSES[name].at_least
]


def check_course(required, name):
    course = COURSES[name]
    vote = Ballot(required=required, **course.begins)

    course.play(vote, APPROVERS[:required])

    quorum, counted = vote.quorum, course.counted(required)
    missing = max(0, required - counted)
    assert (quorum.required, len(quorum.approvals), quorum.missing) == (required, counted, missing)
    assert vote.refused == course.refused(required)
    assert quorum.met == (missing == 0 and course.obstacle != "stage_rejected")
    assert vote.obstacle == (course.obstacle or ("quorum_not_met" if missing else None))


@pytest.mark.parametrize(("required", "course"), DECIDING)
def test_a_vote_takes_its_course(required, course):
    check_course(required, course)


def test_the_matrix_has_at_least_200_cases_of_each_kind():
    assert len(COUNTING) >= 200
    assert len(DECIDING) >= 200
    assert len(set(COUNTING)) + len(set(DECIDING)) == len(COUNTING) + len(DECIDING)


# --- The control: faults that the matrix has to see -----------------------------------------------

# One fault each: the module, what it says, what a careless hand would have written instead.
FAULTS = {
    "expiry is included": (approval, "now < self.expires_at", "now <= self.expires_at"),
    "one actor counts twice": (
        approval,
        "approvals[decision.actor] = decision",
        "approvals[decision.id] = decision",
    ),
    "what was decided about is not compared": (approval, "decision.subject != subject", "False"),
    "only the stage is compared": (
        approval,
        "decision.subject != subject:",
        "decision.subject.stage != subject.stage:",
    ),
    "lost authority still counts": (approval, "decision.actor not in authorised", "False"),
    "the creator counts": (
        approval,
        "if policy.separation_of_duties and decision.actor == creator",
        "if policy.separation_of_duties and decision.actor is None",
    ),
    "the creator decides": (approval, "if stage.creator == actor", "if stage.creator is actor"),
    "an unknown creator is nobody": (approval, "stage.creator == UNATTESTED", "False"),
    "a rejection is outvoted": (approval, "not self.rejections and", ""),
    "a rejection expires": (
        approval,
        "if decision.verdict is Verdict.REJECT:",
        "if decision.verdict is Verdict.REJECT and why is None:",
    ),
    "one approval too many is wanted": (approval, ">= self.required", "> self.required"),
    "one approval fewer is wanted": (
        approval,
        ">= self.required",
        ">= max(1, self.required - 1)",
    ),
    "a decision is never renewed": (
        approval,
        "decision.actor == actor and decision.is_live(now)",
        "decision.actor == actor",
    ),
    "a decision is renewed at any time": (
        approval,
        "decision.actor == actor and decision.is_live(now)",
        "False",
    ),
    "what was reviewed is not compared": (
        approval,
        "request.subject != subject_of(stage, tenant)",
        "request.subject.stage != stage.id",
    ),
    "any reason does": (approval, "not reason.strip() or not storable", "not storable"),
    "an outdated stage is as good as a live one": (stage, "if different:", "if not stage:"),
    "the quality policy is not compared": (
        stage,
        "if bound != present",
        'if bound != present and name != "quality policy"',
    ),
    "the approval policy is not compared": (
        stage,
        "if bound != present",
        'if bound != present and name != "approval policy"',
    ),
    "the base is not compared": (
        stage,
        "if bound != present",
        'if bound != present and name != "base materialization"',
    ),
    "spelling makes a person": (actor, ".casefold()", ""),
    "compatible letters make a person": (actor, '"NFKC"', '"NFC"'),
    "a grant is for every datasource": (
        actor,
        "self.role is role and self.datasource in (None, datasource)",
        "self.role is role",
    ),
    "a quorum is not asked for": (
        materialization,
        "stage.approval_required and (quorum is None or not quorum.met)",
        "stage.approval_required and quorum is None",
    ),
    "what was rejected is promoted": (
        materialization,
        "stage.state is StageState.REJECTED",
        "False",
    ),
}


def codes_in(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    """Yield the code of every function in compiled source, by qualified name."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant.co_qualname, constant
            yield from codes_in(constant)


def functions_of(module) -> Iterator[FunctionType]:
    """Yield the functions and methods that a module defines."""
    for value in vars(module).values():
        owned = vars(value).values() if inspect.isclass(value) else [value]
        for one in owned:
            function = one.fget if isinstance(one, property) else one
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                yield function


def plant(monkeypatch, module, before, after):
    """Let a module's functions run as if its source said `after` in place of `before`."""
    source = inspect.getsource(module)
    assert source.count(before) == 1
    faulty = dict(codes_in(compile(source.replace(before, after), module.__file__, "exec")))
    for function in functions_of(module):
        if function.__qualname__ in faulty:
            monkeypatch.setattr(function, "__code__", faulty[function.__qualname__])


def unseen(checks):
    """Tell whether every check still holds."""
    for check, case in checks:
        try:
            check(*case)
        except (AssertionError, GovernanceError):
            return False
    return True


CHECKS = [
    *((check_course, case) for case in DECIDING),
    *((check_counting, case) for case in COUNTING),
]


@pytest.mark.parametrize("fault", FAULTS)
def test_the_matrix_sees_a_planted_fault(fault, monkeypatch):
    plant(monkeypatch, *FAULTS[fault])

    assert not unseen(CHECKS)


def test_without_a_fault_planting_changes_nothing(monkeypatch):
    for module in (actor, approval, materialization, stage):
        line = inspect.getsource(module).splitlines()[0]
        plant(monkeypatch, module, line, line)

    assert unseen(CHECKS)
