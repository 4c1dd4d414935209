"""Who launched a run is proved by a gateway, for exactly that run, or by nobody."""

from dataclasses import replace

import pytest

from datasource_governance.domain.actor import SYSTEM, UNATTESTED, Role
from datasource_governance.domain.attestation import Action, Attestation
from datasource_governance.domain.canonical import load_canonical
from datasource_governance.domain.evidence import TENANT_CHAIN, datasource_chain
from datasource_governance.domain.materialization import provenance_of
from datasource_governance.domain.stage import StageState
from datasource_governance.domain.subjects import launch_subject
from datasource_governance.errors import GuardError
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.services.launching import attest_launch, launcher_of
from datasource_governance.services.staging import create_stage
from datasource_governance.web.gateway import Gateway
from datasource_governance_tests.launches import promotion_launch, stage_launch
from datasource_governance_tests.services.test_staging import ROWS, request
from datasource_governance_tests.world import ONE_ROW_AT_LEAST, TWO_APPROVALS, World

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@pytest.fixture
def gateway(world):
    return world.gateway(world.application.settings.state / "webserver")


def launched_by(world, launch):
    with world.application.work() as work:
        found = launcher_of(work, launch)
    return found and found.actor


def attest(world, launch, attestation):
    return attest_launch(world.application.work(), launch, attestation)


def signed(signer, launch, actor="creator"):
    return signer.attest(Action.RUN_LAUNCH, launch_subject(launch), actor=actor)


def staged(world, launch, **changes):
    work, evaluator = world.application.work(), world.application.evaluator()
    wanted = request(world, **{"attestation_id": None, "launch": launch, **changes})
    return create_stage(work, evaluator, TypedPayload(ROWS), wanted)


def test_a_launch_through_the_gateway_is_proved_and_is_evidence(world, gateway):
    launch = world.launch(gateway, "creator", stage_launch())

    assert launched_by(world, launch) == "creator"
    with world.application.work() as work:
        (entry,) = work.evidence.segment(TENANT_CHAIN, launch.run_id)
        attestation = work.authority.launch_attestation(launch.run_id)
    assert entry.kind == "run.launched"
    assert load_canonical(entry.body)["facts"] == {
        **launch_subject(launch),
        "actor": "creator",
        "attestation": attestation.id,
    }
    assert world.verification().holds


@pytest.mark.parametrize(
    "other",
    [
        {"run_id": "run-9"},
        {"job": "stage_countries"},
        {"assets": ("orders/stage",)},
        {"config_hash": "0" * 64},
    ],
)
def test_a_launch_proves_nothing_about_a_run_that_differs_in_anything(world, gateway, other):
    launch = world.launch(gateway, "creator", stage_launch())

    assert launched_by(world, replace(launch, **other)) is None


def test_the_same_launch_is_attested_once(world, gateway):
    launch = world.launch(gateway, "creator", stage_launch())
    before = world.count_rows()

    world.launch(gateway, "creator", launch)

    assert world.count_rows() == before


def test_a_run_that_was_launched_has_no_other_launcher(world, gateway):
    launch = world.launch(gateway, "creator", stage_launch())

    with world.refuses("attestation_used"):
        world.launch(gateway, "operator", launch)
    with world.refuses("attestation_used"):
        world.launch(gateway, "creator", replace(launch, config_hash="0" * 64))


def test_a_gateway_that_is_not_registered_launches_nothing_and_is_told_how_to_be(world, tmp_path):
    unknown = Gateway(tmp_path / "another", "default")

    with pytest.raises(GuardError, match="key register gateway --public-key FILE --kind gateway"):
        world.launch(unknown, "creator", stage_launch())
    with world.refuses("attestation_invalid"):
        world.launch(unknown, "creator", stage_launch())


def test_an_actors_own_key_launches_nothing(world):
    launch = stage_launch()

    with world.refuses("attestation_invalid"):
        attest(world, launch, signed(world.signer("creator"), launch))


def test_after_a_gateway_key_is_revoked_nothing_is_launched_and_nothing_waiting_is_proved(
    world, gateway
):
    launch = world.launch(gateway, "creator", stage_launch())

    world.revoke(gateway.key)

    with world.refuses("attestation_invalid"):
        world.launch(gateway, "creator", launch)
    with world.refuses("attestation_invalid"):
        world.launch(gateway, "creator", stage_launch(run_id="run-2"))
    assert launched_by(world, launch) is None


def test_a_copied_attestation_proves_nothing_for_another_run(world, gateway):
    launch, copy = stage_launch(), stage_launch(run_id="run-2")
    attestation = gateway.attest("creator", Action.RUN_LAUNCH, launch_subject(launch))
    attest(world, launch, attestation)

    with world.refuses("attestation_mismatch"):
        attest(world, copy, attestation)
    assert launched_by(world, copy) is None


def test_a_wrong_signature_launches_nothing(world, gateway):
    launch = stage_launch()
    attestation = gateway.attest("creator", Action.RUN_LAUNCH, launch_subject(launch))
    claims = replace(attestation.claims, actor="operator")

    with world.refuses("attestation_invalid"):
        attest(world, launch, Attestation(claims=claims, signature=attestation.signature))


def test_a_stage_is_created_by_whoever_launched_its_run(world, gateway):
    world.declare(approval=TWO_APPROVALS)
    launch = world.launch(gateway, "creator", stage_launch())

    stage = staged(world, launch).stage

    with world.application.work() as work:
        attestation = work.authority.launch_attestation(launch.run_id)
    assert (stage.creator, stage.attestation_id) == ("creator", attestation.id)
    assert world.verification().holds


def test_a_creator_by_launch_cannot_approve(world, gateway):
    world.declare(approval=TWO_APPROVALS)
    world.grant("creator", Role.APPROVER)
    stage = staged(world, world.launch(gateway, "creator", stage_launch())).stage

    with world.refuses("creator_cannot_approve"):
        world.decide("creator", stage)
    for approver in ("approver-1", "approver-2"):
        world.decide(approver, stage)

    assert world.promote(stage).created


def test_a_retry_of_the_step_gives_the_same_stage(world, gateway):
    world.declare()
    launch = world.launch(gateway, "creator", stage_launch())

    first, again = staged(world, launch), staged(world, launch)

    assert (first.created, again.created) == (True, False)
    assert first.stage == again.stage


def test_a_run_stages_no_second_file_under_one_launch(world, gateway):
    world.declare()
    launch = world.launch(gateway, "creator", stage_launch())
    staged(world, launch)

    with world.refuses("attestation_mismatch"):
        staged(world, launch, file_sha256="0" * 64)


def test_one_launch_stages_deliveries_of_several_datasources(world, gateway):
    other = World(world.application, world.database, "countries")
    world.declare()
    other.declare(ONE_ROW_AT_LEAST)
    launch = world.launch(
        gateway, "creator", stage_launch(assets=("countries/stage", "orders/stage"))
    )

    stages = [staged(each, launch).stage for each in (world, other)]

    assert [stage.creator for stage in stages] == ["creator", "creator"]
    assert world.verification().holds


@pytest.mark.parametrize(
    "launch",
    [
        stage_launch(job="report"),
        stage_launch(job="__ASSET_JOB"),
        stage_launch(assets=("orders/current",)),
        stage_launch("countries"),
    ],
)
def test_a_launch_of_something_else_creates_no_stage_in_anybodys_name(world, gateway, launch):
    world.declare()
    world.launch(gateway, "creator", launch)

    stage = staged(world, launch).stage

    assert (stage.creator, stage.attestation_id) == (UNATTESTED, None)


def test_without_a_launch_that_was_attested_nobody_created_the_stage(world):
    world.declare()

    stages = [staged(world, launch).stage for launch in (None, stage_launch())]

    assert {(stage.creator, stage.attestation_id) for stage in stages} == {(UNATTESTED, None)}


def test_who_launches_without_the_role_steward_creates_nothing(world, gateway):
    world.declare()
    launch = world.launch(gateway, "operator", stage_launch())

    with world.refuses("not_authorised"):
        staged(world, launch)


def test_an_attestation_that_is_named_counts_before_the_launch(world, gateway):
    world.declare()
    launch = world.launch(gateway, "operator", stage_launch())

    stage = world.stage("creator", launch=launch)

    assert stage.creator == "creator"


def test_a_launch_named_as_a_delivery_s_attestation_creates_nothing(world, gateway):
    world.declare()
    world.launch(gateway, "creator", stage_launch())
    with world.application.work() as work:
        borrowed = work.authority.launch_attestation("run-1").id

    with world.refuses("attestation_mismatch"):
        staged(world, None, attestation_id=borrowed)


def test_an_operator_who_launched_the_run_is_the_promoter(world, gateway):
    world.declare()
    stage = world.stage()
    launch = world.launch(gateway, "operator", promotion_launch(stage.id))

    made = world.promote(stage, None, launch).materialization

    with world.application.work() as work:
        attestation = work.authority.launch_attestation(launch.run_id)
        entry = work.evidence.segment(datasource_chain("orders"), stage.id)[-1]
    facts = load_canonical(entry.body)["facts"]
    assert made.created_by == "operator"
    assert provenance_of(made)["promotion_attestation"] == attestation.id
    assert (facts["actor"], facts["attestation"]) == ("operator", attestation.id)
    assert world.verification().holds


def test_who_launches_a_promotion_without_the_role_operator_promotes_nothing(world, gateway):
    world.declare()
    stage = world.stage()
    launch = world.launch(gateway, "creator", promotion_launch(stage.id))

    with world.refuses("not_authorised"):
        world.promote(stage, None, launch)


@pytest.mark.parametrize("elsewhere", [{"job": "report"}, {"assets": ("countries/current",)}])
def test_a_launch_of_something_else_promotes_in_nobodys_name(world, gateway, elsewhere):
    world.declare()
    stage = world.stage()
    launch = world.launch(gateway, "operator", promotion_launch(stage.id, **elsewhere))

    with world.refuses("not_authorised"):
        world.promote(stage, None, launch)
    assert world.present(stage).state is StageState.READY


def test_a_promotion_that_nobody_is_proved_to_have_launched_is_the_systems(world):
    world.declare(approval=TWO_APPROVALS)
    stage = world.stage()
    for approver in ("approver-1", "approver-2"):
        world.decide(approver, stage)

    made = world.promote(stage, None, promotion_launch(stage.id)).materialization

    assert made.created_by == SYSTEM
    assert provenance_of(made)["promotion_attestation"] is None
