"""A story that fills every governed table, and every column that may be empty both ways."""

import pyarrow as pa

from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.domain.approval import Verdict
from datasource_governance.domain.hold import HoldScope
from datasource_governance.domain.outbox import MAXIMUM_ATTEMPTS
from datasource_governance.domain.producer_evidence import ProducerEvidence
from datasource_governance.domain.rule_outcome import Status
from datasource_governance.monitoring.monitor import Monitor
from datasource_governance.services.delivering import deliver
from datasource_governance.services.retention import PlanRequest, plan_retention
from datasource_governance.web.gateway import Gateway
from datasource_governance_tests.builders import quality_policy, rule
from datasource_governance_tests.domain.contracts import odcs
from datasource_governance_tests.launches import (
    publication_launch,
    retention_launch,
    stage_launch,
)
from datasource_governance_tests.receiving import Deaf
from datasource_governance_tests.refreshing import ToldOrigin, refreshed_stage
from datasource_governance_tests.retiring import (
    KEEPER,
    admit_keeper,
    apply_plan,
    declare_kept,
    freeze_as_evidence,
    hold,
    plan_now,
    release,
    stage_at,
)
from datasource_governance_tests.world import ONE_ROW_AT_LEAST, World

ONE_APPROVAL = {"version": "v1", "required": True, "required_approvals": 1}
EXPIRING = {**ONE_APPROVAL, "version": "v2", "expires_after_hours": 72}
TWO_ROWS_AT_LEAST = {"version": "v2", "rules": [{"id": "r", "type": "row_count", "minimum": 2}]}
AWAY = {"property": "table", "value": {"url_variable": "NOT_SET", "table": "orders"}}
FOR_A_YEAR = {"version": "v1", "enabled": True, "stage_days": 365}


def tell(world: World) -> None:
    """Let people come and go, and two datasources live through every state of a stage."""
    _come_and_go(world)
    _live_through_every_state(world)
    _stay_unattested(world)
    gateway = world.gateway(world.application.settings.state / "webserver")
    world.stage(None, launch=world.launch(gateway, "creator", stage_launch()))
    _refresh(World(world.application, world.database, "feeds"))
    _retain_and_destroy(World(world.application, world.database, "records"), gateway)
    _publish(world)
    _watch(World(world.application, world.database, "promised"))
    _deliver_in_vain(world)


def _come_and_go(world: World) -> None:
    leaver = world.admit("leaver")
    world.declare(approval=ONE_APPROVAL)
    world.withdraw(world.grant("leaver", Role.VIEWER, world.datasource))
    world.revoke(leaver.key)


def _live_through_every_state(world: World) -> None:
    world.stage(table=pa.table({"id": pa.array([], pa.int64())}))
    _promote_approved(world)
    world.decide("approver-1", world.stage(), "not this one", Verdict.REJECT)
    world.stage()  # superseded by the next promotion
    _promote_approved(world)
    world.declare(TWO_ROWS_AT_LEAST, EXPIRING, retention=FOR_A_YEAR)
    world.decide("approver-2", world.stage())


def _promote_approved(world: World) -> None:
    stage = world.stage()
    world.decide("approver-1", stage)
    world.promote(stage)


def _stay_unattested(world: World) -> None:
    other = World(world.application, world.database, "countries")
    other.declare(ONE_ROW_AT_LEAST, retention={})
    other.stage(creator=None)


def _refresh(feeds: World) -> None:
    feeds.declare(kind="cached")
    refreshed_stage(feeds, ToldOrigin(version="v1"))


def _retain_and_destroy(records: World, gateway: Gateway) -> None:
    admit_keeper(records)
    declare_kept(records)
    frozen, held, *_ = (records.promote(stage_at(records)).materialization.id for _ in range(4))
    freeze_as_evidence(records, frozen)
    hold(records, held, HoldScope.MATERIALIZATION)
    release(records, hold(records).id)
    plan = plan_now(records)
    apply_plan(records, plan, [plan.targets[-1].id])
    of_all = plan_retention(records.application.work(), PlanRequest(actor="operator"))
    apply_plan(records, of_all, launch=records.launch(gateway, KEEPER, retention_launch()))
    records.release_clock()


def _publish(world: World) -> None:
    outputs = World(world.application, world.database, "outputs")
    outputs.declare(ONE_ROW_AT_LEAST, kind="published", allow_supplied_policy=True)
    outputs.grant(SYSTEM, Role.PRODUCER)
    world.admit("maker", Role.PRODUCER)
    signed = outputs.publication_attestation("maker", "inline")
    outputs.publish(key="inline", attestation=signed)
    outputs.publish(key="supplied", supplied_policy=quality_policy(rule()), partition="january")
    outputs.publish(key="launched", launch=publication_launch("outputs"))
    unproven = ONE_APPROVAL | {"separation_of_duties": False}  # `system` publishes for anybody
    outputs.declare(ONE_ROW_AT_LEAST, unproven, kind="published")
    artifact = outputs.store_artifact()
    evidence = ProducerEvidence(
        artifact_sha256=artifact.sha256, policy_hash=artifact.sha256, evaluator="flow 1", results=()
    )
    made = outputs.publish(artifact, key="artifact", partition="january", evidence=evidence)
    outputs.publish(key="waiting")
    with world.application.work() as work:
        stage = work.stages.get(made.stage)
    outputs.decide("approver-1", stage)
    outputs.promote(stage)


def _watch(promised: World) -> None:
    """Let contracts hold, break, hold again, and end while they are broken."""
    contracts = [odcs(), odcs(id="absent", customProperties=[AWAY])]
    promised.declare(kind="published", contracts=contracts)
    promised.publish()
    monitor = Monitor(application=promised.application, environment={})
    assert {check.status for check in monitor.run_due()} >= {Status.PASSED, Status.ERROR}
    promised.declare(kind="published", contracts=[contracts[0]])
    outputs = {"first": {"id": [1], "more": [1]}, "second": {"id": [1]}}
    for partition, columns in outputs.items():
        promised.publish(pa.table(columns), key=partition, partition=partition)
        assert [*monitor.run_due()]


def _deliver_in_vain(world: World) -> None:
    for _ in range(MAXIMUM_ATTEMPTS):
        deliver(world.application.work, [Deaf("deaf")], heeds_pauses=False)
