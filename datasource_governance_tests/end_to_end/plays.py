"""What is done with bait in one installation: everything that could make a value come out.

Source: SPEC section 5, "No cell value leaves evaluation".
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pandas as pd
import pandera.errors
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from prometheus_client import CollectorRegistry, generate_latest
from sqlalchemy import insert

from datasource_governance.cli.output import run
from datasource_governance.composition import Application
from datasource_governance.contract_files import read_contract
from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.domain.datasource import Datasource, parse_datasource
from datasource_governance.domain.hold import HoldScope
from datasource_governance.domain.launch import CONTRACT_MONITOR_JOB
from datasource_governance.domain.outbox import MAXIMUM_ATTEMPTS
from datasource_governance.domain.quality_policy import QualityPolicy, parse_quality_policy
from datasource_governance.domain.stage import Stage, StageState
from datasource_governance.domain.subjects import apply_subject
from datasource_governance.errors import GovernanceError, UnreadableSourceError
from datasource_governance.evaluation.compile import pandera_schema
from datasource_governance.evaluation.evaluate import PanderaEvaluator, validate, validate_file
from datasource_governance.evaluation.payload import TypedPayload, decode_payload
from datasource_governance.lineage.events import LINEAGE_TYPES
from datasource_governance.monitoring.monitor import Monitor
from datasource_governance.orchestration.assets import current_key
from datasource_governance.orchestration.jobs import promotion_run_config, stage_run_config
from datasource_governance.orchestration.registry import governed_definitions
from datasource_governance.persistence import tables
from datasource_governance.persistence.connection import Connection
from datasource_governance.persistence.statements import inserted, insertion
from datasource_governance.receivers.openlineage import OpenLineage
from datasource_governance.receivers.subscription import Subscription
from datasource_governance.services.declaring import apply_datasource
from datasource_governance.services.delivering import deliver
from datasource_governance.services.reading import read_current
from datasource_governance.sources.child import Content, decode_in_child
from datasource_governance.sources.files import read_file
from datasource_governance.sources.frames import from_data
from datasource_governance.sources.scan import scan_file
from datasource_governance.sources.sql.read import SqlSource, read_sql, sql_batches
from datasource_governance.web.metrics import numbers
from datasource_governance_tests.domain.contracts import odcs
from datasource_governance_tests.end_to_end.bait import (
    DECLARED_TYPES,
    BrokenPayload,
    fill,
    mixed_frame,
    refused_deliveries,
    rows_of,
    strict_rules,
    table_of,
)
from datasource_governance_tests.end_to_end.life import Scene
from datasource_governance_tests.launches import stage_launch
from datasource_governance_tests.receiving import Deaf
from datasource_governance_tests.refreshing import ToldOrigin, refreshed_stage
from datasource_governance_tests.retiring import (
    admit_keeper,
    apply_plan,
    declare_kept,
    freeze_as_evidence,
    hold,
    plan_now,
    release,
    stage_at,
)
from datasource_governance_tests.sources.databases import Database, new_duckdb
from datasource_governance_tests.world import TWO_APPROVALS

DECODERS = "datasource_governance_tests.end_to_end.decoders"
MISFITS = (
    "SELECT CAST(text AS integer) AS x FROM bait",
    "SELECT CAST(CAST(number AS text) AS date) AS x FROM bait",
)
"""Queries that the cells of bait do not fit."""


def live(scene: Scene) -> None:
    """Play a whole life, in which every source of data refuses and every rule fails."""
    origins = {"postgres": scene.origin, "duckdb": new_duckdb(scene.rows)}
    for origin in origins.values():
        fill(origin, scene.canary)
    with scene.listening():
        play_refusals(scene)
        play_blocked(scene)
        declared = play_promotion(scene)
        play_reading(scene, declared)
        play_publication(scene)
        play_launch(scene)
        play_withdrawals(scene)
        play_refresh(scene)
        play_retention(scene)
        play_contracts(scene, origins)
        play_delivery(scene)
        play_driver_errors(scene)
        play_frames(scene)
        play_databases(scene, origins)
        play_children(scene)
        play_evaluation(scene)
        play_batches(scene)
        play_queries(scene, origins)
        play_pandera(scene)
        play_command_line(scene, origins)


def declare(scene: Scene, *rules: dict[str, object]) -> Datasource:
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
    attestation = scene.world.signer("admin").attest(
        Action.DATASOURCE_APPLY, apply_subject(declared)
    )
    apply_datasource(scene.world.application.work(), declared, attestation)
    return declared


def write(scene: Scene, name: str, content: str | bytes | pa.Table) -> Path:
    path = scene.state / "deliveries" / name
    path.parent.mkdir(exist_ok=True)
    if isinstance(content, pa.Table):
        pq.write_table(content, path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def run_job(scene: Scene, defs: dg.Definitions, job: str, config: object = None) -> bool:
    """Run a job in this process; every exception that it raises is kept."""
    try:
        return (
            defs.resolve_job_def(job)
            .execute_in_process(run_config=config, instance=scene.instance)
            .success
        )
    except Exception as error:  # noqa: BLE001 - each is swept
        scene.errors["runs"].append(error)
        return False


def stage(scene: Scene, declared: Datasource, path: Path) -> Stage | None:
    """Stage a delivery by its job, with an attested creator; return the stage, if any."""
    try:
        _, sha256 = scene.world.application.read_delivery(declared, path.name)
    except GovernanceError as error:
        scene.errors[path.suffix].append(error)
        attestation = ""
    else:
        attestation = scene.world.attest_delivery("creator", sha256)
    known = {one.id for one in scene.stages()}
    defs = governed_definitions([declared], scene.world.application)
    run_job(scene, defs, "stage_orders", stage_run_config("orders", path.name, attestation))
    return next((one for one in scene.stages() if one.id not in known), None)


def play_refusals(scene: Scene) -> None:
    declared = declare(scene, *strict_rules())
    for name, content in refused_deliveries(scene.canary).items():
        assert stage(scene, declared, write(scene, name, content)) is None, name


def play_blocked(scene: Scene) -> None:
    declared = declare(scene, *strict_rules())
    for name, content in {
        "bad.csv": rows_of(scene.canary),
        "bad.parquet": table_of(scene.canary),
    }.items():
        made = stage(scene, declared, write(scene, name, content))
        assert made.state is StageState.FAILED
        scene.attempt(
            "services", lambda made=made: scene.world.decide("approver-1", made, scene.reason)
        )


def play_promotion(scene: Scene) -> Datasource:
    declared = declare(scene, {"id": "rows", "type": "row_count", "minimum": 1})
    defs = governed_definitions([declared], scene.world.application)
    made = stage(scene, declared, write(scene, "good.csv", rows_of(scene.canary)))
    config = promotion_run_config("orders", made.id)
    assert not run_job(scene, defs, "promote_orders", config)
    scene.attempt("services", lambda: scene.world.decide("creator", made, scene.reason))
    for approver in ("approver-1", "approver-2"):
        scene.world.decide(approver, made, scene.reason)
    scene.attempt("services", lambda: scene.world.decide("approver-1", made, scene.reason))
    assert run_job(scene, defs, "promote_orders", config)
    return declared


def play_reading(scene: Scene, declared: Datasource) -> None:
    frames: list[pd.DataFrame] = []

    @dg.asset(ins={"orders": dg.AssetIn(key=current_key("orders"))})
    def downstream(orders) -> None:
        frames.append(orders)

    defs = dg.Definitions.merge(
        governed_definitions([declared], scene.world.application),
        dg.Definitions(
            assets=[downstream], jobs=[dg.define_asset_job("reading", selection=[downstream])]
        ),
    )

    def read() -> None:
        found = read_current(scene.world.application.work(), "orders", SYSTEM)
        scene.carriers.append(found)

    assert not run_job(scene, defs, "reading")
    scene.attempt("services", read)
    scene.world.grant(SYSTEM, Role.STEWARD)
    assert run_job(scene, defs, "reading")
    assert frames[0]["text"].to_list()[0] == scene.canary.text
    read()
    scene.world.as_superuser(
        "ALTER TABLE governance.materialization_payload DISABLE TRIGGER USER;"
        "UPDATE governance.materialization_payload SET payload = payload || '\\x00'::bytea"
    )
    assert not run_job(scene, defs, "reading")
    scene.attempt("services", read)


def play_publication(scene: Scene) -> None:
    """Publish inline and as an artifact, and be rejected both ways."""
    # Where artifacts are, their values are, as in a payload.
    elsewhere = replace(scene.world.application.settings, artifacts=str(scene.rows / "artifacts"))
    application = Application(elsewhere)
    outputs = replace(scene.world, application=application, datasource="outputs")
    outputs.declare(kind="published", artifact_evaluation="here")
    outputs.grant(SYSTEM, Role.PRODUCER)
    table = table_of(scene.canary)
    outputs.publish(table, "inline", partition="a")
    outputs.publish(outputs.store_artifact(table), "artifact")
    outputs.declare(
        {"version": "strict", "rules": strict_rules()}, kind="published", artifact_evaluation="here"
    )
    scene.attempt("services", lambda: outputs.publish(table, "inline", partition="b"))
    scene.attempt("services", lambda: outputs.publish(table, "rejected"))
    artifact = outputs.store_artifact(table)
    scene.attempt("services", lambda: outputs.publish(artifact, "rejected"))
    application.close()


def play_launch(scene: Scene) -> None:
    """Have the webserver attest who launched a run."""
    gateway = scene.world.gateway(scene.world.application.settings.state / "webserver")
    scene.world.launch(gateway, "creator", stage_launch())


def play_withdrawals(scene: Scene) -> None:
    """Take back a grant and a key, so that every table has rows."""
    scene.world.withdraw(scene.world.grant("approver-3", Role.VIEWER))
    scene.world.revoke(scene.world.signer("approver-3").key)


def play_refresh(scene: Scene) -> None:
    """Read an origin twice: it says the same, and then nothing that can be used."""
    feeds = replace(scene.world, datasource="feeds")
    feeds.declare(kind="cached")
    origin = ToldOrigin(table=table_of(scene.canary), version="1")
    refreshed_stage(feeds, origin)
    refreshed_stage(feeds, origin)
    origin.failure = UnreadableSourceError("told", [])
    scene.attempt("services", lambda: refreshed_stage(feeds, origin, force=True))


def play_retention(scene: Scene) -> None:
    """Plan, hold, freeze and destroy, and be refused."""
    kept = replace(scene.world, datasource="kept")
    admit_keeper(kept)
    declare_kept(kept)
    due = stage_at(kept, table=table_of(scene.canary))
    made = kept.promote(stage_at(kept, table=table_of(scene.canary))).materialization
    freeze_as_evidence(kept, made.id)
    held = hold(kept, due.id, HoldScope.STAGE)
    blocked = plan_now(kept)
    scene.attempt("services", lambda: apply_plan(kept, blocked, [due.id]))
    release(kept, held.id)
    scene.attempt("services", lambda: apply_plan(kept, blocked))
    plan = plan_now(kept)
    apply_plan(kept, plan)
    scene.attempt("services", lambda: apply_plan(kept, plan))
    kept.release_clock()
    defs = governed_definitions([], scene.world.application)
    assert run_job(scene, defs, "retention_plan")


def play_contracts(scene: Scene, origins: Mapping[str, Database]) -> None:
    """Watch what is current, and tables, by rules that no cell meets; tell everybody of it."""
    promised = replace(scene.world, datasource="promised")
    contracts = [promise("current"), *(promise(name, name.upper()) for name in origins)]
    promised.declare(kind="published", contracts=contracts)
    promised.publish(table_of(scene.canary), "promised")
    environment = {name.upper(): origin.url for name, origin in origins.items()}
    monitor = Monitor(application=promised.application, environment=environment)
    checks = [*monitor.run_due()]
    assert {str(check.status) for check in checks} == {"passed", "failed"}
    promised.declare(kind="published", contracts=contracts[:1])
    declared = parse_datasource(
        {"id": "promised", "kind": "published", "governance": {"contracts": ["a.yaml"]}},
        lambda _: canonical_bytes(contracts[0]),
        read_contract,
    )
    defs = governed_definitions([declared], promised.application)
    promised.as_superuser("UPDATE governance.contract_watch SET next_due = governance.now()")
    assert run_job(scene, defs, CONTRACT_MONITOR_JOB)
    tell_of_contracts(scene, promised.application)


def promise(name: str, variable: str | None = None) -> dict[str, object]:
    """Return a contract about bait, which nothing meets, in a table if a variable names one."""
    fields = [
        {
            "name": field,
            "logicalType": kind,
            "unique": True,
            "quality": [
                {"metric": "invalidValues", "mustBe": 0, "arguments": {"validValues": ["x"]}}
            ],
        }
        for field, kind in DECLARED_TYPES.items()
    ]
    table = {"url_variable": variable, "table": "bait"}
    return odcs(
        id=name,
        schema=[{"name": "bait", "properties": fields}],
        slaProperties=[{"property": "latency", "value": 1e-6, "unit": "s", "element": "bait.date"}],
        customProperties=[{"property": "table", "value": table}] if variable else [],
    )


def tell_of_contracts(scene: Scene, application: Application) -> None:
    """Tell a catalogue, Prometheus, a file and the terminal how contracts stand."""
    lineage = {"type": "file", "log_file_path": str(scene.state / "lineage.jsonl"), "append": True}
    catalogue = OpenLineage(namespace="ours", transport=lineage, work=application.work)
    told = Subscription(name="catalogue", transport=catalogue, events=frozenset(LINEAGE_TYPES))
    (served,) = deliver(application.work, [told], maximum_events=10_000)
    assert served.is_clean
    registry = CollectorRegistry()
    registry.register(numbers(application))
    (scene.state / "metrics.txt").write_bytes(generate_latest(registry))
    report = scene.state / "report.html"
    for arguments in (
        ("contract", "check", "promised", "current"),
        ("contract", "list"),
        ("contract", "violations"),
        ("contract", "report", "--html", report),
    ):
        for options in ((), ("--json",)):
            report.unlink(missing_ok=True)
            assert scene.command(*arguments, *options).code in (0, 1)
    assert report.exists()


def play_delivery(scene: Scene) -> None:
    """Let a receiver refuse every event until it is set aside."""
    for _ in range(MAXIMUM_ATTEMPTS):
        deliver(scene.world.application.work, [Deaf("deaf")], heeds_pauses=False)


def play_driver_errors(scene: Scene) -> None:
    """Make Postgres refuse rows that hold bait, which its own messages quote."""
    connection = Connection(scene.world.application.engine, "default")
    row = {"tenant": "default", "stage": None, "payload": scene.canary.bait.encode()}
    key = {"tenant": "default", "id": scene.canary.bait, "display_name": "x", "created_at": "now"}
    for statement, rows in (
        (insert(tables.stage_payload), [row]),
        (insert(tables.actor), [key, key]),
        (insert(tables.actor), [{**key, "created_at": scene.canary.bait}]),
        (insert(tables.actor), [{**key, "id": f"{scene.canary.bait}\0"}]),
    ):
        connection.begin()
        scene.attempt(
            "driver", lambda statement=statement, rows=rows: connection.execute(statement, rows)
        )
        connection.close()
    kept = insertion((tables.actor, tuple(key)))
    for together in ([key, key], [key, key, {**key, "id": f"{scene.canary.bait}\0"}]):
        connection.begin()
        for one in together:
            connection.later(kept, inserted(one))
        scene.attempt("driver", connection.commit)
        connection.close()


def play_frames(scene: Scene) -> None:
    """Hand in data in memory that has no typed form, and queries that fail when they run."""
    text, number, date = scene.canary.values()
    odd = [text, number, date, {text}, object()]
    whole = table_of(scene.canary)
    scene.attempt("pandas", lambda: from_data(pd.DataFrame({"odd": pd.Series(odd, dtype=object)})))
    scene.attempt("polars", lambda: from_data(pl.DataFrame([pl.Series("odd", odd, pl.Object)])))
    for query in broken_queries(scene):
        scene.attempt("lazy query", lambda query=query: from_data(query))
    scene.attempt("arrow", lambda: from_data(pa.table([whole["text"]] * 2, names=["a", "a"])))
    scene.attempt("payload", lambda: decode_payload(TypedPayload(whole).encoded()[:-30]))


def broken_queries(scene: Scene) -> list[pl.LazyFrame]:
    def explode(_: pl.DataFrame) -> pl.DataFrame:
        raise ValueError(scene.canary.bait)

    lazy = pl.LazyFrame({"text": [scene.canary.text] * 2})
    return [lazy.select(pl.col("text").cast(pl.Int64)), lazy.map_batches(explode)]


def play_databases(scene: Scene, origins: Mapping[str, Database]) -> None:
    """Read tables of bait, by queries that their cells fit and by those that they do not."""
    for name, origin in origins.items():
        whole = SqlSource(origin.url, query="SELECT * FROM bait", order_by=("date",))
        assert read_sql(whole).table["text"].to_pylist() == [scene.canary.text]
        scene.carriers.append(whole)
        for misfit in MISFITS:
            source = SqlSource(origin.url, query=misfit)
            scene.attempt(name, lambda source=source: read_sql(source))


def play_children(scene: Scene) -> None:
    """Let child processes decode bait, tell what is seen of them, print it and die of it."""
    content = Content(name="rows.csv", stored=rows_of(scene.canary).encode(), csv=CsvOptions())
    scene.carriers.append(content)
    scene.children += decode_in_child(content, decoder=f"{DECODERS}:circumstances").to_pylist()
    scene.attempt("child", lambda: decode_in_child(content, decoder=f"{DECODERS}:blurt"))
    ragged = scene.rows / "ragged.csv"
    ragged.write_text(f"{rows_of(scene.canary)}{scene.canary.text},1,2,3\n")
    scene.attempt("address", lambda: read_file(f"file://{ragged}"))
    scene.attempt("address", lambda: read_file(f"data:;base64,://{ragged}"))


def play_evaluation(scene: Scene) -> None:
    policy = strict_policy()
    for frame in (mixed_frame(scene.canary), pl.from_arrow(table_of(scene.canary))):
        payload = TypedPayload(from_data(frame))
        scene.carriers.append(payload)
        scene.validations += [
            PanderaEvaluator(engine).validate(policy, payload, None)
            for engine in ("pandas", "polars")
        ]
    broken = BrokenPayload(scene.canary.bait)
    scene.attempt("evaluation", lambda: PanderaEvaluator().validate(policy, broken, None))


def strict_policy() -> QualityPolicy:
    return parse_quality_policy({"version": "v1", "rules": strict_rules()})


def play_batches(scene: Scene) -> None:
    """Validate files row by row, with every key on disk, and files that are refused on the way."""
    text = stored(pa.table({"text": [scene.canary.text] * 50}))
    damaged = {f"damaged.{name}": damage(content) for name, content in text.items()}
    sound = {"rows.csv": rows_of(scene.canary, 50), **stored(table_of(scene.canary))}
    types = CsvOptions(types=DECLARED_TYPES)

    def judge(name: str, content: str | bytes) -> None:
        path = scene.rows / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        csv = types if path.suffix == ".csv" else None
        found = validate_file(strict_policy(), path, csv=csv, memory_bytes=1, on_rows=scene.glance)
        scene.carriers.append(scan_file(path, csv))
        scene.validations.append(found)

    for name, content in sound.items():
        judge(name, content)
        assert scene.validations[-1].engine == "pandas_batches"
    for name, content in {**refused_deliveries(scene.canary), **damaged}.items():
        scene.attempt("batches", lambda name=name, content=content: judge(name, content))


def stored(table: pa.Table) -> dict[str, bytes]:
    """Return a table as files of both columnar formats, with every cell spelled out."""
    parquet, arrow = pa.BufferOutputStream(), pa.BufferOutputStream()
    pq.write_table(table, parquet, compression="none", use_dictionary=False)
    with pa.ipc.new_file(arrow, table.schema) as file:
        file.write_table(table)
    return {"rows.parquet": bytes(parquet.getvalue()), "rows.arrow": bytes(arrow.getvalue())}


def damage(content: bytes) -> bytes:
    """Return a file with bytes that are no text in the middle of its cells."""
    middle = len(content) // 2
    return content[:middle] + b"\xff" * 9 + content[middle + 9 :]


def play_queries(scene: Scene, origins: Mapping[str, Database]) -> None:
    """Validate what databases and lazy frames answer, as it comes, and answers that break off."""
    policy = strict_policy()
    scene.validations.append(validate(policy, pl.from_arrow(table_of(scene.canary)).lazy()))
    for query in broken_queries(scene):
        scene.attempt("lazy query", lambda query=query: validate(policy, query))
    for name, origin in origins.items():
        table = SqlSource(origin.url, table="bait")
        ordered = SqlSource(origin.url, query="SELECT * FROM bait", order_by=("date",))
        scene.validations += [validate(policy, source) for source in (table, ordered)]
        with sql_batches(table) as batches:
            scene.carriers.append(batches)
        for misfit in MISFITS:
            source = SqlSource(origin.url, query=misfit)
            scene.attempt(name, lambda source=source: validate(policy, source))


def play_pandera(scene: Scene) -> None:
    """Use the public schema as anybody would, on frames that break every rule or cannot be read."""
    policy = strict_policy()
    unreadable = mixed_frame(scene.canary).assign(text=[scene.canary.text, {1}, object()])
    for engine, frame in (
        ("pandas", mixed_frame(scene.canary)),
        ("pandas", unreadable),
        ("polars", pl.from_arrow(table_of(scene.canary))),
    ):
        outcomes: dict[str, object] = {}
        try:
            pandera_schema(policy, engine, recorder=outcomes).validate(frame, lazy=True)
        except pandera.errors.SchemaErrors as errors:
            scene.errors["pandera"].append(errors)
        scene.outcomes.append(outcomes)


def play_command_line(scene: Scene, origins: Mapping[str, Database]) -> None:
    """Validate all there is, and show every stage, by the command line; then fail unforeseen."""
    policy, types = scene.state / "policy.json", scene.state / "types.json"
    policy.write_text(json.dumps({"version": "v1", "rules": strict_rules()}))
    types.write_text(
        json.dumps([{"name": name, "type": kind} for name, kind in DECLARED_TYPES.items()])
    )
    files = sorted((scene.state / "deliveries").iterdir())
    sources = [(path, "--schema", types) for path in files]
    sources += [(path, "--schema", types, "--memory", 1) for path in large_files(scene)]
    sources += [
        (origin.url, *selection)
        for origin in origins.values()
        for selection in (
            ("--table", "bait"),
            ("--query", "SELECT * FROM bait", "--order-by", "date"),
            *(("--query", misfit) for misfit in MISFITS),
        )
    ]
    commands = [("validate", *source, "--policy", policy) for source in sources]
    commands += [("stage", "show", one.id, "--actor", "creator") for one in scene.stages()]
    commands += [("stage", "list"), ("evidence", "verify"), ("datasource", "list")]
    for arguments in commands:
        for options in ((), ("--json",)):
            answer = scene.command(*arguments, *options)
            assert answer.code in (0, 1, 3), answer
    scene.printing(lambda: run(lambda: int(scene.canary.bait)), ("unforeseen",))


def large_files(scene: Scene) -> list[Path]:
    """Write files of more than a MiB in memory: a sound one, and one whose last record is not."""
    sound, ragged = scene.rows / "large.csv", scene.rows / "large_ragged.csv"
    rows = rows_of(scene.canary, 20_000)
    sound.write_text(rows)
    ragged.write_text(f"{rows}{','.join(map(str, scene.canary.values()))},{scene.canary.text}\n")
    return [sound, ragged]
