"""Compliance and trend, exact at their boundaries."""

from datetime import date, timedelta

import pytest

from datasource_governance.domain.compliance import Compliance, Day

FIRST = date(2026, 12, 1)


def days(*percents, gap=1):
    """Days of a hundred checks each, of which so many passed, so many days apart."""
    return Compliance(
        days=tuple(
            Day(day=FIRST + place * timedelta(days=gap), passed=one, failed=100 - one, errors=0)
            for place, one in enumerate(percents)
        )
    )


def test_what_could_not_be_evaluated_did_not_pass():
    found = Compliance(days=(Day(day=FIRST, passed=1, failed=1, errors=2),))
    assert (found.checks, found.passed, found.percent) == (4, 1, 25.0)


def test_without_checks_there_is_no_compliance_and_no_trend():
    assert (Compliance(days=()).percent, Compliance(days=()).trend) == (None, "steady")


@pytest.mark.parametrize(
    ("kept", "slope", "trend"),
    [
        (days(50), 0, "steady"),
        (days(50, 52), 2, "improving"),
        (days(50, 51), 1, "steady"),
        (days(52, 50), -2, "degrading"),
        (days(51, 50), -1, "steady"),
        (days(50, 52, gap=2), 1, "steady"),
        (days(0, 100, 0), 0, "steady"),
        (days(10, 20, 30, 40), 10, "improving"),
        (days(100, 100, 100), 0, "steady"),
    ],
)
def test_two_points_a_day_are_a_trend(kept, slope, trend):
    assert (kept.slope, kept.trend) == (slope, trend)
