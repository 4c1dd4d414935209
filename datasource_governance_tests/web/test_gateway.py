"""The webserver's own key signs for others, once an administrator registered it."""

import pytest

from datasource_governance.domain.approval import Verdict, subject_of
from datasource_governance.domain.attestation import Action, KeyKind, is_signed, key_id
from datasource_governance.domain.subjects import decision_subject
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.services.approval import AttestedDecision, decide_stage
from datasource_governance.signing import read_public_key
from datasource_governance.web.gateway import Gateway
from datasource_governance_tests.world import TWO_APPROVALS

REASON = "checked"


def decide(world, gateway, stage, actor):
    subject = subject_of(stage, world.application.settings.tenant)
    attestation = gateway.attest(actor, Action.STAGE_APPROVE, decision_subject(subject, REASON))
    request = AttestedDecision(
        verdict=Verdict.APPROVE, reason=REASON, subject=subject, attestation=attestation
    )
    return decide_stage(world.application.work(), request)


def test_the_key_is_made_once_and_only_its_owner_reads_it(tmp_path):
    first, second = (Gateway(tmp_path, "default") for _ in range(2))

    private = tmp_path / "gateway.pem"
    assert first.key == second.key == key_id(read_public_key(first.public_key_file))
    assert private.stat().st_mode & 0o777 == 0o600


def test_a_key_that_cannot_be_used_is_refused_and_not_replaced(tmp_path):
    Gateway(tmp_path, "default")
    (tmp_path / "gateway.pem").write_text("not a key")

    with pytest.raises(InvalidArgumentError):
        Gateway(tmp_path, "default")

    assert (tmp_path / "gateway.pem").read_text() == "not a key"


@pytest.mark.postgres
def test_it_attests_for_whoever_it_names_each_time_anew(world, tmp_path):
    gateway = world.gateway(tmp_path / "gateway")

    made = [gateway.attest("alice", Action.STAGE_APPROVE, {"stage": "s"}) for _ in range(2)]

    with world.application.work() as work:
        key = work.authority.key(gateway.key)
    assert key.kind is KeyKind.GATEWAY
    assert all(one.claims.actor == "alice" and is_signed(one, key) for one in made)
    assert made[0].id != made[1].id


@pytest.mark.postgres
def test_a_registered_gateway_decides_for_an_approver_and_for_nobody_else(world, tmp_path):
    world.declare(approval=TWO_APPROVALS)
    gateway, stage = world.gateway(tmp_path / "gateway"), world.stage()

    assert decide(world, gateway, stage, "approver-1").actor == "approver-1"

    with world.refuses("not_authorised"):
        decide(world, gateway, stage, "gateway")


@pytest.mark.postgres
def test_before_it_is_registered_and_after_it_was_revoked_it_decides_nothing(world, tmp_path):
    world.declare(approval=TWO_APPROVALS)
    stage = world.stage()
    with world.refuses("attestation_invalid"):
        decide(world, Gateway(tmp_path / "gateway", "default"), stage, "approver-1")

    gateway = world.gateway(tmp_path / "gateway")
    world.revoke(gateway.key)

    with world.refuses("attestation_invalid"):
        decide(world, gateway, stage, "approver-1")
