"""The report over a real database, and over days that went by."""

from datetime import UTC, datetime, timedelta

import pytest

from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.monitoring.monitor import Monitor
from datasource_governance.services.reporting import report_contracts
from datasource_governance_tests.domain.contracts import odcs

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
BARE = {"schema": [{"name": "orders"}]}


@pytest.fixture
def watched(world):
    world.grant(SYSTEM, Role.PRODUCER)
    world.grant(SYSTEM, Role.STEWARD)
    world.set_clock(NOW)
    world.declare(kind="published", contracts=[odcs(**BARE), odcs(id="other", **BARE)])
    world.publish()
    return world


def run(world, at):
    world.set_clock(at)
    return [*Monitor(application=world.application, environment={}).run_due()]


def report(world, **given):
    return report_contracts(world.application.work(), **given)


def test_each_promise_is_counted_by_day_and_the_broken_ones_come_first(watched):
    for days in range(3):
        run(watched, NOW + timedelta(days=days))
        run(watched, NOW + timedelta(days=days, minutes=5))

    found = report(watched)

    assert [(one.watch.contract, str(one.watch.kind)) for one in found.promises] == [
        ("orders", "freshness"),
        ("other", "freshness"),
        ("orders", "availability"),
        ("other", "availability"),
    ]
    stale, *_, there = found.promises
    assert [(day.passed, day.failed) for day in stale.compliance.days] == [(1, 0), (0, 1), (0, 1)]
    assert (stale.compliance.trend, stale.violation.severity) == ("degrading", "error")
    assert [day.checks for day in there.compliance.days] == [2, 2, 2]
    assert (there.compliance.percent, there.violation) == (100, None)
    first = found.document()["promises"][0]
    assert first["violation"]["severity"] == "error"
    assert (first["checks"], first["passed"], first["failed"], first["errors"]) == (3, 1, 2, 0)
    assert first["daily"][1] == {"day": "2026-12-02", "passed": 0, "failed": 1, "errors": 0}


def test_only_the_days_that_are_asked_for_and_the_datasources_that_are_named_count(watched):
    run(watched, NOW)
    run(watched, NOW + timedelta(days=1))

    (today,) = {one.compliance.checks for one in report(watched, days=1).promises}
    assert today == 1
    assert report(watched, datasources={"nothing"}).promises == ()


def test_what_was_never_checked_is_in_it(watched):
    assert {one.compliance.percent for one in report(watched).promises} == {None}
