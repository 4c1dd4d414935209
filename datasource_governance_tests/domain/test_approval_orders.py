"""In whatever order decisions, expiries and changes come, only a live quorum promotes.

What may be promoted is predicted by `approval_rules`, which shares no code with what is tested.
"""

from datetime import timedelta
from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from datasource_governance_tests.approval_rules import ExpectedStage, Governing, Terms
from datasource_governance_tests.domain.ballot import APPROVERS, OBJECTOR, Ballot
from datasource_governance_tests.domain.lifecycle import CREATOR, HOUR, TICK, policy, sha

PEOPLE = (*APPROVERS[:3], CREATOR, OBJECTOR)
QUALITIES = {"q": sha("quality"), "other": sha("other")}
BASES = {"first": None, "second": "m-2"}


class Predicted:
    """A vote and what has to become of it, side by side."""

    def __init__(self, terms: Terms) -> None:
        self.vote = Ballot(required=terms.required, separate=terms.separate, hours=terms.hours)
        self.present = Governing("q", terms, "first")
        self.expected = ExpectedStage(CREATOR, self.present)
        self.approvers = set(PEOPLE)

    def decide(self, who, approves) -> None:
        reasons = self.expected.why_no_decision(
            who, now=self.vote.now, present=self.present, approvers=self.approvers
        )
        before = len(self.vote.refused)

        (self.vote.approve if approves else self.vote.reject)(who)

        assert set(self.vote.refused[before:]) <= reasons
        assert len(self.vote.refused) - before == bool(reasons)
        if not reasons:
            self.expected.take(who, approves=approves, now=self.vote.now)

    def wait(self, duration) -> None:
        self.vote.wait(duration)

    def change_quality(self, name) -> None:
        self.present = Governing(name, self.present.terms, self.present.base)
        self.vote.govern(quality_policy_hash=QUALITIES[name])

    def change_terms(self, terms) -> None:
        self.present = Governing(self.present.quality, terms, self.present.base)
        self.vote.govern(
            approval_policy_hash=policy(
                required_approvals=terms.required,
                separation_of_duties=terms.separate,
                expires_after_hours=terms.hours,
            ).hash
        )

    def change_base(self, name) -> None:
        self.present = Governing(self.present.quality, self.present.terms, name)
        self.vote.govern(current=BASES[name])

    def withdraw(self, who) -> None:
        self.approvers.discard(who)
        self.vote.withdraw(who)

    def give(self, who) -> None:
        self.approvers.add(who)
        self.vote.give(who)

    def check(self) -> None:
        """Hold that it can be promoted now exactly when the rules say so."""
        reasons = self.expected.why_no_promotion(
            now=self.vote.now, present=self.present, approvers=self.approvers, by_system=True
        )
        if self.vote.obstacle is None:
            assert not reasons
            assert self.expected.has_quorum(self.vote.now, self.approvers)
            assert self.present == self.expected.bound_to
        else:
            assert self.vote.obstacle in reasons
        counted = {one.actor for one in self.vote.quorum.approvals}
        assert counted == self.expected.counted(self.vote.now, self.approvers)


TWO_FOR_AN_HOUR = Terms(required=2, hours=1)
ONE_FOR_EVER = Terms(required=1, separate=False)
EVENTS = st.one_of(
    st.tuples(
        st.just("decide"), st.sampled_from(PEOPLE), st.sampled_from([True, True, True, False])
    ),
    st.tuples(st.just("wait"), st.sampled_from([TICK, HOUR / 2, HOUR - TICK, HOUR])),
    st.tuples(st.just("change_quality"), st.sampled_from(sorted(QUALITIES))),
    st.tuples(st.just("change_terms"), st.sampled_from([TWO_FOR_AN_HOUR, ONE_FOR_EVER])),
    st.tuples(st.just("change_base"), st.sampled_from(sorted(BASES))),
    st.tuples(st.sampled_from(["withdraw", "give"]), st.sampled_from(PEOPLE)),
)


@settings(max_examples=300)
@given(terms=st.sampled_from([TWO_FOR_AN_HOUR, ONE_FOR_EVER]), events=st.lists(EVENTS, max_size=20))
def test_no_course_of_events_promotes_without_a_live_quorum(terms, events):
    predicted = Predicted(terms)

    for name, *arguments in events:
        getattr(predicted, name)(*arguments)
        predicted.check()


AT_ODDS = [
    ("decide", APPROVERS[0], True),
    ("decide", APPROVERS[1], True),
    ("decide", OBJECTOR, False),
    ("wait", timedelta(hours=1)),
    ("change_quality", "other"),
    ("change_quality", "q"),
]


def test_none_of_all_orders_of_six_events_at_odds_does():
    promotable = 0
    for order in permutations(AT_ODDS):
        predicted = Predicted(TWO_FOR_AN_HOUR)
        for name, *arguments in order:
            getattr(predicted, name)(*arguments)
            predicted.check()
            promotable += predicted.vote.obstacle is None

    assert promotable > 0
