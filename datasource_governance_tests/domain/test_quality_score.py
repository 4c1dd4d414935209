import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasource_governance.domain.quality_check import QualityCheckResult
from datasource_governance.domain.quality_score import (
    DEFAULT_WEIGHTS,
    ScoreLevel,
    Thresholds,
    WeightClass,
    calculate_quality_score,
    default_class,
    quality_score,
)
from datasource_governance.domain.rule_outcome import RuleOutcome, Status
from datasource_governance.domain.rules import Severity
from datasource_governance.errors import InvalidArgumentError

PASSED, FAILED, ERROR = Status.PASSED, Status.FAILED, Status.ERROR
CRITICAL, STANDARD, STATISTICAL = WeightClass


def check(id_, status=PASSED, severity=Severity.ERROR):
    return RuleOutcome(id=id_, type="not_null", severity=severity, status=status, fields=("x",))


def result(*checks, provider="pandera"):
    return QualityCheckResult(provider=provider, provider_version="1", checks=checks)


def classed(**statuses):
    """Return checks and their classes, from `critical=[...]` and so on."""
    checks, classes = [], {}
    for word, found in statuses.items():
        for place, status in enumerate(found):
            id_ = f"{word}-{place}"
            severity = Severity.ERROR if word == "critical" else Severity.WARNING
            checks.append(check(id_, status, severity))
            classes[id_] = WeightClass(f"{word}_checks")
    return checks, classes


def score(weights=DEFAULT_WEIGHTS, **statuses):
    checks, classes = classed(**statuses)
    return calculate_quality_score([result(*checks)], weights, classes)


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ({"critical": [PASSED], "standard": [PASSED], "statistical": [PASSED]}, 100),
        ({"critical": [FAILED], "standard": [PASSED] * 4}, 100 * 4 / 7),
        ({"critical": [PASSED], "standard": [FAILED, PASSED, PASSED, PASSED]}, 100 * 6 / 7),
        ({"critical": [PASSED], "standard": [PASSED], "statistical": [FAILED]}, 100 * 4 / 4.5),
        ({"critical": [FAILED], "standard": [FAILED], "statistical": [FAILED]}, 0),
        ({"critical": [FAILED], "standard": [PASSED]}, 25),
        (
            {
                "critical": [PASSED, FAILED],
                "standard": [PASSED] * 3,
                "statistical": [PASSED, FAILED],
            },
            65,
        ),
        ({"critical": [FAILED]}, 0),
    ],
)
def test_the_published_vectors_are_met(statuses, expected):
    assert score(**statuses) == expected


def test_five_checks_of_one_dimension_all_failed_are_no_twenty_but_zero():
    assert score(standard=[FAILED] * 5) == 0


def test_an_error_is_critical_and_a_warning_standard_unless_a_check_is_moved():
    checks = [check("e", FAILED), check("w", PASSED, Severity.WARNING)]

    assert [default_class(one) for one in Severity] == [CRITICAL, STANDARD]
    assert calculate_quality_score([result(*checks)], DEFAULT_WEIGHTS) == 25
    assert calculate_quality_score([result(*checks)], {}, {"e": STATISTICAL}) == 100 / 1.5


def test_a_weight_that_is_left_out_is_the_default():
    assert score({CRITICAL: 1}, critical=[PASSED], standard=[FAILED]) == 50
    assert score({}, critical=[PASSED], standard=[FAILED]) == 75


@pytest.mark.parametrize("weight", [0, -1, math.nan, math.inf, True, "3"])
def test_a_weight_that_is_no_finite_number_above_zero_is_refused(weight):
    with pytest.raises(InvalidArgumentError, match="standard_checks must be a finite number"):
        score({STANDARD: weight}, critical=[PASSED])


def test_all_that_is_wrong_with_weights_is_said_at_once():
    with pytest.raises(ValueError, match=r"blocker.*critical_checks.*standard_checks"):
        score({"blocker": 1, CRITICAL: 0, STANDARD: -1}, critical=[PASSED])


def test_an_unknown_class_of_a_check_is_refused():
    with pytest.raises(InvalidArgumentError, match="unknown weight classes: a"):
        calculate_quality_score([result(check("a"))], {}, {"a": "blocker"})


def test_there_is_no_score_of_nothing():
    unevaluated = result(check("w", ERROR, Severity.WARNING))

    for results in [], [result()], [unevaluated]:
        with pytest.raises(InvalidArgumentError, match="no check was evaluated"):
            calculate_quality_score(results, DEFAULT_WEIGHTS)


def test_a_critical_check_that_was_not_evaluated_makes_the_score_invalid_and_another_does_not():
    with pytest.raises(InvalidArgumentError, match="not evaluated: e"):
        calculate_quality_score([result(check("e", ERROR), check("p"))], DEFAULT_WEIGHTS)
    assert score(critical=[PASSED], standard=[ERROR, FAILED]) == 75


def test_a_check_in_several_results_counts_once_and_must_have_one_outcome():
    native = result(check("a", FAILED), check("b"))

    again = result(check("a", FAILED), provider="soda")
    assert calculate_quality_score([native, again], DEFAULT_WEIGHTS) == 50

    for other in check("a"), check("a", FAILED, Severity.WARNING):
        with pytest.raises(InvalidArgumentError, match="different outcomes: a"):
            calculate_quality_score([native, result(other)], DEFAULT_WEIGHTS)


def test_a_score_on_a_threshold_is_fine_and_one_just_below_is_not():
    for passed, level in [(70, "warn"), (69, "blocked"), (85, "ok"), (84, "warn")]:
        checks, classes = classed(standard=[PASSED] * passed + [FAILED] * (100 - passed))

        found = quality_score(checks, DEFAULT_WEIGHTS, classes)

        assert (found.value, found.level) == (passed, level)
    assert quality_score(checks, thresholds=Thresholds(min_score=85, warn_score=90)).reasons == (
        "the score 84.00 is below the minimum of 85",
    )


def test_a_critical_check_that_failed_blocks_whatever_the_score():
    checks, classes = classed(critical=[FAILED], standard=[PASSED] * 97)

    found = quality_score(checks, DEFAULT_WEIGHTS, classes)

    assert found.document() == {
        "value": 97.0,
        "evaluated": 98,
        "not_evaluated": 0,
        "level": "blocked",
        "reasons": ["critical checks failed: critical-0"],
    }


def test_without_a_critical_check_evaluated_there_is_no_value_and_it_blocks():
    found = quality_score([check("a", ERROR), check("b")])

    assert (found.value, found.level) == (None, ScoreLevel.BLOCKED)
    assert (found.evaluated, found.not_evaluated) == (1, 1)
    assert found.reasons == ("critical checks were not evaluated: a",)


def test_where_nothing_could_be_scored_somebody_has_to_look():
    for checks in [], [check("w", ERROR, Severity.WARNING)]:
        found = quality_score(checks)

        assert (found.value, found.level) == (None, ScoreLevel.WARN)
        assert found.reasons == ("no check was evaluated",)


weights = st.fixed_dictionaries(
    {one: st.floats(min_value=1e-300, max_value=1e300) for one in WeightClass}
)
statuses = st.lists(st.sampled_from([PASSED, FAILED]), min_size=1, max_size=8)


@given(weights, statuses, statuses, st.sampled_from([PASSED, FAILED]))
def test_all_passed_is_a_hundred_and_all_failed_is_zero(given_weights, some, others, status):
    found = score(given_weights, critical=[status] * len(some), statistical=[status] * len(others))

    assert found == (100 if status is PASSED else 0)


@given(weights, statuses, statuses, st.randoms())
def test_the_order_of_checks_does_not_count(given_weights, some, others, random):
    checks, classes = classed(critical=some, statistical=others)
    expected = calculate_quality_score([result(*checks)], given_weights, classes)

    random.shuffle(checks)

    assert calculate_quality_score([result(*checks)], given_weights, classes) == expected
    assert 0 <= expected <= 100
