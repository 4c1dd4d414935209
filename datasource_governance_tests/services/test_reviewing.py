"""What is looked at before one decides: as much as one may see, and the service's own answer."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from sqlalchemy import event

from datasource_governance.domain.actor import SYSTEM, UNATTESTED, ActorId, Role
from datasource_governance.domain.approval import Verdict
from datasource_governance.domain.stage import StageState
from datasource_governance.errors import GovernanceError, NotFoundError
from datasource_governance.persistence import connection as border
from datasource_governance.services.reviewing import (
    list_waiting,
    review_stage,
    validation_document,
    without_counts,
)
from datasource_governance_tests.builders import policy_document, rule
from datasource_governance_tests.postgres import unique_name
from datasource_governance_tests.world import TWO_APPROVALS

pytestmark = pytest.mark.postgres
MIDDAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ONCE = policy_document(rule("unique", id="once", field="id", severity="warning"))
REPEATED = pa.table({"id": [7, 7, 8]})


@pytest.fixture
def office(own_corner):
    """Two approvals are needed, each holds for four hours."""
    own_corner.admit("viewer", Role.VIEWER)
    own_corner.admit("creator", Role.APPROVER)
    own_corner.declare(quality=ONCE, approval={**TWO_APPROVALS, "expires_after_hours": 4})
    return own_corner


def review(office, stage, actor="viewer"):
    return review_stage(office.application.work(), stage.id, ActorId(actor))


def approver_here(office):
    """Return a new actor who is an approver of this datasource and nothing of any other."""
    name = unique_name("approver")
    office.admit(name)
    office.grant(name, Role.APPROVER, office.datasource)
    return name


def waiting(office, actor, **page):
    return list_waiting(office.application.work(), ActorId(actor), **page)


def ids(found):
    return [one.stage.id for one in found.stages]


def test_a_review_tells_where_a_stage_stands(office):
    stage = office.stage()
    decision = office.decide("approver-1", stage)

    found = review(office, stage)

    assert found.stage == stage
    assert found.decisions == [decision]
    assert (found.quorum.missing, found.quorum.approvals) == (1, (decision,))
    assert (found.quality_version, found.approval_policy.version) == ("v1", "v2")
    assert (found.standing.next_expiry, found.materialization) == (decision.expires_at, None)


def test_a_closed_stage_has_what_it_became_and_no_standing(office):
    stage = office.stage()
    for name in ("approver-1", "approver-2"):
        office.decide(name, stage)
    made = office.promote(stage).materialization

    found = review(office, stage)

    assert found.stage.state is StageState.PROMOTED
    assert (found.standing, found.materialization) == (None, made)


def test_a_stage_that_needs_no_approval_has_no_quorum(office):
    office.declare()

    found = review(office, office.stage())

    assert (found.quorum, found.approval_policy) == (None, None)
    assert "is ready, not awaiting approval" in review(office, found.stage, "approver-1").refusal


def test_only_a_steward_of_the_datasource_sees_counts_and_row_numbers(office):
    stage = office.stage(table=REPEATED)
    office.admit("watcher")
    office.grant("watcher", Role.STEWARD, office.datasource)
    complete = validation_document(stage)
    assert complete["rules"][0]["rows"] == [1, 2]

    for name in ("creator", "watcher"):
        assert review(office, stage, name).validation() == complete
    for name in ("viewer", "approver-1", "operator", UNATTESTED):
        (found,) = review(office, stage, name).validation()["rules"]
        assert not found.keys() & {"affected", "rows", "truncated"}
        assert (found["id"], found["status"]) == ("once", "failed")


def test_a_validation_without_counts_keeps_everything_else(office):
    complete = validation_document(office.stage(table=REPEATED))

    reduced = without_counts(complete)

    assert {**reduced, "rules": None} == {**complete, "rules": None}
    assert complete["rules"][0]["affected"] == 2  # what was given is not changed


def test_a_stage_is_visible_to_whoever_has_a_role_over_its_datasource(office):
    stage = office.stage()
    office.admit("producer", Role.PRODUCER)
    office.admit("elsewhere")
    other = replace(office, datasource=unique_name("other"))
    other.declare()
    office.grant("elsewhere", Role.APPROVER, other.datasource)

    visible = {
        name: review(office, stage, name).is_visible
        for name in ("viewer", "approver-1", "operator", "admin", "producer", "elsewhere")
    }

    assert [name for name, seen in visible.items() if not seen] == ["producer", "elsewhere"]
    assert not review_stage(office.application.work(), stage.id).is_visible


def test_an_unknown_stage_is_not_found(office):
    with pytest.raises(NotFoundError):
        review_stage(office.application.work(), "unknown")


def own(office, stage):
    return "creator"


def without_authority(office, stage):
    return "viewer"


def second(office, stage):
    office.decide("approver-1", stage)
    return "approver-1"


def rejected(office, stage):
    office.decide("approver-1", stage, verdict=Verdict.REJECT)
    return "approver-2"


def outdated(office, stage):
    office.declare(approval=TWO_APPROVALS)
    return "approver-1"


def promoted(office, stage):
    for name in ("approver-1", "approver-2"):
        office.decide(name, stage)
    office.promote(stage)
    return "approver-3"


@pytest.mark.parametrize("arrange", [own, without_authority, second, rejected, outdated, promoted])
def test_the_refusal_is_the_sentence_with_which_the_service_refuses(office, arrange):
    stage = office.stage()
    actor = arrange(office, stage)

    refusal = review(office, stage, actor).refusal

    with pytest.raises(GovernanceError) as refused:
        office.decide(actor, stage)
    assert refusal == str(refused.value)


def test_nobody_can_tell_a_creator_that_is_not_proven_apart(office):
    assert "nobody is proven" in review(office, office.stage(creator=None), "approver-1").refusal


def test_whoever_may_decide_is_refused_nothing(office):
    stage = office.stage()

    assert review(office, stage, "approver-1").refusal is None
    assert office.decide("approver-1", stage).actor == "approver-1"


def test_after_expiry_one_may_decide_again(office):
    office.set_clock(MIDDAY)
    stage = office.stage()
    office.decide("approver-1", stage)

    office.set_clock(MIDDAY + 4 * HOUR - timedelta(microseconds=1))
    assert "already decided" in review(office, stage, "approver-1").refusal

    office.set_clock(MIDDAY + 4 * HOUR)
    found = review(office, stage, "approver-1")
    assert (found.refusal, found.quorum.missing, found.at) == (None, 2, MIDDAY + 4 * HOUR)


def test_what_waits_is_listed_newest_first_in_pages_that_miss_nothing(office):
    stages = [office.stage() for _ in range(5)]
    office.decide("approver-1", stages[2], verdict=Verdict.REJECT)
    open_now = [stage.id for stage in (stages[4], stages[3], stages[1], stages[0])]
    reader = approver_here(office)

    first = waiting(office, reader, limit=2)
    then = waiting(office, reader, limit=2, before=first.older)

    assert ids(first) + ids(then) == open_now
    assert (first.older, then.older) == (stages[3].id, None)
    assert ids(waiting(office, reader, limit=4)) == open_now
    assert waiting(office, reader, limit=4).older is None


def test_a_page_goes_on_behind_a_stage_that_was_decided_meanwhile(office):
    old, middle, _ = (office.stage() for _ in range(3))
    reader = approver_here(office)
    first = waiting(office, reader, limit=2)
    office.decide("approver-1", middle, verdict=Verdict.REJECT)

    assert first.older == middle.id
    assert ids(waiting(office, reader, before=middle.id)) == [old.id]


def test_a_page_behind_an_unknown_stage_is_not_found(office):
    with pytest.raises(NotFoundError):
        waiting(office, "viewer", before="unknown")


def test_what_waits_elsewhere_is_not_listed(office):
    stage = office.stage()
    office.admit("producer", Role.PRODUCER)
    other = replace(office, datasource=unique_name("other"))
    other.declare()
    elsewhere = approver_here(other)

    for name in (elsewhere, "producer"):
        assert waiting(office, name).stages == []
    assert ids(waiting(office, approver_here(office))) == [stage.id]


def test_what_waits_says_who_is_missing_until_when_and_whether_one_may_decide(office):
    undecided, decided = office.stage(), office.stage()
    reader = approver_here(office)
    decision = office.decide(reader, decided)

    first, then = waiting(office, reader).stages

    assert (first.stage, then.stage) == (decided, undecided)
    assert (len(first.quorum.approvals), first.quorum.required) == (1, 2)
    assert first.standing.next_expiry == decision.expires_at
    assert (first.is_decidable, then.is_decidable) == (False, True)


def test_an_outdated_stage_is_listed_and_cannot_be_decided(office):
    stage = office.stage()
    office.declare(approval=TWO_APPROVALS)

    (found,) = waiting(office, approver_here(office)).stages

    assert found.stage == stage
    assert found.standing.changed == ("quality policy", "approval policy")
    assert not found.is_decidable


def test_a_page_asks_the_database_as_often_whatever_waits(office):
    reader = approver_here(office)

    def statements():
        asked = []

        def note(connection, cursor, statement, *_):
            asked.append(statement)

        def note_kept(driver, steps):
            asked.extend(steps)
            return answers(driver, steps)

        answers = border._answers
        event.listen(office.application.engine, "before_cursor_execute", note)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(border, "_answers", note_kept)
            waiting(office, reader, limit=5)
        event.remove(office.application.engine, "before_cursor_execute", note)
        return len(asked)

    office.decide("approver-1", office.stage())
    one = statements()
    for _ in range(6):
        office.decide("approver-1", office.stage())

    assert statements() == one


def test_a_producers_output_is_reviewed_as_it_stands_in_its_partition(office):
    own = replace(office, datasource=unique_name("orders"))
    own.declare(approval={**TWO_APPROVALS, "separation_of_duties": False}, kind="published")
    own.grant(SYSTEM, Role.PRODUCER, own.datasource)
    first = own.publish(key="k1", partition="north")
    with own.application.work() as work:
        stage = work.stages.get(first.stage)
    for approver in ("approver-1", "approver-2"):
        own.decide(approver, stage)
    own.promote(stage)

    second = own.publish(key="k2", partition="north")

    listed = {one.stage.id: one for one in waiting(own, "approver-1").stages}[second.stage]
    assert (listed.standing.changed, listed.is_decidable) == ((), True)
    found = review(own, listed.stage)
    assert found.publication == second.publication
    assert found.standing.changed == ()


def test_a_delivery_is_no_publication(office):
    assert review(office, office.stage()).publication is None
