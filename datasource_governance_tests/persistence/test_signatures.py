"""Rows that claim an actor are held against what that actor signed."""

from dataclasses import replace

import pytest

from datasource_governance.domain.actor import Grant, Role
from datasource_governance.domain.attestation import ActorKey, KeyKind, key_id
from datasource_governance.domain.evidence import (
    TENANT_CHAIN,
    BreakKind,
    datasource_chain,
)
from datasource_governance.domain.stage import StageState
from datasource_governance_tests.world import TWO_APPROVALS

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


def write_with_evidence(world, chain, write):
    """Write rows as whoever owns the database could: with consistent evidence, but unsigned."""
    with world.application.work() as work:
        now = work.now()
        write(work, now)
        work.evidence.append(chain, kind="forged", subject="x", facts={}, at=now)
        work.commit()


def unsigned(world):
    return {
        (one.table, one.key[1])
        for one in world.verification().breaks
        if one.kind is BreakKind.UNSIGNED_ROW
    }


def test_what_actors_signed_and_the_founding_are_accounted_for(world):
    world.declare(approval=TWO_APPROVALS)
    world.stage(creator=None)
    stage = world.stage()
    world.decide("approver-1", stage)

    assert world.verification().holds


def test_a_decision_with_somebody_elses_genuine_attestation_is_named(world):
    world.declare(approval=TWO_APPROVALS)
    stage = world.stage()
    decision = world.decide("approver-1", stage)
    borrowed = stage.attestation_id

    write_with_evidence(
        world,
        datasource_chain("orders"),
        lambda work, _: work.decisions.add(
            replace(decision, id="forged", actor="approver-2", attestation_id=borrowed)
        ),
    )

    assert unsigned(world) == {("decision", "forged")}


def test_a_stage_that_claims_a_creator_without_attestation_is_named(world):
    world.declare()
    stage = world.stage(creator=None)

    write_with_evidence(
        world,
        datasource_chain("orders"),
        lambda work, _: work.stages.add(
            replace(stage, id="forged", creator="creator", state=StageState.FAILED), b"payload"
        ),
    )

    assert unsigned(world) == {("stage", "forged")}


def test_a_key_and_a_grant_that_no_administrator_signed_are_named(world):
    public_key = bytes(32)

    def write(work, now):
        work.authority.add_key(
            ActorKey(
                id=key_id(public_key),
                actor="creator",
                kind=KeyKind.GATEWAY,
                public_key=public_key,
                attestation_id=None,
                created_at=now,
            )
        )
        work.authority.add_grant(
            Grant(
                id="forged",
                actor="creator",
                role=Role.ADMINISTRATOR,
                datasource=None,
                attestation_id=None,
                granted_at=now,
            )
        )

    write_with_evidence(world, TENANT_CHAIN, write)

    assert unsigned(world) == {("actor_key", key_id(public_key)), ("role_grant", "forged")}
