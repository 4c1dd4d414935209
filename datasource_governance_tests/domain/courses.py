"""What may happen to a vote of one to five approvals, and by hand what has to come of it."""

from collections.abc import Callable
from dataclasses import dataclass

from datasource_governance.domain.stage import StageState
from datasource_governance_tests.domain.ballot import APPROVERS, OBJECTOR, Ballot
from datasource_governance_tests.domain.lifecycle import CREATOR, HOUR, TICK, policy, sha

OTHER = sha("other")


def everybody(required: int) -> int:
    return required


def all_but_one(required: int) -> int:
    return required - 1


def one(required: int) -> int:
    return 1


def nobody(required: int) -> int:
    return 0


@dataclass(frozen=True, kw_only=True)
class Course:
    """What happens to a vote that wants `required` approvals, and what has to come of it.

    `counted` and `refused` are of `required`. `obstacle` is what promoting is refused with; without
    one it has to follow from the count alone.
    """

    play: Callable[[Ballot, tuple[str, ...]], None]
    counted: Callable[[int], int]
    refused: Callable[[int], list[str]]
    obstacle: str | None
    at_least: int
    begins: dict[str, object]


COURSES: dict[str, Course] = {}


def course(counted=everybody, refused=(), obstacle=None, at_least=1, says=None, **begins):
    """Note a course under the sentence that its name is, or another one."""

    def noted(play):
        COURSES[says or play.__name__.replace("_", " ")] = Course(
            play=play,
            counted=counted,
            refused=refused if callable(refused) else lambda _: list(refused),
            obstacle=obstacle,
            at_least=at_least,
            begins=begins,
        )
        return play

    return noted


@course()
def everybody_approves_once(vote, people):
    vote.approve(*people)


@course(all_but_one)
def one_fewer_than_wanted_approves(vote, people):
    vote.approve(*people[1:])


@course(lambda required: required + 1)
def one_more_than_wanted_approves(vote, people):
    vote.approve(*people, APPROVERS[len(people)])


@course(all_but_one, ["already_approved"], at_least=2)
def the_last_approval_is_by_the_first_person_again(vote, people):
    vote.approve(*people[:-1], people[0])


@course(all_but_one, ["already_approved"], at_least=2)
def the_last_approval_is_by_the_first_person_with_another_key(vote, people):
    vote.approve(*people[:-1])
    vote.approve(people[0], key="second")


SPELLINGS = {
    "in capitals": str.upper,
    "between blanks": lambda name: f" {name}\t",
    "in wide letters": lambda name: name.replace("approver", "ａｐｐｒｏｖｅｒ"),  # noqa: RUF001 - NFKC makes them one
    "with a circled digit": lambda name: name.replace("1", "①"),
}
for how, spell in SPELLINGS.items():

    @course(
        all_but_one,
        ["already_approved"],
        at_least=2,
        says=f"the last approval is by the first person {how}",
    )
    def another_spelling(vote, people, spell=spell):
        vote.approve(*people[:-1], spell(people[0]))


@course(all_but_one, ["creator_cannot_approve"])
def the_last_approval_is_the_creator_s(vote, people):
    vote.approve(*people[:-1], CREATOR)


@course(all_but_one, ["creator_cannot_approve"])
def the_last_approval_is_the_creator_s_in_capitals(vote, people):
    vote.approve(*people[:-1], CREATOR.upper())


@course(separate=False)
def the_last_approval_is_the_creator_s_where_duties_are_not_separated(vote, people):
    vote.approve(*people[:-1], CREATOR)


@course(nobody, lambda required: ["creator_unknown"] * required, creator=None)
def the_creator_is_not_proven(vote, people):
    vote.approve(*people)


@course(separate=False, creator=None)
def the_creator_is_not_proven_where_duties_are_not_separated(vote, people):
    vote.approve(*people)


@course(all_but_one, ["not_authorised"])
def the_last_approval_is_a_stranger_s(vote, people):
    vote.approve(*people[:-1], "stranger")


@course(all_but_one, ["not_authorised"])
def the_last_approval_is_the_system_s(vote, people):
    vote.approve(*people[:-1], "system")


@course(all_but_one, ["not_authorised"])
def the_last_approver_may_approve_another_datasource_only(vote, people):
    vote.give(people[-1], "invoices")
    vote.approve(*people)


@course()
def the_last_approver_may_approve_this_datasource_only(vote, people):
    vote.give(people[-1], "orders")
    vote.approve(*people)


@course(all_but_one, ["not_authorised"])
def the_last_approver_loses_authority_before_deciding(vote, people):
    vote.withdraw(people[-1])
    vote.approve(*people)


@course(all_but_one)
def the_first_approver_loses_authority_after_deciding(vote, people):
    vote.approve(*people)
    vote.withdraw(people[0])


@course(nobody)
def everybody_loses_authority_after_deciding(vote, people):
    vote.approve(*people)
    for name in people:
        vote.withdraw(name)


@course()
def the_first_approver_loses_authority_and_is_given_it_again(vote, people):
    vote.approve(*people)
    vote.withdraw(people[0])
    vote.give(people[0])


@course()
def the_first_approval_is_a_tick_before_its_expiry(vote, people):
    approve_at_two_instants(vote, people)
    vote.wait(HOUR - 2 * TICK)


@course(all_but_one)
def the_first_approval_is_at_the_instant_of_its_expiry(vote, people):
    approve_at_two_instants(vote, people)
    vote.wait(HOUR - TICK)


@course(nobody)
def all_approvals_are_a_tick_or_more_after_their_expiry(vote, people):
    approve_at_two_instants(vote, people)
    vote.wait(HOUR + TICK)


@course(hours=None)
def approvals_do_not_age(vote, people):
    vote.approve(*people)
    vote.wait(24 * 365 * HOUR)


@course(all_but_one, ["already_approved"])
def the_first_approver_tries_to_renew_a_tick_before_expiry(vote, people):
    approve_at_two_instants(vote, people)
    vote.wait(HOUR - 2 * TICK)
    vote.approve(people[0])
    vote.wait(TICK)


@course()
def the_first_approver_renews_at_the_instant_of_expiry(vote, people):
    approve_at_two_instants(vote, people)
    vote.wait(HOUR - TICK)
    vote.approve(people[0])


@course(one)
def the_first_approver_renews_a_tick_after_all_expired(vote, people):
    approve_at_two_instants(vote, people)
    vote.wait(HOUR + TICK)
    vote.approve(people[0])


@course(one, ["already_approved"])
def the_first_approver_renews_twice(vote, people):
    approve_at_two_instants(vote, people)
    vote.wait(HOUR + TICK)
    vote.approve(people[0], people[0])


def approve_at_two_instants(vote, people):
    """Let the first approver decide a tick before all others."""
    vote.approve(people[0])
    vote.wait(TICK)
    vote.approve(*people[1:])


SUBJECTS = {
    "other content": {"stage_fingerprint": OTHER},
    "another quality policy": {"quality_policy_hash": OTHER},
    "another approval policy": {"approval_policy_hash": OTHER},
    "no approval policy": {"approval_policy_hash": None},
    "another base": {"base": "another"},
    "another stage": {"stage": "another"},
    "another datasource": {"datasource": "another"},
}
for what, reviewed in SUBJECTS.items():

    @course(all_but_one, ["stage_outdated"], says=f"the last approver reviewed {what}")
    def another_subject(vote, people, reviewed=reviewed):
        vote.approve(*people[:-1])
        vote.approve(people[-1], **reviewed)


@course(all_but_one, ["reason_missing"])
def the_last_approver_gives_a_blank_reason(vote, people):
    vote.approve(*people[:-1])
    vote.approve(people[-1], reason=" \t")


@course(all_but_one, ["stage_outdated"], "stage_outdated")
def the_quality_policy_changes_before_the_last_approval(vote, people):
    vote.approve(*people[:-1])
    vote.govern(quality_policy_hash=OTHER)
    vote.approve(people[-1])


@course(all_but_one, ["stage_outdated"], "stage_outdated")
def the_approval_policy_changes_before_the_last_approval(vote, people):
    vote.approve(*people[:-1])
    vote.govern(approval_policy_hash=policy(version="another").hash)
    vote.approve(people[-1])


@course(all_but_one, ["stage_outdated"], "stage_outdated")
def another_materialization_becomes_current_before_the_last_approval(vote, people):
    vote.approve(*people[:-1])
    vote.govern(current="another")
    vote.approve(people[-1])


@course(obstacle="stage_outdated")
def the_quality_policy_changes_after_the_last_approval(vote, people):
    vote.approve(*people)
    vote.govern(quality_policy_hash=OTHER)


@course(obstacle="stage_outdated")
def the_approval_policy_changes_after_the_last_approval(vote, people):
    vote.approve(*people)
    vote.govern(approval_policy_hash=policy(version="another").hash)


@course(obstacle="stage_outdated")
def the_approval_policy_is_withdrawn_after_the_last_approval(vote, people):
    vote.approve(*people)
    vote.govern(approval_policy_hash=None)


@course(all_but_one, obstacle="stage_outdated", at_least=2)
def the_quorum_is_lowered_to_what_there_is(vote, people):
    vote.approve(*people[:-1])
    vote.govern(approval_policy_hash=policy(required_approvals=len(people) - 1).hash)


@course(obstacle="stage_outdated")
def another_materialization_becomes_current_after_the_last_approval(vote, people):
    vote.approve(*people)
    vote.govern(current="another")


@course()
def both_policies_change_and_change_back(vote, people):
    before = vote.target
    vote.approve(*people[:-1])
    vote.govern(quality_policy_hash=OTHER, approval_policy_hash=OTHER)
    vote.govern(
        quality_policy_hash=before.quality_policy_hash,
        approval_policy_hash=before.approval_policy_hash,
    )
    vote.approve(people[-1])


@course(nobody, lambda required: ["not_awaiting_approval"] * required, "stage_rejected")
def a_rejection_comes_first(vote, people):
    vote.reject()
    vote.approve(*people)


@course(all_but_one, ["not_awaiting_approval"], "stage_rejected")
def a_rejection_comes_before_the_last_approval(vote, people):
    vote.approve(*people[:-1])
    vote.reject()
    vote.approve(people[-1])


@course(obstacle="stage_rejected")
def a_rejection_comes_last(vote, people):
    vote.approve(*people)
    vote.reject()


@course(nobody, obstacle="stage_rejected")
def a_rejection_stays_when_everything_has_expired(vote, people):
    vote.approve(*people)
    vote.reject()
    vote.wait(HOUR)


@course(obstacle="stage_rejected")
def a_rejection_stays_when_its_author_loses_authority(vote, people):
    vote.approve(*people)
    vote.reject()
    vote.withdraw(OBJECTOR)


@course(refused=["not_authorised"])
def a_stranger_s_rejection_rejects_nothing(vote, people):
    vote.approve(*people)
    vote.reject("stranger")


@course(refused=["creator_cannot_approve"])
def a_creator_s_rejection_rejects_nothing(vote, people):
    vote.approve(*people)
    vote.reject(CREATOR)


@course(refused=["already_approved"])
def an_approver_does_not_take_back_by_rejecting(vote, people):
    vote.approve(*people)
    vote.reject(people[0])


@course(nobody, lambda required: ["not_awaiting_approval"] * required, "stage_blocked")
def the_stage_has_failed(vote, people):
    vote.become(StageState.FAILED)
    vote.approve(*people)


@course(all_but_one, ["not_awaiting_approval"], "stage_outdated")
def the_stage_is_superseded_before_the_last_approval(vote, people):
    vote.approve(*people[:-1])
    vote.become(StageState.SUPERSEDED)
    vote.approve(people[-1])
