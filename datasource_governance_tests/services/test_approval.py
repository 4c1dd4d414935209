import secrets
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from datasource_governance.domain.actor import Role
from datasource_governance.domain.approval import Verdict, subject_of
from datasource_governance.domain.attestation import (
    Action,
    Attestation,
    Claims,
    KeyKind,
    key_id,
    reason_hash,
)
from datasource_governance.domain.canonical import load_canonical
from datasource_governance.domain.evidence import datasource_chain
from datasource_governance.domain.materialization import provenance_of
from datasource_governance.domain.stage import StageState
from datasource_governance.domain.subjects import decision_subject, key_subject
from datasource_governance.services.approval import (
    AttestedDecision,
    decide_stage,
    quorum_at,
    quorum_of,
)
from datasource_governance.services.authority import KeyRegistration, register_key
from datasource_governance.signing import Signer, create_key
from datasource_governance_tests.builders import policy_document, rule
from datasource_governance_tests.world import ONE_ROW_AT_LEAST, TWO_APPROVALS

pytestmark = pytest.mark.postgres

ONE_APPROVAL = {"version": "v1", "required": True}
ONE_HOUR = {**ONE_APPROVAL, "expires_after_hours": 1}
MIDDAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)
TENANT = "default"


@pytest.fixture
def governed(world):
    """Two approvals are needed."""
    world.declare(approval=TWO_APPROVALS)
    return world


def quorum(world, stage):
    with world.application.work() as work:
        return quorum_of(work, stage)


def second_key(world, actor, kind=KeyKind.ACTOR):
    """Return one more registered key of an actor, kept in a directory of its own."""
    directory = world.application.settings.keys / secrets.token_hex(4)
    create_key(directory, actor)
    signer = Signer(directory, actor, TENANT)
    subject = key_subject(signer.actor, kind, signer.public_key, actor)
    register_key(
        world.application.work(),
        KeyRegistration(
            actor=signer.actor,
            display_name=actor,
            kind=kind,
            public_key=signer.public_key,
            attestation=world.signer("admin").attest(Action.KEY_REGISTER, subject),
        ),
    )
    return signer


def approval_by(signer, stage, reason="checked", actor=None):
    """Return what a key signs about a stage."""
    subject = decision_subject(subject_of(stage, TENANT), reason)
    return signer.attest(Action.STAGE_APPROVE, subject, actor=actor)


def test_a_quorum_of_distinct_approvers_holds_and_changes_no_state(governed):
    stage = governed.stage()

    first = governed.decide("approver-1", stage)
    after_one = quorum(governed, stage)
    second = governed.decide("approver-2", stage)
    after_two = quorum(governed, stage)

    assert (after_one.met, after_one.missing) == (False, 1)
    assert (after_two.met, after_two.approvals) == (True, (first, second))
    assert governed.present(stage).state is StageState.AWAITING_APPROVAL


def test_a_decision_is_kept_as_it_was_made(governed):
    stage = governed.stage()

    decision = governed.decide("approver-1", stage, "checked with the supplier")

    with governed.application.work() as work:
        assert list(work.decisions.about(stage.id)) == [decision]
        grant = next(one for one in work.authority.grants(decision.actor))
    assert decision.subject == subject_of(stage, TENANT)
    assert decision.grant_id == grant.id
    assert decision.reason == "checked with the supplier"


def test_no_quorum_exists_where_none_is_required(world):
    world.declare()

    assert quorum(world, world.stage()) is None


def test_where_no_approval_is_required_nothing_can_be_decided(world, subtests):
    for approval in (None, {"version": "v1", "required": False, "required_approvals": 2}):
        world.declare(approval=approval)
        stage = world.stage()
        with subtests.test(str(approval)), world.refuses("not_awaiting_approval"):
            world.decide("approver-1", stage)


def test_two_keys_of_one_actor_are_one_approver(governed):
    stage = governed.stage()
    other_key = second_key(governed, "approver-1")
    governed.decide("approver-1", stage)

    with governed.refuses("already_approved"):
        governed.decide("approver-1", stage, attestation=approval_by(other_key, stage))

    assert not quorum(governed, stage).met


def test_another_spelling_of_one_principal_counts_once(governed, subtests):
    stage = governed.stage()
    governed.decide("approver-1", stage)

    for spelling in ("APPROVER-1", " Approver-1 ", "ａｐｐｒｏｖｅｒ-１", "approver-①"):  # noqa: RUF001 - spellings that NFKC makes one
        signer = second_key(governed, spelling)
        with subtests.test(spelling), governed.refuses("already_approved"):
            governed.decide("approver-1", stage, attestation=approval_by(signer, stage))

    assert not quorum(governed, stage).met


def test_a_look_alike_of_a_principal_owns_no_key(governed):
    with governed.refuses("invalid_argument"):
        governed.admit("аpprover-1", Role.APPROVER)  # noqa: RUF001 - a Cyrillic first letter


def test_an_approval_of_one_stage_does_not_approve_another(governed):
    approved, other = governed.stage(), governed.stage()
    attestation = governed.decision_attestation("approver-1", approved, "checked")

    with governed.refuses("attestation_mismatch"):
        governed.decide("approver-1", other, attestation=attestation)


def test_an_approval_is_used_once(governed):
    stage = governed.stage()
    attestation = governed.decision_attestation("approver-1", stage, "checked")
    governed.decide("approver-1", stage, attestation=attestation)

    with governed.refuses("attestation_used"):
        governed.decide("approver-1", stage, attestation=attestation)


def test_an_expired_approval_is_not_renewed_by_replaying_it(world):
    world.declare(approval=ONE_HOUR)
    world.set_clock(MIDDAY)
    stage = world.stage()
    attestation = world.decision_attestation("approver-1", stage, "checked")
    world.decide("approver-1", stage, attestation=attestation)
    world.set_clock(MIDDAY + HOUR)

    with world.refuses("attestation_used"):
        world.decide("approver-1", stage, attestation=attestation)


def test_a_copied_approval_does_not_count_for_whom_it_was_copied_for(governed):
    stage = governed.stage()
    original = governed.decision_attestation("approver-1", stage, "checked")
    copied = replace(original, claims=replace(original.claims, actor="approver-2"))

    with governed.refuses("attestation_invalid"):
        governed.decide("approver-2", stage, attestation=copied)


def test_altered_claims_prove_nothing(governed, subtests):
    stage = governed.stage()
    original = governed.decision_attestation("approver-1", stage, "checked")
    changes = {
        "tenant": "other",
        "actor": "approver-2",
        "key": "0" * 64,
        "action": Action.STAGE_REJECT,
        "subject": {},
        "issued_at": "2020-01-01T00:00:00+00:00",
        "nonce": "0" * 32,
    }

    for name, value in changes.items():
        altered = replace(original, claims=replace(original.claims, **{name: value}))
        with subtests.test(name), governed.refuses("attestation_invalid"):
            governed.decide("approver-1", stage, attestation=altered)


def test_an_altered_signature_proves_nothing(governed):
    stage = governed.stage()
    original = governed.decision_attestation("approver-1", stage, "checked")
    flipped = bytes([original.signature[0] ^ 1]) + original.signature[1:]

    with governed.refuses("attestation_invalid"):
        governed.decide("approver-1", stage, attestation=replace(original, signature=flipped))


def test_an_unknown_key_proves_nothing(governed):
    stage = governed.stage()
    create_key(governed.application.settings.keys, "stranger")

    with governed.refuses("attestation_invalid"):
        governed.decide("stranger", stage)


def test_a_revoked_key_proves_nothing_any_more(governed):
    stage = governed.stage()
    attestation = governed.decision_attestation("approver-1", stage, "checked")
    governed.revoke(governed.signer("approver-1").key)

    with governed.refuses("attestation_invalid"):
        governed.decide("approver-1", stage, attestation=attestation)


def test_an_actor_key_attests_for_nobody_else(governed):
    stage = governed.stage()
    attestation = approval_by(governed.signer("approver-1"), stage, actor="approver-2")

    with governed.refuses("attestation_invalid"):
        governed.decide("approver-2", stage, attestation=attestation)


def test_a_gateway_key_gives_nobody_a_second_approval(governed):
    stage = governed.stage()
    gateway = second_key(governed, "gateway", KeyKind.GATEWAY)
    governed.decide("approver-1", stage)

    with governed.refuses("already_approved"):
        governed.decide(
            "approver-1", stage, attestation=approval_by(gateway, stage, actor="approver-1")
        )

    assert not quorum(governed, stage).met


def test_a_gateway_key_gives_nobody_authority(governed, subtests):
    stage = governed.stage()
    gateway = second_key(governed, "gateway", KeyKind.GATEWAY)

    for actor in ("creator", "gateway", "nobody", "system", "unattested", "APPROVER-1"):
        # A signer names canonical people only; what arrives may be made by another program.
        claims = replace(approval_by(gateway, stage).claims, actor=actor)
        signature = gateway._private.sign(claims.signed_bytes())
        attestation = Attestation(claims=claims, signature=signature)
        with subtests.test(actor), governed.refuses("not_authorised"):
            governed.decide(actor, stage, attestation=attestation)


def test_only_an_approver_decides(governed, subtests):
    stage = governed.stage()

    for actor in ("operator", "admin", "creator"):
        with subtests.test(actor), governed.refuses("not_authorised"):
            governed.decide(actor, stage)


def test_an_approver_of_another_datasource_does_not_decide_here(governed):
    stage = governed.stage()
    governed.datasource = "other"
    governed.declare()
    governed.admit("neighbour")
    governed.grant("neighbour", Role.APPROVER, "other")

    with governed.refuses("not_authorised"):
        governed.decide("neighbour", stage)


def test_the_creator_cannot_decide_under_separation_of_duties(governed):
    governed.grant("creator", Role.APPROVER)
    stage = governed.stage()

    for verdict in Verdict:
        with governed.refuses("creator_cannot_approve"):
            governed.decide("creator", stage, verdict=verdict)


def test_a_decision_needs_a_reason_that_can_be_kept(governed, subtests):
    stage = governed.stage()

    for reason in ("", "  \t", "x" * 2001, "a\x00b"):
        with subtests.test(repr(reason[:4])), governed.refuses("reason_missing"):
            governed.decide("approver-1", stage, reason)


def test_a_reason_may_have_2000_characters(governed):
    assert governed.decide("approver-1", governed.stage(), "é" * 2000).reason == "é" * 2000


def test_a_signed_reason_cannot_be_replaced(governed):
    stage = governed.stage()
    attestation = governed.decision_attestation("approver-1", stage, "only if the price is right")

    with governed.refuses("attestation_mismatch"):
        governed.decide("approver-1", stage, "fine", attestation=attestation)


def test_a_decision_about_other_hashes_than_the_stage_has_is_refused(governed, subtests):
    stage = governed.stage()
    others = {
        "row_count": 3,
        "payload_fingerprint": "0" * 64,
        "payload_sha256": "0" * 64,
        "quality_policy_hash": "0" * 64,
        "approval_policy_hash": "0" * 64,
        "base": "another",
        "creator": "somebody",
    }

    for name, value in others.items():
        with subtests.test(name), governed.refuses("stage_outdated"):
            governed.decide("approver-1", replace(stage, **{name: value}))


def test_a_stage_is_found_in_its_own_datasource_only(governed):
    stage = governed.stage()
    governed.datasource = "other"
    governed.declare(approval=TWO_APPROVALS)

    with governed.refuses("not_found"):
        governed.decide("approver-1", replace(stage, datasource="other"))


def test_an_approval_ends_at_the_instant_of_its_expiry(world):
    world.declare(approval=ONE_HOUR)
    world.set_clock(MIDDAY)
    stage = world.stage()
    decision = world.decide("approver-1", stage)
    found = []

    for offset in (-TICK, timedelta(0), TICK):
        world.set_clock(MIDDAY + HOUR + offset)
        found.append(quorum(world, stage))

    assert decision.expires_at == MIDDAY + HOUR
    assert [one.met for one in found] == [True, False, False]
    expired = ((decision.id, "expired"),)
    assert [one.not_counted for one in found] == [(), expired, expired]


def test_an_expired_approval_can_be_renewed_and_counts_once(world):
    world.declare(approval={**ONE_HOUR, "required_approvals": 2})
    world.set_clock(MIDDAY)
    stage = world.stage()
    expired = world.decide("approver-1", stage)

    world.set_clock(MIDDAY + HOUR - TICK)
    with world.refuses("already_approved"):
        world.decide("approver-1", stage)
    world.set_clock(MIDDAY + HOUR)
    renewed = world.decide("approver-1", stage)

    found = quorum(world, stage)
    assert found.approvals == (renewed,)
    assert found.not_counted == ((expired.id, "expired"),)


def test_a_quorum_can_be_asked_for_at_an_instant(world):
    world.declare(approval=ONE_HOUR)
    world.set_clock(MIDDAY)
    stage = world.stage()
    world.decide("approver-1", stage)

    with world.application.work() as work:
        assert quorum_at(work, stage, MIDDAY + HOUR - TICK).met
        assert not quorum_at(work, stage, MIDDAY + HOUR).met


def test_an_approval_of_somebody_who_lost_authority_does_not_count(world):
    world.declare(approval=ONE_APPROVAL)
    world.admit("guest")
    grant = world.grant("guest", Role.APPROVER)
    stage = world.stage()
    decision = world.decide("guest", stage)
    world.withdraw(grant)

    assert quorum(world, stage).not_counted == ((decision.id, "authority withdrawn"),)
    with world.refuses("quorum_not_met"):
        world.promote(stage)

    world.grant("guest", Role.APPROVER)
    assert quorum(world, stage).approvals == (decision,)


def test_one_rejection_closes_a_stage_for_good(governed):
    stage = governed.stage()
    governed.decide("approver-1", stage)
    governed.decide("approver-2", stage)

    governed.decide("approver-3", stage, "wrong month", verdict=Verdict.REJECT)

    assert governed.present(stage).state is StageState.REJECTED
    assert not quorum(governed, stage).met
    with governed.refuses("not_awaiting_approval"):
        governed.decide("approver-3", stage)
    with governed.refuses("stage_rejected"):
        governed.promote(stage)


def test_a_rejection_expires_no_more_than_the_stage_reopens(world):
    world.declare(approval=ONE_HOUR)
    world.set_clock(MIDDAY)
    stage = world.stage()
    world.decide("approver-1", stage, verdict=Verdict.REJECT)
    world.set_clock(MIDDAY + HOUR)

    with world.refuses("not_awaiting_approval"):
        world.decide("approver-2", stage)


def test_a_changed_policy_outdates_a_stage_until_it_is_changed_back(governed, subtests):
    stage = governed.stage()
    governed.decide("approver-1", stage)
    changes = {
        "other quality policy": (policy_document(rule(minimum=2)), TWO_APPROVALS),
        "smaller quorum": (ONE_ROW_AT_LEAST, {**TWO_APPROVALS, "required_approvals": 1}),
        "no approval policy": (ONE_ROW_AT_LEAST, None),
    }

    for name, (quality, approval) in changes.items():
        with subtests.test(name):
            governed.declare(quality, approval)
            with governed.refuses("stage_outdated"):
                governed.decide("approver-2", stage)
            with governed.refuses("stage_outdated"):
                governed.promote(stage)
            assert governed.present(stage) == stage

    governed.declare(approval=TWO_APPROVALS)
    governed.decide("approver-2", stage)
    assert governed.promote(stage).created


def test_a_stage_of_another_base_is_superseded_and_takes_no_decision(governed):
    first, second = governed.stage(), governed.stage()
    governed.decide("approver-1", first)
    governed.decide("approver-2", first)
    governed.decide("approver-1", second)
    governed.promote(first)

    assert governed.present(second).state is StageState.SUPERSEDED
    with governed.refuses("not_awaiting_approval"):
        governed.decide("approver-2", second)
    with governed.refuses("stage_outdated"):
        governed.promote(second)


def test_no_reason_leaves_the_governance_tables(governed):
    reason = "zq-canary-reason"
    stage = governed.stage()
    governed.decide("approver-1", stage, reason)
    governed.decide("approver-2", stage, reason)
    materialization = governed.promote(stage).materialization

    bodies = governed.query("SELECT body FROM governance.evidence")
    bodies += governed.query("SELECT body FROM governance.outbox")
    bodies += governed.query("SELECT claims FROM governance.attestation")

    assert reason.encode() not in b"".join(bytes(body) for (body,) in bodies)
    assert reason.encode() not in materialization.provenance
    kept = provenance_of(materialization)["approval"]["approvals"]
    assert {one["reason_hash"] for one in kept} == {reason_hash(reason)}


def test_a_decision_is_evidence_with_its_subject_and_authority(governed):
    stage = governed.stage()

    decision = governed.decide("approver-1", stage)

    with governed.application.work() as work:
        entry = work.evidence.segment(datasource_chain("orders"), stage.id)[-1]
    facts = load_canonical(entry.body)["facts"]
    assert entry.kind == "stage.decided"
    assert facts == {
        **decision.subject.document(),
        "decision": decision.id,
        "verdict": "approve",
        "actor": "approver-1",
        "authority": decision.grant_id,
        "reason_hash": reason_hash("checked"),
        "expires_at": None,
    }


def test_a_decision_is_signed_by_the_key_of_its_actor(governed):
    stage = governed.stage()

    decision = governed.decide("approver-1", stage)

    with governed.application.work() as work:
        claims = work.authority.attestation(decision.attestation_id).claims
    assert isinstance(claims, Claims)
    assert claims.key == key_id(governed.signer("approver-1").public_key)
    assert (claims.actor, claims.action) == ("approver-1", Action.STAGE_APPROVE)


def test_a_rejection_cannot_be_sent_as_an_approval(governed):
    stage = governed.stage()
    attestation = governed.decision_attestation("approver-1", stage, "no", Verdict.REJECT)
    request = AttestedDecision(
        verdict=Verdict.APPROVE,
        reason="no",
        subject=subject_of(stage, TENANT),
        attestation=attestation,
    )

    with governed.refuses("attestation_mismatch"):
        decide_stage(governed.application.work(), request)
