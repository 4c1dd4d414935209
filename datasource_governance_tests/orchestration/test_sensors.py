"""The approval-quorum sensor: it asks by state, once at a time, and is never the only guard."""

from dataclasses import replace

import dagster as dg
import pytest

from datasource_governance.composition import Application
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.subjects import withdrawal_subject
from datasource_governance.orchestration import sensors
from datasource_governance.orchestration.assets import GOVERNANCE
from datasource_governance.orchestration.jobs import promotion_run_config
from datasource_governance.orchestration.registry import governed_definitions
from datasource_governance.services.authority import withdraw_grant
from datasource_governance_tests.orchestration.governed import declaration, target
from datasource_governance_tests.world import ONE_ROW_AT_LEAST, TWO_APPROVALS

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
DECLARED = declaration(ONE_ROW_AT_LEAST, TWO_APPROVALS)


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def waiting(world):
    """The world with a stage that waits for two approvals."""
    world.declare(ONE_ROW_AT_LEAST, TWO_APPROVALS)
    return world, world.stage()


def approve(world, stage, *numbers):
    for number in numbers:
        world.decide(f"approver-{number}", stage)


def job_of(world):
    return governed_definitions([DECLARED], world.application).resolve_job_def("promote_orders")


def tick(application, instance, defs=None):
    """Evaluate the sensor once, as the daemon does; without `defs`, in a location just loaded."""
    defs = defs or governed_definitions([DECLARED], application)
    sensor = defs.resolve_sensor_def("approval_quorum")
    resources = {GOVERNANCE: application}
    with dg.build_sensor_context(
        instance=instance, definitions=defs, resources=resources
    ) as context:
        return sensor.evaluate_tick(context)


def launch(world, request, instance, run_config=None):
    return job_of(world).execute_in_process(
        run_config=run_config or request.run_config,
        tags=request.tags,
        instance=instance,
        raise_on_error=False,
    )


def test_it_requests_the_promotion_of_a_stage_whose_quorum_holds(waiting, instance):
    world, stage = waiting
    approve(world, stage, 1, 2)

    (request,) = tick(world.application, instance).run_requests

    assert request.run_key.startswith(f"promote:{stage.id}:0:")
    assert request.job_name == "promote_orders"
    assert request.run_config == promotion_run_config("orders", stage.id)
    assert request.tags[sensors.STAGE_TAG] == stage.id


def test_what_it_requests_makes_the_stage_current(waiting, instance):
    world, stage = waiting
    approve(world, stage, 1, 2)
    (request,) = tick(world.application, instance).run_requests

    run = launch(world, request, instance)

    assert run.success
    with world.application.work() as work:
        assert work.materializations.get(target(world).current).stage == stage.id


def test_with_one_approval_missing_it_requests_nothing(waiting, instance):
    world, stage = waiting
    approve(world, stage, 1)

    found = tick(world.application, instance)

    assert not found.run_requests
    assert found.skip_message == "no stage has a quorum that holds"


def test_after_the_promotion_it_requests_nothing(waiting, instance):
    world, stage = waiting
    approve(world, stage, 1, 2)
    world.promote(stage)

    assert not tick(world.application, instance).run_requests


def test_an_approval_of_somebody_who_may_not_approve_any_more_does_not_count(waiting, instance):
    world, stage = waiting
    approve(world, stage, 1, 2)
    with world.application.work() as work:
        (grant,) = [one.id for one in work.authority.grants("approver-2")]
    attestation = world.signer("admin").attest(Action.ACTOR_WITHDRAW, withdrawal_subject(grant))
    withdraw_grant(world.application.work(), grant, attestation)

    assert not tick(world.application, instance).run_requests


def test_while_a_run_is_under_way_it_does_not_request_another(waiting, instance):
    world, stage = waiting
    approve(world, stage, 1, 2)
    (request,) = tick(world.application, instance).run_requests
    instance.create_run_for_job(
        job_of(world),
        run_config=request.run_config,
        tags=request.tags,
        status=dg.DagsterRunStatus.STARTED,
    )

    assert not tick(world.application, instance).run_requests


def test_a_failed_run_is_not_repeated_at_once(waiting, instance):
    world, stage = waiting
    approve(world, stage, 1, 2)
    (request,) = tick(world.application, instance).run_requests
    run = launch(world, request, instance, promotion_run_config("orders", "no such stage"))

    assert not run.success
    assert not tick(world.application, instance).run_requests


def test_a_failed_run_is_repeated_later_under_a_key_of_its_own(waiting, instance, monkeypatch):
    world, stage = waiting
    approve(world, stage, 1, 2)
    (first,) = tick(world.application, instance).run_requests
    launch(world, first, instance, promotion_run_config("orders", "no such stage"))
    monkeypatch.setattr(sensors, "_FIRST_PAUSE_SECONDS", 0)

    (second,) = tick(world.application, instance).run_requests

    assert second.run_key.startswith(f"promote:{stage.id}:1:")
    assert first.run_key != second.run_key
    assert launch(world, second, instance).success


def test_without_postgres_it_skips_with_a_reason(waiting, instance):
    world, _ = waiting
    settings = replace(
        world.application.settings, database_url="postgresql+psycopg://nobody@127.0.0.1:1/nowhere"
    )

    found = tick(Application(settings), instance)

    assert not found.run_requests
    assert "127.0.0.1:1" in found.skip_message


def test_before_the_declaration_is_applied_it_skips_with_a_reason(world, instance):
    found = tick(world.application, instance)

    assert not found.run_requests
    assert "'orders'" in found.skip_message


def test_what_promotes_by_itself_is_requested_without_any_approval(world, instance):
    world.declare(ONE_ROW_AT_LEAST, promote="automatic")
    stage = world.stage()

    (request,) = tick(world.application, instance).run_requests

    assert launch(world, request, instance).success
    with world.application.work() as work:
        assert work.materializations.get(target(world).current).stage == stage.id


def test_a_ready_stage_that_an_operator_promotes_is_left_to_the_operator(world, instance):
    world.declare(ONE_ROW_AT_LEAST)
    world.stage()

    assert not tick(world.application, instance).run_requests


def test_a_blocked_stage_is_never_requested(world, instance):
    rules = [{"id": "r", "type": "row_count", "minimum": 100}]
    world.declare({"version": "v1", "rules": rules}, promote="automatic")
    world.stage()

    assert not tick(world.application, instance).run_requests


def test_nobody_can_foresee_a_run_key_from_what_dagster_shows(waiting, instance):
    world, stage = waiting
    approve(world, stage, 1, 2)

    (request,) = tick(world.application, instance).run_requests

    digits = request.run_key.rpartition(":")[2]
    with world.application.work() as work:
        *_, newest = work.evidence.segment("datasource/orders", stage.id)
    assert len(digits) == 16
    assert newest.entry_hash.startswith(digits)
    assert digits not in repr(stage)


def test_ticks_that_share_a_memory_and_one_without_request_the_same(waiting, instance):
    world, stage = waiting
    remembering = governed_definitions([DECLARED], world.application)
    assert not tick(world.application, instance, remembering).run_requests
    approve(world, stage, 1, 2)

    found = [
        [one.run_key for one in tick(world.application, instance, defs).run_requests]
        for defs in (remembering, remembering, None)
    ]

    assert len(found[0]) == 1
    assert found[0] == found[1] == found[2]


def test_a_stage_without_evidence_is_not_requested_and_keeps_no_other_waiting(waiting, instance):
    world, stage = waiting
    other = world.stage()
    for one in (stage, other):
        approve(world, one, 1, 2)
    world.tamper("evidence", f"DELETE FROM governance.evidence WHERE subject = '{stage.id}'")

    (request,) = tick(world.application, instance).run_requests

    assert request.tags[sensors.STAGE_TAG] == other.id
