"""What is made of a provider's answers: passed or failed only where there is no doubt."""

import pytest

from datasource_governance.domain.quality_check import (
    Evaluated,
    QualityCheckResult,
    concluded,
    not_evaluated,
)
from datasource_governance.domain.quality_expectation import expectations
from datasource_governance.domain.validation import Reason, Status
from datasource_governance_tests.builders import quality_policy, rule


def asked(*rules):
    return expectations(quality_policy(*rules))


def outcome_of(document, *answers, row_count=None):
    """Return the outcome of the rule `r` after these answers, as status, count and rows."""
    [outcome] = concluded(asked(document), answers, row_count)
    return str(outcome.status), outcome.affected, outcome.rows


def answer(affected, rows=None, rule_id="r"):
    return Evaluated(id=rule_id, affected=affected, rows=rows)


NOT_NULL = rule("not_null", field="a")
UNIQUE = rule("unique", field="a")
ERROR = ("error", None, None)


def test_outcomes_come_in_the_order_of_the_questions_whatever_that_of_the_answers():
    found = concluded(
        asked(*(rule("not_null", id=one, field=one) for one in "abc")),
        [answer(3, rule_id="c"), answer(1, rule_id="a"), answer(2, rule_id="b")],
    )

    assert [(one.id, one.fields, one.affected) for one in found] == [
        ("a", ("a",), 1),
        ("b", ("b",), 2),
        ("c", ("c",), 3),
    ]


@pytest.mark.parametrize(
    "answers",
    [
        [],
        [answer(0), answer(0)],
        [answer(0), answer(None)],
        [answer(0, rule_id="R")],
        [answer(None)],
        [answer(None, ())],
        [answer(-1)],
    ],
)
def test_a_rule_without_exactly_one_answer_was_not_evaluated(answers):
    [outcome] = concluded(asked(NOT_NULL), answers)

    assert (outcome.status, outcome.reason) == (Status.ERROR, Reason.NOT_EVALUATED)


@pytest.mark.parametrize(
    ("affected", "rows", "possible"),
    [
        (0, (), True),
        (0, None, True),
        (0, (1,), False),
        (1, (1,), True),
        (1, (), False),
        (1, (0,), False),
        (2, (1, 1), False),
        (2, (2, 1), False),
        (24, tuple(range(1, 25)), True),
        (25, tuple(range(1, 26)), True),
        (26, tuple(range(1, 26)), True),
        (26, tuple(range(1, 27)), False),
        (26, tuple(range(1, 25)), False),
        (10**12, tuple(range(1, 26)), True),
    ],
)
def test_row_numbers_must_be_the_lowest_of_that_many(affected, rows, possible):
    expected = ("failed" if affected else "passed", affected, rows) if possible else ERROR

    assert outcome_of(NOT_NULL, answer(affected, rows)) == expected


@pytest.mark.parametrize(
    ("affected", "rows", "possible"),
    [(3, None, True), (4, None, False), (1, (3,), True), (1, (4,), False), (0, (), True)],
)
def test_there_cannot_be_more_rows_than_there_are(affected, rows, possible):
    expected = ("failed" if affected else "passed", affected, rows) if possible else ERROR

    assert outcome_of(NOT_NULL, answer(affected, rows), row_count=3) == expected


@pytest.mark.parametrize(("affected", "status"), [(0, "passed"), (1, "error"), (2, "failed")])
def test_one_row_alone_is_no_duplicate(affected, status):
    assert outcome_of(UNIQUE, answer(affected))[0] == status


@pytest.mark.parametrize(
    ("affected", "status"), [(0, "passed"), (1, "failed"), (2, "error"), (100, "error")]
)
def test_a_row_count_is_in_bounds_or_it_is_not(affected, status):
    assert outcome_of(rule(), answer(affected), row_count=0) == (status, None, None)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (rule(), Reason.ROW_COUNT),
        (NOT_NULL, Reason.NULL),
        (UNIQUE, Reason.DUPLICATE),
        (rule("range", field="a", minimum=1), Reason.OUT_OF_RANGE),
        (rule("referential", field="a", allowed_values=[1]), Reason.NOT_ALLOWED),
    ],
)
def test_a_failure_has_the_reason_of_its_type_and_a_pass_has_none(document, reason):
    violations = 2 if document is UNIQUE else 1

    [failed] = concluded(asked(document), [answer(violations)])
    [passed] = concluded(asked(document), [answer(0)])

    assert (failed.reason, passed.reason) == (reason, None)


def outcomes(*words):
    found = {"passed": answer(0), "failed": answer(1), "error": answer(None)}
    return tuple(concluded(asked(NOT_NULL), [found[word]])[0] for word in words)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ([], Status.ERROR),
        (["passed", "passed"], Status.PASSED),
        (["passed", "failed"], Status.FAILED),
        (["failed", "error", "passed"], Status.ERROR),
        (["error"], Status.ERROR),
    ],
)
def test_a_result_passes_only_if_everything_did_and_anything_was_asked(words, status):
    result = QualityCheckResult(provider="p", provider_version="1", checks=outcomes(*words))

    assert result.status is status


def test_a_result_as_a_document_has_statuses_counts_and_rows():
    checks = concluded(asked(NOT_NULL), [answer(2, (1, 3))])
    result = QualityCheckResult(provider="soda", provider_version="4.28.0", checks=checks)

    assert result.document() == {
        "provider": "soda",
        "provider_version": "4.28.0",
        "status": "failed",
        "checks": [checks[0].document()],
    }
    assert (checks[0].document()["affected"], checks[0].document()["rows"]) == (2, [1, 3])


def test_a_rule_can_be_told_not_evaluated_without_any_provider():
    [expectation] = asked(rule("not_null", field="a", severity="warning"))

    outcome = not_evaluated(expectation.rule)

    assert (outcome.id, outcome.severity, outcome.status) == ("r", "warning", Status.ERROR)
