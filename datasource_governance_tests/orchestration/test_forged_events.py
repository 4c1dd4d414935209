"""Whoever reaches Dagster's port can forge, wipe and toggle; no governed row or outcome changes.

A code location of its own process, an instance on Postgres, sensors ticked as the daemon ticks
them, and Dagster's GraphQL without the gate that the governed webserver puts before it.
"""

import logging
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import dagster as dg
import pyarrow as pa
import pytest
from dagster._core.test_utils import create_run_for_test, freeze_time
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import PythonFileTarget
from dagster._daemon.sensor import execute_sensor_iteration
from dagster_graphql.test.utils import execute_dagster_graphql

from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.orchestration import metadata
from datasource_governance.orchestration.assets import current_key, stage_key
from datasource_governance.orchestration.reconciliation import GRACE, UNBACKED
from datasource_governance.persistence import connection
from datasource_governance_tests.contents import contents
from datasource_governance_tests.orchestration.ticking import listed, observations, versions
from datasource_governance_tests.postgres import cloned_dagster, cloned_governance
from datasource_governance_tests.world import ONE_ROW_AT_LEAST, TWO_APPROVALS, World, new_world

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

LOCATION = "orders_location.py"
SELECTOR = {"repositoryName": "__repository__", "repositoryLocationName": LOCATION}
CODE = """
from datasource_governance.composition import read_settings
from datasource_governance.declarations import read_declarations
from datasource_governance.orchestration.registry import governed_definitions

defs = governed_definitions(read_declarations(read_settings().datasources))
"""
DECLARED = {
    "id": "orders",
    "kind": "static",
    "source": {"folder": "deliveries"},
    "governance": {"quality_policy": ONE_ROW_AT_LEAST, "approval_policy": TWO_APPROVALS},
}
NO_ROWS = pa.table({"id": pa.array([], pa.int64())})
STAGE, CURRENT = stage_key("orders"), current_key("orders")
SENSORS = ("approval_quorum", "approval_expiry", "stage_supersession", "stuck_promotion")
SENSORS += ("reconciliation",)
LONG_AGO = datetime.now(UTC) - timedelta(days=30)
"""Dagster's clock, which moves an hour from tick to tick: no sensor ticks more often."""


@dataclass
class System:
    """A governed datasource as Dagster runs it, and what anybody may ask of Dagster."""

    world: World
    context: WorkspaceProcessContext
    now: datetime
    ticks: int = 0

    @property
    def instance(self) -> dg.DagsterInstance:
        return self.context.instance

    def tick(self) -> None:
        """Let the daemon evaluate every sensor that is on, and launch what they request."""
        self.ticks += 1
        with freeze_time(LONG_AGO + timedelta(hours=self.ticks)):
            list(execute_sensor_iteration(self.context, logging.getLogger("daemon"), None, None))

    def later(self) -> None:
        """Let so much time pass that Dagster should show everything by now."""
        self.now += GRACE + timedelta(seconds=1)
        self.world.set_clock(self.now)

    def ask(self, query: str, **variables):
        answer = execute_dagster_graphql(self.context.create_request_context(), query, variables)
        assert not answer.errors, answer.errors
        (found,) = answer.data.values()
        return found

    def change(self, query: str, **variables) -> str:
        """Ask for a mutation; return the type of the answer."""
        return self.ask(query, **variables)["__typename"]

    @property
    def current(self) -> str | None:
        """The stage that is in force."""
        with self.world.application.work() as work:
            target = work.datasources.get("orders")
            return target.current and work.materializations.get(target.current).stage


def at_once_on(dagster_url):
    """Return the settings of an instance that executes a run where and when it is launched."""
    launcher = "dagster._core.launcher.sync_in_memory_run_launcher"
    return {
        "storage": {"postgres": {"postgres_url": dagster_url}},
        "run_launcher": {"module": launcher, "class": "SyncInMemoryRunLauncher"},
        "run_coordinator": {
            "module": "dagster.core.run_coordinator",
            "class": "DefaultRunCoordinator",
        },
    }


def approved(system):
    stage = system.world.stage()
    for approver in ("approver-1", "approver-2"):
        system.world.decide(approver, stage)
    return stage


@contextmanager
def engines_closed(patch):
    """Close what runs in this process open: they load the code location anew each time."""
    opened, make = [], connection.governance_engine

    def remembered(url):
        opened.append(make(url))
        return opened[-1]

    patch.setattr(connection, "governance_engine", remembered)
    yield
    for engine in opened:
        engine.dispose()


@pytest.fixture(scope="module")
def system(template, tmp_path_factory):
    """A system in which one stage was promoted by the sensor, and shown."""
    directory = tmp_path_factory.mktemp("forging")
    folder = directory / "datasources" / "orders"
    folder.mkdir(parents=True)
    (folder / "datasource.json").write_bytes(canonical_bytes(DECLARED))
    (directory / LOCATION).write_text(CODE)
    target = PythonFileTarget(str(directory / LOCATION), None, str(directory), LOCATION)
    for database, dagster_url in zip(
        cloned_governance(template), cloned_dagster(template), strict=True
    ):
        with pytest.MonkeyPatch.context() as environment, engines_closed(environment):
            environment.setenv("GOVERNANCE_DATABASE_URL", database.application_url)
            environment.setenv("GOVERNANCE_STATE", str(directory))
            environment.setenv("GOVERNANCE_DATASOURCES", str(folder.parent))
            world = new_world(database, directory)
            world.declare(ONE_ROW_AT_LEAST, TWO_APPROVALS)
            with (
                dg.instance_for_test(overrides=at_once_on(dagster_url)) as instance,
                WorkspaceProcessContext(instance, target) as context,
            ):
                made = System(world, context, datetime.now(UTC))
                world.set_clock(made.now)
                stage = approved(made)
                made.tick()
                assert made.current == stage.id
                made.later()
                made.tick()
                yield made
            world.application.close()


# --- What anybody does who reaches the port -------------------------------------------------------

REPORT = """mutation($p: ReportRunlessAssetEventsParams!) {
    reportRunlessAssetEvents(eventParams: $p) { __typename } }"""
REPORT_CHECK = """mutation($p: ReportAssetCheckEvaluationsParams!) {
    reportAssetCheckEvaluations(eventParams: $p) { __typename } }"""
WIPE = """mutation($p: [PartitionsByAssetSelector!]!) {
    wipeAssets(assetPartitionRanges: $p) { __typename } }"""
DELETE = "mutation($p: String!) { deleteRun(runId: $p) { __typename } }"
SET_CURSOR = """mutation($s: SensorSelector!, $c: String) {
    setSensorCursor(sensorSelector: $s, cursor: $c) { __typename } }"""
START = "mutation($s: SensorSelector!) { startSensor(sensorSelector: $s) { __typename } }"
RESET = "mutation($s: SensorSelector!) { resetSensor(sensorSelector: $s) { __typename } }"
STOP = "mutation($i: String) { stopSensor(id: $i) { __typename } }"
SENSOR = """query($s: SensorSelector!) { sensorOrError(sensorSelector: $s) {
    __typename ... on Sensor { id } } }"""


def sensor(name):
    return {**SELECTOR, "sensorName": name}


def key_input(key):
    return {"path": key.path}


def forge_materializations(system, stage):
    for key in (STAGE, CURRENT):
        forged = {"eventType": "ASSET_MATERIALIZATION", "assetKey": key_input(key)}
        assert system.change(REPORT, p=forged) == "ReportRunlessAssetEventsSuccess"


def forge_a_promotion_in_every_detail(system, stage):
    system.instance.report_runless_asset_event(
        dg.AssetMaterialization(
            CURRENT,
            metadata={metadata.STAGE_ID: stage.id, metadata.APPROVED_BY: "approver-1, approver-2"},
            tags={"dagster/data_version": stage.id},
        )
    )


def forge_checks_that_passed(system, stage):
    for check in ("quality_policy", "schema_classification", "r"):
        forged = {"assetKey": key_input(STAGE), "checkName": check, "passed": True}
        found = system.change(REPORT_CHECK, p=forged)
        assert found == "ReportAssetCheckEvaluationsSuccess"


def wipe_assets(system, stage):
    wiped = [{"assetKey": key_input(key)} for key in (STAGE, CURRENT)]
    assert system.change(WIPE, p=wiped) == "AssetWipeSuccess"
    assert versions(system.instance, CURRENT) == []


def delete_all_runs(system, stage):
    leave_a_failed_run(system, {})  # so that there is one, whatever another test deleted
    for run in system.instance.get_runs():
        assert system.change(DELETE, p=run.run_id) == "DeletePipelineRunSuccess"
    assert system.instance.get_runs() == []


def reset_cursors(system, stage):
    for name in SENSORS:
        assert system.change(SET_CURSOR, s=sensor(name), c="") == "Sensor"


def set_cursors_to_garbage(system, stage):
    for name in SENSORS:
        assert system.change(SET_CURSOR, s=sensor(name), c='{"seen": [9e999') == "Sensor"


def toggle_sensors(system, stage):
    for name in SENSORS:
        found = system.ask(SENSOR, s=sensor(name))
        assert system.change(STOP, i=found["id"]) == "StopSensorMutationResult"
    system.tick()
    for name in SENSORS:
        assert system.change(START, s=sensor(name)) == "Sensor"
        assert system.change(RESET, s=sensor(name)) == "Sensor"


def leave_a_failed_run(system, tags):
    """Leave what somebody's launch of the promotion job with these tags leaves."""
    (location,) = system.context.create_request_context().code_locations
    job = location.get_repository(SELECTOR["repositoryName"]).get_full_job("promote_orders")
    create_run_for_test(
        system.instance,
        job_name=job.name,
        tags=tags,
        status=dg.DagsterRunStatus.FAILURE,
        remote_job_origin=job.get_remote_origin(),
        job_code_origin=job.get_python_origin(),
    )


def run_key_tags(run_key):
    return {"dagster/sensor_name": "approval_quorum", "dagster/run_key": run_key}


def spoof_run_keys(system, stage):
    for guess in ("0" * 16, stage.fingerprint("default")[:16]):
        key = f"promote:{stage.id}:0:{guess}"
        leave_a_failed_run(system, {**run_key_tags(key), "user": "approver-2"})


VANDALISM = {
    "forged events": (
        forge_materializations,
        forge_a_promotion_in_every_detail,
        forge_checks_that_passed,
    ),
    "wiped assets and deleted runs": (wipe_assets, delete_all_runs),
    "reset cursors": (reset_cursors,),
    "garbage in cursors": (set_cursors_to_garbage,),
    "toggled sensors": (toggle_sensors,),
    "spoofed run keys": (spoof_run_keys,),
}


@pytest.mark.parametrize("vandalism", VANDALISM)
def test_it_changes_no_governed_row_and_no_outcome(system, vandalism):
    stage = system.world.stage()
    system.world.decide("approver-1", stage)
    before, current = contents(system.world), system.current

    for vandalise in VANDALISM[vandalism]:
        vandalise(system, stage)
    system.tick()

    assert (contents(system.world), system.current) == (before, current)
    with system.world.refuses("quorum_not_met"):
        system.world.promote(stage, None)
    system.world.decide("approver-2", stage)
    system.tick()
    assert system.current == stage.id
    assert system.world.verification().holds


def test_forged_checks_do_not_make_a_blocked_stage_promotable(system):
    stage = system.world.stage(table=NO_ROWS)

    forge_checks_that_passed(system, stage)
    forge_a_promotion_in_every_detail(system, stage)

    with system.world.refuses("stage_blocked"):
        system.world.promote(stage)


# --- What it can do is hold the sensor up ---------------------------------------------------------


def stop_the_sensor(system, stage):
    found = system.ask(SENSOR, s=sensor("approval_quorum"))
    assert system.change(STOP, i=found["id"]) == "StopSensorMutationResult"


def use_its_run_key(system, stage):
    """Take the key that only who reads the evidence can foresee."""
    with system.world.application.work() as work:
        *_, newest = work.evidence.segment("datasource/orders", stage.id)
    key = f"promote:{stage.id}:0:{newest.entry_hash[:16]}"
    leave_a_failed_run(system, run_key_tags(key))


@pytest.mark.parametrize("hold_up", [stop_the_sensor, use_its_run_key])
def test_whoever_holds_the_sensor_up_does_not_hold_an_operator_up(system, hold_up):
    stage = approved(system)
    hold_up(system, stage)

    system.tick()

    assert system.current != stage.id
    assert system.world.promote(stage).created
    assert system.change(START, s=sensor("approval_quorum")) == "Sensor"


def test_a_sensor_that_is_on_again_promotes_what_was_approved_meanwhile(system):
    stop_the_sensor(system, None)
    stage = approved(system)
    system.tick()
    assert system.current != stage.id

    assert system.change(START, s=sensor("approval_quorum")) == "Sensor"
    system.tick()

    assert system.current == stage.id


# --- What was lost comes back ---------------------------------------------------------------------


def test_the_reconciler_brings_back_what_was_lost_and_names_what_nothing_backs(system):
    system.later()
    stage = approved(system)
    system.tick()
    with system.world.application.work() as work:
        current = work.datasources.get("orders").current
    before = contents(system.world)
    for vandalise in (delete_all_runs, wipe_assets, forge_materializations):
        vandalise(system, stage)
    system.later()

    for _ in range(3):
        system.tick()

    assert contents(system.world) == before
    assert versions(system.instance, CURRENT)[0] == current
    assert versions(system.instance, STAGE)[0] == stage.id
    for key in (STAGE, CURRENT):
        newest = observations(system.instance, key, UNBACKED)[0]
        assert len(listed(newest)) == 1
