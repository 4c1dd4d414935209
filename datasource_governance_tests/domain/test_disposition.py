from dataclasses import replace

import pytest

from datasource_governance.domain.canonical import canonical_bytes, load_object
from datasource_governance.domain.disposition import (
    WHAT_PURGING_IS_NOT,
    AlreadyAppliedError,
    Application,
    Applied,
    DisposedTarget,
    DispositionCertificate,
    certified_plan,
)
from datasource_governance.domain.evidence import TENANT_CHAIN, Head, genesis, link
from datasource_governance.domain.retention import TargetKind
from datasource_governance.domain.retention_plan import targets_hash
from datasource_governance_tests.retained import AS_OF, candidate, governing, plan_of

PLAN = plan_of(
    candidate("s1"),
    candidate("s2"),
    candidate("m1", TargetKind.MATERIALIZATION),
    policies=[governing(), governing("customers")],
)
APPLICATION = Application(
    plan=PLAN.hash,
    actor="ada",
    attestation_id="a1",
    run_id=None,
    targets=targets_hash(["s1", "m1"]),
    applied_at=AS_OF,
)
HEAD = Head(
    tenant="default", chain=TENANT_CHAIN, sequence=0, entry_hash=genesis("default", TENANT_CHAIN)
)
ENTRY = link(HEAD, kind="retention.applied", subject=PLAN.hash, facts={}, rows=[], at=AS_OF)


def disposed(name):
    planned = next(one for one in PLAN.targets if one.id == name)
    return DisposedTarget(
        plan=PLAN.hash,
        kind=planned.kind,
        subject=name,
        datasource=planned.datasource,
        retention_class=planned.retention_class,
        action=planned.action,
        state_before="ready" if planned.kind is TargetKind.STAGE else "retained",
        disposed_at=AS_OF,
    )


CERTIFICATE = DispositionCertificate(
    plan=PLAN,
    application=APPLICATION,
    targets=(disposed("s1"), disposed("m1")),
    evidence=(ENTRY,),
)


def test_a_certificate_lists_what_was_destroyed_under_which_policy_by_whom():
    document = CERTIFICATE.document()

    assert document["plan"] == PLAN.hash
    assert document["applied_by"] == "ada"
    assert document["applied_at"] == "2024-06-30T12:00:00+00:00"
    assert [one["datasource"] for one in document["policies"]] == ["orders"]
    assert [(one["id"], one["action"], one["state_before"]) for one in document["targets"]] == [
        ("m1", "purge", "retained"),
        ("s1", "delete", "ready"),
    ]
    assert document["targets"][1]["payload_sha256"] == "a" * 64
    assert document["evidence"] == [
        {"chain": "tenant", "sequence": 1, "entry_hash": ENTRY.entry_hash}
    ]


def test_a_certificate_says_what_purging_is_not():
    assert CERTIFICATE.document()["statement"] == WHAT_PURGING_IS_NOT
    for place in ("pages", "write-ahead logs", "backups"):
        assert place in WHAT_PURGING_IS_NOT


def test_a_certificate_made_again_is_the_same_to_the_byte():
    again = replace(CERTIFICATE, targets=CERTIFICATE.targets[::-1])

    assert again.payload() == CERTIFICATE.payload()
    assert load_object(again.payload()) == CERTIFICATE.document()


def test_a_certificate_names_its_plan():
    assert certified_plan(CERTIFICATE.payload()) == PLAN.hash


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        canonical_bytes({**CERTIFICATE.document(), "format": "other"}),
        canonical_bytes({**CERTIFICATE.document(), "plan": 1}),
    ],
    ids=["nothing", "no text", "no object", "empty", "another format", "no plan"],
)
def test_anything_else_names_no_plan(payload):
    assert certified_plan(payload) is None


def test_applying_again_carries_the_first_result():
    first = Applied(application=APPLICATION, targets=CERTIFICATE.targets)

    error = AlreadyAppliedError(first)

    assert (error.code, error.exit_code, error.first) == ("already_applied", 1, first)
    assert "by 'ada' at 2024-06-30T12:00:00+00:00, to 2 target(s)" in str(error)
