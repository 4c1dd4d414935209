"""Whose data an asset shows is told by its definition, and of an undefined one by nobody."""

from dataclasses import dataclass, field
from typing import Any

import dagster as dg
import pytest

from datasource_governance.orchestration.governed_asset import governed_asset
from datasource_governance.orchestration.metadata import DATASOURCE
from datasource_governance.web.catalogue import Catalogue, catalogue_of
from datasource_governance.web.policy import ASSET_JOB, READ_COUNTS, Launch
from datasource_governance.web.visibility import need_of_steward
from datasource_governance_tests.orchestration.publishing import published

ORDERS, PARCELS = need_of_steward("orders"), need_of_steward("parcels")


@dataclass
class Node:
    """An asset of loaded code."""

    key: dg.AssetKey
    metadata: dict[str, Any] = field(default_factory=dict)


class Graph:
    """The assets of loaded code, as Dagster hands them over."""

    asset_nodes = ()


@governed_asset(datasource=published("orders"), key=["sales", "daily"])
def daily():
    """Return nothing; it is never run."""


CATALOGUE = Catalogue(
    [
        Node(daily.key, daily.metadata_by_key[daily.key]),
        Node(dg.AssetKey("weekly"), {DATASOURCE: dg.MetadataValue.text("parcels")}),
        Node(dg.AssetKey("free")),
    ]
)


@pytest.mark.parametrize(
    ("path", "need"),
    [
        (("sales", "daily"), ORDERS),
        (("weekly",), PARCELS),
        (("free",), None),
        (("orders", "stage"), ORDERS),
        (("other", "current"), need_of_steward("other")),
        (("gone",), READ_COUNTS),
        ((), READ_COUNTS),
    ],
)
def test_an_asset_is_governed_by_its_key_or_its_definition(path, need):
    assert CATALOGUE.need_of_asset(path) == need


@pytest.mark.parametrize(
    ("step_key", "need"),
    [
        (daily.op.name, ORDERS),
        ("weekly", PARCELS),
        ("orders__current_evidence", ORDERS),
        ("free", None),
        ("unknown", None),
    ],
)
def test_a_step_is_governed_by_the_asset_that_it_is_named_after(step_key, need):
    assert CATALOGUE.need_of_step(step_key) == need


@pytest.mark.parametrize(
    ("assets", "need"),
    [
        ([("sales", "daily")], ORDERS),
        ([("sales", "daily"), ("orders", "stage"), ("free",)], ORDERS),
        ([("sales", "daily"), ("weekly",)], READ_COUNTS),
        ([("free",)], None),
        ([("free",), ("gone",)], READ_COUNTS),
        ([], READ_COUNTS),
    ],
)
def test_a_run_is_governed_by_everything_that_was_selected_for_it(assets, need):
    launch = Launch(job=ASSET_JOB, assets=frozenset(assets))

    assert CATALOGUE.need_of_launch(launch) == need


def test_the_job_that_publishes_is_governed_by_its_name():
    assert CATALOGUE.need_of_launch(Launch(job="publish_orders")) == ORDERS
    assert CATALOGUE.need_of_launch(Launch(job="report")) is None
    assert CATALOGUE.need_of_launch(None) == READ_COUNTS


def test_the_same_loaded_code_is_looked_at_once():
    graph, reloaded = Graph(), Graph()

    assert catalogue_of(graph) is catalogue_of(graph)
    assert catalogue_of(graph) is not catalogue_of(reloaded)
