"""Severities, table by table, and the defects of facts 6.2 that must not come back."""

from datetime import UTC, datetime, timedelta

import pytest

from datasource_governance.domain.contract import CheckKind, ServiceLevels
from datasource_governance.domain.contract_check import FieldChange, Finding
from datasource_governance.domain.contract_judgement import (
    History,
    judge,
    next_planned,
    used_percent,
)
from datasource_governance.domain.rule_outcome import RuleOutcome, Status
from datasource_governance.domain.rules import Severity
from datasource_governance_tests.domain.contracts import contract

HOUR = timedelta(hours=1)
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


def judged(kind, finding=None, history=None, **given):
    found = finding or Finding(status=Status.PASSED)
    return judge(kind, found, contract(**given), history or History())


@pytest.mark.parametrize(
    ("age", "used"),
    [
        (timedelta(0), 0),
        (-HOUR, 0),
        (HOUR, 10),
        (10 * HOUR - timedelta(microseconds=1), 99),
        (10 * HOUR, 100),
        (1000 * HOUR, 10_000),
    ],
)
def test_share_of_a_service_level_is_rounded_down(age, used):
    assert used_percent(age, 10 * HOUR) == used


@pytest.mark.parametrize(
    ("used", "severity", "status"),
    [
        (0, None, "passed"),
        (79, None, "passed"),
        (80, "info", "passed"),
        (89, "info", "passed"),
        (90, "warning", "passed"),
        (99, "warning", "passed"),
        (100, "error", "failed"),
        (9999, "error", "failed"),
    ],
)
def test_freshness_counts_by_the_share_that_is_used(used, severity, status):
    found = judged(CheckKind.FRESHNESS, Finding(status=Status.PASSED, used=used))

    assert (found.severity, found.finding.status) == (severity, status)
    assert f"{used} percent" in found.message


@pytest.mark.parametrize(
    ("before", "severity"), [(0, "error"), (1, "error"), (2, "critical"), (50, "critical")]
)
def test_the_third_breach_in_a_day_is_critical(before, severity):
    stale = Finding(status=Status.PASSED, used=120)

    found = judged(CheckKind.FRESHNESS, stale, History(breaches=before))

    assert found.severity == severity
    assert (f"{before + 1} breaches in 24 hours" in found.message) == (severity == "critical")


def test_what_is_close_to_a_breach_never_becomes_one_by_repetition():
    close = Finding(status=Status.PASSED, used=95)
    assert judged(CheckKind.FRESHNESS, close, History(breaches=9)).severity == "warning"


@pytest.mark.parametrize(
    ("changes", "severity", "status"),
    [
        ([], None, "passed"),
        (["added"], "warning", "passed"),
        (["nulls"], "warning", "passed"),
        (["added", "type"], "error", "failed"),
        (["type", "removed", "added"], "critical", "failed"),
    ],
)
def test_drift_counts_by_the_worst_change(changes, severity, status):
    fields = [FieldChange(field=f"f{place}", change=one) for place, one in enumerate(changes)]

    found = judged(CheckKind.SCHEMA_DRIFT, Finding(status=Status.PASSED, changes=fields))

    assert (found.severity, found.finding.status) == (severity, status)
    assert all(one.field in found.message and one.change in found.message for one in fields)


def outcome(status, severity=Severity.ERROR):
    return RuleOutcome(id="r", type="unique", severity=severity, status=status, fields=("id",))


@pytest.mark.parametrize(
    ("score", "rules", "severity"),
    [
        (100, [outcome(Status.PASSED)], None),
        (80, [], None),
        (79.9, [], "warning"),
        (72, [], "warning"),
        (71.9, [], "error"),
        (40, [], "error"),
        (39.9, [], "critical"),
        (95, [outcome(Status.FAILED)], "error"),
        (95, [outcome(Status.FAILED, Severity.WARNING)], None),
    ],
)
def test_quality_counts_by_the_score_and_by_rules_of_severity_error(score, rules, severity):
    found = judged(CheckKind.QUALITY, Finding(status=Status.PASSED, score=score, rules=rules))
    assert found.severity == severity


@pytest.mark.parametrize("kind", [one for one in CheckKind if one != CheckKind.AVAILABILITY])
def test_what_could_not_be_evaluated_never_passes(kind):
    found = judged(kind, Finding(status=Status.ERROR, problem="timed_out"))

    assert (found.severity, found.finding.status) == ("error", "error")
    assert "timed_out" in found.message


def test_without_a_score_nothing_passes():
    found = judged(CheckKind.QUALITY, Finding(status=Status.PASSED))
    assert (found.severity, found.finding.status) == ("error", "failed")


@pytest.mark.parametrize(
    ("in_a_row", "severity"),
    [(1, "warning"), (2, "warning"), (3, "error"), (4, "error"), (5, "critical"), (9, "critical")],
)
def test_absence_counts_by_how_often_in_a_row(in_a_row, severity):
    gone = Finding(status=Status.FAILED, problem="unreachable")
    history = History(consecutive_failures=in_a_row - 1, passed=280, checks=280 + in_a_row - 1)

    found = judged(CheckKind.AVAILABILITY, gone, history)

    assert (found.severity, found.finding.status) == (severity, "failed")
    assert f"{in_a_row} times in a row (unreachable)" in found.message


@pytest.mark.parametrize(
    ("promised", "passed", "checks", "severity"),
    [
        (99.9, 0, 0, None),
        (99.9, 287, 287, None),
        (99.9, 286, 287, "warning"),
        (99.0, 286, 287, None),
        (50.0, 1, 3, None),
        (50.1, 1, 3, "warning"),
    ],
)
def test_data_that_is_there_is_held_to_the_share_of_a_day(promised, passed, checks, severity):
    history = History(passed=passed, checks=checks)

    found = judged(
        CheckKind.AVAILABILITY, history=history, service_levels=ServiceLevels(availability=promised)
    )

    assert (found.severity, found.finding.status) == (severity, "passed")


@pytest.mark.parametrize(
    ("late", "next_in"),
    [
        (timedelta(0), HOUR),
        (timedelta(minutes=59), HOUR),
        (HOUR, 2 * HOUR),
        (timedelta(hours=5, minutes=1), 6 * HOUR),
        (timedelta(minutes=-1), HOUR),
    ],
)
def test_a_rhythm_keeps_its_instants_however_late_a_check_is(late, next_in):
    assert next_planned(NOW, HOUR, NOW + late) == NOW + next_in
