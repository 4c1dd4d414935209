"""What a launch is about, and when a launch proves who staged or promoted."""

from dataclasses import replace

import pytest

from datasource_governance.domain.attestation import Action, Claims
from datasource_governance.domain.launch import (
    RETENTION_APPLY_JOB,
    RETENTION_PLAN_ASSET,
    RETENTION_PLAN_JOB,
    promotion_job_name,
    reads_environment,
    refresh_job_name,
    run_config_hash,
    stage_job_name,
)
from datasource_governance.domain.subjects import launch_subject, stated_launch
from datasource_governance_tests.launches import promotion_launch, stage_launch

ASSET_JOB = "__ASSET_JOB"


def claims(subject, action=Action.RUN_LAUNCH) -> Claims:
    return Claims(
        tenant="default",
        actor="creator",
        key="k",
        action=action,
        subject=subject,
        issued_at="2026-03-01T12:00:00+00:00",
        nonce="n",
    )


@pytest.mark.parametrize(
    ("launch", "stages", "promotes"),
    [
        (stage_launch(), True, False),
        (promotion_launch("s-1"), False, True),
        (stage_launch("countries"), False, False),
        (stage_launch(job="refresh_stage_orders"), True, False),
        (stage_launch(job="refresh_stage_countries"), False, False),
        (stage_launch(job="stage_orders_2"), False, False),
        (stage_launch(job=ASSET_JOB), False, False),
        (stage_launch(job=ASSET_JOB, assets=("orders/stage",)), True, False),
        (stage_launch(job=ASSET_JOB, assets=("orders/current",)), False, True),
        (stage_launch(job=ASSET_JOB, assets=("orders/current", "orders/stage")), True, True),
        (stage_launch(job=ASSET_JOB, assets=("countries/stage",)), False, False),
        (stage_launch(assets=("report",)), False, False),
        (stage_launch(job="somebodys_own", assets=("orders/stage",)), True, False),
    ],
)
def test_a_launch_means_what_was_selected_or_else_the_job(launch, stages, promotes):
    assert (launch.stages("orders"), launch.promotes("orders")) == (stages, promotes)


@pytest.mark.parametrize(
    ("launch", "plans"),
    [
        (stage_launch(job=RETENTION_PLAN_JOB), True),
        (stage_launch(job=RETENTION_APPLY_JOB), False),
        (stage_launch(job=ASSET_JOB), False),
        (stage_launch(job=ASSET_JOB, assets=(RETENTION_PLAN_ASSET,)), True),
        (stage_launch(job=RETENTION_PLAN_JOB, assets=("orders/stage",)), False),
    ],
)
def test_a_launch_means_a_retention_plan_by_its_asset_or_else_its_job(launch, plans):
    assert launch.plans_retention() is plans


def test_the_jobs_are_named_after_the_datasource():
    named = [name("orders") for name in (stage_job_name, refresh_job_name, promotion_job_name)]

    assert named == ["stage_orders", "refresh_stage_orders", "promote_orders"]


@pytest.mark.parametrize("launch", [stage_launch(), stage_launch(assets=("a/stage", "b/stage"))])
def test_what_is_signed_states_the_launch_again(launch):
    assert stated_launch(claims(launch_subject(launch))) == launch


@pytest.mark.parametrize(
    "other",
    [
        {"run_id": "run-9"},
        {"job": "stage_countries"},
        {"assets": ("orders/stage",)},
        {"config_hash": "0" * 64},
    ],
)
def test_every_fact_of_a_launch_is_signed(other):
    launch = stage_launch()

    assert launch_subject(replace(launch, **other)) != launch_subject(launch)


@pytest.mark.parametrize(
    "signed",
    [
        claims(launch_subject(stage_launch()), Action.STAGE_CREATE),
        claims({}),
        claims({**launch_subject(stage_launch()), "more": 1}),
        claims({**launch_subject(stage_launch()), "assets": [1]}),
        claims({**launch_subject(stage_launch()), "run_id": None}),
        claims({**launch_subject(stage_launch()), "assets": "orders/stage"}),
    ],
)
def test_claims_about_something_else_state_no_launch(signed):
    assert stated_launch(signed) is None


def test_the_hash_of_a_configuration_is_of_what_it_says():
    assert run_config_hash({"a": 1, "b": [2]}) == run_config_hash({"b": [2.0], "a": 1})
    assert run_config_hash({"a": 1}) != run_config_hash({"a": "1"})
    with pytest.raises(ValueError, match="no canonical JSON form"):
        run_config_hash({"a": float("nan")})


@pytest.mark.parametrize(
    ("config", "reads"),
    [
        ({}, False),
        ({"env": "HOME"}, True),
        ({"ops": {"a": {"config": {"reason": {"env": "HOME"}}}}}, True),
        ({"ops": {"a": {"config": {"list": [1, ({"env": 1},)]}}}}, True),
        ({"ops": {"a": {"config": {"env": "production", "size": 1}}}}, False),
        ({"ops": {"a": {"config": {"text": "env"}}}}, False),
    ],
)
def test_configuration_that_reads_the_environment_is_found(config, reads):
    assert reads_environment(config) is reads


def test_configuration_that_contains_itself_is_read_once():
    config = {"a": []}
    config["a"].append(config)

    assert not reads_environment(config)
