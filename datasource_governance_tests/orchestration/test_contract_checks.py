"""Contracts in Dagster: checks on what is current, by hand and by the monitor."""

import dagster as dg
import pytest

from datasource_governance.contract_files import read_contract
from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.contract import CheckKind
from datasource_governance.domain.datasource import parse_datasource
from datasource_governance.domain.launch import CONTRACT_MONITOR_JOB
from datasource_governance.orchestration import metadata
from datasource_governance.orchestration.check_names import contract_check_name
from datasource_governance.orchestration.contract_monitor import CONTRACT_MONITOR
from datasource_governance_tests.domain.contracts import monitored, odcs
from datasource_governance_tests.orchestration.ticking import Daemon, instance_on
from datasource_governance_tests.world import ONE_ROW_AT_LEAST

CURRENT = dg.AssetKey(["orders", "current"])
UNLIMITED = {"property": "latency", "value": 0.000001, "unit": "s"}


def declared(**contract):
    files = {"orders.odcs.yaml": canonical_bytes(odcs(**contract))}
    governance = {"quality_policy": ONE_ROW_AT_LEAST, "contracts": [*files]}
    document = {"id": "orders", "kind": "published", "governance": governance}
    return parse_datasource(document, files.__getitem__, read_contract)


@pytest.fixture
def watched(world):
    world.grant(SYSTEM, Role.PRODUCER)
    world.grant(SYSTEM, Role.STEWARD)
    world.declare(kind="published", contracts=[odcs()])
    world.publish()
    return world


@pytest.fixture
def daemon(watched, dagster_database):
    with instance_on(dagster_database) as instance:
        yield Daemon(watched.application, declared(), instance)


def executed(daemon, job, **arguments):
    return daemon.defs.resolve_job_def(job).execute_in_process(
        instance=daemon.instance, **arguments
    )


def shown(daemon, name):
    records = daemon.instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(CURRENT, name), limit=10
    )
    return [one.event.dagster_event.asset_check_evaluation_data for one in records]


def test_the_sensor_launches_one_run_while_checks_are_due_and_the_run_shows_them(daemon, watched):
    assert len(daemon.tick(CONTRACT_MONITOR).run_requests) == 1

    result = executed(daemon, CONTRACT_MONITOR_JOB)

    assert result.success
    assert daemon.tick(CONTRACT_MONITOR).run_requests == []
    for kind in CheckKind:
        (evaluation,) = shown(daemon, contract_check_name("orders", kind))
        assert evaluation.passed
        assert evaluation.metadata[metadata.COMPLIANCE].value == 100
        assert evaluation.metadata[metadata.RUN].value == result.run_id
    with watched.application.work() as work:
        assert {one.run_id for one in work.contracts.newest("orders", "orders", 10)} == {
            result.run_id
        }


def test_the_sensor_leaves_a_run_alone_and_takes_one_of_long_ago_for_dead(daemon):
    job = daemon.defs.resolve_job_def(CONTRACT_MONITOR_JOB)
    run = daemon.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)

    assert daemon.tick(CONTRACT_MONITOR).run_requests == []
    daemon.instance.delete_run(run.run_id)
    assert len(daemon.tick(CONTRACT_MONITOR).run_requests) == 1


def test_checks_run_by_hand_and_fail_as_the_contract_enforces(watched, dagster_database):
    stale = [{"property": "latency", "value": 1, "unit": "s"}]
    for version, enforcement, severity in (("2.0.0", "warn", "WARN"), ("3.0.0", "block", "ERROR")):
        given = {
            "version": version,
            "slaProperties": stale,
            "customProperties": monitored(enforcement),
        }
        watched.declare(kind="published", contracts=[odcs(**given)])
        watched.as_superuser(
            "CREATE OR REPLACE FUNCTION governance.now() RETURNS timestamptz LANGUAGE sql VOLATILE"
            " AS $$ SELECT pg_catalog.clock_timestamp() + interval '1 hour' $$"
        )
        with instance_on(dagster_database) as instance:
            made = Daemon(watched.application, declared(**given), instance)
            job = dg.define_asset_job(
                "checked",
                selection=dg.AssetSelection.checks_for_assets(CURRENT)
                - dg.AssetSelection.checks(dg.AssetCheckKey(CURRENT, "evidence")),
            )
            defs = dg.Definitions.merge(made.defs, dg.Definitions(jobs=[job]))
            result = defs.resolve_job_def("checked").execute_in_process(
                instance=instance, raise_on_error=False
            )
        by_name = {one.check_name: one for one in result.get_asset_check_evaluations()}
        freshness = by_name[contract_check_name("orders", CheckKind.FRESHNESS)]
        assert (freshness.passed, freshness.severity.value) == (False, severity)
        assert freshness.blocking == (enforcement == "block")
        assert by_name[contract_check_name("orders", CheckKind.SCHEMA_DRIFT)].passed


def test_the_job_that_promotes_leaves_contracts_to_the_monitor(daemon):
    job = daemon.defs.resolve_job_def("promote_orders")
    names = {key.name for key in job.asset_layer.asset_graph.asset_check_keys}
    assert names == {"evidence"}


def test_a_deprecated_contract_says_until_when_it_holds(world, dagster_database):
    ends = [{"property": "endOfSupport", "value": "2027-06-30"}]
    given = declared(status="deprecated", slaProperties=ends)
    with instance_on(dagster_database) as instance:
        daemon = Daemon(world.application, given, instance)
    specs = {
        spec.name: spec.description for one in daemon.defs.asset_checks for spec in one.check_specs
    }
    told = specs[contract_check_name("orders", CheckKind.AVAILABILITY)]
    assert told.endswith("Deprecated; supported until 2027-06-30.")


def test_without_contracts_there_is_neither_check_nor_sensor(world, dagster_database):
    document = {"id": "orders", "kind": "published"}
    with instance_on(dagster_database) as instance:
        daemon = Daemon(world.application, parse_datasource(document, {}.__getitem__), instance)

    assert CONTRACT_MONITOR not in [one.name for one in daemon.defs.sensors]
