import pytest

from datasource_governance.domain.actor import Role
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.canonical import canonical_bytes, load_canonical
from datasource_governance.domain.datasource import parse_datasource
from datasource_governance.domain.policy_version import PolicyKind, recorded_quality_policy
from datasource_governance.domain.subjects import apply_subject
from datasource_governance.services.declaring import apply_datasource
from datasource_governance_tests.builders import policy_document, rule
from datasource_governance_tests.world import ONE_ROW_AT_LEAST, TWO_APPROVALS

pytestmark = pytest.mark.postgres

OTHER = policy_document(rule(minimum=2), version="v2")


def declaration(kind="static", quality=ONE_ROW_AT_LEAST):
    governance = {"quality_policy": quality, "retention_policy": {"version": "v1"}}
    document = {"id": "orders", "kind": kind, "governance": governance}
    if kind == "static":
        document["source"] = {"folder": "deliveries"}
    return parse_datasource(canonical_bytes(document), lambda name: name.encode())


def signed(world, declared, actor="admin"):
    return world.signer(actor).attest(Action.DATASOURCE_APPLY, apply_subject(declared))


def versions(world):
    with world.application.work() as work:
        return list(work.datasources.policies("orders"))


def test_a_declaration_brings_its_policies_into_force(world):
    declared = declaration()

    applied = apply_datasource(world.application.work(), declared, signed(world, declared))

    assert applied.changed
    assert applied.target.quality_policy_hash == declared.quality_policy.hash
    assert applied.target.retention_policy_hash == declared.retention_policy.hash
    assert (applied.target.approval_policy_hash, applied.target.revision) == (None, 0)
    with world.application.work() as work:
        assert work.datasources.get("orders") == applied.target
    assert world.verification().holds


def test_applying_what_is_in_force_writes_nothing_and_needs_nobody(world):
    declared = declaration()
    apply_datasource(world.application.work(), declared, signed(world, declared))
    before = world.count_rows()

    again = apply_datasource(world.application.work(), declared, signed(world, declared, "creator"))

    assert not again.changed
    assert world.count_rows() == before


def test_a_hash_always_resolves_to_its_text(world):
    first = world.declare(ONE_ROW_AT_LEAST).target
    second = world.declare(OTHER).target

    with world.application.work() as work:
        found = [
            recorded_quality_policy(
                work.datasources.policy("orders", PolicyKind.QUALITY, one.quality_policy_hash)
            )
            for one in (first, second)
        ]

    assert [policy.version for policy in found] == ["v1", "v2"]
    assert [policy.hash for policy in found] == [
        first.quality_policy_hash,
        second.quality_policy_hash,
    ]


def test_a_policy_that_comes_back_is_the_version_it_was(world):
    world.declare(ONE_ROW_AT_LEAST, TWO_APPROVALS)
    first = versions(world)
    world.declare(OTHER)

    world.declare(ONE_ROW_AT_LEAST, TWO_APPROVALS)

    assert [one for one in versions(world) if one in first] == first
    assert len(versions(world)) == len(first) + 1


def test_a_change_of_promotion_is_a_change(world):
    world.declare()

    assert world.declare(promote="automatic").changed
    assert not world.declare(promote="automatic").changed


@pytest.mark.parametrize("actor", ["creator", "operator", "approver-1"])
def test_only_an_administrator_applies(world, actor):
    declared = declaration()

    with world.refuses("not_authorised"):
        apply_datasource(world.application.work(), declared, signed(world, declared, actor))


def test_an_administrator_of_one_datasource_changes_that_one(world):
    world.declare()
    world.grant("operator", Role.ADMINISTRATOR, "orders")
    declared = declaration(quality=OTHER)

    applied = apply_datasource(
        world.application.work(), declared, signed(world, declared, "operator")
    )

    assert applied.changed


def test_a_signed_declaration_cannot_be_replaced(world):
    attestation = signed(world, declaration())

    with world.refuses("attestation_mismatch"):
        apply_datasource(world.application.work(), declaration(quality=OTHER), attestation)


def test_an_old_declaration_is_not_brought_back_by_replaying_it(world):
    first = declaration()
    attestation = signed(world, first)
    apply_datasource(world.application.work(), first, attestation)
    world.declare(OTHER)

    with world.refuses("attestation_used"):
        apply_datasource(world.application.work(), first, attestation)


def test_a_datasource_keeps_its_kind(world):
    world.declare()
    declared = declaration(kind="published")

    with world.refuses("kind_changed"):
        apply_datasource(world.application.work(), declared, signed(world, declared))


def test_a_policy_change_writes_nothing_on_stages(world):
    world.declare()
    stage = world.stage()

    world.declare(OTHER)

    assert world.present(stage) == stage


def test_applying_is_evidence_with_its_author_and_one_event(world):
    target = world.declare(approval=TWO_APPROVALS).target
    facts = {
        "quality_policy_hash": target.quality_policy_hash,
        "approval_policy_hash": target.approval_policy_hash,
        "retention_policy_hash": None,
        "promotion": "manual",
        "artifact_evaluation": "evidence",
        "allow_supplied_policy": False,
        "author": "admin",
    }

    (entry,) = world.query(
        "SELECT kind, body FROM governance.evidence WHERE chain = 'datasource/orders'"
    )
    (event,) = world.query("SELECT type, body FROM governance.outbox")

    assert (entry[0], event[0]) == ("governance.applied", "datasource.governance.applied")
    assert load_canonical(bytes(entry[1]))["facts"] == facts
    assert load_canonical(bytes(event[1]))["facts"] == facts
