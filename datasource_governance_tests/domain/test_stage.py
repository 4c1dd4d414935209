import pytest

from datasource_governance.domain.actor import UNATTESTED
from datasource_governance.domain.quality_policy import Severity
from datasource_governance.domain.quality_provider import EVALUATOR_VERSION
from datasource_governance.domain.stage import (
    Delivery,
    StageState,
    check_live,
    new_stage,
)
from datasource_governance.domain.validation import Outcome, Status
from datasource_governance.errors import GuardError
from datasource_governance_tests.domain.lifecycle import (
    CREATOR,
    MIDDAY,
    TENANT,
    outcome,
    policy,
    sha,
    stage,
    target,
    validation,
)

MUTATIONS = {
    "id": "stage-2",
    "datasource": "returns",
    "creator": "somebody",
    "schema": b"[]",
    "payload_fingerprint": sha("other"),
    "payload_sha256": sha("other"),
    "row_count": 3,
    "byte_count": 17,
    "base": "m",
    "quality_policy_hash": sha("other"),
    "policy_source": "supplied",
    "evaluator_version": "2",
}


@pytest.mark.parametrize("component", MUTATIONS)
def test_every_component_changes_the_fingerprint(component):
    mutated = stage(**{component: MUTATIONS[component]})

    assert mutated.fingerprint(TENANT) != stage().fingerprint(TENANT)


def test_the_tenant_changes_the_fingerprint():
    assert stage().fingerprint("other") != stage().fingerprint(TENANT)


def test_no_move_of_the_state_changes_the_fingerprint():
    found = {stage(state=state).fingerprint(TENANT) for state in StageState}

    assert len(found) == 1


def test_a_fingerprint_stays_what_it_was():
    assert (
        stage().fingerprint(TENANT)
        == "9e7bc20e0110a796875c7c1be1cb5e9b45fbc2668f36709af2d0af147c09bfa5"
    )


@pytest.mark.parametrize(
    ("state", "present", "different"),
    [
        (StageState.READY, {"current": "m"}, ("base materialization",)),
        (StageState.READY, {"quality_policy_hash": sha("x")}, ("quality policy",)),
        (StageState.READY, {"approval_policy_hash": None}, ("approval policy",)),
        (StageState.READY, {"evaluator_version": "1+soda@4.28.0/ab"}, ("quality provider",)),
        (
            StageState.READY,
            {"current": "m", "quality_policy_hash": None},
            ("base materialization", "quality policy"),
        ),
        (StageState.SUPERSEDED, {}, ("base materialization",)),
    ],
)
def test_an_outdated_stage_names_everything_that_differs(state, present, different):
    with pytest.raises(GuardError) as caught:
        check_live(stage(state=state), target(**present))

    assert caught.value.code == "stage_outdated"
    assert caught.value.facts["different"] == different


def test_a_stage_bound_to_what_is_in_force_is_live():
    check_live(stage(), target())
    check_live(stage(base="m"), target(current="m", revision=7, promotion="automatic"))


def born(found=None, approval=None, **present):
    """Return the stage that a delivery with this validation becomes."""
    delivery = Delivery(
        name="delivery.csv",
        sha256=sha("file"),
        payload_sha256=sha("bytes"),
        creator=CREATOR,
        attestation_id="a",
    )
    return new_stage(
        "stage-1",
        delivery,
        found or validation(),
        target=target(**present),
        approval_policy=approval,
        now=MIDDAY,
    )


READY = validation()
REVIEW = validation(outcome(status=Status.FAILED, severity=Severity.WARNING))
BLOCKED = validation(outcome(status=Status.ERROR))


@pytest.mark.parametrize(
    ("found", "approval", "state"),
    [
        (READY, None, StageState.READY),
        (READY, policy(required=False), StageState.READY),
        (READY, policy(), StageState.AWAITING_APPROVAL),
        (REVIEW, None, StageState.READY),
        (REVIEW, policy(), StageState.AWAITING_APPROVAL),
        (BLOCKED, None, StageState.FAILED),
        (BLOCKED, policy(), StageState.FAILED),
    ],
)
def test_a_stage_is_born_failed_ready_or_waiting(found, approval, state):
    assert born(found, approval).state is state


def test_a_stage_holds_its_validation_and_what_it_is_bound_to():
    made = born(READY, policy(), current="m")

    assert (made.validation, made.validation_hash) == (READY.hashed_bytes(), READY.hash)
    assert (made.schema, made.outcome) == (READY.schema_bytes(), Outcome.READY)
    assert made.payload_fingerprint == READY.fingerprint
    assert (made.row_count, made.byte_count) == (2, 16)
    assert (made.base, made.approval_policy_hash) == ("m", policy().hash)
    assert made.quality_policy_hash == READY.policy_hash
    assert (made.evaluator_version, made.policy_source) == (EVALUATOR_VERSION, "inherited")
    assert made.approval_required


def test_an_unproven_creator_is_part_of_the_fingerprint():
    assert stage(creator=UNATTESTED).fingerprint(TENANT) != stage().fingerprint(TENANT)
