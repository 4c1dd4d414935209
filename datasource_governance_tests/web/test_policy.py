"""Which role a route or a launch needs."""

import pytest

from datasource_governance.domain.actor import Role
from datasource_governance.web.policy import (
    READ,
    READ_LOGS,
    Launch,
    Need,
    held_against,
    need_of_route,
    needs_of_launch,
)
from datasource_governance_tests.web.schema import granted

STEWARD_OF_ORDERS = Need(roles=frozenset({Role.STEWARD}), datasource="orders")
OPERATOR_OF_ORDERS = Need(roles=frozenset({Role.OPERATOR}), datasource="orders")
PRODUCER_OF_ORDERS = Need(roles=frozenset({Role.PRODUCER}), datasource="orders")
STEWARD_OF_ALL = Need(roles=frozenset({Role.STEWARD}))
OPERATOR_OF_ALL = Need(roles=frozenset({Role.OPERATOR}))
ADMINISTRATOR = Need(roles=frozenset({Role.ADMINISTRATOR}))


@pytest.mark.parametrize(
    ("path", "need"),
    [
        ("/", READ),
        ("/assets/orders/stage", READ),
        ("/graphql", READ),
        ("/_next/static/main.js", READ),
        ("/server_info", READ),
        ("/logs/run/compute_logs/step.out", READ_LOGS),
        ("/download_debug/0d1e", READ_LOGS),
        ("/datasources/orders/refresh/stage", STEWARD_OF_ORDERS),
        ("/datasources/Orders/refresh/stage", READ),
        ("/datasources/orders/refresh/stage/", READ),
        ("/datasources/orders/refresh", READ),
        ("/notebook", None),
        ("/dagit/notebook", None),
        ("/report_asset_materialization/orders/current", None),
        ("/report_asset_check/orders/stage", None),
        ("/report_asset_observation/orders/stage", None),
        ("/report_asset_anything_new/orders", None),
    ],
)
def test_route_needs(path, need):
    assert need_of_route(path) == need


@pytest.mark.parametrize(
    ("launch", "needs"),
    [
        (Launch(job="stage_orders"), {STEWARD_OF_ORDERS}),
        (Launch(job="refresh_stage_orders"), {STEWARD_OF_ORDERS}),
        (Launch(job="promote_orders"), {OPERATOR_OF_ORDERS}),
        (Launch(job="publish_orders"), {PRODUCER_OF_ORDERS}),
        (Launch(job="apply_retention_plan"), {ADMINISTRATOR}),
        (Launch(job="apply_retention_plan_2"), {OPERATOR_OF_ALL}),
        (Launch(job="report"), {OPERATOR_OF_ALL}),
        (Launch(job="stage_"), {OPERATOR_OF_ALL}),
        (Launch(job="STAGE_orders"), {OPERATOR_OF_ALL}),
        (Launch(job="__ASSET_JOB"), {OPERATOR_OF_ALL, STEWARD_OF_ALL}),
    ],
)
def test_job_needs(launch, needs):
    assert needs_of_launch(launch) == needs


@pytest.mark.parametrize(
    ("assets", "needs"),
    [
        ([("orders", "stage")], {STEWARD_OF_ORDERS}),
        ([("orders", "current")], {OPERATOR_OF_ORDERS}),
        ([("orders", "stage"), ("orders", "current")], {STEWARD_OF_ORDERS, OPERATOR_OF_ORDERS}),
        ([("a", "orders", "stage")], {OPERATOR_OF_ALL}),
        ([("stage",)], {OPERATOR_OF_ALL}),
        ([("governance", "retention_plan")], {OPERATOR_OF_ALL}),
    ],
)
def test_selected_assets_need(assets, needs):
    assert needs_of_launch(Launch(job="__ASSET_JOB", assets=frozenset(assets))) == needs


def test_an_asset_slipped_into_another_job_needs_what_both_need():
    launch = Launch(job="stage_orders", assets=frozenset({("orders", "current")}))

    assert needs_of_launch(launch) == {STEWARD_OF_ORDERS, OPERATOR_OF_ORDERS}


def test_what_is_named_like_a_datasource_and_is_none_needs_an_operator_over_all():
    needs = {STEWARD_OF_ORDERS, PRODUCER_OF_ORDERS, ADMINISTRATOR}

    assert held_against(needs, {"orders"}) == needs
    assert held_against(needs, {"users"}) == {OPERATOR_OF_ALL, ADMINISTRATOR}


@pytest.mark.parametrize("role", Role)
def test_everybody_with_a_role_reads_except_producers(role):
    assert READ.is_met_by(granted(role, datasource="orders").grants) is (role is not Role.PRODUCER)


@pytest.mark.parametrize("role", Role)
def test_logs_are_for_stewards_over_all_datasources(role):
    assert READ_LOGS.is_met_by(granted(role).grants) is (role is Role.STEWARD)
    assert not READ_LOGS.is_met_by(granted(role, datasource="orders").grants)


def test_a_grant_over_one_datasource_is_not_one_over_another_or_over_all():
    grants = granted(Role.STEWARD, datasource="orders").grants

    assert STEWARD_OF_ORDERS.is_met_by(grants)
    assert not Need(roles=frozenset({Role.STEWARD}), datasource="order").is_met_by(grants)
    assert not STEWARD_OF_ALL.is_met_by(grants)


def test_a_need_reads_as_a_part_of_a_sentence():
    assert str(STEWARD_OF_ORDERS) == "the role steward on datasource 'orders'"
    assert str(OPERATOR_OF_ALL) == "the role operator on all datasources"
    assert str(READ).startswith("the role administrator or approver or operator")
