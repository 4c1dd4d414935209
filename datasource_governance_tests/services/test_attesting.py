from dataclasses import replace

import pytest

from datasource_governance.domain.actor import ActorId, Role
from datasource_governance.domain.attestation import Action, Attestation
from datasource_governance.errors import GovernanceError, GuardError
from datasource_governance.services.attesting import attest, authorise
from datasource_governance_tests.world import new_world

pytestmark = pytest.mark.postgres

SUBJECT = {"stage": "s"}


def prove(work, attestation, action=Action.STAGE_PROMOTE, subject=SUBJECT):
    return attest(work, attestation, action=action, subject=subject, now=work.now())


def signed(world, actor="operator"):
    return world.signer(actor).attest(Action.STAGE_PROMOTE, SUBJECT)


def test_an_attestation_proves_who_did_it_and_is_kept(world):
    attestation = signed(world)

    with world.application.work() as work:
        actor = prove(work, attestation)
        kept = work.authority.attestation(attestation.id)

    assert actor == "operator"
    assert kept == attestation


def test_an_attestation_proves_something_once(world):
    attestation = signed(world)

    with world.application.work() as work:
        prove(work, attestation)
        with pytest.raises(GuardError) as caught:
            prove(work, attestation)

    assert caught.value.code == "attestation_used"


def test_a_nonce_is_used_once_whatever_else_was_signed(world):
    signer = world.signer("operator")
    first = signed(world)
    claims = replace(first.claims, subject={"stage": "another"})
    second = Attestation(claims=claims, signature=signer._private.sign(claims.signed_bytes()))

    with world.application.work() as work:
        prove(work, first)
        prove(work, second, subject={"stage": "another"})
        with pytest.raises(GuardError) as caught:
            work.now()  # whatever is asked next, or the commit

    assert caught.value.code == "conflict"


def test_an_attestation_for_one_tenant_proves_nothing_in_another(
    world, governance_database, tmp_path
):
    other = new_world(governance_database, tmp_path / "other", tenant="other")

    with world.application.work() as work, pytest.raises(GuardError) as unknown_key:
        prove(work, signed(other))
    claims = replace(signed(world).claims, tenant="other")
    signature = world.signer("operator")._private.sign(claims.signed_bytes())
    with world.application.work() as work, pytest.raises(GuardError) as wrong_tenant:
        prove(work, Attestation(claims=claims, signature=signature))

    assert unknown_key.value.code == "attestation_invalid"
    assert wrong_tenant.value.code == "attestation_mismatch"
    other.application.close()


def test_what_was_attested_is_not_committed_without_evidence(world):
    with world.application.work() as work:
        prove(work, signed(world))
        with pytest.raises(GovernanceError, match="attestation were written without evidence"):
            work.commit()

    assert world.query("SELECT 1 FROM governance.attestation WHERE action = 'stage.promote'") == []


def test_authority_is_found_for_the_datasource_asked_about(world):
    world.declare()
    grant = world.grant("creator", Role.APPROVER, "orders")

    with world.application.work() as work:
        found = authorise(work, ActorId("creator"), Role.APPROVER, "orders")
        for elsewhere in ("other", None):
            with pytest.raises(GuardError) as caught:
                authorise(work, ActorId("creator"), Role.APPROVER, elsewhere)
            assert caught.value.code == "not_authorised"

    assert found.id == grant
