"""Promotion over spoiled evidence: whatever it rests on, touching it stops it."""

from dataclasses import replace

import pytest

from datasource_governance.domain.approval import Verdict
from datasource_governance.domain.approval_policy import parse_approval_policy
from datasource_governance.domain.evidence import RowCommitment, datasource_chain
from datasource_governance.persistence import mapping, tables
from datasource_governance.persistence.rows import immutable_commitment, row_key
from datasource_governance_tests.world import TWO_APPROVALS

pytestmark = pytest.mark.postgres


@pytest.fixture
def world(own_corner):
    """Every test has a datasource of its own in the module's database."""
    return own_corner


ONE_APPROVAL = TWO_APPROVALS | {"required_approvals": 1}
CHAIN = "chain = 'datasource/{datasource}'"
DECIDED = CHAIN + " AND subject = '{stage}' AND kind = 'stage.decided'"
OF_STAGE = " WHERE stage = '{stage}'"
# Table, statement, and the guard that is met first.
TAMPERINGS = {
    "an altered reason": (
        "decision",
        "UPDATE governance.decision SET reason = 'x'" + OF_STAGE,
        "evidence_chain_broken",
    ),
    "a later expiry": (
        "decision",
        "UPDATE governance.decision SET expires_at = expires_at + interval '1 microsecond'"
        + OF_STAGE,
        "evidence_chain_broken",
    ),
    "a removed decision": (
        "decision",
        "DELETE FROM governance.decision" + OF_STAGE + " AND actor = 'approver-2'",
        "evidence_chain_broken",
    ),
    "an altered entry": (
        "evidence",
        "UPDATE governance.evidence SET kind = kind || 'x' WHERE " + DECIDED,
        "evidence_chain_broken",
    ),
    "a removed entry in the middle": (
        "evidence",
        "DELETE FROM governance.evidence WHERE " + DECIDED + " AND sequence ="
        " (SELECT min(sequence) FROM governance.evidence WHERE " + DECIDED + ")",
        "evidence_chain_broken",
    ),
    "a removed newest entry": (
        "evidence",
        "DELETE FROM governance.evidence WHERE " + CHAIN + " AND sequence ="
        " (SELECT max(sequence) FROM governance.evidence WHERE " + CHAIN + ")",
        "evidence_chain_broken",
    ),
    "removed evidence of its creation": (
        "evidence",
        "DELETE FROM governance.evidence WHERE subject = '{stage}' AND kind = 'stage.created'",
        "evidence_chain_broken",
    ),
    "no evidence at all": (
        "evidence",
        "DELETE FROM governance.evidence WHERE " + CHAIN,
        "evidence_chain_broken",
    ),
    "an altered head": (
        "evidence_head",
        "UPDATE governance.evidence_head SET sequence = sequence - 1 WHERE " + CHAIN,
        "evidence_chain_broken",
    ),
    "an altered delivery name": (
        "stage",
        "UPDATE governance.stage SET delivery = 'x' WHERE id = '{stage}'",
        "evidence_chain_broken",
    ),
    "an altered validation": (
        "stage",
        "UPDATE governance.stage SET validation = validation || ' ' WHERE id = '{stage}'",
        "evidence_chain_broken",
    ),
    "altered counts": (
        "stage",
        "UPDATE governance.stage SET row_count = row_count + 1 WHERE id = '{stage}'",
        "quorum_not_met",
    ),
    "an altered payload": (
        "stage_payload",
        "UPDATE governance.stage_payload SET payload = payload || ' '" + OF_STAGE,
        "stage_outdated",
    ),
}


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_nothing_is_promoted_over_broken_evidence(world, tampering):
    world.declare(approval=ONE_APPROVAL | {"expires_after_hours": 72})
    stage = world.stage()
    for actor in ("approver-1", "approver-2"):
        world.decide(actor, stage)
    table, statement, code = TAMPERINGS[tampering]
    world.tamper(table, statement.format(stage=stage.id, datasource=world.datasource))

    with world.refuses(code):
        world.promote(world.present(stage))


def test_a_reject_that_was_made_to_disappear_stops_the_promotion(world):
    world.declare(approval=ONE_APPROVAL)
    stage = world.stage()
    world.decide("approver-1", stage)
    world.decide("approver-2", stage, verdict=Verdict.REJECT)
    world.stage()  # so that the newest entry is another one
    names = {"stage": stage.id, "datasource": world.datasource}
    newest = " AND sequence = (SELECT max(sequence) FROM governance.evidence WHERE "
    for table, statement in (
        (
            "decision",
            "DELETE FROM governance.decision WHERE verdict = 'reject' AND stage = '{stage}'",
        ),
        ("evidence", "DELETE FROM governance.evidence WHERE " + DECIDED + newest + DECIDED + ")"),
        ("stage", "UPDATE governance.stage SET state = 'awaiting_approval' WHERE id = '{stage}'"),
    ):
        world.tamper(table, statement.format(**names))

    with world.refuses("evidence_chain_broken"):
        world.promote(world.present(stage))


def test_an_edited_row_stays_edited_whatever_a_later_entry_says_of_it(world):
    world.declare(approval=ONE_APPROVAL)
    stage = world.stage()
    decision = world.decide("approver-1", stage)
    world.tamper(
        "decision", f"UPDATE governance.decision SET reason = 'x' WHERE id = '{decision.id}'"
    )
    edited = mapping.decision_row(replace(decision, reason="x")) | {"tenant": "default"}
    with world.application.work() as work:
        work._rows.notes.append(
            RowCommitment(
                table="decision",
                key=row_key(tables.decision, edited),
                immutable=immutable_commitment(tables.decision, edited),
                mutable=None,
            )
        )
        chain = datasource_chain(world.datasource)
        work.evidence.append(chain, kind="forged", subject=stage.id, facts={}, at=work.now())
        work.commit()

    breaks = world.verification().breaks
    assert ("decision", ("default", decision.id)) in {(one.table, one.key) for one in breaks}
    with world.refuses("evidence_chain_broken"):
        world.promote(stage)


def test_a_policy_lowered_behind_its_hash_lets_nothing_through(world):
    world.declare(approval=TWO_APPROVALS)
    stage = world.stage()
    world.decide("approver-1", stage)
    lowered = parse_approval_policy(TWO_APPROVALS | {"required_approvals": 1}).canonical.hex()
    world.tamper(
        "policy_version",
        f"UPDATE governance.policy_version SET document = '\\x{lowered}'"
        f" WHERE hash = '{stage.approval_policy_hash}' AND datasource = '{world.datasource}'",
    )

    with world.refuses("evidence_chain_broken"):
        world.promote(world.present(stage))


def test_broken_evidence_of_one_datasource_stops_no_other(world):
    elsewhere = replace(world, datasource=world.datasource + "_other")
    elsewhere.declare()
    spoiled = elsewhere.stage()
    elsewhere.tamper(
        "stage", f"UPDATE governance.stage SET delivery = 'x' WHERE id = '{spoiled.id}'"
    )
    world.declare()

    assert world.promote(world.stage()).created


def test_a_decision_that_its_actor_did_not_sign_lets_nothing_through(world):
    world.declare(approval=TWO_APPROVALS)
    stage = world.stage()
    signed = world.decide("approver-1", stage)
    with world.application.work() as work:
        work.decisions.add(
            replace(signed, id="forged", actor="approver-2", attestation_id=stage.attestation_id)
        )
        work.evidence.append(
            datasource_chain(world.datasource),
            kind="stage.decided",
            subject=stage.id,
            facts={},
            at=work.now(),
        )
        work.commit()

    with world.refuses("evidence_chain_broken"):
        world.promote(stage)
