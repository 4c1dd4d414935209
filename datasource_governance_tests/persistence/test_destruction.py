"""What was destroyed is held against the plan that somebody signed to apply, and holds likewise.

Each test writes what whoever owns the database could: rows with consistent evidence.
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from datasource_governance.domain.attestation import Action
from datasource_governance.domain.disposition import Application
from datasource_governance.domain.evidence import TENANT_CHAIN, BreakKind, datasource_chain
from datasource_governance.domain.hold import HoldScope
from datasource_governance.domain.retention_plan import targets_hash
from datasource_governance.domain.subjects import apply_retention_subject
from datasource_governance.persistence import mapping, tables
from datasource_governance_tests.launches import retention_launch
from datasource_governance_tests.persistence.test_signatures import unsigned, write_with_evidence
from datasource_governance_tests.retiring import (
    KEEPER,
    NOW,
    admit_keeper,
    apply_plan,
    declare_kept,
    freeze_as_evidence,
    hold,
    plan_now,
    release,
    stage_at,
)
from datasource_governance_tests.world import World

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

ORDERS = datasource_chain("orders")


@pytest.fixture
def kept(world: World) -> World:
    admit_keeper(world)
    declare_kept(world)
    return world


def test_all_that_is_destroyed_held_and_frozen_is_accounted_for(kept):
    made = [kept.promote(stage_at(kept)).materialization.id for _ in range(3)]
    freeze_as_evidence(kept, made[0])
    release(kept, hold(kept, made[1], HoldScope.MATERIALIZATION).id)
    plan = plan_now(kept)
    apply_plan(kept, plan, [plan.targets[-1].id])
    gateway = kept.gateway(kept.application.settings.state / "webserver")
    launch = kept.launch(gateway, KEEPER, retention_launch())
    apply_plan(kept, plan_now(kept), launch=launch)

    assert kept.verification().holds


def test_a_payload_that_was_purged_under_no_plan_is_named(kept):
    stage = stage_at(kept)

    def write(work, _):
        kept.tamper("stage_payload", "DELETE FROM governance.stage_payload")
        work._rows.note_purge(tables.stage_payload, stage.id)

    write_with_evidence(kept, ORDERS, write)

    (found,) = kept.verification().breaks
    assert (found.kind, found.table, found.key) == (
        BreakKind.MISSING_ROW,
        "stage_payload",
        ("default", stage.id),
    )


def destroyed_without_signature(kept):
    breaks = kept.verification().breaks
    assert {(one.kind, one.table) for one in breaks} == {(BreakKind.UNSIGNED_ROW, "disposition")}
    return {one.key for one in breaks}


def test_what_is_destroyed_beside_what_was_chosen_is_named_with_it(kept):
    stage_at(kept)
    stage_at(kept)
    plan = plan_now(kept)
    first, second = (target.id for target in plan.targets)
    (disposed,) = apply_plan(kept, plan, [first]).targets
    beside = mapping.flat_row(replace(disposed, subject=second))

    write_with_evidence(kept, ORDERS, lambda work, _: work._rows.insert(tables.disposition, beside))

    assert destroyed_without_signature(kept) == {
        ("default", "stage", first),
        ("default", "stage", second),
    }


def test_what_a_plan_blocks_or_does_not_have_is_named_whoever_chose_it(kept):
    due = kept.promote(stage_at(kept)).materialization.id
    later = stage_at(kept, NOW).id
    plan = plan_now(kept)
    targets = [replace(target, blockers=()) for target in plan.targets if target.id == due]
    targets.append(replace(plan.targets[-1], id=later))
    subject = apply_retention_subject(plan.hash, [due, later])
    attestation = kept.signer(KEEPER).attest(Action.RETENTION_APPLY, subject)

    def write(work, now):
        work.authority.add_attestation(attestation, now)
        for target in targets:
            row = {
                "kind": target.kind,
                "subject": target.id,
                "plan": plan.hash,
                "datasource": target.datasource,
                "retention_class": target.retention_class,
                "action": target.action,
                "state_before": "retained",
                "disposed_at": now,
            }
            work._rows.insert(tables.disposition, row)
        work.retention.add_application(
            Application(
                plan=plan.hash,
                actor=KEEPER,
                attestation_id=attestation.id,
                run_id=None,
                targets=targets_hash([due, later]),
                applied_at=now,
            )
        )

    write_with_evidence(kept, ORDERS, write)

    assert destroyed_without_signature(kept) == {
        ("default", str(target.kind), target.id) for target in targets
    }


def borrowed(world, number):
    """Return the id of a genuine attestation, which is for something else."""
    with world.application.work() as work:
        keys = [key.attestation_id for key in work.authority.keys(None) if key.attestation_id]
    return keys[number]


def test_an_application_that_nobody_signed_is_named(kept):
    stage_at(kept)
    plan, other = plan_now(kept), plan_now(kept, at=NOW + timedelta(hours=1))
    done = apply_plan(kept, plan).application
    forged = replace(done, plan=other.hash, attestation_id=borrowed(kept, 0))

    write_with_evidence(kept, TENANT_CHAIN, lambda work, _: work.retention.add_application(forged))

    assert unsigned(kept) == {("retention_application", other.hash)}


def test_a_hold_a_release_and_a_freeze_with_other_words_than_were_signed_are_named(kept):
    made = kept.promote(stage_at(kept)).materialization.id
    other = kept.promote(stage_at(kept)).materialization.id
    placed, frozen = hold(kept), freeze_as_evidence(kept, made)
    released = release(kept, hold(kept).id).released
    others = [borrowed(kept, number) for number in range(3)]

    def write(work, _):
        work.holds.place(replace(placed, id="forged", attestation_id=others[0]))
        work.holds.release(replace(released, hold=placed.id, attestation_id=others[1]))
        work.holds.freeze(replace(frozen, materialization=other, attestation_id=others[2]))

    write_with_evidence(kept, ORDERS, write)

    assert unsigned(kept) == {
        ("legal_hold", "forged"),
        ("hold_release", placed.id),
        ("frozen_evidence", other),
    }
