"""The two assets of a datasource, run by Dagster in this process over a real database."""

import dagster as dg
import pytest

from datasource_governance.domain.actor import UNATTESTED
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.stage import StageState
from datasource_governance.orchestration.jobs import promotion_run_config, stage_run_config
from datasource_governance_tests.orchestration.governed import (
    AMOUNT,
    BLOCKED,
    GOOD,
    GOOD_TABLE,
    ID_UNIQUE,
    POLICY,
    REVIEW,
    checks_of,
    code_of,
    declaration,
    definitions,
    deliver,
    failure_of,
    promotion_run,
    stage_run,
    stages,
    target,
)
from datasource_governance_tests.world import TWO_APPROVALS

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
BAIT = "zq-canary-7731"


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def governed(world):
    """The world with `orders` declared; two approvals are required."""
    world.declare(POLICY, TWO_APPROVALS)
    return world


@pytest.fixture
def ungated(world):
    """The world with `orders` declared; no approval is required."""
    world.declare(POLICY)
    return world


def metadata_of(events):
    (event,) = events
    return {
        key.split("/")[-1]: value.value for key, value in event.materialization.metadata.items()
    }


def test_a_delivery_that_passes_becomes_one_stage_and_all_its_checks_pass(ungated, instance):
    run = stage_run(ungated, deliver(ungated, GOOD), instance)

    (stage,) = stages(ungated)
    (event,) = run.get_asset_materialization_events()
    assert run.success
    assert (stage.state, stage.row_count) == (StageState.READY, 2)
    assert event.materialization.tags["dagster/data_version"] == stage.id
    assert {name: check.passed for name, check in checks_of(run).items()} == {
        "id_unique": True,
        "amount": True,
        "note_": True,
        "quality_policy": True,
        "schema_classification": True,
    }


def test_a_blocked_delivery_fails_its_run_and_is_kept(ungated, instance):
    run = stage_run(ungated, deliver(ungated, BLOCKED), instance)

    (stage,) = stages(ungated)
    assert not run.success
    assert stage.state is StageState.FAILED
    assert len(run.get_asset_materialization_events()) == 1
    assert {name for name, check in checks_of(run).items() if not check.passed} == {
        "id_unique",
        "amount",
        "quality_policy",
    }


def test_after_a_blocked_stage_nothing_downstream_runs_and_current_stays(ungated, instance):
    first = ungated.promote(ungated.stage(table=GOOD_TABLE)).materialization
    assets = definitions(ungated, declaration()).resolve_implicit_global_asset_job_def()
    delivery = deliver(ungated, BLOCKED)
    config = {
        "ops": {
            **stage_run_config("orders", delivery, "")["ops"],
            **promotion_run_config("orders", first.stage)["ops"],
        }
    }

    run = assets.execute_in_process(run_config=config, instance=instance, raise_on_error=False)

    assert run.get_failed_step_keys() == {"orders__stage"}
    assert run.is_node_untouched("orders__current")
    assert target(ungated).current == first.id


def test_what_only_needs_review_leaves_the_run_green_and_the_check_yellow(ungated, instance):
    run = stage_run(ungated, deliver(ungated, REVIEW), instance)

    (stage,) = stages(ungated)
    assert run.success
    assert (stage.state, str(stage.outcome)) == (StageState.READY, "review")
    assert {name: check.severity for name, check in checks_of(run).items() if not check.passed} == {
        "note_": dg.AssetCheckSeverity.WARN,
        "quality_policy": dg.AssetCheckSeverity.WARN,
    }


def test_rules_that_are_not_declared_appear_in_the_aggregate_only(ungated, instance):
    declared = declaration({"version": "old", "rules": [ID_UNIQUE]})

    run = stage_run(ungated, deliver(ungated, BLOCKED), instance, declared=declared)

    checks = checks_of(run)
    aggregate = {key: value.value for key, value in checks["quality_policy"].metadata.items()}
    assert set(checks) == {"id_unique", "quality_policy", "schema_classification"}
    assert aggregate["datasource_governance/policy_drift"] is True
    assert [record.data["rule"] for record in aggregate["datasource_governance/rules"].records] == [
        "id-unique",
        "amount",
        "note?",
    ]
    assert metadata_of(run.get_asset_materialization_events())["policy_drift"] is True


def test_a_declared_rule_that_is_no_longer_in_force_is_not_reported(ungated, instance):
    declared = declaration({"version": "new", "rules": [AMOUNT, {**AMOUNT, "id": "gone"}]})

    run = stage_run(ungated, deliver(ungated, GOOD), instance, declared=declared)

    assert run.success
    assert "gone" not in checks_of(run)


def test_without_drift_the_aggregate_says_so(ungated, instance):
    run = stage_run(ungated, deliver(ungated, GOOD), instance)

    aggregate = checks_of(run)["quality_policy"].metadata
    assert aggregate["datasource_governance/policy_drift"].value is False


@pytest.mark.parametrize(
    "delivery",
    ["../delivery.csv", "/delivery.csv", "a/delivery.csv", ".hidden.csv", "", "..", "d\x00.csv"],
)
def test_a_delivery_that_is_not_a_plain_name_is_refused(ungated, instance, delivery):
    deliver(ungated, GOOD)
    deliver(ungated, GOOD, ".hidden.csv")

    run = stage_run(ungated, delivery, instance)

    assert code_of(run) == "invalid_argument"
    assert stages(ungated) == []


def test_a_link_in_the_delivery_folder_is_not_followed(ungated, instance, tmp_path):
    name = deliver(ungated, GOOD)
    link = ungated.application.settings.state / "deliveries" / "link.csv"
    link.symlink_to(link.parent / name)

    run = stage_run(ungated, "link.csv", instance)

    assert code_of(run) == "not_found"
    assert stages(ungated) == []


def test_a_missing_delivery_is_a_plain_failure_that_names_it(ungated, instance):
    run = stage_run(ungated, "nowhere.csv", instance)

    failure = failure_of(run)
    assert code_of(run) == "not_found"
    assert failure.user_failure_data.description == "there is no delivery 'nowhere.csv' of 'orders'"
    assert (failure.error.cause, failure.error.context) == (None, None)


def test_a_delivery_that_cannot_be_read_fails_without_a_value(ungated, instance):
    rows = [("id", "amount", "note"), (1, 2, BAIT, BAIT)]

    run = stage_run(ungated, deliver(ungated, rows), instance)

    assert code_of(run) == "unreadable_source"
    assert "first record 1" in failure_of(run).user_failure_data.description
    assert BAIT not in repr(run.all_events)
    assert stages(ungated) == []


def test_a_run_cannot_say_who_created_the_stage(governed, instance):
    run = stage_run(governed, deliver(governed, GOOD), instance)

    (stage,) = stages(governed)
    assert run.success
    assert stage.creator == UNATTESTED


def test_a_stored_attestation_proves_the_creator(governed, instance):
    delivery = deliver(governed, GOOD)
    declared = declaration(approval=TWO_APPROVALS)
    _, sha256 = governed.application.read_delivery(declared, delivery)
    attestation = governed.attest_delivery("creator", sha256)

    run = stage_run(governed, delivery, instance, attestation=attestation)
    again = stage_run(governed, delivery, instance, attestation=attestation)

    (stage,) = stages(governed)
    assert (run.success, again.success) == (True, True)
    assert stage.creator == "creator"


def test_an_attestation_about_another_file_makes_no_stage(governed, instance):
    attestation = governed.attest_delivery("creator", Sha256("0" * 64))

    run = stage_run(governed, deliver(governed, GOOD), instance, attestation=attestation)

    assert not run.success
    assert stages(governed) == []


def test_a_stage_with_a_quorum_becomes_current_and_its_evidence_is_verified(governed, instance):
    stage = governed.stage(table=GOOD_TABLE)
    for approver in ("approver-1", "approver-2"):
        governed.decide(approver, stage, reason=BAIT)

    run = promotion_run(governed, stage.id, instance)

    (event,) = run.get_asset_materialization_events()
    found = metadata_of([event])
    assert run.success
    assert event.materialization.tags["dagster/data_version"] == target(governed).current
    assert (found["revision"], found["stage_id"]) == (1, stage.id)
    assert (found["approved_by"], found["promoted_by"]) == ("approver-1, approver-2", "system")
    assert checks_of(run)["evidence"].passed
    assert BAIT not in repr(run.all_events)


def test_promoting_a_second_time_shows_the_same_materialization(governed, instance):
    stage = governed.stage(table=GOOD_TABLE)
    for approver in ("approver-1", "approver-2"):
        governed.decide(approver, stage)

    runs = [promotion_run(governed, stage.id, instance) for _ in range(2)]

    versions = {
        event.materialization.tags["dagster/data_version"]
        for run in runs
        for event in run.get_asset_materialization_events()
    }
    assert versions == {target(governed).current}
    assert target(governed).revision == 1


def test_a_promotion_whose_quorum_is_not_met_fails_and_writes_nothing(governed, instance):
    stage = governed.stage(table=GOOD_TABLE)
    governed.decide("approver-1", stage)
    before = governed.count_rows()

    run = promotion_run(governed, stage.id, instance)

    assert code_of(run) == "quorum_not_met"
    assert run.get_asset_materialization_events() == []
    assert governed.count_rows() == before


def test_broken_evidence_fails_the_check_which_names_the_break(ungated, instance):
    stage = ungated.stage(table=GOOD_TABLE)
    ungated.promote(stage)
    ungated.as_superuser(
        "ALTER TABLE governance.stage DISABLE TRIGGER USER;"
        f"UPDATE governance.stage SET delivery = 'mallory' WHERE id = '{stage.id}'"
    )

    run = promotion_run(ungated, stage.id, instance)

    (check,) = run.get_asset_check_evaluations()
    (broken,) = check.metadata["datasource_governance/breaks"].value.records
    assert not check.passed
    assert check.description == "The evidence is broken in 1 place."
    assert (broken.data["break"], broken.data["table"]) == ("altered_row", "stage")
