"""Real threads on real connections: whatever they do at once, each guard holds."""

import hashlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
import pytest

from datasource_governance.composition import Application
from datasource_governance.domain.approval import Verdict
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.stage import StageState
from datasource_governance.domain.subjects import delivery_subject
from datasource_governance.errors import GovernanceError
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.persistence.repositories import (
    PostgresDatasources,
    PostgresDecisions,
    PostgresStages,
)
from datasource_governance.services.approval import quorum_of
from datasource_governance.services.creating import store_delivery_attestation
from datasource_governance.services.staging import StageRequest, create_stage
from datasource_governance_tests.world import TWO_APPROVALS

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.usefixtures("no_deadlock")]

ONE_APPROVAL = {"version": "v1", "required": True}
THREADS = 16
# What somebody who came too late may be told.
TOO_LATE = {"not_awaiting_approval", "stage_outdated", "quorum_not_met"}


def at_once(world, *acts):
    """Run every act in a thread with connections of its own, all from one instant on.

    Return what each returned, or the code of its refusal.
    """
    start = threading.Barrier(len(acts))

    def run(act):
        own = replace(world, application=Application(world.application.settings))
        with own.application.work():
            pass  # connected before the race begins
        start.wait(timeout=30)
        try:
            return act(own)
        except GovernanceError as refusal:
            return refusal.code
        finally:
            own.application.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


def decisions(world, stage):
    with world.application.work() as work:
        return list(work.decisions.about(stage.id))


def quorum(world, stage):
    with world.application.work() as work:
        return quorum_of(work, stage)


def revision(world):
    with world.application.work() as work:
        return work.datasources.get(world.datasource).revision


def test_a_stage_promoted_many_times_at_once_becomes_one_materialization(world):
    world.declare(approval=ONE_APPROVAL)
    stage = world.stage()
    world.decide("approver-1", stage)
    actors = ["operator", None] * (THREADS // 2)

    found = at_once(world, *(lambda own, by=by: own.promote(stage, by) for by in actors))

    assert sum(one.created for one in found) == 1
    assert len({one.materialization for one in found}) == 1
    assert (world.count_rows()["materialization"], revision(world)) == (1, 1)
    assert world.verification().holds


def approve_many_times_at_once(world, threads):
    stage = world.stage()
    acts = [lambda own: own.decide("approver-1", stage)] * threads
    return stage, at_once(world, *acts)


def test_an_actor_who_approves_many_times_at_once_counts_once(world):
    world.declare(approval=TWO_APPROVALS)

    stage, found = approve_many_times_at_once(world, THREADS)

    (decision,) = decisions(world, stage)
    assert sorted(map(str, found)) == sorted([str(decision), *["already_approved"] * 15])
    assert not quorum(world, stage).met
    assert world.verification().holds


def test_one_attestation_used_many_times_at_once_counts_once(world):
    world.declare(approval=TWO_APPROVALS)
    stage = world.stage()
    attestation = world.decision_attestation("approver-1", stage, "checked")

    found = at_once(
        world,
        *[lambda own: own.decide("approver-1", stage, attestation=attestation)] * 8,
    )

    assert found.count("attestation_used") == 7
    assert len(decisions(world, stage)) == 1


def test_without_locks_an_actor_who_approves_at_once_is_not_held_off(world, monkeypatch):
    """The control: take the locks away, and these tests see it."""
    world.declare(approval=TWO_APPROVALS)
    monkeypatch.setattr(PostgresDatasources, "get_for_update", PostgresDatasources.get)
    monkeypatch.setattr(PostgresStages, "get_for_update", PostgresStages.get)
    about = PostgresDecisions.about

    def read_then_linger(self, stage):
        found = about(self, stage)
        time.sleep(0.1)
        return found

    monkeypatch.setattr(PostgresDecisions, "about", read_then_linger)
    seen = []
    for _ in range(5):
        stage, found = approve_many_times_at_once(world, 4)
        seen.append(len(decisions(world, stage)) > 1 or "conflict" in found)

    assert any(seen)


def test_a_rejection_and_a_promotion_at_once_leave_one_of_both(world):
    world.declare(approval=ONE_APPROVAL)

    for _ in range(5):
        stage = world.stage()
        world.decide("approver-1", stage)
        rejected, promoted = at_once(
            world,
            lambda own, stage=stage: own.decide("approver-2", stage, verdict=Verdict.REJECT),
            lambda own, stage=stage: own.promote(stage),
        )
        state = world.present(stage).state
        if state is StageState.PROMOTED:
            assert promoted.created
            assert rejected in TOO_LATE
        else:
            assert (state, promoted) == (StageState.REJECTED, "stage_rejected")

    assert world.verification().holds


def test_one_attestation_creates_one_stage_from_many_threads(world):
    world.declare()
    payload = TypedPayload(pa.table({"id": [1, 2]}))
    sha256 = Sha256(hashlib.sha256(payload.encoded()).hexdigest())
    asked = StageRequest(
        datasource=world.datasource,
        delivery="delivery.csv",
        file_sha256=sha256,
        attestation_id=world.attest_delivery("creator", sha256),
    )

    def create(own):
        application = own.application
        return create_stage(application.work(), application.evaluator(), payload, asked)

    found = at_once(world, *[create] * 8)

    assert sum(one.created for one in found) == 1
    assert len({one.stage.id for one in found}) == 1
    assert world.count_rows()["stage"] == 1
    assert world.verification().holds


def test_storing_one_attestation_from_many_threads_keeps_one(world):
    world.declare()
    sha256 = Sha256("0" * 64)
    attestation = world.signer("creator").attest(
        Action.STAGE_CREATE, delivery_subject("orders", sha256)
    )
    before = world.count_rows()

    def store(own):
        return store_delivery_attestation(own.application.work(), "orders", sha256, attestation)

    found = at_once(world, *[store] * 8)

    assert found == [attestation.id] * 8
    after = world.count_rows()
    assert {name: after[name] - before[name] for name in after if after[name] != before[name]} == {
        "attestation": 1,
        "evidence": 1,
    }
