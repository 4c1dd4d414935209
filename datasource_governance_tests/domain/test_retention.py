"""When what is due: every class, boundary, calendar and zone; and why it is, in words."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from datasource_governance.domain.retention import (
    Blocker,
    BlockerKind,
    GoverningPolicy,
    RetentionClass,
    cutoff,
    eligible_at,
    explained,
    kept_days,
)
from datasource_governance.domain.retention_policy import parse_retention_policy
from datasource_governance.errors import InvalidArgumentError
from datasource_governance_tests.retained import (
    AS_OF,
    EVERY_DAYS,
    MICROSECOND,
    candidate,
    governing,
    plan_of,
)

BERLIN, KATHMANDU = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kathmandu")
CREATED = {
    "a leap day": datetime(2024, 2, 29, tzinfo=UTC),
    "the day before one that is none": datetime(2023, 2, 28, 23, 59, 59, 999999, tzinfo=UTC),
    "the last microsecond of a year": datetime(2023, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    "before a clock is put forward": datetime(2024, 3, 30, 12, tzinfo=BERLIN),
    "in the hour that comes twice": datetime(2023, 10, 29, 2, 30, fold=1, tzinfo=BERLIN),
    "a zone off by three quarters": datetime(2024, 1, 1, 0, 15, tzinfo=KATHMANDU),
    "a century that has no leap day": datetime(1900, 2, 28, tzinfo=UTC),
}
DAYS = (1, 30, 366, 3650)
OFFSETS = {"just before": -MICROSECOND, "at the instant": timedelta(0), "after": MICROSECOND}
ZONES = (UTC, KATHMANDU)


def policy_for(retention_class, days, **keys):
    return governing(
        **{**dict.fromkeys(EVERY_DAYS, 10**6), f"{retention_class}_days": days}, **keys
    )


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("days", DAYS)
@pytest.mark.parametrize("created", CREATED)
@pytest.mark.parametrize("retention_class", RetentionClass)
def test_a_thing_is_due_from_the_instant_at_which_it_is_so_many_days_of_24_hours_old(
    retention_class, created, days, offset
):
    born = CREATED[created]
    # Counted in seconds since 1970, which know of no calendar.
    seconds = born.replace(microsecond=0).timestamp() + days * 86_400
    due = datetime.fromtimestamp(seconds, UTC) + born.microsecond * MICROSECOND
    governs = policy_for(retention_class, days)
    one = candidate(retention_class=retention_class, created_at=born)

    for zone in ZONES:
        as_of = (due + OFFSETS[offset]).astimezone(zone)
        planned = plan_of(one, policies=[governs], as_of=as_of).targets

        assert [target.eligible_at for target in planned] == [due][: as_of >= due]
        assert (born <= cutoff(governs.policy, retention_class, as_of)) == (as_of >= due)


NEVER = {
    "disabled": {"version": "v", "enabled": False, **EVERY_DAYS},
    "not said to be enabled": {"version": "v", **EVERY_DAYS},
    "empty": {},
    "without any days": {"version": "v", "enabled": True},
}


@pytest.mark.parametrize("retention_class", RetentionClass)
@pytest.mark.parametrize("document", NEVER)
def test_nothing_is_ever_due_by_a_policy_that_does_not_say_so(document, retention_class):
    policy = parse_retention_policy(NEVER[document])

    assert kept_days(policy, retention_class) is None
    assert cutoff(policy, retention_class, AS_OF) is None


@pytest.mark.parametrize("left_out", EVERY_DAYS)
@pytest.mark.parametrize("retention_class", RetentionClass)
def test_a_class_that_is_left_out_is_kept_for_ever_and_no_other_is(left_out, retention_class):
    days = {name: value for name, value in EVERY_DAYS.items() if name != left_out}
    policy = parse_retention_policy({"version": "v", "enabled": True, **days})

    # Frozen evidence does not fall back to the days of a materialization.
    assert (cutoff(policy, retention_class, AS_OF) is None) == (
        f"{retention_class}_days" == left_out
    )


def test_a_span_longer_than_the_calendar_makes_nothing_due():
    governs = policy_for(RetentionClass.STAGE, 10**6)

    assert cutoff(governs.policy, RetentionClass.STAGE, AS_OF) is None
    assert plan_of(candidate(), policies=[governs]).targets == ()


@pytest.mark.parametrize("days", [1, 30])
def test_an_instant_without_a_zone_is_refused_instead_of_guessed(days):
    naive = AS_OF.replace(tzinfo=None)

    with pytest.raises(InvalidArgumentError, match="time zone"):
        eligible_at(naive, days)
    with pytest.raises(InvalidArgumentError, match="time zone"):
        plan_of(as_of=naive)


@pytest.mark.parametrize("kind", BlockerKind)
def test_every_blocker_says_what_it_is_and_what_to_do(kind):
    said = Blocker(kind=kind, ids=("x-1", "x-2")).explanation()

    named = kind not in {BlockerKind.PENDING_APPROVAL, BlockerKind.CURRENT_MATERIALIZATION}
    assert ("x-1, x-2" in said) == named
    assert any(verb in said for verb in ("approve", "promote", "release"))


def test_a_blocker_with_many_ids_names_a_few_and_counts_the_rest():
    said = Blocker(kind=BlockerKind.LEGAL_HOLD, ids=tuple(map(str, range(8)))).explanation()

    assert "0, 1, 2, 3, 4 and 3 more;" in said


HELD = Blocker(kind=BlockerKind.LEGAL_HOLD, ids=("h1",))
YOUNG = AS_OF - timedelta(days=29)


@pytest.mark.parametrize(
    ("one", "governs", "said"),
    [
        (candidate(), None, "has no retention policy, so it is kept for ever"),
        (candidate(), governing(enabled=False), "is not enabled, so it is kept for ever"),
        (candidate(created_at=YOUNG), governing(), "will be due at 2024-07-01T12:00:00+00:00"),
        (candidate(), governing(), "has been due since 2001-01-31T00:00:00+00:00"),
    ],
)
def test_an_explanation_says_what_the_policy_makes_of_a_thing(one, governs, said):
    (sentence,) = explained(one, governs, AS_OF).sentences()

    assert sentence.endswith(said)


def test_an_explanation_names_a_class_that_the_policy_does_not_speak_of():
    one = candidate(retention_class=RetentionClass.FROZEN_EVIDENCE)
    document = {"version": "v", "enabled": True, "materialization_days": 1}
    silent = GoverningPolicy(datasource="orders", policy=parse_retention_policy(document))

    explanation = explained(one, silent, AS_OF)

    assert not explanation.is_due
    assert "says no frozen_evidence_days" in explanation.sentences()[0]


@pytest.mark.parametrize(
    ("one", "is_due", "destroyed"),
    [
        (candidate(), True, True),
        (candidate(blockers=(HELD,)), True, False),
        (candidate(created_at=YOUNG), False, False),
        (candidate(created_at=YOUNG, blockers=(HELD,)), False, False),
    ],
)
def test_only_what_is_due_and_free_would_be_destroyed(one, is_due, destroyed):
    explanation = explained(one, governing(), AS_OF)

    assert (explanation.is_due, explanation.would_be_destroyed) == (is_due, destroyed)
    assert (HELD.explanation() in explanation.sentences()) == bool(one.blockers)
