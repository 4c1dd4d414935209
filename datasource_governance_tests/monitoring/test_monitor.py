"""The monitor over a real database: what is due runs once, on its rhythm, and is kept."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.domain.canonical import load_object
from datasource_governance.domain.contract import CheckKind
from datasource_governance.domain.contract_check import Trigger
from datasource_governance.errors import GuardError, NotFoundError
from datasource_governance.monitoring.monitor import Monitor
from datasource_governance.quality.platform import Platform
from datasource_governance.quality.plugin import PluginConfiguration
from datasource_governance.reading import Reader
from datasource_governance.services.reading import Wanted
from datasource_governance.services.watching import claim_due, is_due, keep_observation
from datasource_governance_tests.domain.contracts import monitored, odcs
from datasource_governance_tests.quality.misbehaving import Misbehaving

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ALL = {CheckKind.FRESHNESS, CheckKind.SCHEMA_DRIFT, CheckKind.QUALITY, CheckKind.AVAILABILITY}


@pytest.fixture
def watched(world):
    """Orders with two rows, current since NOW, and a contract that just began."""
    prepare(world)
    world.declare(kind="published", contracts=[odcs()])
    world.publish()
    return world


def prepare(world):
    world.set_clock(NOW)
    world.grant(SYSTEM, Role.PRODUCER)
    world.grant(SYSTEM, Role.STEWARD)


def monitor(world):
    return Monitor(application=world.application, environment={})


def run(world):
    """Run what is due; return the checks by kind."""
    return {check.kind: check for check in monitor(world).run_due()}


def events(world, *kinds):
    rows = world.query("SELECT type, body FROM governance.outbox ORDER BY number")
    return [load_object(bytes(body)) for kind, body in rows if not kinds or kind in kinds]


def violations(world):
    with world.application.work() as work:
        return work.contracts.violations()


def test_a_new_contract_is_checked_at_once(watched):
    found = run(watched)

    assert found.keys() == ALL
    assert {str(check.status) for check in found.values()} == {"passed"}
    assert {check.trigger for check in found.values()} == {Trigger.SCHEDULE}
    assert {check.planned_for for check in found.values()} == {NOW}
    assert found[CheckKind.FRESHNESS].finding.used == 0
    assert found[CheckKind.QUALITY].finding.score == 100
    assert found[CheckKind.QUALITY].finding.row_count == 2
    assert violations(watched) == []
    assert not run(watched)
    assert watched.application.verify_evidence().holds


def test_nothing_is_checked_before_anything_is_current(world):
    prepare(world)
    world.declare(kind="published", contracts=[odcs()])

    assert run(world) == {}
    with pytest.raises(NotFoundError) as refused:
        monitor(world).check("orders", "orders", CheckKind.FRESHNESS)
    assert refused.value.code == "nothing_current"
    assert not is_due(world.application.work())

    world.set_clock(NOW + MINUTE)
    world.publish()
    assert run(world).keys() == ALL
    watched_since = [check.planned_for for check in run_at(world, 5).values()]
    assert watched_since == [NOW + 5 * MINUTE]


def run_at(world, minutes):
    world.set_clock(NOW + minutes * MINUTE)
    return run(world)


def test_each_kind_is_due_on_its_own_rhythm(watched):
    run(watched)
    due = {
        5: {CheckKind.AVAILABILITY},
        15: {CheckKind.AVAILABILITY, CheckKind.FRESHNESS},
        60: ALL - {CheckKind.QUALITY},
        360: ALL,
    }
    for minutes, kinds in due.items():
        watched.set_clock(NOW + minutes * MINUTE - timedelta(microseconds=1))
        run(watched)
        watched.set_clock(NOW + minutes * MINUTE)
        assert run(watched).keys() == kinds


def test_what_becomes_current_is_checked_once_beside_the_rhythm(watched):
    run(watched)
    watched.set_clock(NOW + MINUTE)
    publication = watched.publish(pa.table({"id": [3]}), key="k2")

    found = run(watched)

    assert found.keys() == ALL
    assert {check.trigger for check in found.values()} == {Trigger.MATERIALIZATION}
    assert {check.planned_for for check in found.values()} == {None}
    assert {check.materialization for check in found.values()} == {
        publication.publication.materialization
    }
    assert not run(watched)
    watched.set_clock(NOW + 5 * MINUTE)
    assert run(watched).keys() == {CheckKind.AVAILABILITY}


def test_going_stale_is_told_by_severity_and_recovering_once(watched):
    run(watched)
    told = []
    for hours in (20, 22, 24, 25, 26, 27):
        watched.set_clock(NOW + timedelta(hours=hours))
        told.append(run(watched)[CheckKind.FRESHNESS].severity)
    watched.publish(key="k2")
    recovered = run(watched)[CheckKind.FRESHNESS]

    assert told == ["info", "warning", "error", "error", "critical", "critical"]
    assert recovered.severity is None
    assert [str(one.severity) for one in reversed(violations(watched))] == [
        "info",
        "warning",
        "error",
        "critical",
    ]
    assert not any(one.is_open for one in violations(watched))
    kinds = ("datasource.contract.violated", "datasource.contract.resolved")
    assert [
        (one["type"].split(".")[-1], one["facts"]["severity"]) for one in events(watched, *kinds)
    ] == [
        ("violated", "info"),
        ("violated", "warning"),
        ("violated", "error"),
        ("violated", "critical"),
        ("resolved", "critical"),
    ]
    assert watched.application.verify_evidence().holds


def test_history_survives_whoever_ran_the_checks(watched):
    gone = [
        odcs(
            customProperties=[
                {"property": "table", "value": {"url_variable": "GONE", "table": "t"}}
            ]
        )
    ]
    watched.declare(kind="published", contracts=[gone[0] | {"version": "2.0.0"}])
    severities = []
    for times in range(7):
        watched.set_clock(NOW + 5 * times * MINUTE)
        severities.append(str(run(watched)[CheckKind.AVAILABILITY].severity))

    assert severities == [
        "warning",
        "warning",
        "error",
        "error",
        "critical",
        "critical",
        "critical",
    ]


def test_a_check_whose_claim_lapsed_is_run_again_and_kept_once(watched):
    run(watched)
    watched.set_clock(NOW + 5 * MINUTE)
    (claim,) = claim_due(watched.application.work())
    assert not is_due(watched.application.work())

    watched.set_clock(NOW + 7 * MINUTE)
    (again,) = claim_due(watched.application.work())
    late = monitor(watched)._observed(
        claim.datasource,
        monitor(watched).contract("orders", "orders"),
        claim.kind,
        Trigger.SCHEDULE,
        claim,
    )

    assert keep_observation(watched.application.work(), late) is None
    kept = [*monitor(watched)._claimed(again)]
    assert [check.planned_for for check in kept] == [NOW + 5 * MINUTE]
    watched.set_clock(NOW + 10 * MINUTE)
    assert run(watched)[CheckKind.AVAILABILITY].planned_for == NOW + 10 * MINUTE


@pytest.mark.parametrize(
    ("table", "change", "severity"),
    [
        (pa.table({"other": [1]}), {"id": "removed", "other": "added"}, "critical"),
        (pa.table({"id": ["a"]}), {"id": "type"}, "error"),
        (pa.table({"id": [1], "more": [1]}), {"more": "added"}, "warning"),
        (pa.table({"id": [1, None]}), {"id": "nulls"}, "warning"),
    ],
)
def test_drift_is_found_in_what_is_current(world, table, change, severity):
    prepare(world)
    world.declare(kind="published", contracts=[odcs()])
    world.publish(table)

    found = run(world)[CheckKind.SCHEMA_DRIFT]

    assert {one.field: one.change for one in found.finding.changes} == change
    assert found.severity == severity


def test_what_takes_too_long_is_ended_and_never_passes(watched, monkeypatch):
    slow = odcs(
        version="2.0.0",
        customProperties=[{"property": "monitor", "value": {"quality": {"timeout_seconds": 1}}}],
    )
    watched.declare(kind="published", contracts=[slow])
    monkeypatch.setattr(Platform, "plugin_for", lambda _, seconds: hanging(seconds))

    found = run(watched)[CheckKind.QUALITY]

    assert (found.status, found.finding.problem) == ("error", "provider_timeout")
    assert found.seconds < 10


def hanging(seconds):
    options = {"does": "sleep"}
    return Misbehaving(PluginConfiguration(timeout_seconds=seconds, options=options))


def test_what_blocks_keeps_readers_away_until_it_is_restored(world):
    prepare(world)
    world.declare(kind="published", contracts=[odcs(customProperties=monitored("block"))])
    first = world.publish().publication.materialization
    world.set_clock(NOW + timedelta(hours=25))
    run(world)

    reader = Reader(application=world.application)
    with pytest.raises(GuardError) as refused:
        reader.load("orders", Wanted(), "arrow")
    assert refused.value.code == "contract_violated"
    assert reader.load("orders", Wanted(materialization=first), "arrow").frame.num_rows == 2

    world.publish(key="k2")
    run(world)
    assert reader.load("orders", Wanted(), "arrow").frame.num_rows == 2


@pytest.mark.parametrize(("enforcement", "checks", "told"), [("off", 0, 0), ("warn", 4, 0)])
def test_enforcement_decides_what_is_checked_and_told(world, enforcement, checks, told):
    prepare(world)
    world.declare(kind="published", contracts=[odcs(customProperties=monitored(enforcement))])
    world.publish()
    world.set_clock(NOW + timedelta(hours=25))

    assert len(run(world)) == checks
    kinds = ("datasource.contract.violated", "datasource.contract.resolved")
    assert len(events(world, *kinds)) == told
    assert len(violations(world)) == (1 if checks else 0)


def test_a_contract_that_is_not_declared_any_more_is_not_watched_and_its_violations_end(watched):
    watched.set_clock(NOW + timedelta(hours=30))
    run(watched)
    assert [one.is_open for one in violations(watched)] == [True]

    watched.declare(kind="published")

    assert [one.is_open for one in violations(watched)] == [False]
    watched.set_clock(NOW + timedelta(hours=60))
    assert not run(watched)
    with pytest.raises(NotFoundError):
        monitor(watched).check("orders", "orders", CheckKind.FRESHNESS)
    assert watched.application.verify_evidence().holds
