"""No cell value comes out anywhere: bait goes through a whole life, then every place is swept.

Each kind of place has a control, which plants a leak there and must be found by the same sweep.
"""

import base64
import json
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datasource_governance import cli
from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.datasource import Datasource, parse_datasource
from datasource_governance.domain.stage import Stage, StageState
from datasource_governance.domain.subjects import apply_subject
from datasource_governance.errors import GovernanceError
from datasource_governance.orchestration.assets import current_key
from datasource_governance.orchestration.jobs import promotion_run_config, stage_run_config
from datasource_governance.orchestration.registry import governed_definitions
from datasource_governance.services.declaring import apply_datasource
from datasource_governance.services.reading import read_current
from datasource_governance_tests.end_to_end.canaries import (
    Canary,
    Listener,
    database,
    error_text,
    files,
    leaks,
    new_canary,
    server_log,
)
from datasource_governance_tests.world import TWO_APPROVALS, World

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
NAMES = ("text", "number", "date")
DECLARED_TYPES = {"text": "string", "number": "integer", "date": "date"}


def strict_rules():
    """Return rules of every type that no row of bait meets."""
    per_field = [
        rule
        for name in NAMES
        for rule in (
            {"id": f"{name}-unique", "type": "unique", "field": name},
            {"id": f"{name}-null", "type": "not_null", "field": name},
            {"id": f"{name}-range", "type": "range", "field": name, "minimum": 5, "maximum": 6},
            {"id": f"{name}-set", "type": "referential", "field": name, "allowed_values": ["x", 1]},
            {"id": f"{name}-type", "type": "field", "field": name, "data_type": "boolean"},
        )
    ]
    return [
        *per_field,
        {"id": "key", "type": "unique", "fields": list(NAMES)},
        {"id": "rows", "type": "row_count", "minimum": 100},
        {"id": "fields", "type": "required_fields", "fields": ["gone"]},
    ]


@dataclass
class Scene:
    """One installation with everything in it that could say something."""

    world: World
    instance: dg.DagsterInstance
    home: Path
    dagster_url: str
    listener: Listener
    canary: Canary
    reason: str
    printed: Callable[[], str]
    errors: list[BaseException] = field(default_factory=list)
    frames: list[object] = field(default_factory=list)

    def declare(self, *rules) -> Datasource:
        document = {
            "id": "orders",
            "kind": "static",
            "source": {"folder": "deliveries"},
            "csv": {"schema": DECLARED_TYPES},
            "governance": {
                "quality_policy": {"version": f"v{len(rules)}", "rules": list(rules)},
                "approval_policy": TWO_APPROVALS,
            },
        }
        declared = parse_datasource(canonical_bytes(document), lambda name: Path(name).read_bytes())
        attestation = self.world.signer("admin").attest(
            Action.DATASOURCE_APPLY, apply_subject(declared)
        )
        apply_datasource(self.world.application.work(), declared, attestation)
        return declared

    def write(self, name: str, content: str | bytes | pa.Table) -> Path:
        path = self.world.application.settings.state / "deliveries" / name
        path.parent.mkdir(exist_ok=True)
        if isinstance(content, pa.Table):
            pq.write_table(content, path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def run(self, declared: Datasource, job: str, config, *assets) -> bool:
        """Run a job in this process; every exception that it raises is kept."""
        defs = dg.Definitions.merge(
            governed_definitions([declared], self.world.application), dg.Definitions(assets=assets)
        )
        try:
            run = defs.resolve_job_def(job).execute_in_process(
                run_config=config, instance=self.instance
            )
        except Exception as error:  # noqa: BLE001 - each is swept
            self.errors.append(error)
            return False
        return run.success

    def stage(self, declared: Datasource, path: Path) -> Stage | None:
        """Stage a delivery by its job, with an attested creator; return the stage, if any."""
        try:
            _, sha256 = self.world.application.read_delivery(declared, path.name)
        except GovernanceError as error:
            self.errors.append(error)
            attestation = ""
        else:
            attestation = self.world.attest_delivery("creator", sha256)
        known = {one.id for one in self.stages()}
        self.run(declared, "stage_orders", stage_run_config("orders", path.name, attestation))
        return next((one for one in self.stages() if one.id not in known), None)

    def stages(self) -> list[Stage]:
        with self.world.application.work() as work:
            return list(work.stages.list("orders", ()))

    def attempt(self, action: Callable[[], object]) -> None:
        """Do what must be refused, and keep the refusal."""
        with pytest.raises(GovernanceError) as refusal:
            action()
        self.errors.append(refusal.value)

    def places(self) -> dict[str, str]:
        """Return every place where a value could have come out."""
        return {
            **database(self.world.database.admin_url, "governance"),
            **database(self.dagster_url, "public"),
            **files(self.home),
            **server_log(self.world.database.admin_url),
            "printed": self.printed(),
            "logged": "\n".join(self.listener.heard),
            "raised": "\n".join(map(error_text, self.errors)),
        }


@pytest.fixture
def scene(world, dagster_database, tmp_path, capfd, monkeypatch):
    """An installation whose Dagster keeps its records in Postgres; every logger is at DEBUG."""
    listener, root = Listener(), logging.getLogger()
    loggers = [root, *map(logging.getLogger, ("sqlalchemy", "sqlalchemy.engine", "dagster"))]
    levels = [one.level for one in loggers]
    for one in loggers:
        one.setLevel(logging.DEBUG)
    root.addHandler(listener)
    home = tmp_path / "home"
    home.mkdir()
    storage = {"postgres": {"postgres_url": dagster_database}}
    said: list[str] = []

    def printed() -> str:
        said.extend(capfd.readouterr())
        return "\n".join(said)

    with dg.instance_for_test(overrides={"storage": storage}, temp_dir=str(home)) as instance:
        yield Scene(
            world=world,
            instance=instance,
            home=home,
            dagster_url=dagster_database,
            listener=listener,
            canary=new_canary(),
            reason=f"zq-reason {new_canary().text}",
            printed=printed,
        )
    root.removeHandler(listener)
    for one, level in zip(loggers, levels, strict=True):
        one.setLevel(level)


def rows_of(canary: Canary, times: int = 2) -> str:
    row = f"{canary.text},{canary.number},{canary.date}\n"
    return "text,number,date\n" + row * times + ",,\n"


def refused_deliveries(canary: Canary) -> dict[str, str | bytes]:
    """Return files that no rule ever sees, each with bait at the place that refuses it."""
    text, number, date = canary.values()
    header = "text,number,date\n"
    whole = rows_of(canary)
    parquet = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": [text] * 50}), parquet, compression="none")
    return {
        "ragged.csv": f"{whole}{text},{number},{date},{text}\n",
        "undecodable.csv": whole.encode() + text.encode("utf-16") + b"\xff\xfe\n",
        "misfit_number.csv": f"{header}{text},{text},{date}\n",
        "misfit_date.csv": f"{header}{text},{number},{number}\n",
        "open_quote.csv": f'{header}"{text},{number},{date}\n',
        "nul.csv": f"{header}{text}\0,{number},{date}\n",
        "truncated.parquet": bytes(parquet.getvalue())[:-20],
        "torn.arrow": b"ARROW1\0\0" + whole.encode(),
        "odd.parquet": b"PAR1" + whole.encode() + b"PAR1",
    }


def play_refusals(scene: Scene) -> None:
    declared = scene.declare(*strict_rules())
    for name, content in refused_deliveries(scene.canary).items():
        assert scene.stage(declared, scene.write(name, content)) is None, name


def play_blocked(scene: Scene) -> None:
    declared = scene.declare(*strict_rules())
    as_parquet = pa.table(
        {name: [value] * 2 for name, value in zip(NAMES, scene.canary.values(), strict=True)}
    )
    for name, content in {"bad.csv": rows_of(scene.canary), "bad.parquet": as_parquet}.items():
        stage = scene.stage(declared, scene.write(name, content))
        assert stage.state is StageState.FAILED
        scene.attempt(lambda stage=stage: scene.world.decide("approver-1", stage, scene.reason))


def play_promotion(scene: Scene) -> Datasource:
    declared = scene.declare({"id": "rows", "type": "row_count", "minimum": 1})
    stage = scene.stage(declared, scene.write("good.csv", rows_of(scene.canary)))
    config = promotion_run_config("orders", stage.id)
    scene.run(declared, "promote_orders", config)
    scene.attempt(lambda: scene.world.decide("creator", stage, scene.reason))
    for approver in ("approver-1", "approver-2"):
        scene.world.decide(approver, stage, scene.reason)
    scene.attempt(lambda: scene.world.decide("approver-1", stage, scene.reason))
    assert scene.run(declared, "promote_orders", config)
    return declared


def play_reading(scene: Scene, declared: Datasource) -> None:
    @dg.asset(ins={"orders": dg.AssetIn(key=current_key("orders"))})
    def downstream(orders) -> None:
        scene.frames.append(orders)

    reading = dg.define_asset_job("reading", selection=[downstream])

    def read() -> bool:
        defs = dg.Definitions.merge(
            governed_definitions([declared], scene.world.application),
            dg.Definitions(assets=[downstream], jobs=[reading]),
        )
        try:
            return (
                defs.resolve_job_def("reading").execute_in_process(instance=scene.instance).success
            )
        except Exception as error:  # noqa: BLE001 - each is swept
            scene.errors.append(error)
            return False

    assert not read()
    scene.world.grant(SYSTEM, Role.STEWARD)
    assert read()
    assert scene.frames[0]["text"].to_list()[0] == scene.canary.text
    scene.world.as_superuser(
        "ALTER TABLE governance.materialization_payload DISABLE TRIGGER USER;"
        "UPDATE governance.materialization_payload SET payload = payload || '\\x00'::bytea"
    )
    assert not read()
    scene.attempt(lambda: read_current(scene.world.application.work(), "orders", SYSTEM))


def play_command_line(scene: Scene, monkeypatch) -> None:
    """Validate every file, and show every stage, by the command line."""
    state = scene.world.application.settings.state
    policy, types = state / "policy.json", state / "types.json"
    policy.write_text(json.dumps({"version": "v1", "rules": strict_rules()}))
    types.write_text(
        json.dumps([{"name": name, "type": kind} for name, kind in DECLARED_TYPES.items()])
    )
    monkeypatch.setenv("GOVERNANCE_STATE", str(state))
    monkeypatch.setenv("GOVERNANCE_DATABASE_URL", scene.world.database.application_url)
    commands = [
        ("validate", path, "--policy", policy, "--schema", types, *options)
        for path in sorted((state / "deliveries").iterdir())
        for options in ((), ("--json",))
    ]
    commands += [("stage", "show", one.id, "--actor", "creator") for one in scene.stages()]
    commands += [("stage", "list"), ("evidence", "verify", "--json"), ("datasource", "list")]
    for arguments in commands:
        monkeypatch.setattr(sys, "argv", ["datasource-governance", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        assert stop.value.code in (0, 1, 3), arguments


def test_after_a_whole_life_no_value_is_anywhere_but_in_the_payloads(scene, monkeypatch):
    play_refusals(scene)
    play_blocked(scene)
    declared = play_promotion(scene)
    play_reading(scene, declared)
    play_command_line(scene, monkeypatch)

    places = scene.places()

    assert leaks(places, scene.canary.values()) == {}
    assert set(leaks(places, [scene.reason])) == {"governance.decision.reason"}
    assert len(scene.errors) > 20
    assert {"governance.stage.validation", "public.event_logs.event"} <= places.keys()


def in_a_text_column(scene: Scene, bait: str) -> None:
    scene.world.declare()
    stage = scene.world.stage()
    scene.world.as_superuser(
        "ALTER TABLE governance.stage DISABLE TRIGGER USER;"
        f"UPDATE governance.stage SET delivery = '{bait}' WHERE id = '{stage.id}'"
    )


def in_a_binary_column(scene: Scene, bait: str) -> None:
    scene.world.declare()
    scene.world.as_superuser(
        "ALTER TABLE governance.policy_version DISABLE TRIGGER USER;"
        f"UPDATE governance.policy_version SET document = convert_to('<{bait}>', 'UTF8')"
    )


def in_an_event(scene: Scene, bait: str) -> None:
    scene.instance.report_runless_asset_event(
        dg.AssetMaterialization("a", metadata={"cell": quote(bait, safe="")})
    )


def in_a_compute_log(scene: Scene, bait: str) -> None:
    log = scene.home / "storage" / "run" / "compute_logs" / "step.out"
    log.parent.mkdir(parents=True)
    log.write_text(bait.encode().hex())


def in_the_server_log(scene: Scene, bait: str) -> None:
    scene.world.as_superuser(f"DO $$ BEGIN RAISE LOG '%', '{bait}'; END $$")


def on_stdout(scene: Scene, bait: str) -> None:
    os.write(1, base64.b64encode(b"x" + bait.encode()))


def on_stderr(scene: Scene, bait: str) -> None:
    os.write(2, repr(bait).encode())


def in_a_log_record(scene: Scene, bait: str) -> None:
    logging.getLogger("dagster.some.child").debug("a row", extra={"cell": bait})


def in_a_hidden_cause(scene: Scene, bait: str) -> None:
    try:
        try:
            int(bait)
        except ValueError:
            raise GovernanceError("refused") from None
    except GovernanceError as error:
        scene.errors.append(error)


@pytest.mark.parametrize(
    ("plant", "place"),
    [
        (in_a_text_column, "governance.stage.delivery"),
        (in_a_binary_column, "governance.policy_version.document"),
        (in_an_event, "public.event_logs.event"),
        (in_a_compute_log, "file storage/run/compute_logs/step.out"),
        (in_the_server_log, "server log server.log"),
        (on_stdout, "printed"),
        (on_stderr, "printed"),
        (in_a_log_record, "logged"),
        (in_a_hidden_cause, "raised"),
    ],
)
def test_a_planted_leak_is_found(scene, plant, place):
    plant(scene, scene.canary.text)

    assert place in leaks(scene.places(), scene.canary.values())
