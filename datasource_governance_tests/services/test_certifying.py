"""A certificate of disposition can be made again, and is believed only if it is the same."""

import json

import pytest

from datasource_governance.domain.actor import Role
from datasource_governance.domain.canonical import canonical_bytes, load_object
from datasource_governance.domain.disposition import PAYLOAD_TYPE
from datasource_governance.domain.envelope import Envelope, seal
from datasource_governance.errors import GuardError
from datasource_governance.services.certifying import certify_disposition, verify_certificate
from datasource_governance.signing import Signer, create_key
from datasource_governance_tests.contents import contents
from datasource_governance_tests.retiring import (
    KEEPER,
    admit_keeper,
    apply_plan,
    declare_kept,
    plan_now,
    publish_at,
    stage_at,
)
from datasource_governance_tests.services.stores import Broken
from datasource_governance_tests.world import World

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@pytest.fixture(scope="module")
def keepers(shared_world: World) -> World:
    admit_keeper(shared_world)
    return shared_world


@pytest.fixture
def staged(keepers: World, own_corner: World) -> World:
    declare_kept(own_corner)
    return own_corner


def destroyed(world: World) -> str:
    """Destroy one of two stages and return the plan's hash."""
    stage, _ = stage_at(world), stage_at(world)
    plan = plan_now(world)
    apply_plan(world, plan, [stage.id])
    return plan.hash


def certified(world: World, plan: str, actor: str = KEEPER) -> Envelope:
    return certify_disposition(world.application.work(), plan, world.signer(actor))


def verified(world: World, content: bytes) -> dict:
    return verify_certificate(world.application.work(), content)


def refusal(world: World, content: bytes) -> GuardError:
    with pytest.raises(GuardError) as caught:
        verified(world, content)
    return caught.value


@pytest.mark.parametrize("actor", [KEEPER, "operator"])
def test_a_certificate_lists_what_was_destroyed_and_verifies(staged, actor):
    plan = destroyed(staged)

    content = certified(staged, plan, actor).encoded()

    document = verified(staged, content)
    assert (document["plan"], document["applied_by"]) == (plan, KEEPER)
    (target,) = document["targets"]
    with staged.application.work() as work:
        stage = work.stages.get(target["id"])
        (version,) = [
            one for one in work.datasources.policies(staged.datasource) if one.kind == "retention"
        ]
    assert target["payload_sha256"] == stage.payload_sha256
    assert (target["state_before"], str(stage.state)) == ("ready", "deleted")
    assert [one["hash"] for one in document["policies"]] == [version.hash]
    assert [one["chain"] for one in document["evidence"]] == [
        f"datasource/{staged.datasource}",
        "tenant",
    ]


def test_certifying_writes_nothing_and_gives_the_same_every_time(staged):
    plan = destroyed(staged)
    before = contents(staged)

    assert certified(staged, plan).payload == certified(staged, plan, "operator").payload
    assert contents(staged) == before


def test_a_certificate_stays_valid_when_its_key_is_revoked_and_more_is_destroyed(staged):
    plan = destroyed(staged)
    leaver = staged.admit("leaver", Role.OPERATOR)
    content = certified(staged, plan, "leaver").encoded()

    staged.revoke(leaver.key)
    apply_plan(staged, plan_now(staged))

    assert verified(staged, content)["plan"] == plan


def test_nothing_is_certified_that_was_not_applied(staged):
    stage_at(staged)
    plan = plan_now(staged).hash

    for unapplied, code in ((plan, "not_applied"), ("f" * 64, "plan_outdated")):
        with staged.refuses(code):
            certified(staged, unapplied)


def test_nothing_is_certified_of_which_an_object_is_still_there(keepers, own_corner):
    declare_kept(own_corner, kind="published", artifact_evaluation="here")
    old = publish_at(own_corner, data=own_corner.store_artifact())
    publish_at(own_corner)
    plan = plan_now(own_corner)
    apply_plan(own_corner, plan, artifacts=Broken(own_corner.application.artifacts()))

    with own_corner.refuses("purge_unfinished"):
        certified(own_corner, plan.hash)
    with pytest.raises(GuardError, match="already"):
        apply_plan(own_corner, plan)
    document = verified(own_corner, certified(own_corner, plan.hash).encoded())
    assert [target["id"] for target in document["targets"]] == [old.id]


def test_whoever_certifies_needs_a_role_and_a_registered_key(staged, tmp_path):
    plan = destroyed(staged)
    create_key(tmp_path, "stranger")
    stranger = Signer(tmp_path, "stranger", "default")

    for actor in ("creator", "approver-1"):
        with staged.refuses("not_authorised"):
            certified(staged, plan, actor)
    with staged.refuses("attestation_invalid"):
        certify_disposition(staged.application.work(), plan, stranger)


def resealed(world: World, document: dict, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """Return what a registered actor who lies would sign."""
    signer = world.signer("creator")
    payload = canonical_bytes(document)
    return seal(payload_type, payload, key=signer.key, sign=signer.sign).encoded()


LIES = {
    "another actor": lambda it: it | {"applied_by": "somebody-else"},
    "nothing destroyed": lambda it: it | {"targets": []},
    "one more": lambda it: it | {"targets": it["targets"] * 2},
    "other rows": lambda it: it | {"targets": [it["targets"][0] | {"rows": 0}]},
    "no policy": lambda it: it | {"policies": []},
    "a promise": lambda it: it | {"statement": "Nothing is left anywhere."},
    "another tenant": lambda it: it | {"tenant": "other"},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_certificate_that_says_anything_else_is_not_believed_whoever_signed_it(staged, lie):
    document = load_object(certified(staged, destroyed(staged)).payload)
    assert verified(staged, resealed(staged, document)) == document

    refused = refusal(staged, resealed(staged, LIES[lie](document)))

    assert refused.code == "certificate_invalid"
    assert "the records say something else" in str(refused)


def test_what_is_signed_as_something_else_is_no_certificate(staged):
    document = load_object(certified(staged, destroyed(staged)).payload)

    for content in (
        b"",
        b"{}",
        canonical_bytes(document),
        resealed(staged, document, "application/json"),
        resealed(staged, {"plan": document["plan"]}),
    ):
        assert refusal(staged, content).code == "certificate_invalid"


def test_a_certificate_with_a_broken_signature_or_of_an_unknown_key_is_not_believed(
    staged, tmp_path
):
    envelope = certified(staged, destroyed(staged))
    create_key(tmp_path, "stranger")
    stranger = Signer(tmp_path, "stranger", "default")
    forged = json.loads(envelope.encoded())
    forged["signatures"][0]["keyid"] = staged.signer("creator").key
    by_stranger = seal(PAYLOAD_TYPE, envelope.payload, key=stranger.key, sign=stranger.sign)

    for content in (canonical_bytes(forged), by_stranger.encoded()):
        refused = refusal(staged, content)
        assert refused.code == "certificate_invalid"
        assert "signature" in str(refused)


ALTERATIONS = {
    "disposition": "DELETE FROM governance.disposition",
    "evidence": (
        """UPDATE governance.evidence SET body = convert_to(replace(
        convert_from(body, 'UTF8'), '"rows":2', '"rows":3'), 'UTF8')"""
    ),
    "retention_plan": (
        """UPDATE governance.retention_plan SET body = convert_to(replace(
        convert_from(body, 'UTF8'), '"rows":2', '"rows":3'), 'UTF8')"""
    ),
}


@pytest.mark.parametrize("table", ALTERATIONS)
def test_records_that_evidence_does_not_tell_of_certify_nothing(world, table):
    admit_keeper(world)
    declare_kept(world)
    plan = destroyed(world)
    content = certified(world, plan).encoded()

    world.tamper(table, ALTERATIONS[table])

    assert refusal(world, content).code == "evidence_chain_broken"
    with pytest.raises(GuardError) as caught:
        certified(world, plan)
    assert caught.value.code == "evidence_chain_broken"
