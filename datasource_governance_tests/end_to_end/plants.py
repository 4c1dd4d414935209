"""Planted leaks: each puts bait into one channel by the way in which it could really get there."""

import logging
import os
import subprocess
import sys
import tempfile
import warnings
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace

import dagster as dg
import pandas as pd
import pandera.errors
import pandera.pandas as pandas_backend
import pytest
from sqlalchemy import text

from datasource_governance.cli.output import run
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.sources import forked
from datasource_governance.sources.child import Content, decode_in_child
from datasource_governance_tests.end_to_end.leaky_errors import ERRORS, caught
from datasource_governance_tests.end_to_end.life import Scene
from datasource_governance_tests.end_to_end.plays import DECODERS
from datasource_governance_tests.postgres import admin_connection, unique_name

Plant = Callable[[Scene, str], None]


def error_with(face: str, origin: str = "services") -> Plant:
    """Raise an error that leaks by one of its faces."""
    return lambda scene, bait: scene.errors[origin].append(ERRORS[face](bait))


def error_of_pandera(scene: Scene, bait: str) -> None:
    """Break a stock schema of Pandera, which collects cells by design."""
    frame = pd.DataFrame({"cell": [bait]})
    is_other = pandas_backend.Check.isin([f"not {bait}"])
    schema = pandas_backend.DataFrameSchema({"cell": pandas_backend.Column(str)}, checks=is_other)
    errors = caught(lambda: schema.validate(frame, lazy=True))
    assert isinstance(errors, pandera.errors.SchemaErrors)
    scene.errors["pandera"].append(errors)


def validation(scene: Scene, bait: str) -> None:
    """Let a validation name a cell where it names a version and a notice."""
    found = replace(scene.validations[0], policy_version=bait, notices=(bait,))
    scene.validations.append(found)


def recorder(scene: Scene, bait: str) -> None:
    """Let a recorded outcome name a cell."""
    scene.outcomes.append({bait: "failed"})


def carrier(scene: Scene, bait: str) -> None:
    """Keep something whose representation shows what it holds."""
    scene.carriers.append(pd.DataFrame({"cell": bait.split()}))


def column(table: str, name: str) -> Plant:
    """Write bait into a column of schema `governance`: in a copy of a row for another tenant."""

    def plant(scene: Scene, bait: str) -> None:
        ((kind,),) = scene.world.query(
            "SELECT data_type FROM information_schema.columns WHERE table_schema = 'governance'"
            f" AND table_name = '{table}' AND column_name = '{name}'"
        )
        leak = f"convert_to('{bait}', 'UTF8')" if kind == "bytea" else f"'{bait}'::text"
        changed = f"jsonb_build_object('tenant', '{unique_name('tenant')}', '{name}', {leak})"
        scene.world.as_superuser(
            f"INSERT INTO governance.{table} SELECT (jsonb_populate_record(one, {changed})).*"
            f" FROM governance.{table} AS one LIMIT 1",
            triggers=False,
        )

    return plant


def _alter_stages(scene: Scene, name: str, bait: str) -> None:
    scene.world.as_superuser(
        "ALTER TABLE governance.stage DISABLE TRIGGER ALL;"
        f"UPDATE governance.stage SET {name} = '{bait}'"
    )


def snapshot(scene: Scene, bait: str) -> None:
    """Write bait into the snapshots of jobs, which Dagster compresses."""
    with admin_connection(scene.dagster_url) as connection:
        connection.execute(
            "UPDATE snapshots SET snapshot_body = %s", (zlib.compress(bait.encode()),)
        )


def run_tag(scene: Scene, bait: str) -> None:
    """Tag a run with bait; Dagster writes it into two tables."""
    (newest,) = scene.instance.get_runs(limit=1)
    scene.instance.add_run_tags(newest.run_id, {"cell": bait})


def cursor(scene: Scene, bait: str) -> None:
    """Keep bait as Dagster's daemons keep cursors."""
    scene.instance.run_storage.set_cursor_values({"cell": bait})


def dynamic_partition(scene: Scene, bait: str) -> None:
    """Name a partition by bait."""
    scene.instance.add_dynamic_partitions("cells", [bait])


def materialization_event(scene: Scene, bait: str) -> None:
    """Report bait as metadata of an asset."""
    scene.instance.report_runless_asset_event(
        dg.AssetMaterialization("leaky", metadata={"cell": bait})
    )


def check_event(scene: Scene, bait: str) -> None:
    """Report bait as metadata of a check, in a run."""

    @dg.asset_check(asset="leaky", name="leak")
    def leak() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=True, description=bait, metadata={"cell": bait})

    job = dg.define_asset_job("leaking", selection=dg.AssetSelection.all_asset_checks())
    defs = dg.Definitions(asset_checks=[leak], jobs=[job])
    assert defs.resolve_job_def("leaking").execute_in_process(instance=scene.instance).success


def in_a_step(action: Callable[[str], object]) -> Plant:
    """Do something with bait inside an asset; what it returns goes to Dagster's own storage."""

    def plant(scene: Scene, bait: str) -> None:
        @dg.asset
        def leaky() -> object:
            return action(bait)

        dg.materialize([leaky], instance=scene.instance, raise_on_error=False)

    return plant


def log_record(logger: str) -> Plant:
    """Let a logger say bait at DEBUG, beside its message."""
    return lambda _, bait: logging.getLogger(logger).debug("a row", extra={"cell": bait})


def warning(scene: Scene, bait: str) -> None:
    """Warn of bait."""
    warnings.warn(bait, UserWarning, stacklevel=1)


def write(number: int) -> Plant:
    """Write bait to a stream of the process, past Python's own."""

    def plant(scene: Scene, bait: str) -> None:
        os.write(number, bait.encode().hex().encode())

    return plant


def child_print(scene: Scene, bait: str) -> None:
    """Let a child process that inherits the streams print bait."""
    subprocess.run([sys.executable, "-c", "import sys; print(sys.argv[1])", bait], check=True)


def server_message(scene: Scene, bait: str) -> None:
    """Let the server log bait."""
    scene.world.as_superuser(f"DO $$ BEGIN RAISE LOG '%', '{bait}'; END $$")


def literal(scene: Scene, bait: str) -> None:
    """Run a statement with bait written into it instead of beside it."""
    with scene.world.application.engine.connect() as connection:
        connection.execute(text(f"SELECT '{bait}'"))


def temporary_file(scene: Scene, bait: str) -> None:
    """Leave a temporary file behind."""
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(bait.encode())


def state_file(scene: Scene, bait: str) -> None:
    """Write bait into a file beside the keys."""
    (scene.world.application.settings.keys / "note").write_text(bait)


def child_argument(scene: Scene, bait: str) -> None:
    """Start the decoding process with bait among its arguments."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forked, "_PROGRAM", f"{forked._PROGRAM} # {bait}")
        _child(scene)


def child_environment(scene: Scene, bait: str) -> None:
    """Start the decoding process with bait in its environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, bait])
        _child(scene)


def _child(scene: Scene) -> None:
    """Let a child of another server tell of itself, and no later child have what that one has."""
    content = Content(name="a.csv", stored=b"a\n1\n", csv=CsvOptions())
    forked.SERVER.stop()
    scene.children += decode_in_child(content, decoder=f"{DECODERS}:circumstances").to_pylist()
    forked.SERVER.stop()


def validated(*options: str) -> Plant:
    """Validate by a policy that names a rule like a cell, as some command prints it."""

    def plant(scene: Scene, bait: str) -> None:
        rule = {"id": bait, "type": "row_count", "minimum": 1}
        policy = _policy(scene, {"version": "v1", "rules": [rule]})
        scene.command("validate", _rows(scene), "--policy", policy, *options)

    return plant


def refusal(*options: str) -> Plant:
    """Validate by a policy with a key named like a cell, which the refusal names."""

    def plant(scene: Scene, bait: str) -> None:
        policy = _policy(scene, {"version": "v1", "rules": [], bait: 1})
        scene.command("validate", _rows(scene), "--policy", policy, *options)

    return plant


def _policy(scene: Scene, document: Mapping[str, object]) -> str:
    path = scene.rows / "leaky.json"
    path.write_bytes(canonical_bytes(document))
    return str(path)


def _rows(scene: Scene) -> str:
    path = scene.rows / "rows.csv"
    path.write_text("a\n1\n")
    return str(path)


def shown_stage(*options: str) -> Plant:
    """Show a stage whose base is named like a cell."""

    def plant(scene: Scene, bait: str) -> None:
        _alter_stages(scene, "base", bait)
        scene.command("stage", "show", scene.stages()[0].id, *options)

    return plant


def listed_stages(scene: Scene, bait: str) -> None:
    """List stages whose delivery is named like a cell."""
    _alter_stages(scene, "delivery", bait)
    scene.command("stage", "list", "--json")


def listed_violations(*options: str) -> Plant:
    """List violations whose message quotes a cell."""

    def plant(scene: Scene, bait: str) -> None:
        scene.world.as_superuser(
            "ALTER TABLE governance.contract_violation DISABLE TRIGGER ALL;"
            f"UPDATE governance.contract_violation SET message = '{bait}'"
        )
        scene.command("contract", "violations", *options)

    return plant


def verified(*options: str) -> Plant:
    """Verify evidence beside a forged row whose key is bait, which verification names."""

    def plant(scene: Scene, bait: str) -> None:
        scene.world.as_superuser(
            f"INSERT INTO governance.actor VALUES ('default', '{bait}', 'x', now())"
        )
        scene.command("evidence", "verify", *options)

    return plant


def unforeseen(scene: Scene, bait: str) -> None:
    """Fail by an exception whose very class is named like a cell."""

    def fail() -> None:
        raise type(bait, (Exception,), {})

    scene.printing(lambda: run(fail), ("unforeseen",))


def exit_message(scene: Scene, bait: str) -> None:
    """Exit with a text."""
    scene.printing(lambda: sys.exit(bait), ("exit",))
