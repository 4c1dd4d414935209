"""A plan is its bytes: what is in it, in which order, and what changes its hash."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import combinations, permutations

import pytest

from datasource_governance.domain.canonical import digest
from datasource_governance.domain.retention import (
    Action,
    Blocker,
    BlockerKind,
    RetentionClass,
    TargetKind,
)
from datasource_governance.domain.retention_plan import FORMAT, read_plan, targets_hash
from datasource_governance.errors import GuardError
from datasource_governance_tests.retained import (
    AS_OF,
    MICROSECOND,
    candidate,
    governing,
    plan_of,
)

HOLD = Blocker(kind=BlockerKind.LEGAL_HOLD, ids=("h1", "h2"))
MATERIALIZATION = candidate("m1", TargetKind.MATERIALIZATION, partition="2024-01")
BLOCKERS = [Blocker(kind=kind, ids=("b",)) for kind in BlockerKind]
COMBINED = [
    pytest.param(some, id="+".join(one.kind for one in some))
    for count in (1, 2)
    for some in combinations(BLOCKERS, count)
]


def test_a_plan_holds_exactly_these_facts():
    plan = plan_of(candidate("s1", blockers=(HOLD,)), MATERIALIZATION)

    assert json.loads(plan.body) == {
        "format": FORMAT,
        "tenant": "default",
        "datasource": None,
        "as_of": "2024-06-30T12:00:00+00:00",
        "policies": [
            {
                "datasource": "orders",
                "version": "r1",
                "hash": governing().policy.hash,
                "policy_ref": None,
                "enabled": True,
            }
        ],
        "targets": [
            {
                "kind": "materialization",
                "class": "materialization",
                "id": "m1",
                "datasource": "orders",
                "partition": "2024-01",
                "created_at": "2001-01-01T00:00:00+00:00",
                "eligible_at": "2002-01-01T00:00:00+00:00",
                "action": "purge",
                "rows": 2,
                "bytes": 20,
                "payload_sha256": "a" * 64,
                "blockers": [],
            },
            {
                "kind": "stage",
                "class": "stage",
                "id": "s1",
                "datasource": "orders",
                "partition": "",
                "created_at": "2001-01-01T00:00:00+00:00",
                "eligible_at": "2001-01-31T00:00:00+00:00",
                "action": "delete",
                "rows": 2,
                "bytes": 20,
                "payload_sha256": "a" * 64,
                "blockers": [{"kind": "legal_hold", "ids": ["h1", "h2"]}],
            },
        ],
        "totals": {"targets": 2, "blocked": 1, "rows": 2, "bytes": 20},
    }
    assert plan.hash == digest(FORMAT, plan.body)


def test_a_plan_can_be_applied_for_24_hours():
    assert plan_of().expires_at == AS_OF + timedelta(hours=24)


@pytest.mark.parametrize("some", COMBINED)
def test_what_is_blocked_is_listed_and_counts_for_nothing(some):
    plan = plan_of(candidate(blockers=some))

    (target,) = plan.targets
    assert target.is_blocked
    assert {one.kind for one in target.blockers} == {one.kind for one in some}
    assert (plan.totals.targets, plan.totals.blocked, plan.totals.rows) == (1, 1, 0)


@pytest.mark.parametrize("some", COMBINED)
def test_every_blocker_changes_the_hash(some):
    hashes = {plan_of(candidate(blockers=part)).hash for part in (some, some[1:], ())}

    assert len(hashes) == len(some) + 1


def test_the_order_in_which_facts_are_found_does_not_count():
    found = [
        candidate("s1", blockers=(BLOCKERS[2], BLOCKERS[0])),
        candidate("s2", datasource="customers"),
        candidate("s0", TargetKind.MATERIALIZATION),
    ]
    policies = [governing("orders"), governing("customers")]
    turned = replace(found[0], blockers=found[0].blockers[::-1])
    plans = [
        *(plan_of(*order, policies=policies) for order in permutations(found)),
        plan_of(turned, *found[1:], policies=policies[::-1]),
    ]

    assert len({plan.body for plan in plans}) == 1
    assert [target.id for target in plans[0].targets] == ["s2", "s0", "s1"]
    assert [policy.datasource for policy in plans[0].policies] == ["customers", "orders"]


def test_the_zone_in_which_an_instant_is_told_does_not_count():
    elsewhere = timezone(timedelta(hours=5, minutes=45))
    one = candidate()
    moved = replace(one, created_at=one.created_at.astimezone(elsewhere))

    assert plan_of(one).body == plan_of(moved, as_of=AS_OF.astimezone(elsewhere)).body


CHANGES = {
    "id": {"name": "s2"},
    "kind": {"kind": TargetKind.MATERIALIZATION, "retention_class": RetentionClass.STAGE},
    "retention_class": {"retention_class": RetentionClass.MATERIALIZATION},
    "datasource": {"datasource": "customers"},
    "partition": {"partition": "2024-01"},
    "created_at": {"created_at": candidate().created_at + MICROSECOND},
    "rows": {"rows": 3},
    "bytes": {"bytes": 21},
    "payload_sha256": {"payload_sha256": "b" * 64},
    "blockers": {"blockers": (HOLD,)},
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_fact_of_a_target_changes_the_hash(change):
    policies = [governing("orders"), governing("customers")]

    before = plan_of(candidate(), policies=policies)
    after = plan_of(candidate(**CHANGES[change]), policies=policies)

    assert len(before.targets) == len(after.targets) == 1
    assert before.hash != after.hash


@pytest.mark.parametrize(
    "ids", [("h1",), ("h2",), ("h1", "h2", "h3"), ("h1h2",), ("h1", "h3")], ids=str
)
def test_another_hold_changes_the_hash_although_it_blocks_the_same(ids):
    one = candidate(blockers=(HOLD,))
    other = candidate(blockers=(Blocker(kind=BlockerKind.LEGAL_HOLD, ids=ids),))

    assert plan_of(one).hash != plan_of(other).hash


POLICY_CHANGES = {
    "version": {"version": "r2"},
    "policy_ref": {"policy_ref": "GOV-7"},
    "days of a class that nothing is of": {"frozen_evidence_days": 3651},
    "days that leave everything due": {"stage_days": 31},
    "enabled": {"enabled": False},
}


@pytest.mark.parametrize("change", POLICY_CHANGES)
def test_every_change_of_a_policy_changes_the_hash(change):
    changed = governing(**POLICY_CHANGES[change])

    assert plan_of(candidate()).hash != plan_of(candidate(), policies=[changed]).hash


@pytest.mark.parametrize("change", [{"tenant": "other"}, {"datasource": "orders"}], ids=str)
def test_whose_plan_it_is_changes_the_hash(change):
    assert plan_of(candidate()).hash != plan_of(candidate(), **change).hash


def test_one_microsecond_later_it_is_another_plan():
    assert plan_of(candidate()).hash != plan_of(candidate(), as_of=AS_OF + MICROSECOND).hash


def test_what_is_not_due_or_not_governed_does_not_matter():
    young = candidate("s2", created_at=AS_OF - timedelta(days=29))
    ungoverned = candidate("s3", datasource="elsewhere")

    assert plan_of(candidate("s1")).body == plan_of(candidate("s1"), young, ungoverned).body


def test_a_policy_that_is_not_enabled_is_named_and_makes_nothing_due():
    plan = plan_of(candidate(), policies=[governing(enabled=False)])

    assert [(one.datasource, one.enabled) for one in plan.policies] == [("orders", False)]
    assert plan.targets == ()


def test_frozen_evidence_is_purged_as_any_materialization_is():
    frozen = candidate(
        "m", TargetKind.MATERIALIZATION, retention_class=RetentionClass.FROZEN_EVIDENCE
    )

    (target,) = plan_of(frozen).targets

    # Ten times 365 days: three leap days short of ten years.
    assert target.eligible_at == datetime(2010, 12, 30, tzinfo=UTC)
    assert target.action is Action.PURGE


@pytest.mark.parametrize(
    "plan",
    [
        plan_of(policies=[]),
        plan_of(candidate(blockers=tuple(BLOCKERS)), MATERIALIZATION, datasource="orders"),
        plan_of(candidate(rows=2**60, bytes=2**63), policies=[governing(policy_ref="GOV-7")]),
    ],
    ids=["empty", "blocked", "large"],
)
def test_a_stored_plan_is_read_as_it_was_made(plan):
    assert read_plan(plan.body) == plan


STORED = plan_of(candidate(blockers=(HOLD,)), MATERIALIZATION).body
SPOILED = {
    "nothing": b"",
    "no JSON": b"{",
    "no object": b"[]",
    "another format": STORED.replace(b"plan/v1", b"plan/v2"),
    "white space": STORED + b" ",
    "wrong totals": STORED.replace(b'"blocked":1', b'"blocked":0'),
    "an unknown kind": STORED.replace(b'"kind":"stage"', b'"kind":"row"'),
    "ids that are no list": STORED.replace(b'["h1","h2"]', b'"h1"'),
    "targets that are no objects": STORED.replace(b'"blockers":[]', b'"blockers":[1]'),
    "one more key": STORED.replace(b'"format":', b'"approved":true,"format":'),
}


@pytest.mark.parametrize("body", SPOILED.values(), ids=SPOILED)
def test_what_is_not_exactly_a_plan_is_refused(body):
    assert body != STORED
    with pytest.raises(GuardError) as caught:
        read_plan(body)

    assert caught.value.code == "evidence_chain_broken"
    assert caught.value.__context__ is None


def test_targets_have_one_hash_in_any_order_and_number():
    assert targets_hash(["a", "b"]) == targets_hash(["b", "a", "b"])
    assert len({targets_hash(ids) for ids in ([], ["a"], ["b"], ["a", "b"], ["ab"])}) == 5
