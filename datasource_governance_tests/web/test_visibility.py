"""What every reader sees is listed; what needs a steward is told apart by asset, step and run."""

import pytest

from datasource_governance.domain.actor import Role
from datasource_governance.orchestration import metadata, plan_metadata
from datasource_governance.orchestration.registry import governed_definitions
from datasource_governance.web.policy import ASSET_JOB, READ_COUNTS, READ_PLANS, Launch, Need
from datasource_governance.web.visibility import (
    OURS,
    PUBLIC_COLUMNS,
    PUBLIC_KEYS,
    RESTRICTED,
    is_public,
    need_of_asset,
    need_of_launch,
    need_of_step,
    without_numbers,
)
from datasource_governance_tests.orchestration.governed import declaration

ORDERS = Need(roles=frozenset({Role.STEWARD}), datasource="orders")
FOR_STEWARDS = {
    metadata.AFFECTED_ROWS,
    metadata.BREAKS,
    metadata.ENTRIES,
    metadata.ROW_NUMBERS,
    metadata.ROWS,
    plan_metadata.BLOCKED,
    plan_metadata.BLOCKERS,
    plan_metadata.BYTES,
    plan_metadata.DESTROYED,
    plan_metadata.DUE,
    plan_metadata.TARGETS,
}
"""Keys of ours that hold counts, or rows of every datasource."""


def test_every_key_of_ours_is_either_for_everybody_or_for_stewards():
    ours = {
        value
        for name, value in {**vars(metadata), **vars(plan_metadata)}.items()
        if name.isupper() and isinstance(value, str) and value.startswith(OURS)
    }

    assert ours <= PUBLIC_KEYS | FOR_STEWARDS
    assert PUBLIC_KEYS.isdisjoint(FOR_STEWARDS)


def test_on_what_is_governed_a_key_that_is_not_listed_is_not_seen():
    assert is_public(metadata.STATUS, ORDERS)
    assert is_public(RESTRICTED, ORDERS)
    for key in (*FOR_STEWARDS, f"{OURS}new", "dagster/row_count", "violations", ""):
        assert not is_public(key, ORDERS)


def test_elsewhere_only_keys_of_ours_that_are_not_listed_are_not_seen():
    assert is_public("violations", None)
    assert is_public("dagster/row_count", None)
    assert not is_public(metadata.AFFECTED_ROWS, None)


def test_of_the_table_of_rules_only_the_count_is_not_seen():
    table = metadata.rule_table([])

    columns = {column.name for column in table.schema.columns}
    assert columns - PUBLIC_COLUMNS == {"affected"}


@pytest.mark.parametrize(
    ("path", "need"),
    [
        (("orders", "stage"), ORDERS),
        (("orders", "current"), ORDERS),
        (("orders",), None),
        (("orders", "other"), None),
        (("team", "orders", "stage"), None),
        (("governance", "retention_plan"), READ_PLANS),
        ((), None),
    ],
)
def test_an_asset_is_governed_by_its_key(path, need):
    assert need_of_asset(path) == need


def test_the_steps_of_every_governed_asset_and_check_are_known_by_their_names(shared_world):
    declared = declaration(id="a__b2")
    defs = governed_definitions([declared], shared_world.application)
    steps = {one.node_def.name for one in [*defs.assets, *defs.asset_checks]}

    assert {need_of_step(step) for step in steps} == {
        Need(roles=frozenset({Role.STEWARD}), datasource="a__b2"),
        READ_PLANS,
    }


@pytest.mark.parametrize(
    ("step_key", "need"),
    [
        ("orders__stage", ORDERS),
        ("orders__current", ORDERS),
        ("orders__current_evidence", ORDERS),
        ("orders__stage[part]", ORDERS),
        ("governance__retention_plan", READ_PLANS),
        ("apply_plan", READ_PLANS),
        ("orders", None),
        ("orders__staged", None),
        ("orders_stage", None),
        ("__stage", None),
        ("Orders__stage", None),
        ("", None),
    ],
)
def test_a_step_is_governed_by_its_name(step_key, need):
    assert need_of_step(step_key) == need


@pytest.mark.parametrize(
    ("launch", "need"),
    [
        (Launch(job="stage_orders"), ORDERS),
        (Launch(job="promote_orders"), ORDERS),
        (Launch(job="report"), None),
        (Launch(job="retention_plan"), READ_PLANS),
        (Launch(job="apply_retention_plan"), READ_PLANS),
        (
            Launch(
                job=ASSET_JOB,
                assets=frozenset({("governance", "retention_plan"), ("orders", "stage")}),
            ),
            READ_COUNTS,
        ),
        (Launch(job="report", assets=frozenset({("orders", "current")})), ORDERS),
        (Launch(job=ASSET_JOB, assets=frozenset({("free",)})), None),
        (Launch(job=ASSET_JOB, assets=frozenset({("free",), ("orders", "stage")})), ORDERS),
        (
            Launch(job=ASSET_JOB, assets=frozenset({("a", "stage"), ("b", "current")})),
            READ_COUNTS,
        ),
        (Launch(job=ASSET_JOB), READ_COUNTS),
        (None, READ_COUNTS),
    ],
)
def test_a_run_is_governed_by_what_it_was_launched_to_do(launch, need):
    assert need_of_launch(launch) == need


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("The rule does not hold: `null` in 1 row.", "The rule does not hold: `null` in … rows."),
        ("in 4711 rows, 12 columns", "in … rows, … columns"),
        ("4,711.5 of 1_000", "… of …"),
        ("rows=4711 rows4711 4711rows", "rows=… rows… …rows"),
        ("٤٧١١ rows", "… rows"),
        ("2 of 3 rules passed; outcome: blocked", "2 of 3 rules passed; outcome: blocked"),
        ("2 of 3 rules passed in 4 rows", "2 of 3 rules passed in … rows"),
        ("stage 0192f3a4-7b1c-7def-8123-456789abcdef is ready", None),
        ("policy " + "0a1b" * 16 + " is outdated", None),
        ("half an id 0192f3a4-7b1c", "half an id …f…a…-…b…c"),
        ("nothing to count", None),
        ("", None),
    ],
)
def test_a_text_is_left_without_its_numbers(text, left):
    assert without_numbers(text) == (text if left is None else left)
