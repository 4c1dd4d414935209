from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.domain.approval import subject_of
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.canonical import canonical_bytes, digest, load_canonical
from datasource_governance.domain.evidence import Entry, datasource_chain
from datasource_governance.domain.materialization import Disposition, provenance_of
from datasource_governance.domain.stage import StageState
from datasource_governance.domain.subjects import promotion_subject
from datasource_governance.errors import NotFoundError
from datasource_governance.services.approval import quorum_of
from datasource_governance.services.promotion import (
    PromotionRequest,
    promote_stage,
)
from datasource_governance.services.waiting import WaitingStages
from datasource_governance_tests.builders import policy_document, rule
from datasource_governance_tests.world import ONE_ROW_AT_LEAST, TWO_APPROVALS, new_world

pytestmark = pytest.mark.postgres

ONE_HOUR = {"version": "v1", "required": True, "expires_after_hours": 1}
TEN_WISHED = policy_document(rule(minimum=10, severity="warning"))
NO_ROWS = pa.table({"id": pa.array([], pa.int64())})
MIDDAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)
TENANT = "default"
TAMPERING = {
    "newest entry deleted": "DELETE FROM governance.evidence WHERE kind = 'stage.decided'"
    " AND sequence = (SELECT max(sequence) FROM governance.evidence WHERE kind = 'stage.decided')",
    "reason altered": "UPDATE governance.decision SET reason = 'never said'",
    "approver altered": "UPDATE governance.decision SET actor = 'approver-3'"
    " WHERE actor = 'approver-1'",
    "decision deleted": "DELETE FROM governance.decision WHERE actor = 'approver-1'",
    "stage altered": "UPDATE governance.stage SET delivery = 'another.csv'",
    "entry moved": "UPDATE governance.evidence SET subject = 'another'"
    " WHERE kind = 'stage.created'",
    "entry altered": "UPDATE governance.evidence SET body = body || '\\x20'"
    " WHERE kind = 'stage.created'",
    "head altered": "UPDATE governance.evidence_head SET sequence = sequence + 1",
    "head deleted": "DELETE FROM governance.evidence_head",
}


@pytest.fixture
def approved(world):
    """A stage that two approved, in its world."""
    world.declare(approval=TWO_APPROVALS)
    stage = world.stage()
    world.decide("approver-1", stage)
    world.decide("approver-2", stage)
    return world, stage


def target(world):
    with world.application.work() as work:
        return work.datasources.get(world.datasource)


def promotable(world):
    standings = WaitingStages().overview(world.application.work()).standings
    return [one.stage for one in standings[world.datasource] if one.complete_since]


def promote_as_asked(world, request):
    application = world.application
    return promote_stage(application.work(), application.artifacts(), request)


def entry_of(document):
    """Return the entry of a segment that travelled as JSON."""
    return Entry(
        **{name: document[name] for name in document.keys() - {"body", "at_microseconds"}},
        body=canonical_bytes(document["body"]),
        at=datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=document["at_microseconds"]),
    )


def test_an_approved_stage_becomes_the_current_materialization(approved):
    world, stage = approved

    promotion = world.promote(stage)

    made = promotion.materialization
    assert promotion.created
    assert (target(world).current, target(world).revision) == (made.id, 1)
    assert (made.stage, made.revision, made.created_by) == (stage.id, 1, "operator")
    for name in ("schema", "payload_fingerprint", "payload_sha256", "row_count", "byte_count"):
        assert getattr(made, name) == getattr(stage, name)
    assert made.disposition is Disposition.RETAINED
    assert world.present(stage) == replace(stage, state=StageState.PROMOTED)
    assert world.verification().holds


def test_promoting_again_gives_the_first_materialization_and_writes_nothing(approved):
    world, stage = approved
    first = world.promote(stage)
    before = world.count_rows()

    again = [world.promote(stage), world.promote(stage, actor=None), world.promote(stage, "admin")]

    assert [one.created for one in again] == [False, False, False]
    assert {one.materialization for one in again} == {first.materialization}
    assert world.count_rows() == before


def test_provenance_holds_the_whole_validation_and_the_exact_quorum(approved):
    world, stage = approved
    with world.application.work() as work:
        quorum = quorum_of(work, stage)

    provenance = provenance_of(world.promote(stage).materialization)

    assert canonical_bytes(provenance["validation"]) == stage.validation
    assert provenance["validation_hash"] == stage.validation_hash
    assert stage.validation_hash == digest("datasource_governance/validation/v1", stage.validation)
    assert provenance["approval"] == quorum.document()
    assert [one["actor"] for one in provenance["approval"]["approvals"]] == [
        "approver-1",
        "approver-2",
    ]
    assert provenance["policies"] == {
        "quality": stage.quality_policy_hash,
        "approval": stage.approval_policy_hash,
        "source": "inherited",
    }


def test_provenance_holds_an_evidence_segment_that_verifies_offline(approved):
    world, stage = approved

    segment = provenance_of(world.promote(stage).materialization)["evidence"]

    entries = [entry_of(document) for document in segment]
    assert [entry.kind for entry in entries] == ["stage.created", "stage.decided", "stage.decided"]
    assert all(entry.recomputed_hash() == entry.entry_hash for entry in entries)
    assert {entry.subject for entry in entries} == {stage.id}
    spoken_of = {row.table for entry in entries for row in entry.rows()}
    assert spoken_of >= {"stage", "stage_payload", "decision"}


def test_without_an_approval_policy_provenance_says_that_none_was_required(world):
    world.declare()

    made = world.promote(world.stage()).materialization

    assert provenance_of(made)["approval"] == "not required"


def test_every_transition_writes_one_event_numbered_without_a_gap(approved):
    world, stage = approved
    world.promote(stage)
    world.declare(approval=None)
    world.promote(world.stage())
    world.stage(table=NO_ROWS)

    found = world.query("SELECT number, type, body FROM governance.outbox ORDER BY number")

    assert [kind.removeprefix("datasource.") for _, kind, _ in found] == [
        "governance.applied",
        "stage.created",
        "stage.decided",
        "stage.decided",
        "stage.promoted",
        "governance.applied",
        "stage.created",
        "stage.promoted",
        "stage.created",
    ]
    assert [number for number, _, _ in found] == list(range(1, 10))
    promoted = load_canonical(bytes(found[4][2]))
    assert promoted["facts"]["quality_policy_hash"] == stage.quality_policy_hash
    assert promoted["facts"]["approval_policy_hash"] == stage.approval_policy_hash


@pytest.mark.parametrize("approvers", [(), ("approver-1",)])
def test_without_a_quorum_nobody_promotes(world, approvers):
    world.declare(approval=TWO_APPROVALS)
    stage = world.stage()
    for approver in approvers:
        world.decide(approver, stage)

    for actor in ("operator", None):
        with world.refuses("quorum_not_met"):
            world.promote(stage, actor)
    assert promotable(world) == []


def test_a_failed_stage_is_never_promoted(world):
    world.declare(approval=TWO_APPROVALS)
    stage = world.stage(table=NO_ROWS)

    for actor in ("operator", None):
        with world.refuses("stage_blocked"):
            world.promote(stage, actor)


def test_a_stage_moves_only_from_the_state_that_it_was_read_in(world):
    world.declare(approval=TWO_APPROVALS)
    stage = world.stage()

    with world.application.work() as work:
        work.stages.change_state(stage, StageState.REJECTED)
        with world.refuses("conflict"):
            work.stages.change_state(stage, StageState.PROMOTED)
            work.now()

    assert world.present(stage).state is StageState.AWAITING_APPROVAL


def test_only_an_operator_promotes(world, subtests):
    world.declare()
    stage = world.stage()

    for actor in ("creator", "approver-1", "admin"):
        with subtests.test(actor), world.refuses("not_authorised"):
            world.promote(stage, actor)


def test_an_approver_may_promote_as_an_operator(approved):
    world, stage = approved
    world.grant("approver-1", Role.OPERATOR)

    assert world.promote(stage, "approver-1").created


@pytest.mark.parametrize("promote", ["manual", "automatic"])
def test_warnings_leave_a_stage_ready_for_an_operator_alone(world, promote):
    world.declare(TEN_WISHED, promote=promote)
    stage = world.stage()

    assert stage.state is StageState.READY
    assert promotable(world) == []
    with world.refuses("not_authorised"):
        world.promote(stage, actor=None)
    assert world.promote(stage).created


def test_a_ready_stage_waits_for_an_operator_unless_automatic_is_declared(world):
    world.declare()
    stage = world.stage()

    assert promotable(world) == []
    with world.refuses("not_authorised"):
        world.promote(stage, actor=None)

    world.declare(promote="automatic")
    assert promotable(world) == [stage.id]
    assert world.promote(stage, actor=None).materialization.created_by == SYSTEM


def test_automatic_promotion_replaces_no_quorum(world):
    world.declare(approval=TWO_APPROVALS, promote="automatic")
    stage = world.stage()

    with world.refuses("quorum_not_met"):
        world.promote(stage, actor=None)


def test_the_system_promotes_what_a_quorum_approved(approved):
    world, stage = approved

    assert promotable(world) == [stage.id]
    assert world.promote(stage, actor=None).materialization.created_by == SYSTEM
    assert promotable(world) == []


@pytest.mark.parametrize("actor", ["operator", None])
def test_an_approval_that_ends_before_the_promotion_does_not_count(world, actor):
    world.declare(approval=ONE_HOUR)
    world.set_clock(MIDDAY)
    stage = world.stage()
    world.decide("approver-1", stage)

    for offset in (TICK, timedelta(0)):
        world.set_clock(MIDDAY + HOUR + offset)
        with world.refuses("quorum_not_met"):
            world.promote(stage, actor)
    world.set_clock(MIDDAY + HOUR - TICK)
    assert world.promote(stage, actor).created


def test_one_instant_decides_a_whole_promotion(world):
    world.declare(approval=ONE_HOUR)
    world.set_clock(MIDDAY)
    stage = world.stage()
    decision = world.decide("approver-1", stage)
    # Every reading of this clock is an hour later than the one before.
    world.as_superuser(
        "CREATE SEQUENCE governance.reading MINVALUE 0;"
        "GRANT USAGE ON SEQUENCE governance.reading TO PUBLIC;"
        "CREATE OR REPLACE FUNCTION governance.now() RETURNS timestamptz LANGUAGE sql VOLATILE"
        f" AS $$ SELECT timestamptz '{MIDDAY + HOUR - TICK}'"
        " + nextval('governance.reading') * interval '1 hour' $$"
    )

    made = world.promote(stage, actor=None).materialization

    assert made.created_at < decision.expires_at


def test_a_promotion_supersedes_the_other_open_stages(world):
    world.declare()
    promoted, other, failed = world.stage(), world.stage(), world.stage(table=NO_ROWS)

    world.promote(promoted)

    states = [world.present(stage).state for stage in (promoted, other, failed)]
    assert states == [StageState.PROMOTED, StageState.SUPERSEDED, StageState.FAILED]
    with world.refuses("stage_outdated"):
        world.promote(other)
    assert world.verification().holds


def test_the_next_stage_is_compared_with_what_became_current(world):
    world.declare()
    first = world.promote(world.stage()).materialization

    second = world.promote(world.stage()).materialization

    assert provenance_of(second)["base"] == first.id
    assert (first.revision, second.revision) == (1, 2)
    with world.application.work() as work:
        assert work.materializations.get(first.id) == first


def test_a_promotion_of_other_hashes_than_the_stage_has_is_refused(approved):
    world, stage = approved
    subject = promotion_subject(subject_of(replace(stage, row_count=3), TENANT))
    attestation = world.signer("operator").attest(Action.STAGE_PROMOTE, subject)

    with world.refuses("attestation_mismatch"):
        promote_as_asked(world, PromotionRequest(stage=stage.id, attestation=attestation))


def test_an_approval_is_not_a_promotion(world):
    world.declare()
    world.grant("operator", Role.APPROVER)
    stage = world.stage()
    attestation = world.decision_attestation("operator", stage, "checked")

    with world.refuses("attestation_mismatch"):
        promote_as_asked(world, PromotionRequest(stage=stage.id, attestation=attestation))


@pytest.mark.parametrize("tampering", TAMPERING.values(), ids=TAMPERING)
def test_broken_evidence_stops_a_promotion(world, tampering):
    world.declare(approval={"version": "v1", "required": True})
    stage = world.stage()
    world.decide("approver-1", stage)
    world.decide("approver-2", stage)
    unprotected = [
        f"ALTER TABLE governance.{table} DISABLE TRIGGER USER"
        for table in ("decision", "evidence", "evidence_head", "stage")
    ]
    world.as_superuser(";".join([*unprotected, tampering]))

    with world.refuses("evidence_chain_broken"):
        world.promote(stage, actor=None)


def test_an_altered_payload_stops_a_promotion(approved):
    world, stage = approved
    world.as_superuser(
        "ALTER TABLE governance.stage_payload DISABLE TRIGGER USER;"
        "UPDATE governance.stage_payload SET payload = payload || '\\x00'"
    )

    with world.refuses("stage_outdated"):
        world.promote(stage)


def test_tenants_do_not_see_each_other(approved, governance_database, tmp_path):
    world, stage = approved
    other = new_world(governance_database, tmp_path / "other", tenant="other")
    other.declare(approval=TWO_APPROVALS)
    unknown = replace(stage, id="no-such-stage")
    told = []

    for foreign in (stage, unknown):
        for act in (
            lambda foreign=foreign: other.decide("approver-1", foreign),
            lambda foreign=foreign: other.promote(foreign),
            lambda foreign=foreign: other.present(foreign),
        ):
            with pytest.raises(NotFoundError) as caught:
                act()
            told.append(str(caught.value).replace(foreign.id, "<id>"))

    assert told[:3] == told[3:]
    assert promotable(other) == []
    with other.application.work() as work:
        assert work.stages.list(None, ()) == []
    assert [world.promote(stage).created, other.verification().holds] == [True, True]
    other.application.close()


def test_a_materialization_has_no_place_for_a_reason_or_a_value(approved):
    world, stage = approved

    made = world.promote(stage).materialization

    assert {field.name for field in fields(made)}.isdisjoint({"reason", "payload"})
    assert provenance_of(made).keys() == {
        *("format", "datasource", "base", "stage", "policies", "validation", "validation_hash"),
        *("approval", "evidence", "promoted_by", "promotion_attestation", "promoted_at"),
    }


def test_a_stage_whose_policy_changed_waits_until_it_is_changed_back(approved):
    world, stage = approved
    world.declare(TEN_WISHED, TWO_APPROVALS)
    with world.refuses("stage_outdated"):
        world.promote(stage)
    assert promotable(world) == []

    world.declare(ONE_ROW_AT_LEAST, TWO_APPROVALS)

    assert promotable(world) == [stage.id]
    assert world.promote(stage).created


def test_evidence_tells_what_was_promoted_and_superseded(world):
    world.declare()
    stage, other = world.stage(), world.stage()

    made = world.promote(stage).materialization

    with world.application.work() as work:
        entry = work.evidence.segment(datasource_chain("orders"), stage.id)[-1]
    facts = load_canonical(entry.body)["facts"]
    assert entry.kind == "stage.promoted"
    assert (facts["materialization"], facts["superseded"]) == (made.id, [other.id])
    assert (facts["actor"], facts["approval"]) == ("operator", "not required")
