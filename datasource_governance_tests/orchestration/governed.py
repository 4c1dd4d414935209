"""One governed datasource as Dagster runs it, over a real database."""

import csv
import io
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pyarrow as pa

from datasource_governance.domain.canonical import Sha256, canonical_bytes
from datasource_governance.domain.datasource import Datasource, parse_datasource
from datasource_governance.domain.stage import Stage, StageState
from datasource_governance.domain.validation import Outcome
from datasource_governance.orchestration.jobs import promotion_run_config, stage_run_config
from datasource_governance.orchestration.registry import governed_definitions
from datasource_governance_tests.world import World

ID_UNIQUE = {"id": "id-unique", "type": "unique", "field": "id"}
AMOUNT = {"id": "amount", "type": "range", "field": "amount", "minimum": 0}
NOTE = {"id": "note?", "type": "not_null", "field": "note", "severity": "warning"}
POLICY = {"version": "v1", "rules": [ID_UNIQUE, AMOUNT, NOTE]}
FOLDER = "deliveries"
HASH = Sha256("0" * 64)
GOOD = [("id", "amount", "note"), (1, 10, "a"), (2, 20, "b")]
REVIEW = [("id", "amount", "note"), (1, 10, "a"), (2, 20, "")]
GOOD_TABLE = pa.table({"id": [1, 2], "amount": [10, 20], "note": ["a", "b"]})
BLOCKED = [("id", "amount", "note"), (7, 10, "a"), (7, -1, "b")]


def declaration(quality=POLICY, approval=None, **keys) -> Datasource:
    """Return the declaration of `orders`, as `world.declare` records it."""
    governance = {"quality_policy": quality, "approval_policy": approval}
    document = {
        "id": "orders",
        "kind": "static",
        "source": {"folder": FOLDER},
        "governance": {key: policy for key, policy in governance.items() if policy is not None},
        **keys,
    }
    return parse_datasource(canonical_bytes(document), lambda name: Path(name).read_bytes())


def deliver(world: World, rows, name="delivery.csv") -> str:
    """Put a CSV file of rows into the delivery folder; return its name."""
    folder = world.application.settings.state / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    (folder / name).write_text(text.getvalue())
    return name


def definitions(world: World, declared: Datasource, *assets) -> dg.Definitions:
    """Return what a code location of this datasource, and of `assets` beside it, returns."""
    return dg.Definitions.merge(
        governed_definitions([declared], world.application), dg.Definitions(assets=assets)
    )


def stage_run(world, delivery, instance, *, declared=None, attestation=""):
    """Run the stage job in this process; a failure is returned, not raised."""
    defs = definitions(world, declared or declaration())
    return defs.resolve_job_def("stage_orders").execute_in_process(
        run_config=stage_run_config("orders", delivery, attestation),
        instance=instance,
        raise_on_error=False,
    )


def promotion_run(world, stage_id, instance, *, declared=None):
    """Run the promotion job in this process; a failure is returned, not raised."""
    defs = definitions(world, declared or declaration())
    return defs.resolve_job_def("promote_orders").execute_in_process(
        run_config=promotion_run_config("orders", stage_id),
        instance=instance,
        raise_on_error=False,
    )


def stages(world):
    with world.application.work() as work:
        return work.stages.list("orders", ())


def target(world):
    with world.application.work() as work:
        return work.datasources.get("orders")


def checks_of(run):
    """Return the check evaluations of a run by check name."""
    return {one.check_name: one for one in run.get_asset_check_evaluations()}


def failure_of(run):
    """Return how the step that failed ended, as Dagster shows it."""
    (event,) = run.get_step_failure_events()
    return event.step_failure_data


def code_of(run):
    """Return the code of the refusal that ended a run."""
    return failure_of(run).user_failure_data.metadata["datasource_governance/code"].value


def stage_of(rules=(), *, diff=None, outcome="ready") -> Stage:
    """Return a stage whose stored validation holds these rules."""
    validation = {
        "outcome": outcome,
        "policy": {"version": "v1", "hash": HASH},
        "rules": list(rules),
        "schema_diff": diff,
    }
    return Stage(
        id="s-1",
        datasource="orders",
        creator="casey",
        attestation_id=None,
        delivery="delivery.csv",
        delivery_sha256=HASH,
        schema=canonical_bytes([{"name": "id", "type": "integer", "nullable": False}]),
        payload_fingerprint=HASH,
        payload_sha256=HASH,
        row_count=2,
        byte_count=3,
        base=None,
        quality_policy_hash=HASH,
        approval_policy_hash=None,
        approval_required=False,
        policy_source="inherited",
        evaluator_version="1",
        outcome=Outcome(outcome),
        validation=canonical_bytes(validation),
        validation_hash=HASH,
        created_at=datetime(2026, 11, 30, tzinfo=UTC),
        state=StageState.FAILED if outcome == "blocked" else StageState.READY,
    )


def rule_found(rule_id="r", **found):
    """Return one rule of a stored validation; it passed unless told otherwise."""
    return {
        "id": rule_id,
        "type": "unique",
        "severity": "error",
        "status": "passed",
        "affected": 0,
        "rows": [],
        "truncated": False,
        "reason": None,
        "fields": ["id"],
        **found,
    }
