"""Rows that claim an actor are held against what that actor signed."""

from dataclasses import replace

import pytest

from datasource_governance.domain.actor import Grant, Role
from datasource_governance.domain.attestation import Action, ActorKey, KeyKind, key_id
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.evidence import (
    TENANT_CHAIN,
    BreakKind,
    datasource_chain,
)
from datasource_governance.domain.materialization import provenance_of
from datasource_governance.domain.producer_evidence import (
    ProducerEvidence,
    ResultStatus,
    RuleResult,
)
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.stage import StageState
from datasource_governance.domain.subjects import launch_subject, publication_subject
from datasource_governance_tests.launches import promotion_launch, stage_launch
from datasource_governance_tests.world import ONE_ROW_AT_LEAST, TWO_APPROVALS

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


@pytest.fixture
def launched(world):
    """A world with a stage and a promotion that were launched through a gateway."""
    gateway = world.gateway(world.application.settings.state / "webserver")
    world.declare()
    stage = world.stage(None, launch=world.launch(gateway, "creator", stage_launch()))
    launch = world.launch(gateway, "operator", promotion_launch(stage.id))
    made = world.promote(stage, None, launch).materialization
    return world, gateway, stage, made


def attested(world, signer, launch, actor="creator"):
    """Keep what a key signed about a launch as whoever owns the database could; return its id."""
    attestation = signer.attest(
        actor=actor, action=Action.RUN_LAUNCH, subject=launch_subject(launch)
    )
    write_with_evidence(
        world, TENANT_CHAIN, lambda work, now: work.authority.add_attestation(attestation, now)
    )
    return attestation.id


def forge_stage(world, stage, **changes):
    forged = replace(stage, id="forged", state=StageState.FAILED, **changes)
    write_with_evidence(
        world, datasource_chain("orders"), lambda work, _: work.stages.add(forged, b"payload")
    )


def test_what_was_launched_through_a_gateway_is_accounted_for(launched):
    world, _, stage, made = launched

    assert (stage.creator, made.created_by) == ("creator", "operator")
    assert world.verification().holds


def test_a_stage_is_not_of_whoever_launched_something_else(launched):
    world, gateway, stage, _ = launched
    other = stage_launch("countries", "run-3")

    forge_stage(world, stage, attestation_id=attested(world, gateway, other))

    assert unsigned(world) == {("stage", "forged")}


def test_a_stage_is_not_of_another_than_who_launched_it(launched):
    world, gateway, stage, _ = launched
    launch = attested(world, gateway, stage_launch(run_id="run-3"), "operator")

    forge_stage(world, stage, attestation_id=launch)

    assert unsigned(world) == {("stage", "forged")}


def test_an_actors_own_key_proves_no_launch(launched):
    world, _, stage, _ = launched
    launch = attested(world, world.signer("creator"), stage_launch(run_id="run-3"))

    forge_stage(world, stage, attestation_id=launch)

    assert unsigned(world) == {("stage", "forged")}


@pytest.mark.parametrize("signed", [stage_launch(run_id="run-3"), None])
def test_a_run_with_somebody_elses_attestation_is_named(launched, signed):
    world, gateway, *_ = launched
    attestation_id = (
        attested(world, gateway, signed) if signed else world.attest_delivery("creator", "0" * 64)
    )

    write_with_evidence(
        world,
        TENANT_CHAIN,
        lambda work, _: work.authority.add_launch_attestation("forged", attestation_id),
    )

    assert unsigned(world) == {("run_attestation", "forged")}


@pytest.mark.parametrize("kept", ["passed", "deferred"])
def test_a_publication_with_other_evidence_than_was_signed_is_named(world, kept):
    world.declare(kind="published")
    signer, reference = world.admit("maker", Role.PRODUCER), world.store_artifact()
    result = RuleResult(id="r", status=ResultStatus.PASSED)
    evidence = ProducerEvidence(
        artifact_sha256=reference.sha256,
        policy_hash=parse_quality_policy(ONE_ROW_AT_LEAST).hash,
        evaluator="the producer's",
        results=(result,),
    )
    subject = publication_subject(
        datasource="orders",
        partition="",
        producer="flow",
        idempotency_key="k1",
        checksum=reference.sha256,
        evidence=evidence.hash,
    )
    attestation = signer.attest(Action.PUBLICATION_CREATE, subject)
    made = world.publish(reference, evidence=evidence, attestation=attestation).publication
    other = replace(evidence, results=(replace(result, status=ResultStatus(kept)),))

    world.tamper(
        "publication",
        "UPDATE governance.publication SET evidence ="
        f" decode('{canonical_bytes(other.document()).hex()}', 'hex')",
    )

    assert unsigned(world) == (set() if other == evidence else {("publication", made.id)})


def forge_promotion(world, made, actor, named):
    """Rewrite a promotion behind the triggers, and everything that evidence says about it."""
    provenance = canonical_bytes({**provenance_of(made), "promotion_attestation": named}).hex()
    world.tamper(
        "materialization",
        f"UPDATE governance.materialization SET created_by = '{actor}',"
        f" provenance = decode('{provenance}', 'hex') WHERE id = '{made.id}'",
    )


@pytest.mark.parametrize("actor", ["operator", "creator"])
def test_a_promotion_in_the_name_of_who_launched_none_is_named(launched, actor):
    world, gateway, _, made = launched
    other = attested(world, gateway, stage_launch(run_id="run-3"), actor)

    forge_promotion(world, made, actor, other)

    assert unsigned(world) == {("materialization", made.id)}


def test_a_promotion_that_names_nothing_rests_on_what_its_operator_signed(world):
    world.declare()
    made = world.promote(world.stage()).materialization
    forge_promotion(world, made, "operator", None)
    assert unsigned(world) == set()

    forge_promotion(world, made, "creator", None)

    assert unsigned(world) == {("materialization", made.id)}
