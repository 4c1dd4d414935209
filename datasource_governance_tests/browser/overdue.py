"""A retention plan of a running system, made by a clock that is ahead, and a vain application."""

import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import make_url

from datasource_governance.cli.founding import ADMINISTRATOR, signer_of
from datasource_governance.cli.supervisor import System
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.hold import HoldScope
from datasource_governance.domain.launch import RETENTION_APPLY_JOB, RETENTION_PLAN_JOB
from datasource_governance.domain.retention_plan import RetentionPlan
from datasource_governance.domain.stage import Stage
from datasource_governance.domain.subjects import hold_subject
from datasource_governance.orchestration.launching import launch, wait_for_run
from datasource_governance.orchestration.plan_metadata import PLAN
from datasource_governance.orchestration.registry import governed_definitions
from datasource_governance.orchestration.retention import APPLY_OP
from datasource_governance.services.holds import HoldRequest, place_hold
from datasource_governance_tests.laptop import client_of
from datasource_governance_tests.postgres import admin_connection

_AHEAD = timedelta(days=730)


@dataclass(frozen=True)
class Overdue:
    """A plan in which a stage is due, and the run that was to apply it after it was held."""

    plan: RetentionPlan
    stage: Stage
    stale_run: str


def plan_and_hold(system: System, stage: Stage) -> Overdue:
    """Plan as if two years had gone by, hold one stage of the plan, and try to apply it."""
    plan = _plan_ahead(system)
    _hold(system, stage)
    client = client_of(system)
    config = {"ops": {APPLY_OP: {"config": {"plan_hash": plan.hash}}}}
    run_id = launch(client, RETENTION_APPLY_JOB, config)
    assert wait_for_run(client, run_id) == "FAILURE"
    return Overdue(plan=plan, stage=stage, stale_run=run_id)


def _plan_ahead(system: System) -> RetentionPlan:
    """Have Dagster make a plan; attestations would be too old by then, so nobody launches it."""
    _set_clock(system, f"pg_catalog.clock_timestamp() + interval '{_AHEAD.days} days'")
    try:
        run = _plan_in_this_process(system)
    finally:
        _set_clock(system, "pg_catalog.clock_timestamp()")
    (event,) = run.get_asset_materialization_events()
    with system.application.work() as work:
        stored = work.retention.plan(str(event.materialization.metadata[PLAN].value))
    assert stored is not None
    return stored.plan


def _set_clock(system: System, now: str) -> None:
    database = make_url(system.connections.governance_url).database
    url = make_url(system.admin_url).set(database=database)
    with admin_connection(url.render_as_string(hide_password=False)) as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION governance.now() RETURNS timestamptz LANGUAGE sql "
            f"VOLATILE AS $$ SELECT {now} $$".encode()
        )


def _plan_in_this_process(system: System) -> dg.ExecuteInProcessResult:
    home = Path(os.environ["GOVERNANCE_STATE"]) / "dagster_home"
    job = governed_definitions([], system.application).resolve_job_def(RETENTION_PLAN_JOB)
    with pytest.MonkeyPatch.context() as environment:
        for name, value in system.connections.environment().items():
            environment.setenv(name, value)
        with dg.DagsterInstance.from_config(str(home)) as instance:
            return job.execute_in_process(instance=instance)


def _hold(system: System, stage: Stage) -> None:
    application, reason = system.application, "a suit"
    signed = hold_subject(stage.datasource, HoldScope.STAGE, stage.id, reason)
    operator = signer_of(application, ADMINISTRATOR)
    place_hold(
        application.work(),
        HoldRequest(
            datasource=stage.datasource,
            scope=HoldScope.STAGE,
            subject=stage.id,
            reason=reason,
            attestation=operator.attest(Action.HOLD_PLACE, signed),
        ),
    )
