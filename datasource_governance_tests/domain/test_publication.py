"""What becomes of an output, and by what it is known again."""

from dataclasses import replace

import pytest

from datasource_governance.domain.producer_evidence import Judgement
from datasource_governance.domain.publication import (
    MAXIMUM_NAME_CHARACTERS,
    PublicationRejectedError,
    PublicationState,
    check_names,
    judge_publication,
    request_hash,
)
from datasource_governance.domain.quality_policy import Severity
from datasource_governance.domain.validation import Outcome, Status
from datasource_governance.errors import InvalidArgumentError
from datasource_governance_tests.domain.lifecycle import outcome, sha, validation

PUBLISHED = PublicationState.PUBLISHED
WARNED = PublicationState.PUBLISHED_WITH_WARNINGS
REVIEWED = PublicationState.REVIEW_REQUIRED
SHA = sha("payload")
FOUND = {
    Outcome.READY: validation(),
    Outcome.REVIEW: validation(outcome(status=Status.FAILED, severity=Severity.WARNING)),
    Outcome.BLOCKED: validation(outcome(status=Status.FAILED)),
}


def judged(found, judgement=None, *, approval_required=False):
    return judge_publication("orders", FOUND[found], judgement, approval_required=approval_required)


@pytest.mark.parametrize(
    ("found", "judgement", "state"),
    [
        (Outcome.READY, None, PUBLISHED),
        (Outcome.REVIEW, None, WARNED),
        (Outcome.READY, Judgement.ACCEPTED, PUBLISHED),
        (Outcome.REVIEW, Judgement.WARNINGS, WARNED),
        *((Outcome.REVIEW, one, REVIEWED) for one in Judgement if one.needs_review),
    ],
)
def test_only_what_leaves_nothing_open_becomes_current(found, judgement, state):
    assert judged(found, judgement) is state


@pytest.mark.parametrize("found", [Outcome.READY, Outcome.REVIEW])
def test_where_approval_is_required_nothing_becomes_current_by_itself(found):
    state = judged(found, approval_required=True)

    assert state is REVIEWED
    assert not state.is_current


@pytest.mark.parametrize(
    ("found", "judgement", "code"),
    [
        (Outcome.BLOCKED, None, "validation_failed"),
        (Outcome.BLOCKED, Judgement.MISSING, "validation_failed"),
        (Outcome.READY, Judgement.FAILED, "evidence_failed"),
    ],
)
def test_what_failed_is_rejected_even_if_approval_is_required(found, judgement, code):
    with pytest.raises(PublicationRejectedError) as rejected:
        judged(found, judgement, approval_required=True)

    assert rejected.value.code == code
    assert rejected.value.validation is FOUND[found]
    assert rejected.value.judgement is judgement


def test_a_request_is_known_by_each_of_its_parts_and_not_by_how_they_are_joined():
    hashes = [
        request_hash("orders", "a", SHA),
        request_hash("ordersa", "", SHA),
        request_hash("orders", "", SHA),
        request_hash("orders", "a", SHA[::-1] + "0"),
    ]

    assert len(set(hashes)) == len(hashes)


@pytest.mark.parametrize("name", ["a", "b|c", "é", "x" * MAXIMUM_NAME_CHARACTERS])
def test_names_are_kept_as_they_are(name):
    check_names(name, name, name)
    check_names(name, name, "")


@pytest.mark.parametrize(
    "name",
    [
        *("a\n", "\x00", "\ud800", "x" * (MAXIMUM_NAME_CHARACTERS + 1)),
        *(" ", " a", "a ", "a\u202eb", "a\u00a0b", "a\u200b", None, 5, b"a"),
    ],
)
def test_other_names_are_refused(name):
    for given in ((name, "key", ""), ("flow", name, ""), ("flow", "key", name)):
        with pytest.raises(InvalidArgumentError):
            check_names(*given)


def test_only_a_partition_may_be_empty_and_all_that_is_wrong_is_named():
    with pytest.raises(InvalidArgumentError, match="the producer and the idempotency key must be"):
        check_names("", "", "")


def test_a_rule_that_is_left_open_does_not_block():
    blocked = FOUND[Outcome.BLOCKED]
    left_open = frozenset(rule.id for rule in blocked.rules)

    assert replace(blocked, left_open=left_open).outcome is Outcome.REVIEW
