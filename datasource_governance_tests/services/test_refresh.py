import pyarrow as pa
import pytest

from datasource_governance.domain.actor import UNATTESTED
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.launch import RunLaunch
from datasource_governance.domain.stage import StageState
from datasource_governance.domain.subjects import delivery_subject
from datasource_governance.domain.validation import Outcome
from datasource_governance.services.creating import store_delivery_attestation
from datasource_governance.sources.refusal import refused
from datasource_governance_tests.builders import policy_document, rule
from datasource_governance_tests.refreshing import (
    ToldOrigin,
    attest_refresh,
    refreshed,
    refreshed_stage,
)
from datasource_governance_tests.world import TWO_APPROVALS

pytestmark = pytest.mark.postgres

OTHER_ROWS = pa.table({"id": [1, 2, 3]})
NO_ROWS = pa.table({"id": pa.array([], pa.int64())})
TEN_WISHED = policy_document(rule(minimum=10, severity="warning"))
ONE_APPROVAL = {"version": "v1", "required": True}


@pytest.fixture
def cached(own_corner):
    """A cached datasource that needs no approval."""
    own_corner.declare(kind="cached")
    return own_corner


@pytest.fixture
def gated(own_corner):
    """A cached datasource that needs two approvals."""
    own_corner.declare(approval=TWO_APPROVALS, kind="cached")
    return own_corner


def declare(world, **governance):
    world.declare(kind="cached", **governance)


def test_what_an_origin_says_becomes_a_stage_that_goes_the_normal_way(gated):
    origin = ToldOrigin(version="v1")

    made = refreshed_stage(gated, origin, attestation_id=attest_refresh(gated, origin))

    assert not made.not_modified
    assert made.promotion is None
    assert gated.present(made.stage) == made.stage
    assert (made.stage.state, made.stage.creator) == (StageState.AWAITING_APPROVAL, "creator")
    assert (made.stage.origin, made.stage.delivery) == (origin.definition, "told")
    with gated.application.work() as work:
        assert work.stages.version_read(made.stage.id) == "v1"
        assert work.datasources.get(gated.datasource).current is None


def test_a_refreshed_stage_is_promoted_by_its_quorum_and_evidence_holds(gated):
    origin = ToldOrigin(version="v1")
    stage = refreshed_stage(gated, origin, attestation_id=attest_refresh(gated, origin)).stage
    gated.decide("approver-1", stage)
    gated.decide("approver-2", stage)

    assert gated.promote(stage).created
    assert gated.verification().breaks == ()


def test_a_version_that_was_altered_behind_the_application_is_found(world):
    declare(world)
    refreshed_stage(world, ToldOrigin(version="v1"))

    world.tamper("origin_version", "UPDATE governance.origin_version SET version = 'v2'")

    assert [str(found.kind) for found in world.verification().breaks] == ["altered_row"]


def test_an_origin_that_says_it_is_unchanged_makes_no_stage(cached):
    origin = ToldOrigin(version="v1")
    first = refreshed_stage(cached, origin).stage
    before = cached.count_rows()

    again = refreshed_stage(cached, origin)

    assert (again.stage, again.not_modified) == (first, True)
    assert origin.asked == [None, "v1"]
    assert cached.count_rows() == before


@pytest.mark.parametrize("version", [None, "v2"])
def test_an_origin_with_the_same_content_makes_no_stage_whatever_it_calls_it(cached, version):
    first = refreshed_stage(cached, ToldOrigin(version=None if version is None else "v1")).stage
    before = cached.count_rows()

    again = refreshed_stage(cached, ToldOrigin(version=version))

    assert (again.stage, again.not_modified) == (first, True)
    assert cached.count_rows() == before


def test_an_origin_that_changed_makes_another_stage(cached):
    first = refreshed_stage(cached, ToldOrigin(version="v1")).stage

    again = refreshed_stage(cached, ToldOrigin(version="v2", table=OTHER_ROWS))

    assert not again.not_modified
    assert again.stage.id != first.id
    assert again.stage.row_count == 3


def test_forced_an_origin_is_read_and_staged_again_unchanged(cached):
    origin = ToldOrigin(version="v1")
    first = refreshed_stage(cached, origin).stage

    again = refreshed_stage(cached, origin, force=True)

    assert not again.not_modified
    assert again.stage.id != first.id
    assert origin.asked == [None, None]


def test_another_origin_of_the_same_datasource_is_read_whole(cached):
    first = refreshed_stage(cached, ToldOrigin(version="v1")).stage
    other = ToldOrigin(version="v1", definition=Sha256("1" * 64))

    again = refreshed_stage(cached, other)

    assert other.asked == [None]
    assert again.stage.id != first.id


def test_what_is_current_is_not_staged_again_until_a_policy_changes(cached):
    origin = ToldOrigin(version="v1")
    stage = refreshed_stage(cached, origin).stage
    cached.promote(stage)
    assert refreshed_stage(cached, origin).not_modified

    declare(cached, quality=policy_document(rule(minimum=2)))

    assert not refreshed_stage(cached, origin).not_modified
    assert origin.asked == [None, "v1", None]


def test_content_that_others_replaced_is_staged_again(cached):
    origin = ToldOrigin(version="v1")
    cached.promote(refreshed_stage(cached, origin).stage)
    cached.promote(cached.stage(table=OTHER_ROWS))

    assert not refreshed_stage(cached, origin).not_modified


def test_a_stage_that_is_superseded_is_no_reason_to_stage_nothing(cached):
    origin = ToldOrigin(version="v1")
    waiting = refreshed_stage(cached, origin).stage
    cached.promote(cached.stage(table=OTHER_ROWS))
    assert cached.present(waiting).state is StageState.SUPERSEDED

    assert not refreshed_stage(cached, origin).not_modified


def test_what_the_policies_in_force_refused_is_not_staged_again(cached):
    origin = ToldOrigin(version="v1", table=NO_ROWS)
    failed = refreshed_stage(cached, origin).stage

    again = refreshed_stage(cached, origin)

    assert failed.state is StageState.FAILED
    assert (again.stage.id, again.not_modified) == (failed.id, True)


def test_an_attestation_makes_one_stage_however_often_it_is_used(cached):
    origin = ToldOrigin(version="v1")
    attestation_id = attest_refresh(cached, origin)
    first = refreshed_stage(cached, origin, attestation_id=attestation_id)
    origin.version, origin.table = "v2", OTHER_ROWS

    again = refreshed_stage(cached, origin, attestation_id=attestation_id)

    assert again == first
    assert origin.asked == [None]


def test_an_attestation_proves_nothing_about_another_origin(cached):
    attestation_id = attest_refresh(cached, ToldOrigin())
    other = ToldOrigin(definition=Sha256("1" * 64))

    with cached.refuses("attestation_mismatch"):
        refreshed_stage(cached, other, attestation_id=attestation_id)
    assert other.asked == []

    refreshed_stage(cached, ToldOrigin(), attestation_id=attestation_id)
    with cached.refuses("attestation_mismatch"):
        refreshed_stage(cached, other, attestation_id=attestation_id)


def test_an_attested_file_is_no_attested_origin(cached):
    sha256 = Sha256("2" * 64)
    subject = delivery_subject(cached.datasource, sha256)
    attestation = cached.signer("creator").attest(Action.STAGE_CREATE, subject)
    work = cached.application.work()
    attestation_id = store_delivery_attestation(work, cached.datasource, sha256, attestation)

    with cached.refuses("attestation_mismatch"):
        refreshed_stage(cached, ToldOrigin(), attestation_id=attestation_id)


def test_who_may_not_stage_has_nothing_read(cached):
    origin = ToldOrigin()

    with cached.refuses("not_authorised"):
        attest_refresh(cached, origin, "operator")
    with cached.refuses("not_found"):
        refreshed_stage(cached, origin, attestation_id="no such attestation")

    assert origin.asked == []


def test_whoever_launched_the_run_is_the_creator(cached, tmp_path):
    launch = RunLaunch(
        run_id=f"run-{cached.datasource}",
        job=f"refresh_stage_{cached.datasource}",
        assets=(),
        config_hash=Sha256("0" * 64),
    )
    cached.launch(cached.gateway(tmp_path), "creator", launch)

    made = refreshed_stage(cached, ToldOrigin(), launch=launch)

    assert made.stage.creator == "creator"
    assert refreshed_stage(cached, ToldOrigin(table=OTHER_ROWS), launch=launch) == made
    assert refreshed_stage(cached, ToldOrigin(table=OTHER_ROWS)).stage.creator == UNATTESTED


def test_an_origin_that_fails_writes_nothing(cached):
    failing = ToldOrigin(failure=refused("told", "unreadable", "not now"))

    with cached.refuses("unreadable_source"):
        refreshed_stage(cached, failing)
    with cached.refuses("unreadable_source"):
        refreshed(cached, failing)


def test_only_a_cached_datasource_is_refreshed(own_corner):
    own_corner.declare(kind="static")
    origin = ToldOrigin()

    with own_corner.refuses("wrong_kind"):
        refreshed_stage(own_corner, origin)
    with own_corner.refuses("wrong_kind"):
        refreshed(own_corner, origin)

    assert origin.asked == []


def test_direct_refresh_brings_into_force_what_nobody_has_to_look_at(cached):
    made = refreshed(cached, ToldOrigin(version="v1"))

    with cached.application.work() as work:
        current = work.datasources.get(cached.datasource).current
    assert made.promotion.materialization.id == current
    assert cached.present(made.stage).state is StageState.PROMOTED


def test_direct_refresh_of_what_is_current_changes_nothing(cached):
    origin = ToldOrigin(version="v1")
    refreshed(cached, origin)
    before = cached.count_rows()

    again = refreshed(cached, origin)

    assert again.not_modified
    assert again.promotion is None
    assert cached.count_rows() == before


def test_direct_refresh_ends_what_an_earlier_one_left_ready(cached):
    origin = ToldOrigin(version="v1")
    left = refreshed_stage(cached, origin).stage

    made = refreshed(cached, origin)

    assert made.promotion.materialization.stage == left.id


@pytest.mark.parametrize(
    ("quality", "table", "state", "outcome"),
    [
        (TEN_WISHED, OTHER_ROWS, StageState.READY, Outcome.REVIEW),
        (policy_document(rule(minimum=1)), NO_ROWS, StageState.FAILED, Outcome.BLOCKED),
    ],
)
def test_direct_refresh_leaves_what_is_to_be_looked_at(own_corner, quality, table, state, outcome):
    declare(own_corner, quality=quality)

    made = refreshed(own_corner, ToldOrigin(table=table))

    assert made.promotion is None
    assert (made.stage.state, made.stage.outcome) == (state, outcome)


@pytest.mark.parametrize("force", [False, True])
def test_direct_refresh_is_refused_where_approval_is_required_and_nothing_is_read(gated, force):
    origin = ToldOrigin(failure=refused("told", "unreadable", "asked"))

    with gated.refuses("approval_required"):
        refreshed(gated, origin, force=force)

    assert origin.asked == []


def test_an_approval_policy_that_requires_none_lets_a_direct_refresh_through(own_corner):
    declare(own_corner, approval={"version": "v1", "required": False})

    assert refreshed(own_corner, ToldOrigin()).promotion is not None


def test_approval_that_becomes_required_while_the_origin_is_read_is_required(cached):
    class Declaring(ToldOrigin):
        def read(self):
            declare(cached, approval=ONE_APPROVAL)
            return super().read()

    made = refreshed(cached, Declaring())

    assert made.stage.state is StageState.AWAITING_APPROVAL
    assert made.promotion is None
