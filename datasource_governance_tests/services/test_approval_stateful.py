"""Stages, decisions, policies, grants, keys and time in any order, on Postgres.

Every outcome is predicted by `approval_rules`, which shares no code with what is tested. Each
example is a tenant of its own in one database.
"""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from datasource_governance.domain.actor import Role
from datasource_governance.domain.approval import Verdict
from datasource_governance.domain.materialization import provenance_of
from datasource_governance.errors import GovernanceError
from datasource_governance.services.approval import quorum_of
from datasource_governance.services.waiting import supersede_stage
from datasource_governance.signing import public_path
from datasource_governance_tests.approval_rules import ExpectedStage, Governing, Terms
from datasource_governance_tests.postgres import unique_name
from datasource_governance_tests.world import ONE_ROW_AT_LEAST, new_world

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

MIDDAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)
CREATORS = ("creator", "creator", "approver-1", None)
APPROVERS = ("approver-1", "approver-2", "approver-3", "creator")
QUALITIES = {"strict": ONE_ROW_AT_LEAST, "stricter": {**ONE_ROW_AT_LEAST, "version": "v2"}}
TWO_FOR_AN_HOUR = Terms(required=2, hours=1)
TERMS = (TWO_FOR_AN_HOUR, Terms(required=2), Terms(required=1, separate=False, hours=1), None)
DECISIVE = (
    *("wait_until_a_tick_before_expiry", "wait_until_expiry", "change_the_rules"),
    *("change_the_terms", "withdraw_all_authority", "reject", "revoke_a_key"),
)
CHANGES = (
    *DECISIVE,
    *("change_the_policies_back", "promote_another", "withdraw_or_give_authority"),
    "register_another_key",
)
"""Methods of `Office`, as the decisive ones are."""
ROWS = {True: pa.table({"id": [1, 2]}), False: pa.table({"id": pa.array([], pa.int64())})}


def policy(terms):
    """Return the approval policy document of these terms."""
    if terms is None:
        return None
    return {
        "version": "v1",
        "required": True,
        "required_approvals": terms.required,
        "separation_of_duties": terms.separate,
        **({} if terms.hours is None else {"expires_after_hours": terms.hours}),
    }


class Office(RuleBasedStateMachine):
    """What people may do, and what has to come of it. `seen` counts what came of it."""

    people = st.sampled_from(APPROVERS)
    # Mostly the newest stage: of older ones most are closed.
    places = st.sampled_from([1, 1, 1, 2, 3])

    def __init__(self, database, directory, seen):
        super().__init__()
        tenant = unique_name("tenant")
        self.world = new_world(database, directory / tenant, tenant)
        self.seen = seen
        self.stages = []
        self.expected = {}
        self.current = []
        self.has_key = dict.fromkeys([*APPROVERS, "operator"], True)
        self.world.grant("approver-1", Role.STEWARD)
        self.grants = {name: self.world.grant(name, Role.APPROVER) for name in APPROVERS}

    def teardown(self):
        assert self.world.verification().holds
        self.world.application.close()

    def attempt(self, reasons, act):
        """Let something be done; hold that it is refused exactly for one of these reasons."""
        done = code = None
        try:
            done = act()
        except GovernanceError as refusal:
            code = refusal.code
        self.seen[code] += 1
        assert code in (reasons or {None})
        return done

    def at(self, place):
        return self.stages[-min(place, len(self.stages))]

    @property
    def approvers(self):
        return frozenset(self.grants)

    def without_key(self, name):
        return set() if self.has_key[name] else {"attestation_invalid"}

    # What people do.

    @initialize(terms=st.sampled_from(TERMS[:3]))
    def begin(self, terms):
        self.set_clock(MIDDAY)
        self.present = Governing("strict", terms)
        self.world.declare(QUALITIES["strict"], policy(terms))
        self.create_stage("creator", good=True)

    @rule(creator=st.sampled_from(CREATORS), good=st.sampled_from([True] * 5 + [False]))
    def create_stage(self, creator, good):
        if creator is not None and not self.has_key[creator]:
            creator = None
        stage = self.world.stage(creator, ROWS[good])
        waits = "ready" if self.present.terms is None else "awaiting_approval"
        self.stages.append(stage)
        self.expected[stage.id] = ExpectedStage(creator, self.present, waits if good else "failed")

    @rule(place=places, who=people, approves=st.sampled_from([True, True, True, False]))
    def decide(self, place, who, approves):
        stage = self.at(place)
        expected = self.expected[stage.id]
        reasons = self.without_key(who) | expected.why_no_decision(
            who, now=self.now, present=self.present, approvers=self.approvers
        )
        verdict = Verdict.APPROVE if approves else Verdict.REJECT
        if self.attempt(reasons, lambda: self.world.decide(who, stage, verdict=verdict)):
            expected.take(who, approves=approves, now=self.now)

    @rule(place=places, but=st.sampled_from(["nobody", *APPROVERS]))
    def let_everybody_approve(self, place, but):
        for who in APPROVERS:
            if who != but:
                self.decide(place, who, approves=True)

    @rule(place=places, by=st.sampled_from([None, "operator"]))
    def promote(self, place, by):
        stage = self.at(place)
        expected = self.expected[stage.id]
        if expected.state == "promoted":
            assert not self.world.promote(stage, by).created
            return
        reasons = expected.why_no_promotion(
            now=self.now, present=self.present, approvers=self.approvers, by_system=by is None
        )
        if by is not None:
            reasons |= self.without_key(by)
        made = self.attempt(reasons, lambda: self.world.promote(stage, by))
        if made is None:
            return
        assert made.created
        self.check_provenance(expected, made.materialization)
        for other in self.expected.values():
            other.state = "superseded" if other.is_open else other.state
        expected.state = "promoted"
        self.present = Governing(self.present.quality, self.present.terms, made.materialization.id)
        self.current.append(stage.id)

    def check_provenance(self, expected, materialization):
        """Hold that the snapshot names exactly the people whose approvals counted."""
        approval = provenance_of(materialization)["approval"]
        if expected.bound_to.terms is None:
            assert approval == "not required"
            return
        people = {one["actor"] for one in approval["approvals"]}
        assert people == expected.counted(self.now, self.approvers)
        assert len(approval["approvals"]) == len(people) >= expected.bound_to.terms.required

    @rule(
        creator=st.sampled_from(CREATORS),
        terms=st.sampled_from(TERMS[:3]),
        change=st.sampled_from(DECISIVE),
        at_first=st.booleans(),
        who=people,
    )
    def let_everything_be_right_but_one(self, creator, terms, change, at_first, who):
        """Change one thing before a stage is approved, or after; promote, renew and promote it."""
        self.restore()
        self.govern("strict", terms)
        self.create_stage(creator, good=True)
        for step in (change, "approve") if at_first else ("approve", change):
            self.make(step, who)
        for step in ("promote_it", "approve", "promote_it"):
            self.make(step, who)

    @rule(place=places)
    def supersede(self, place):
        """Nothing has lost its base without a promotion, which closes it itself."""
        assert not supersede_stage(self.world.application.work(), self.at(place).id)

    # What changes around them.

    @rule(change=st.sampled_from(CHANGES), who=people)
    def change(self, change, who):
        self.make(change, who)

    def make(self, change, who):
        """Make one of the changes, to a person if it is about one."""
        self.who = who
        getattr(self, change)()

    @rule(duration=st.sampled_from([TICK, HOUR / 2, HOUR]))
    def wait(self, duration):
        self.set_clock(self.now + duration)

    def approve(self):
        self.let_everybody_approve(1, "nobody")

    def promote_it(self):
        self.promote(1, None)

    def wait_until_a_tick_before_expiry(self):
        self.wait_until_expiry(-TICK)

    def wait_until_expiry(self, offset=0 * TICK):
        if expiries := self.expiries():
            self.set_clock(max(self.now, min(expiries) + offset))

    def expiries(self):
        """Return when approvals that still count will expire."""
        votes = [vote for one in self.expected.values() if one.is_open for vote in one.votes]
        return [
            vote.at + timedelta(hours=vote.hours)
            for vote in votes
            if vote.hours is not None and vote.is_live(self.now)
        ]

    def set_clock(self, at):
        self.now = at
        self.world.set_clock(at)

    def change_the_rules(self):
        other = {"strict": "stricter", "stricter": "strict"}[self.present.quality]
        self.govern(other, self.present.terms)

    def change_the_terms(self):
        place = TERMS.index(self.present.terms) + 1
        self.govern(self.present.quality, TERMS[place % len(TERMS)])

    def change_the_policies_back(self):
        bound = self.expected[self.stages[-1].id].bound_to
        self.govern(bound.quality, bound.terms)

    def govern(self, quality, terms):
        self.world.declare(QUALITIES[quality], policy(terms))
        self.present = Governing(quality, terms, self.present.base)

    def withdraw_or_give_authority(self):
        if self.who in self.grants:
            self.world.withdraw(self.grants.pop(self.who))
        else:
            self.grants[self.who] = self.world.grant(self.who, Role.APPROVER)

    def withdraw_all_authority(self):
        for name in [*self.grants]:
            self.make("withdraw_or_give_authority", name)

    def reject(self):
        self.decide(1, self.who, approves=False)

    def promote_another(self):
        if self.present.terms is not None:
            self.create_stage("creator", good=True)
            self.let_everybody_approve(1, "nobody")
            self.promote(1, None)
            self.stages[-2:] = self.stages[:-3:-1]

    def revoke_a_key(self):
        if self.has_key[self.who]:
            self.world.revoke(self.world.signer(self.who).key)
            self.has_key[self.who] = False

    def register_another_key(self):
        public = public_path(self.world.application.settings.keys, self.who)
        public.unlink()
        public.with_name(f"{self.who}.pem").unlink()
        self.world.admit(self.who)
        self.has_key[self.who] = True

    def restore(self):
        """Give everybody a key and authority."""
        for name in APPROVERS:
            if not self.has_key[name]:
                self.make("register_another_key", name)
            if name not in self.grants:
                self.make("withdraw_or_give_authority", name)

    # What always holds.

    @invariant()
    def everything_stands_as_expected(self):
        with self.world.application.work() as work:
            found = {one.id: one for one in work.stages.list(None, ())}
            quorums = {
                name: quorum_of(work, one)
                for name, one in found.items()
                if self.expected[name].is_open
            }
        assert {name: str(one.state) for name, one in found.items()} == {
            name: one.state for name, one in self.expected.items()
        }
        for name, quorum in quorums.items():
            expected = self.expected[name]
            if quorum is None:
                assert expected.bound_to.terms is None
                continue
            people = [one.actor for one in quorum.approvals]
            assert sorted(people) == sorted(expected.counted(self.now, self.approvers))
            assert quorum.met == expected.has_quorum(self.now, self.approvers)

    @invariant()
    def revisions_have_no_gaps_and_each_stage_has_one(self):
        if not hasattr(self, "present"):
            return
        with self.world.application.work() as work:
            target = work.datasources.get(self.world.datasource)
            made = work.materializations.page(self.world.datasource, before=None, limit=100)
        assert [one.revision for one in made] == list(range(len(made), 0, -1))
        assert [one.stage for one in made] == self.current[::-1]
        assert (target.revision, target.current) == (len(made), self.present.base)


def test_nothing_is_ever_promoted_without_a_quorum_that_holds(governance_database, tmp_path):
    seen = Counter()

    run_state_machine_as_test(
        lambda: Office(governance_database, tmp_path, seen),
        settings=settings(
            max_examples=20,
            stateful_step_count=20,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )

    # Had hardly anything happened, the rest would say little.
    assert seen[None] > 50
    assert seen.keys() >= {"quorum_not_met", "stage_outdated"}
