"""Legal holds are placed and released by two people, and frozen evidence stays so."""

import pytest

from datasource_governance.domain.actor import Role
from datasource_governance.domain.attestation import Action, reason_hash
from datasource_governance.domain.canonical import load_object
from datasource_governance.domain.evidence import datasource_chain
from datasource_governance.domain.hold import HoldScope
from datasource_governance.domain.retention import BlockerKind, RetentionClass
from datasource_governance.domain.subjects import hold_subject
from datasource_governance.services.holds import HoldRequest, place_hold
from datasource_governance_tests.retiring import (
    KEEPER,
    admit_keeper,
    apply_plan,
    declare_kept,
    freeze_as_evidence,
    hold,
    plan_now,
    publish_at,
    release,
    stage_at,
)
from datasource_governance_tests.world import World

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

REASON = "the canary of reasons 9c21"
NOBODYS = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def keepers(shared_world: World) -> World:
    admit_keeper(shared_world)
    shared_world.admit("counsel", Role.OPERATOR, Role.ADMINISTRATOR)
    return shared_world


@pytest.fixture
def kept(keepers: World, own_corner: World) -> World:
    """A datasource that producers publish to, with one stage's days and a clock in the past."""
    declare_kept(own_corner, kind="published")
    return own_corner


@pytest.fixture
def staged(keepers: World, own_corner: World) -> World:
    """A datasource that deliveries are staged for."""
    declare_kept(own_corner)
    return own_corner


def blockers(world: World) -> dict[str, list[tuple[BlockerKind, tuple[str, ...]]]]:
    """Return what blocks each target that is due in a world."""
    return {
        target.id: [(one.kind, one.ids) for one in target.blockers]
        for target in plan_now(world).targets
    }


def holds(world: World, *, active: bool) -> list[str]:
    with world.application.work() as work:
        return [one.id for one in work.holds.list(world.datasource, active=active)]


def facts_about(world: World, subject: str) -> list[tuple[str, dict]]:
    with world.application.work() as work:
        segment = work.evidence.segment(datasource_chain(world.datasource), subject)
    return [(entry.kind, load_object(entry.body)["facts"]) for entry in segment]


def test_a_hold_on_a_stage_blocks_that_stage_alone_until_it_is_released(staged):
    one, other = stage_at(staged), stage_at(staged)

    held = hold(staged, one.id, HoldScope.STAGE)

    assert blockers(staged) == {one.id: [(BlockerKind.LEGAL_HOLD, (held.id,))], other.id: []}
    release(staged, held.id)
    assert blockers(staged) == {one.id: [], other.id: []}


def test_a_hold_on_a_materialization_blocks_that_one_alone(kept):
    first, second, _ = (publish_at(kept) for _ in range(3))

    held = hold(kept, first.id, HoldScope.MATERIALIZATION)

    due = blockers(kept)
    assert due[first.id] == [(BlockerKind.LEGAL_HOLD, (held.id,))]
    assert due[second.id] == []


def test_a_hold_on_a_datasource_blocks_what_it_has_and_what_it_will_have(staged):
    before = stage_at(staged)
    held = hold(staged)
    after = stage_at(staged)

    blocked = [(BlockerKind.LEGAL_HOLD, (held.id,))]
    assert blockers(staged) == {before.id: blocked, after.id: blocked}


def test_any_active_hold_blocks_and_all_are_named(staged):
    stage = stage_at(staged)
    first = hold(staged, stage.id, HoldScope.STAGE)
    second = hold(staged)

    assert blockers(staged)[stage.id] == [
        (BlockerKind.LEGAL_HOLD, tuple(sorted([first.id, second.id])))
    ]
    release(staged, first.id)
    assert blockers(staged)[stage.id] == [(BlockerKind.LEGAL_HOLD, (second.id,))]


def test_holds_are_listed_with_their_releases_and_never_forgotten(staged):
    first, second = hold(staged), hold(staged)

    released = release(staged, first.id, reason=REASON)

    assert holds(staged, active=True) == [second.id]
    assert sorted(holds(staged, active=False)) == sorted([first.id, second.id])
    with staged.application.work() as work:
        assert work.holds.get(first.id) == released
    assert (released.released.actor, released.released.reason) == (KEEPER, REASON)


def test_evidence_and_events_tell_of_a_hold_without_its_reasons(staged):
    held = hold(staged, reason=REASON)
    release(staged, held.id, reason=REASON + "!")

    (placed, of_placing), (released, of_releasing) = facts_about(staged, held.id)

    assert (placed, released) == ("hold.placed", "hold.released")
    assert of_placing["reason_hash"] == reason_hash(REASON)
    assert of_releasing["reason_hash"] == reason_hash(REASON + "!")
    assert (of_releasing["placed_by"], of_releasing["actor"]) == ("operator", KEEPER)
    assert not staged.query(
        "SELECT FROM governance.outbox WHERE convert_from(body, 'UTF8') LIKE '%canary%'"
    )


@pytest.mark.parametrize("reason", ["", " ", "x" * 2001, "a\0b"], ids=len)
def test_a_hold_without_a_reason_that_can_be_kept_is_refused(staged, reason):
    with staged.refuses("reason_missing"):
        hold(staged, reason=reason)


def test_only_an_operator_places_a_hold(staged):
    for actor in (KEEPER, "creator", "approver-1"):
        with staged.refuses("not_authorised"):
            hold(staged, actor=actor)


def test_only_an_administrator_releases_a_hold(staged):
    held = hold(staged)
    staged.admit("other-operator", Role.OPERATOR)

    with staged.refuses("not_authorised"):
        release(staged, held.id, actor="other-operator")


def test_whoever_placed_a_hold_does_not_release_it_whatever_their_roles(staged):
    held = hold(staged, actor="counsel")

    with staged.refuses("second_actor_required"):
        release(staged, held.id, actor="counsel")
    release(staged, held.id, actor=KEEPER)


def test_a_hold_is_released_once(staged):
    held = hold(staged)
    release(staged, held.id)

    with staged.refuses("hold_released"):
        release(staged, held.id, actor="admin")


@pytest.mark.parametrize("scope", HoldScope)
def test_what_does_not_exist_cannot_be_held(staged, scope):
    with staged.refuses("not_found"):
        hold(staged, NOBODYS, scope)


def test_a_stage_is_not_held_under_another_name(staged):
    stage = stage_at(staged)

    with staged.refuses("not_found"):
        hold(staged, stage.id, HoldScope.MATERIALIZATION)


def test_an_attestation_places_just_the_hold_that_it_was_signed_for(staged):
    one, other = stage_at(staged), stage_at(staged)
    signed = hold_subject(staged.datasource, HoldScope.STAGE, one.id, REASON)
    attestation = staged.signer("operator").attest(Action.HOLD_PLACE, signed)

    def place(subject, reason):
        request = HoldRequest(
            datasource=staged.datasource,
            scope=HoldScope.STAGE,
            subject=subject,
            reason=reason,
            attestation=attestation,
        )
        return place_hold(staged.application.work(), request)

    for subject, reason in ((other.id, REASON), (one.id, "another")):
        with staged.refuses("attestation_mismatch"):
            place(subject, reason)
    place(one.id, REASON)
    with staged.refuses("attestation_used"):
        place(one.id, REASON)


def test_what_was_destroyed_can_neither_be_held_nor_frozen_and_the_plan_is_named(kept):
    old = publish_at(kept)
    publish_at(kept)
    plan = plan_now(kept)
    apply_plan(kept, plan, [old.id])

    with kept.refuses("already_disposed"):
        hold(kept, old.id, HoldScope.MATERIALIZATION)
    with kept.refuses("already_disposed"):
        freeze_as_evidence(kept, old.id)


def test_a_frozen_materialization_is_kept_as_long_as_frozen_evidence_is(kept):
    old = publish_at(kept)
    publish_at(kept)
    assert old.id in blockers(kept)

    frozen = freeze_as_evidence(kept, old.id)

    assert old.id not in blockers(kept)
    with kept.application.work() as work:
        assert work.holds.frozen(old.id) == frozen
        assert work.retention.candidate(old.id).retention_class is RetentionClass.FROZEN_EVIDENCE
    ((kind, facts),) = facts_about(kept, old.id)
    assert kind == "materialization.frozen"
    assert facts["reason_hash"] == reason_hash(frozen.reason)


def test_freezing_again_returns_the_first_time_and_writes_nothing(kept):
    old = publish_at(kept)
    first = freeze_as_evidence(kept, old.id)
    before = kept.count_rows()

    assert freeze_as_evidence(kept, old.id, reason="another") == first
    assert kept.count_rows() == before


def test_only_an_operator_freezes(kept):
    old = publish_at(kept)

    for actor in (KEEPER, "creator"):
        with kept.refuses("not_authorised"):
            freeze_as_evidence(kept, old.id, actor=actor)


def test_all_of_it_is_evidence_that_verifies(staged):
    stage = stage_at(staged)
    release(staged, hold(staged, stage.id, HoldScope.STAGE).id)

    assert staged.verification().breaks == ()
