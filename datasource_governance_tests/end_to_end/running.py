"""One governed webserver, a daemon and a code location, over real databases, for launching runs.

`orders` needs two approvals, `countries` none. The code location also has what launches by itself:
a sensor, a schedule and a job with partitions, each with tags that claim to be somebody, and a job
whose configuration may read the environment.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import WorkspaceFileTarget

from datasource_governance.domain.stage import Stage
from datasource_governance.web.settings import WebSettings
from datasource_governance_tests.orchestration.governed import GOOD, POLICY, deliver
from datasource_governance_tests.postgres import Template, cloned_dagster, cloned_governance
from datasource_governance_tests.web.serving import Serving, serving, with_accounts
from datasource_governance_tests.world import TWO_APPROVALS, World, new_world

REPOSITORY_FILES = Path(__file__).parents[2]
LOCATION = "launching_location"
BOSS = "boss"
"""Whom every spoofed tag names; a registered steward, approver and operator who never acts."""
TAG = "datasource_governance/actor"
BY_SENSOR, BY_SCHEDULE = "by_sensor.csv", "by_schedule.csv"
PARTITIONS = ("a", "b")
CODE = f"""
import dagster as dg
from datasource_governance import governed_definitions, read_declarations
from datasource_governance.composition import read_settings
from datasource_governance.orchestration.jobs import stage_run_config

SPOOFED = {{"{TAG}": "{BOSS}", "user": "{BOSS}", "datasource_governance/attestation": "0" * 64}}
PARTITIONS = dg.StaticPartitionsDefinition({list(PARTITIONS)})


def request(delivery):
    config = stage_run_config("orders", delivery, "")
    return dg.RunRequest(run_key=delivery, run_config=config, tags=SPOOFED)


@dg.sensor(
    job_name="stage_orders",
    minimum_interval_seconds=1,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def staging_sensor(_context):
    return request("{BY_SENSOR}")


@dg.schedule(
    job_name="stage_orders",
    cron_schedule="* * * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
def staging_schedule(context):
    own = dg.RunsFilter(tags={{"dagster/schedule_name": "staging_schedule"}})
    if context.instance.get_runs_count(own):
        return dg.SkipReason("once is enough")
    return request("{BY_SCHEDULE}")


@dg.partitioned_config(partitions_def=PARTITIONS)
def partition_config(partition):
    return stage_run_config("orders", f"by_backfill_{{partition}}.csv", "")


by_partition = dg.define_asset_job(
    "stage_by_partition",
    selection=dg.AssetSelection.assets(["orders", "stage"]),
    partitions_def=PARTITIONS,
    config=partition_config,
    tags=SPOOFED,
)

class Report(dg.Config):
    text: str = ""


@dg.op
def report(config: Report) -> None: ...


@dg.job
def reporting():
    report()


defs = dg.Definitions.merge(
    governed_definitions(read_declarations(read_settings().datasources)),
    dg.Definitions(
        jobs=[by_partition, reporting], sensors=[staging_sensor], schedules=[staging_schedule]
    ),
)
"""
WORKSPACE = "load_from:\n  - grpc_server:\n      socket: {socket}\n      location_name: {name}\n"
_WAIT_SECONDS = 600


@dataclass(frozen=True)
class RunningSystem:
    """A running system, and what happened in it."""

    world: World
    other: World
    web: Serving
    directory: Path

    @property
    def instance(self) -> dg.DagsterInstance:
        return self.web.context.instance

    def deliver(self, name: str, rows=GOOD) -> str:
        """Put a delivery into the folder; return its name."""
        return deliver(self.world, rows, f"{name}.csv")

    def finished(self, run_id: str) -> dg.DagsterRun:
        """Wait until a run has ended; return it."""
        return self._await(lambda: self._finished(run_id), f"run {run_id}")

    def stage_of(self, delivery: str) -> Stage:
        """Wait for the stage of a delivery; return it."""
        (found,) = self._await(lambda: self.stages_of(delivery), f"a stage of {delivery}")
        return found

    def stages_of(self, delivery: str) -> list[Stage]:
        """Return the stages of a delivery that are there now."""
        with self.world.application.work() as work:
            return [one for one in work.stages.list(None, ()) if one.delivery == delivery]

    def creator_of(self, run_id: str, delivery: str) -> str:
        """Wait for a run that must succeed; return who created its stage, as Postgres has it."""
        run = self.finished(run_id)
        assert run.is_success, self.failure_of(run_id)
        return self.stage_of(delivery).creator

    def failure_of(self, run_id: str) -> str:
        """Return what the events of a run say about why it failed."""
        return "\n".join(
            event.dagster_event.step_failure_data.user_failure_data.description
            for event in self.instance.all_logs(run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
        )

    def run(self, run_id: str) -> dg.DagsterRun:
        found = self.instance.get_run_by_id(run_id)
        assert found is not None
        return found

    def runs_of(self, **tags: str) -> list[dg.DagsterRun]:
        """Return the runs that Dagster itself tagged with what launched them."""
        return list(
            self.instance.get_runs(
                dg.RunsFilter(tags={f"dagster/{name}": value for name, value in tags.items()})
            )
        )

    def _finished(self, run_id: str) -> dg.DagsterRun | None:
        run = self.run(run_id)
        return run if run.is_finished else None

    def _await(self, look, what: str):
        deadline = time.monotonic() + _WAIT_SECONDS
        while not (found := look()):
            assert time.monotonic() < deadline, f"{what} did not come"
            time.sleep(0.2)
        return found


@contextmanager
def running_system(template: Template, directory: Path) -> Iterator[RunningSystem]:
    """Start everything below a directory, and stop it."""
    with pytest.MonkeyPatch.context() as environment:
        for governance in cloned_governance(template):
            for dagster_url in cloned_dagster(template):
                world = new_world(governance, directory)
                other = World(world.application, world.database, "countries")
                _declare(world, other, directory)
                _prepare(environment, world, dagster_url, directory)
                with _started(world, directory) as web:
                    yield RunningSystem(world, other, web, directory)
                world.application.close()


def _declare(world: World, other: World, directory: Path) -> None:
    world.declare(POLICY, TWO_APPROVALS)
    other.declare(POLICY)
    for each, approval in ((world, TWO_APPROVALS), (other, None)):
        folder = directory / "datasources" / each.datasource
        folder.mkdir(parents=True)
        governance = {"quality_policy": POLICY}
        document = {
            "id": each.datasource,
            "kind": "static",
            "source": {"folder": "deliveries"},
            "governance": {**governance, **({"approval_policy": approval} if approval else {})},
        }
        (folder / "datasource.json").write_text(json.dumps(document))
    for name in ("steward", "second-steward", BOSS):
        world.admit(name, "steward")
    for name in ("steward", BOSS):
        world.grant(name, "approver")
    for role in ("steward", "operator"):
        world.grant(world.admit("backfiller").actor, role)
    world.grant(BOSS, "operator")
    for name in (BY_SENSOR, BY_SCHEDULE, *(f"by_backfill_{key}.csv" for key in PARTITIONS)):
        deliver(world, GOOD, name)


def _prepare(
    environment: pytest.MonkeyPatch, world: World, dagster_url: str, directory: Path
) -> None:
    home = directory / "dagster_home"
    home.mkdir()
    shutil.copy(REPOSITORY_FILES / "dagster.yaml", home)
    (directory / f"{LOCATION}.py").write_text(CODE)
    socket = directory / "code.sock"
    (directory / "workspace.yaml").write_text(WORKSPACE.format(socket=socket, name=LOCATION))
    for name, value in {
        "DAGSTER_HOME": home,
        "DAGSTER_DATABASE_URL": dagster_url,
        "GOVERNANCE_DATABASE_URL": world.database.application_url,
        "GOVERNANCE_STATE": directory,
        "GOVERNANCE_DATASOURCES": directory / "datasources",
        "PYTHONPATH": REPOSITORY_FILES,
    }.items():
        environment.setenv(name, str(value))


@contextmanager
def _started(world: World, directory: Path) -> Iterator[Serving]:
    settings = with_accounts(
        WebSettings(directory=directory / "webserver"),
        *("steward", "second-steward", "operator", "backfiller"),
    )
    code = ("code-server", "start", "--socket", "code.sock", "--location-name", LOCATION)
    with (
        # Dagster's tables are made here, before other processes would, too.
        dg.DagsterInstance.get() as instance,
        _process(directory, "dagster", *code, "--python-file", f"{LOCATION}.py"),
        _listening(directory / "code.sock"),
        _process(directory, "dagster._daemon", "run", "--workspace", "workspace.yaml"),
        WorkspaceProcessContext(
            instance, WorkspaceFileTarget([str(directory / "workspace.yaml")])
        ) as context,
        serving(
            context, settings, world.application, gateway=world.gateway(settings.directory)
        ) as web,
    ):
        yield web


@contextmanager
def _process(directory: Path, module: str, *arguments: str) -> Iterator[None]:
    with (
        (directory / f"{module}.log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=directory,
            env=dict(os.environ),
            stdout=log,
            stderr=log,
        ) as process,
    ):
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def _listening(socket: Path) -> Iterator[None]:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not socket.exists():
        assert time.monotonic() < deadline, "the code server does not start"
        time.sleep(0.2)
    yield
