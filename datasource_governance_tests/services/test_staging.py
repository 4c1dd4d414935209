import hashlib
from dataclasses import replace

import pyarrow as pa
import pytest

from datasource_governance.domain.actor import UNATTESTED
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.canonical import Sha256, load_canonical
from datasource_governance.domain.schema_document import parse_schema
from datasource_governance.domain.stage import StageState
from datasource_governance.domain.subjects import delivery_subject
from datasource_governance.domain.validation import Outcome
from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.services.creating import store_delivery_attestation
from datasource_governance.services.staging import StageRequest, create_stage
from datasource_governance_tests.builders import policy_document, rule

pytestmark = pytest.mark.postgres

ROWS = pa.table({"id": [1, 2]})
NO_ROWS = pa.table({"id": pa.array([], pa.int64())})
ONE_WANTED = policy_document(rule(minimum=1))
TEN_WISHED = policy_document(rule(minimum=10, severity="warning"))
REQUIRED = {"version": "v1", "required": True}
NOT_REQUIRED = {"version": "v1", "required": False}
UNPROVEN_ALLOWED = {**REQUIRED, "separation_of_duties": False}


def request(world, attestation_id, table=ROWS, **changes):
    """Return a request to stage a table under a stored attestation."""
    return replace(
        StageRequest(
            datasource=world.datasource,
            delivery="delivery.csv",
            file_sha256=sha256_of(table),
            attestation_id=attestation_id,
        ),
        **changes,
    )


def sha256_of(table):
    return Sha256(hashlib.sha256(TypedPayload(table).encoded()).hexdigest())


def create(world, asked, table=ROWS):
    application = world.application
    return create_stage(application.work(), application.evaluator(), TypedPayload(table), asked)


@pytest.mark.parametrize(
    ("quality", "approval", "table", "state", "outcome"),
    [
        (ONE_WANTED, None, ROWS, StageState.READY, Outcome.READY),
        (ONE_WANTED, NOT_REQUIRED, ROWS, StageState.READY, Outcome.READY),
        (ONE_WANTED, REQUIRED, ROWS, StageState.AWAITING_APPROVAL, Outcome.READY),
        (TEN_WISHED, None, ROWS, StageState.READY, Outcome.REVIEW),
        (TEN_WISHED, REQUIRED, ROWS, StageState.AWAITING_APPROVAL, Outcome.REVIEW),
        (ONE_WANTED, None, NO_ROWS, StageState.FAILED, Outcome.BLOCKED),
        (ONE_WANTED, REQUIRED, NO_ROWS, StageState.FAILED, Outcome.BLOCKED),
    ],
)
def test_a_stage_is_born_in_the_state_that_its_validation_and_policy_say(
    world, quality, approval, table, state, outcome
):
    world.declare(quality, approval)

    stage = world.stage(table=table)

    assert (stage.state, stage.outcome) == (state, outcome)
    assert world.present(stage) == stage
    assert world.verification().holds


def test_a_breaking_schema_makes_a_failed_stage_whatever_the_rules_say(world):
    world.declare(policy_document())
    world.promote(world.stage())

    stage = world.stage(table=pa.table({"other": [1, 2]}))

    assert stage.state is StageState.FAILED
    diff = load_canonical(stage.validation)["schema_diff"]
    assert diff["classification"] == "breaking"


def test_a_failed_stage_is_stored_with_all_that_was_found(world):
    world.declare(ONE_WANTED, REQUIRED)

    stage = world.stage(table=NO_ROWS)

    with world.application.work() as work:
        assert work.stages.list("orders", {StageState.FAILED}) == [stage]
        assert work.stages.payload_sha256(stage.id) == stage.payload_sha256
    found = load_canonical(world.present(stage).validation)
    assert [(one["id"], one["status"], one["reason"]) for one in found["rules"]] == [
        ("r", "failed", "row_count")
    ]
    assert [field.name for field in parse_schema(stage.schema).fields] == ["id"]


def test_a_stage_without_an_attestation_has_an_unproven_creator(world):
    world.declare(ONE_WANTED, UNPROVEN_ALLOWED)

    stage = world.stage(creator=None)

    assert (stage.creator, stage.attestation_id) == (UNATTESTED, None)
    assert world.decide("approver-1", stage).actor == "approver-1"


def test_nobody_decides_about_an_unproven_creator_under_separation_of_duties(world):
    world.declare(ONE_WANTED, REQUIRED)
    stage = world.stage(creator=None)

    with world.refuses("creator_unknown"):
        world.decide("approver-1", stage)


def test_a_retry_with_the_same_attestation_gives_the_same_stage_and_writes_nothing(world):
    world.declare()
    first = create(world, request(world, world.attest_delivery("creator", sha256_of(ROWS))))
    before = world.count_rows()

    second = create(world, request(world, first.stage.attestation_id))

    assert (first.created, second.created) == (True, False)
    assert second.stage == first.stage
    assert world.count_rows() == before


def test_storing_an_attestation_again_is_harmless(world):
    world.declare()
    sha256 = sha256_of(ROWS)
    attestation = world.signer("creator").attest(
        Action.STAGE_CREATE, delivery_subject("orders", sha256)
    )
    work = world.application.work()
    first = store_delivery_attestation(work, "orders", sha256, attestation)
    before = world.count_rows()

    second = store_delivery_attestation(work, "orders", sha256, attestation)

    assert first == second == attestation.id
    assert world.count_rows() == before


def test_an_attestation_creates_no_stage_of_another_delivery(world):
    world.declare()
    attestation_id = world.attest_delivery("creator", sha256_of(ROWS))
    other = request(world, attestation_id, NO_ROWS)

    with world.refuses("attestation_mismatch"):
        create(world, other, NO_ROWS)

    create(world, request(world, attestation_id))
    with world.refuses("attestation_mismatch"):
        create(world, other, NO_ROWS)


def test_an_attestation_of_something_else_creates_no_stage(world):
    world.declare(ONE_WANTED, REQUIRED)
    decision = world.decide("approver-1", world.stage())

    with world.refuses("attestation_mismatch"):
        create(world, request(world, decision.attestation_id))


def test_an_attestation_that_was_never_stored_creates_no_stage(world):
    world.declare()

    with world.refuses("not_found"):
        create(world, request(world, Sha256("0" * 64)))


@pytest.mark.parametrize("actor", ["operator", "approver-1", "admin"])
def test_only_a_steward_creates_stages(world, actor):
    world.declare()

    with world.refuses("not_authorised"):
        world.stage(creator=actor)


def test_a_key_revoked_meanwhile_creates_no_stage(world):
    world.declare()
    asked = request(world, world.attest_delivery("creator", sha256_of(ROWS)))
    world.revoke(world.signer("creator").key)

    with world.refuses("attestation_invalid"):
        create(world, asked)


def test_without_a_quality_policy_nothing_is_proven_and_nothing_is_staged(world):
    world.declare()
    world.as_superuser("UPDATE governance.datasource SET quality_policy_hash = NULL")

    with world.refuses("quality_policy_missing"):
        world.stage(creator=None)


class HasATwin:
    """Validates, while another run with the same attestation is faster."""

    provider = None

    def __init__(self, world, asked):
        self.world = world
        self.asked = asked
        self.faster = None

    def validate(self, policy, payload, previous):
        self.faster = create(self.world, self.asked)
        return self.world.application.evaluator().validate(policy, payload, previous)


def test_of_two_runs_with_one_attestation_the_slower_gets_the_stage_of_the_faster(world):
    world.declare()
    asked = request(world, world.attest_delivery("creator", sha256_of(ROWS)))
    evaluator = HasATwin(world, asked)

    slower = create_stage(world.application.work(), evaluator, TypedPayload(ROWS), asked)

    assert (evaluator.faster.created, slower.created) == (True, False)
    assert slower.stage == evaluator.faster.stage


class ChangesPolicyMeanwhile:
    """Validates, while somebody else brings another policy into force, a number of times."""

    provider = None

    def __init__(self, world, times):
        self.world = world
        self.policies = [policy_document(rule(minimum=number + 2)) for number in range(times)]
        self.evaluator = world.application.evaluator()

    def validate(self, policy, payload, previous):
        validation = self.evaluator.validate(policy, payload, previous)
        if self.policies:
            self.world.declare(self.policies.pop())
        return validation


def test_a_policy_that_changes_during_validation_is_validated_against_anew(world):
    world.declare()
    evaluator = ChangesPolicyMeanwhile(world, times=2)

    staged = create_stage(
        world.application.work(), evaluator, TypedPayload(ROWS), request(world, None)
    )

    with world.application.work() as work:
        present = work.datasources.get("orders").quality_policy_hash
    assert staged.stage.quality_policy_hash == present
    assert load_canonical(staged.stage.validation)["policy"]["hash"] == present


def test_a_policy_that_never_rests_is_given_up_without_a_stage(world):
    world.declare()
    evaluator = ChangesPolicyMeanwhile(world, times=3)
    work = world.application.work()

    with pytest.raises(ServiceUnavailableError) as caught:
        create_stage(work, evaluator, TypedPayload(ROWS), request(world, None))

    assert caught.value.code == "busy"
    assert world.count_rows()["stage"] == 0
