import pytest

from datasource_governance.domain.actor import ActorId, Role
from datasource_governance.domain.approval import subject_of
from datasource_governance.domain.attestation import KeyKind, key_id, reason_hash
from datasource_governance.domain.canonical import Sha256, canonical_bytes
from datasource_governance.domain.datasource import parse_datasource
from datasource_governance.domain.subjects import (
    apply_subject,
    decision_subject,
    delivery_subject,
    grant_subject,
    key_subject,
    promotion_subject,
    publication_subject,
    revocation_subject,
    withdrawal_subject,
)
from datasource_governance_tests.builders import policy_document, rule
from datasource_governance_tests.domain.lifecycle import TENANT, sha, stage

ANN = ActorId("ann")
REVIEWED = subject_of(stage(), TENANT)


def declaration(**changes):
    document = {
        "id": "orders",
        "kind": "static",
        "source": {"folder": "deliveries"},
        "promote": "manual",
        "governance": {
            "quality_policy": policy_document(rule()),
            "approval_policy": {"version": "v1", "required": True},
            "retention_policy": {"version": "v1"},
        },
        **changes,
    }
    return parse_datasource(canonical_bytes(document), lambda name: name.encode())


def test_a_decision_is_signed_over_every_hash_reviewed_and_the_reason_s():
    assert decision_subject(REVIEWED, "checked") == {
        "datasource": "orders",
        "stage": "stage-1",
        "stage_fingerprint": stage().fingerprint(TENANT),
        "quality_policy_hash": stage().quality_policy_hash,
        "approval_policy_hash": stage().approval_policy_hash,
        "base": None,
        "reason_hash": reason_hash("checked"),
    }


def test_a_promotion_is_signed_over_every_hash_reviewed():
    assert promotion_subject(REVIEWED) == REVIEWED.document()


def test_a_declaration_is_signed_over_everything_that_comes_into_force():
    declared = declaration()

    assert apply_subject(declared) == {
        "datasource": "orders",
        "kind": "static",
        "promotion": "manual",
        "artifact_evaluation": "evidence",
        "allow_supplied_policy": False,
        "quality_policy": declared.quality_policy.hash,
        "approval_policy": declared.approval_policy.hash,
        "retention_policy": declared.retention_policy.hash,
    }
    assert apply_subject(declaration(governance={})) | {"quality_policy": None} == {
        "datasource": "orders",
        "kind": "static",
        "promotion": "manual",
        "artifact_evaluation": "evidence",
        "allow_supplied_policy": False,
        "quality_policy": None,
        "approval_policy": None,
        "retention_policy": None,
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (delivery_subject("a", sha("f")), delivery_subject("b", sha("f"))),
        (delivery_subject("a", sha("f")), delivery_subject("a", sha("g"))),
        (
            key_subject(ANN, KeyKind.ACTOR, bytes(32), "Ann"),
            key_subject(ANN, KeyKind.GATEWAY, bytes(32), "Ann"),
        ),
        (
            key_subject(ANN, KeyKind.ACTOR, bytes(32), "Ann"),
            key_subject(ANN, KeyKind.ACTOR, bytes(32), "Bob"),
        ),
        (
            key_subject(ANN, KeyKind.ACTOR, bytes(32), "Ann"),
            key_subject(ANN, KeyKind.ACTOR, bytes([1] * 32), "Ann"),
        ),
        (grant_subject(ANN, Role.VIEWER, None), grant_subject(ANN, Role.OPERATOR, None)),
        (grant_subject(ANN, Role.VIEWER, None), grant_subject(ANN, Role.VIEWER, "a")),
        (revocation_subject(sha("a")), revocation_subject(sha("b"))),
        (withdrawal_subject("a"), withdrawal_subject("b")),
    ],
)
def test_no_two_actions_are_signed_over_the_same(one, other):
    assert one != other


def test_a_key_is_signed_for_by_its_id():
    subject = key_subject(ANN, KeyKind.ACTOR, bytes(32), "Ann")

    assert subject["registered_key"] == key_id(bytes(32))


def test_a_publication_is_signed_over_output_and_key_and_over_all_that_comes_with_it():
    named = {
        "datasource": "orders",
        "partition": "2026-01",
        "producer": "flow",
        "idempotency_key": "k1",
    }
    checksum, policy = Sha256("1" * 64), Sha256("2" * 64)

    alone = publication_subject(**named, checksum=checksum)

    assert alone == {**named, "payload": checksum}
    supplied = publication_subject(**named, checksum=checksum, supplied_policy=policy)
    assert supplied == {**alone, "quality_policy": policy}
    evidence = Sha256("3" * 64)
    told = publication_subject(**named, checksum=checksum, evidence=evidence)
    assert told == {**alone, "evidence": evidence}
