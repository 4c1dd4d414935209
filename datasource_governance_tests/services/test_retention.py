"""What is due is planned from one snapshot and destroyed by a person, from an unchanged plan."""

from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest

from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.domain.approval import Verdict
from datasource_governance.domain.artifact import ArtifactReference
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.canonical import Sha256, load_object
from datasource_governance.domain.disposition import AlreadyAppliedError
from datasource_governance.domain.evidence import TENANT_CHAIN, datasource_chain
from datasource_governance.domain.hold import HoldScope
from datasource_governance.domain.launch import RETENTION_APPLY_JOB, RunLaunch
from datasource_governance.domain.materialization import Disposition, Materialization
from datasource_governance.domain.retention import BlockerKind, TargetKind
from datasource_governance.domain.retention_plan import LIFETIME, targets_hash
from datasource_governance.domain.stage import StageState
from datasource_governance.domain.subjects import apply_retention_subject
from datasource_governance.errors import GovernanceError, GuardError
from datasource_governance.services import retention
from datasource_governance.services.exporting import export_promotion
from datasource_governance.services.reading import Wanted, read_current
from datasource_governance.services.retention import explain
from datasource_governance.services.separating import PERIOD
from datasource_governance_tests.contents import contents
from datasource_governance_tests.postgres import unique_name
from datasource_governance_tests.retained import MICROSECOND
from datasource_governance_tests.retiring import (
    KEEPER,
    LONG_AGO,
    NOW,
    THIRTY_DAYS,
    admit_keeper,
    apply_attestation,
    apply_plan,
    declare_kept,
    hold,
    plan_now,
    publish_at,
    release,
    stage_at,
)
from datasource_governance_tests.services.stores import Broken, Elsewhere
from datasource_governance_tests.world import World

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

APPROVAL = {"version": "v1", "required": True}
BY_ANYBODY = {**APPROVAL, "separation_of_duties": False}
NOBODYS = "00000000-0000-4000-8000-000000000000"
YESTERDAY = NOW - timedelta(days=1)


@pytest.fixture(scope="module")
def keepers(shared_world: World) -> World:
    admit_keeper(shared_world)
    shared_world.grant(SYSTEM, Role.STEWARD)
    return shared_world


@pytest.fixture
def staged(keepers: World, own_corner: World) -> World:
    """A datasource that deliveries are staged for, declared long ago."""
    declare_kept(own_corner)
    return own_corner


@pytest.fixture
def published(keepers: World, own_corner: World) -> World:
    """A datasource that producers publish to, declared long ago."""
    declare_kept(own_corner, kind="published", artifact_evaluation="here")
    return own_corner


@pytest.fixture
def approved(keepers: World, own_corner: World) -> World:
    """A datasource whose approval policy separates duties, declared long ago."""
    declare_kept(own_corner, approval=APPROVAL)
    return own_corner


def due(world: World, **when) -> dict[str, list[BlockerKind]]:
    """Return what is due in a world, with what blocks it."""
    plan = plan_now(world, **when)
    return {target.id: [one.kind for one in target.blockers] for target in plan.targets}


def row_of(world: World, table: str, name: str) -> dict:
    """Return a row as it is in the database, whatever its columns are."""
    found = world.query(f"SELECT to_jsonb(one) FROM governance.{table} AS one WHERE id = '{name}'")
    return found[0][0]


def payloads(world: World, kind: str, *names: str) -> int:
    """Return how many of these have a payload in the database."""
    listed = ", ".join(f"'{name}'" for name in names)
    query = f"SELECT count(*) FROM governance.{kind}_payload WHERE {kind} IN ({listed})"
    return world.query(query)[0][0]


def told_of(world: World, chain: str, plan: str) -> list[tuple[str, dict]]:
    with world.application.work() as work:
        segment = work.evidence.segment(chain, plan)
    return [(entry.kind, load_object(entry.body)["facts"]) for entry in segment]


# Planning


def test_a_plan_is_kept_with_who_made_it_and_evidence_of_its_hash(staged):
    stage = stage_at(staged)

    plan = plan_now(staged)

    with staged.application.work() as work:
        stored = work.retention.plan(plan.hash)
    assert (stored.plan, stored.planned_by) == (plan, "operator")
    ((kind, facts),) = told_of(staged, TENANT_CHAIN, plan.hash)
    assert kind == "retention.planned"
    assert (facts["targets"], facts["blocked"], facts["actor"]) == (1, 0, "operator")
    assert [target.id for target in plan.targets] == [stage.id]


def test_the_same_state_at_the_same_instant_is_one_plan_and_kept_once(staged):
    stage_at(staged)
    first = plan_now(staged)
    before = contents(staged)

    assert plan_now(staged) == first
    assert contents(staged) == before


def test_plans_are_found_by_how_their_hashes_begin(staged):
    hashes = sorted(plan_now(staged, at=NOW + timedelta(minutes=one)).hash for one in range(3))

    with staged.application.work() as work:
        found = {text: work.retention.plan_hashes(text, limit=9) for text in (*hashes, "%", "_")}
        every = work.retention.plan_hashes("", limit=1000)
        assert work.retention.plan_hashes("", limit=2) == every[:2]
    assert found == {one: [one] for one in hashes} | {"%": [], "_": []}
    assert every == sorted(every)


def test_planning_changes_nothing_but_the_record_of_plans(staged):
    stage_at(staged)
    before = contents(staged)

    for minute in range(20):
        plan_now(staged, at=NOW + timedelta(minutes=minute))

    after = contents(staged)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"retention_plan", "evidence", "evidence_head"}


def test_the_schedule_plans_as_system_and_else_only_an_operator_does(staged):
    assert plan_now(staged, actor=SYSTEM).targets == ()

    for actor in (KEEPER, "creator", "approver-1"):
        with staged.refuses("not_authorised"):
            plan_now(staged, actor=actor)


def test_an_operator_of_one_datasource_plans_that_one_alone(staged):
    staged.admit("local")
    staged.grant("local", Role.OPERATOR, staged.datasource)

    plan_now(staged, actor="local")
    with staged.refuses("not_authorised"):
        retention.plan_retention(staged.application.work(), retention.PlanRequest(actor="local"))


def test_there_is_no_plan_of_a_datasource_that_does_not_exist(staged):
    with staged.refuses("not_found"):
        plan_now(staged, datasource="nowhere")


def test_a_plan_over_all_datasources_names_the_policy_of_each(staged):
    stage = stage_at(staged)
    staged.set_clock(NOW)

    plan = retention.plan_retention(
        staged.application.work(), retention.PlanRequest(actor="operator")
    )

    assert staged.datasource in {policy.datasource for policy in plan.policies}
    assert stage.id in {target.id for target in plan.targets}


def test_a_thing_is_due_in_the_database_at_the_very_instant_and_not_before(published):
    old = publish_at(published, NOW - timedelta(days=30))
    publish_at(published, YESTERDAY)

    assert due(published, at=NOW - MICROSECOND) == {}
    assert due(published, at=NOW) == {old.id: []}


# Blockers, each from real rows


def test_a_stage_that_can_be_decided_is_blocked_and_an_outdated_one_is_not(approved):
    stage = stage_at(approved)
    assert due(approved) == {stage.id: [BlockerKind.PENDING_APPROVAL]}

    approved.declare(approval={**APPROVAL, "version": "v2"}, retention=THIRTY_DAYS)

    assert due(approved) == {stage.id: []}


def test_a_stage_that_was_decided_is_not_blocked(approved):
    stage = stage_at(approved)
    approved.decide("approver-1", stage, verdict=Verdict.REJECT)

    assert due(approved) == {stage.id: []}


def test_what_readers_get_is_blocked_in_every_partition(published):
    old, current = publish_at(published), publish_at(published)
    part = publish_at(published, partition="2020-01")

    found = due(published)

    assert found[old.id] == []
    assert found[current.id] == found[part.id] == [BlockerKind.CURRENT_MATERIALIZATION]


def test_the_base_of_an_open_stage_is_blocked_until_the_stage_is_closed(staged):
    first = staged.promote(stage_at(staged)).materialization
    waiting = stage_at(staged)
    kinds = {BlockerKind.CURRENT_MATERIALIZATION, BlockerKind.BASE_OF_OPEN_STAGE}
    assert set(due(staged)[first.id]) == kinds

    staged.set_clock(LONG_AGO)
    staged.promote(waiting)

    assert due(staged)[first.id] == []


def test_an_output_is_blocked_as_long_as_its_review_is_not_over(keepers, own_corner):
    world = own_corner
    declare_kept(world, kind="published", approval=BY_ANYBODY)
    output = publish_at(world)
    with world.application.work() as work:
        waiting = work.stages.of_publication(output.publication)
    assert due(world) == {
        output.id: [BlockerKind.REFERENCED_BY_PUBLICATION],
        waiting.id: [BlockerKind.PENDING_APPROVAL],
    }

    world.decide("approver-1", waiting, verdict=Verdict.REJECT)

    assert due(world) == {output.id: [], waiting.id: []}


# Applying


def test_a_deleted_stage_leaves_all_but_its_payload_and_state(staged):
    stage = stage_at(staged)
    before = row_of(staged, "stage", stage.id)

    apply_plan(staged, plan_now(staged))

    assert row_of(staged, "stage", stage.id) == {**before, "state": "deleted"}
    assert payloads(staged, "stage", stage.id) == 0
    assert staged.verification().breaks == ()


def test_a_purged_materialization_leaves_all_but_its_payload_and_disposition(published):
    old = publish_at(published)
    publish_at(published)
    before = row_of(published, "materialization", old.id)

    apply_plan(published, plan_now(published))

    assert row_of(published, "materialization", old.id) == {**before, "disposition": "purged"}
    assert payloads(published, "materialization", old.id) == 0
    assert published.verification().breaks == ()


def test_a_part_of_a_plan_leaves_the_rest_as_it_is(staged):
    one, other = stage_at(staged), stage_at(staged)
    plan = plan_now(staged)

    applied = apply_plan(staged, plan, [one.id, one.id])

    assert [target.subject for target in applied.targets] == [one.id]
    assert applied.application.targets == targets_hash([one.id])
    assert payloads(staged, "stage", one.id, other.id) == 1
    assert staged.present(other).state is StageState.READY


def test_everything_that_is_free_goes_and_everything_that_is_blocked_stays(staged):
    free, held = stage_at(staged), stage_at(staged)
    hold(staged, held.id, scope=HoldScope.STAGE)

    applied = apply_plan(staged, plan_now(staged))

    assert [target.subject for target in applied.targets] == [free.id]
    assert staged.present(held).state is StageState.READY


def test_evidence_and_the_record_say_what_was_destroyed_by_whom_under_which_plan(staged):
    stage = stage_at(staged)
    plan = plan_now(staged)

    applied = apply_plan(staged, plan)

    (target,) = applied.targets
    assert (target.subject, target.state_before, target.disposed_at) == (stage.id, "ready", NOW)
    ((kind, facts),) = told_of(staged, datasource_chain(staged.datasource), plan.hash)
    assert kind == "retention.applied"
    assert facts["targets"] == [{"kind": "stage", "id": stage.id}]
    assert (facts["actor"], facts["rows"]) == (KEEPER, 2)
    _, (kind, facts) = told_of(staged, TENANT_CHAIN, plan.hash)
    assert kind == "retention.applied"
    assert (facts["targets"], facts["targets_hash"]) == (1, targets_hash([stage.id]))
    with staged.application.work() as work:
        assert work.retention.application(plan.hash) == applied.application
        assert tuple(work.retention.dispositions(plan.hash)) == applied.targets
        assert work.retention.disposition_of(stage.id) == target


def test_a_promotion_can_be_proved_after_its_stage_was_deleted_and_its_payload_purged(staged):
    made = staged.promote(stage_at(staged)).materialization
    staged.promote(stage_at(staged))
    plan = plan_now(staged)

    applied = apply_plan(staged, plan)

    assert {target.kind for target in applied.targets} == set(TargetKind)
    exported = export_promotion(staged.application.work(), made.id, staged.signer("creator"))
    predicate = load_object(exported.payload)["predicate"]
    assert predicate["materialization"]["id"] == made.id


def test_a_promoted_stage_that_was_deleted_gives_the_same_materialization(staged):
    stage = stage_at(staged)
    made = staged.promote(stage).materialization
    apply_plan(staged, plan_now(staged), [stage.id])

    again = staged.promote(stage)

    assert (again.materialization, again.created) == (made, False)


def test_promoting_a_stage_that_was_deleted_is_refused_with_its_plan_and_what_to_do(staged):
    stage = stage_at(staged)
    plan = plan_now(staged)
    apply_plan(staged, plan)
    before = contents(staged)

    for actor in ("operator", None):
        with pytest.raises(GuardError, match="deliver the data again") as refused:
            staged.promote(stage, actor)
        assert (refused.value.code, refused.value.facts["plan"]) == ("stage_blocked", plan.hash)
        assert f"under plan {plan.hash}" in str(refused.value)
    assert contents(staged) == before


def test_many_targets_are_told_of_in_parts(staged, monkeypatch):
    monkeypatch.setattr(retention, "_TOLD_TOGETHER", 2)
    stages = [stage_at(staged) for _ in range(5)]
    plan = plan_now(staged)

    apply_plan(staged, plan)

    told = [facts for _, facts in told_of(staged, datasource_chain(staged.datasource), plan.hash)]
    assert [len(facts["targets"]) for facts in told] == [2, 2, 1]
    assert [one["id"] for facts in told for one in facts["targets"]] == sorted(
        stage.id for stage in stages
    )
    assert staged.verification().breaks == ()


def test_applying_again_destroys_nothing_and_carries_the_first_result(staged):
    one = stage_at(staged)
    stage_at(staged)
    plan = plan_now(staged)
    first = apply_plan(staged, plan, [one.id])
    before = contents(staged)

    for targets in ([one.id], None, [NOBODYS]):
        with pytest.raises(AlreadyAppliedError) as caught:
            apply_plan(staged, plan, targets)
        assert caught.value.first == first

    assert contents(staged) == before


def test_what_is_left_of_a_plan_is_in_the_next_one(staged):
    one, other = stage_at(staged), stage_at(staged)
    apply_plan(staged, plan_now(staged), [one.id])

    assert due(staged) == {other.id: []}


def test_a_plan_can_be_applied_until_it_expires(staged):
    stage_at(staged)
    plan = plan_now(staged)

    staged.set_clock(NOW + LIFETIME)
    with staged.refuses("plan_expired"):
        apply_plan(staged, plan)
    staged.set_clock(NOW + LIFETIME - MICROSECOND)
    apply_plan(staged, plan)


def test_time_alone_does_not_outdate_a_plan(staged):
    stage = stage_at(staged)
    plan = plan_now(staged)
    # Due an hour later, so not in the plan, which is computed for its own instant.
    stage_at(staged, NOW - timedelta(days=30) + timedelta(hours=1))
    staged.set_clock(NOW + timedelta(hours=2))

    assert [target.subject for target in apply_plan(staged, plan).targets] == [stage.id]


def held(world: World, stage) -> None:
    hold(world, stage.id, scope=HoldScope.STAGE)


def promoted(world: World, stage) -> None:
    # The stage is still due, with or without it; what it became is base of nothing.
    world.set_clock(LONG_AGO)
    world.promote(stage)
    world.set_clock(NOW)


def another_policy(world: World, _stage) -> None:
    world.declare(retention={**THIRTY_DAYS, "frozen_evidence_days": 9999})


def no_policy(world: World, _stage) -> None:
    world.declare()


@pytest.mark.parametrize("change", [held, promoted, another_policy, no_policy])
def test_whatever_changes_after_it_outdates_a_plan(staged, change):
    stage = stage_at(staged)
    other = stage_at(staged)
    plan = plan_now(staged)

    change(staged, stage)

    for targets in (None, [other.id]):
        with staged.refuses("plan_outdated"):
            apply_plan(staged, plan, targets)


def test_a_hold_that_is_released_again_makes_the_plan_good_again(staged):
    stage_at(staged)
    plan = plan_now(staged)
    placed = hold(staged)
    with staged.refuses("plan_outdated"):
        apply_plan(staged, plan)

    release(staged, placed.id)

    assert len(apply_plan(staged, plan).targets) == 1


@pytest.mark.parametrize("plan", ["", "f" * 64, "x"], ids=["empty", "unknown", "no hash"])
def test_an_unknown_plan_is_an_outdated_one(staged, plan):
    with staged.refuses("plan_outdated"):
        apply_plan(staged, plan)


# Who


def apply_launch(run_id: str, **changes) -> RunLaunch:
    facts = {"job": RETENTION_APPLY_JOB, "assets": (), "config_hash": Sha256("c" * 64), **changes}
    return RunLaunch(run_id=run_id, **facts)


@pytest.mark.parametrize("actor", ["operator", "creator", "approver-1"])
def test_only_an_administrator_applies(staged, actor):
    stage_at(staged)
    plan = plan_now(staged)

    with staged.refuses("not_authorised"):
        apply_plan(staged, plan, actor=actor)


def test_an_administrator_of_one_datasource_applies_there_alone(staged):
    elsewhere = replace(staged, datasource=unique_name("orders"))
    declare_kept(elsewhere)
    staged.admit("local-keeper")
    staged.grant("local-keeper", Role.ADMINISTRATOR, staged.datasource)
    stage_at(staged), stage_at(elsewhere)

    apply_plan(staged, plan_now(staged), actor="local-keeper")
    plan = plan_now(elsewhere)
    with staged.refuses("not_authorised"):
        apply_plan(elsewhere, plan, actor="local-keeper")


def test_nobody_applies_without_proof_who_it_is(staged):
    stage_at(staged)
    plan = plan_now(staged)

    with staged.refuses("not_authorised"):
        apply_plan(staged, plan, attestation=None)
    with staged.refuses("not_authorised"):
        apply_plan(staged, plan, launch=apply_launch("nobody-attested"))


def test_whoever_launched_the_run_applies(staged, tmp_path):
    stage_at(staged)
    plan = plan_now(staged)
    launch = staged.launch(staged.gateway(tmp_path), KEEPER, apply_launch("run-apply"))

    applied = apply_plan(staged, plan, launch=launch)

    assert (applied.application.actor, applied.application.run_id) == (KEEPER, "run-apply")


@pytest.mark.parametrize(
    ("run_id", "actor", "changes"),
    [
        ("run-by-operator", "operator", {}),
        ("run-of-another-job", KEEPER, {"job": "stage_orders"}),
        ("run-of-that-asset", KEEPER, {"job": "__ASSET_JOB", "assets": ("apply_retention_plan",)}),
    ],
)
def test_no_other_run_applies(staged, tmp_path, run_id, actor, changes):
    stage_at(staged)
    plan = plan_now(staged)
    gateway = staged.gateway(tmp_path)
    launch = staged.launch(gateway, actor, apply_launch(run_id, **changes))

    with staged.refuses("not_authorised"):
        apply_plan(staged, plan, launch=launch)


def test_the_webserver_does_not_sign_an_application_itself(staged, tmp_path):
    stage_at(staged)
    plan = plan_now(staged)
    gateway = staged.gateway(tmp_path)
    subject = apply_retention_subject(plan.hash, None)

    with staged.refuses("attestation_invalid"):
        apply_plan(
            staged,
            plan,
            attestation=gateway.attest(KEEPER, Action.RETENTION_APPLY, subject),
        )


def test_an_attestation_is_for_just_this_plan_and_these_targets(staged):
    one, other = stage_at(staged), stage_at(staged)
    plan = plan_now(staged)
    for_one = apply_attestation(staged, plan.hash, [one.id])

    for targets in (None, [], [other.id], [one.id, other.id]):
        with staged.refuses("attestation_mismatch"):
            apply_plan(staged, plan, targets, attestation=for_one)
    later = plan_now(staged, at=NOW + MICROSECOND)
    with staged.refuses("attestation_mismatch"):
        apply_plan(staged, later, [one.id], attestation=for_one)
    apply_plan(staged, plan, [one.id], attestation=for_one)


def changed_at(world: World, at, **retention_keys) -> None:
    world.set_clock(at)
    world.declare(approval=APPROVAL, retention={**THIRTY_DAYS, **retention_keys})


def test_who_changed_a_retention_policy_does_not_apply_it_within_a_day(approved):
    stage = stage_at(approved)
    approved.decide("approver-1", stage, verdict=Verdict.REJECT)
    changed_at(approved, NOW - PERIOD + MICROSECOND, stage_days=10)
    plan = plan_now(approved)

    with approved.refuses("changed_policy_recently"):
        apply_plan(approved, plan, actor="admin")
    assert len(apply_plan(approved, plan, actor=KEEPER).targets) == 1


def test_a_day_later_they_may(approved):
    stage = stage_at(approved)
    approved.decide("approver-1", stage, verdict=Verdict.REJECT)
    changed_at(approved, NOW - PERIOD, stage_days=10)

    assert len(apply_plan(approved, plan_now(approved), actor="admin").targets) == 1


def test_who_declared_anything_else_may_apply(approved):
    stage = stage_at(approved)
    approved.decide("approver-1", stage, verdict=Verdict.REJECT)
    approved.set_clock(YESTERDAY + MICROSECOND)
    approved.declare(approval={**APPROVAL, "version": "v2"}, retention=THIRTY_DAYS)

    assert len(apply_plan(approved, plan_now(approved), actor="admin").targets) == 1


@pytest.mark.parametrize("approval", [None, BY_ANYBODY], ids=["no policy", "not separated"])
def test_where_duties_are_not_separated_anybody_may(keepers, own_corner, approval):
    declare_kept(own_corner)
    stage_at(own_corner)
    own_corner.set_clock(NOW)
    own_corner.declare(approval=approval, retention={**THIRTY_DAYS, "stage_days": 10})

    assert len(apply_plan(own_corner, plan_now(own_corner), actor="admin").targets) == 1


# Objects of artifacts


def own_table(world: World) -> pa.Table:
    return pa.table({"name": [world.datasource, "other"]})


def stored(world: World) -> tuple[Materialization, ArtifactReference]:
    """Publish an artifact of the datasource's own, long ago, and something newer after it."""
    reference = world.store_artifact(own_table(world))
    made = publish_at(world, data=reference)
    publish_at(world, data=pa.table({"name": ["newer"]}))
    return made, reference


def is_kept(world: World, reference) -> bool:
    artifacts = world.application.artifacts()
    return reference.locator in {one.locator for one in artifacts.kept()}


def disposition_of(world: World, materialization) -> Disposition:
    with world.application.work() as work:
        return work.materializations.get(materialization.id).disposition


def test_the_object_of_a_purged_artifact_is_gone_with_it(published):
    made, reference = stored(published)
    plan = plan_now(published)

    applied = apply_plan(published, plan)

    assert applied.unfinished == ()
    assert not is_kept(published, reference)
    assert disposition_of(published, made) is Disposition.PURGED
    ((kind, facts),) = [
        one
        for one in told_of(published, datasource_chain(published.datasource), made.id)
        if one[0].startswith("materialization.")
    ]
    assert (kind, facts["plan"], facts["shared"]) == ("materialization.purged", plan.hash, False)
    assert published.verification().breaks == ()


def test_an_object_that_the_store_does_not_delete_is_told_and_tried_again(published):
    made, reference = stored(published)
    plan = plan_now(published)
    broken = Broken(published.application.artifacts())

    applied = apply_plan(published, plan, artifacts=broken)

    assert applied.unfinished == ((made.id, "the store refuses to delete"),)
    assert disposition_of(published, made) is Disposition.PURGING
    assert is_kept(published, reference)
    with pytest.raises(AlreadyAppliedError) as caught:
        apply_plan(published, plan, artifacts=broken)
    assert caught.value.first == applied
    with pytest.raises(AlreadyAppliedError) as caught:
        apply_plan(published, plan)
    assert caught.value.first.unfinished == ()
    assert disposition_of(published, made) is Disposition.PURGED
    assert not is_kept(published, reference)


def test_an_object_that_is_gone_already_counts_as_deleted(published):
    made, reference = stored(published)
    published.application.artifacts().delete(reference.locator)

    assert apply_plan(published, plan_now(published)).unfinished == ()
    assert disposition_of(published, made) is Disposition.PURGED


def test_an_object_that_another_store_keeps_does_not_count_as_gone(published):
    made, reference = stored(published)

    applied = apply_plan(published, plan_now(published), artifacts=Elsewhere())

    ((name, problem),) = applied.unfinished
    assert name == made.id
    assert "backend 'local' keeps it, and this is 'elsewhere'" in problem
    assert disposition_of(published, made) is Disposition.PURGING
    assert is_kept(published, reference)


def test_an_object_that_something_retained_refers_to_stays(published):
    made, reference = stored(published)
    again = publish_at(published, YESTERDAY, reference)

    apply_plan(published, plan_now(published), [made.id])

    assert disposition_of(published, made) is Disposition.PURGED
    assert is_kept(published, reference)
    read = read_current(
        published.application.work(), published.datasource, SYSTEM, Wanted(materialization=again.id)
    )
    assert read.payload == reference


def test_nothing_is_published_that_refers_to_an_object_that_is_being_purged(published):
    _, reference = stored(published)
    plan = plan_now(published)
    apply_plan(published, plan, artifacts=Broken(published.application.artifacts()))

    with published.refuses("artifact_purging"):
        publish_at(published, NOW, reference)
    with pytest.raises(AlreadyAppliedError):
        apply_plan(published, plan)
    with published.refuses("artifact_missing"):
        publish_at(published, NOW, reference)
    stored_again = published.store_artifact(own_table(published))
    publish_at(published, NOW, stored_again)


# Reading and explaining what is gone


def test_reading_a_purged_materialization_names_the_plan_that_destroyed_it(published):
    old = publish_at(published)
    publish_at(published)
    plan = plan_now(published)
    apply_plan(published, plan)

    with pytest.raises(GuardError, match=plan.hash) as caught:
        read_current(
            published.application.work(),
            published.datasource,
            SYSTEM,
            Wanted(materialization=old.id),
        )
    assert (caught.value.code, caught.value.facts["plan"]) == ("payload_purged", plan.hash)


def explained(world: World, subject: str, actor: str = "operator"):
    world.set_clock(NOW)
    return explain(world.application.work(), subject, actor)


def test_an_explanation_says_since_when_a_thing_is_due_and_what_blocks_it(staged):
    stage = stage_at(staged)
    placed = hold(staged)

    explanation = explained(staged, stage.id)

    assert explanation.is_due
    assert not explanation.would_be_destroyed
    policy, blocker = explanation.sentences()
    assert "has been due since 2020-01-31T00:00:00+00:00" in policy
    assert placed.id in blocker


def test_an_explanation_says_why_a_thing_is_not_due(staged):
    stage = stage_at(staged, YESTERDAY)

    assert "will be due at 2024-07-29T12:00:00+00:00" in explained(staged, stage.id).sentences()[0]
    staged.declare()
    assert "has no retention policy" in explained(staged, stage.id).sentences()[0]


def test_an_explanation_of_what_is_gone_names_the_plan(staged):
    stage = stage_at(staged)
    plan = plan_now(staged)
    apply_plan(staged, plan)

    assert explained(staged, stage.id).plan == plan.hash


def test_there_is_no_explanation_of_nothing_and_for_nobody(staged):
    stage = stage_at(staged)
    staged.admit("nobody")

    with pytest.raises(GovernanceError) as caught:
        explained(staged, NOBODYS)
    assert caught.value.code == "not_found"
    with pytest.raises(GovernanceError) as caught:
        explained(staged, stage.id, "nobody")
    assert caught.value.code == "not_authorised"
