"""A governed asset is an asset: its keywords, its inputs, how it is shown, and the factory."""

import inspect

import dagster as dg
import pytest

from datasource_governance import build_governed_asset, governed_asset, governed_definitions
from datasource_governance.composition import Application, read_settings
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.datasource import Datasource, parse_datasource
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.orchestration.assets import current_key
from datasource_governance.orchestration.governed_asset import AssetKeywords, published_datasource
from datasource_governance_tests.orchestration.publishing import published

NOWHERE = Application(read_settings({}))


class Pages(dg.Config):
    pages: int = 1


def shown_as(**keys) -> Datasource:
    """Return a declaration that says how it is shown."""
    document = {
        "id": "orders",
        "kind": "published",
        "description": "Orders.",
        "owners": ["team:shop"],
        "kinds": ["polars"],
        "tags": {"domain": "shop"},
        **keys,
    }
    return parse_datasource(canonical_bytes(document), lambda _name: b"")


def spec_of(made: dg.AssetsDefinition) -> dg.AssetSpec:
    (spec,) = made.specs
    return spec


def test_every_keyword_of_an_asset_is_one_of_a_governed_asset():
    of_asset = inspect.signature(dg.asset).parameters.values()
    keywords = {one.name for one in of_asset if one.kind is inspect.Parameter.KEYWORD_ONLY}

    assert set(AssetKeywords.__annotations__) == keywords


def test_keywords_mean_what_they_mean_for_an_asset():
    keywords = {
        "key_prefix": ["shop"],
        "name": "daily",
        "deps": ["raw"],
        "metadata": {"owner_team": "shop"},
        "tags": {"tier": "gold"},
        "description": "Mine.",
        "group_name": "mine",
        "owners": ["me@example.com"],
        "kinds": {"pandas"},
        "code_version": "3",
        "automation_condition": dg.AutomationCondition.eager(),
        "pool": "shop",
        "op_tags": {"cpu": "2"},
        "retry_policy": dg.RetryPolicy(max_retries=3),
    }

    @dg.asset(**keywords)
    def plain():
        return None

    @governed_asset(datasource=shown_as(), **keywords)
    def governed():
        return None

    ours, theirs = spec_of(governed), spec_of(plain)
    assert {"domain": "shop"} | theirs.tags == ours.tags
    assert ours.metadata["owner_team"] == "shop"
    for name in (
        *("key", "deps", "description", "group_name", "owners", "kinds", "code_version"),
        "automation_condition",
    ):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert (governed.op.pool, governed.op.tags, governed.op.retry_policy) == (
        plain.op.pool,
        plain.op.tags,
        plain.op.retry_policy,
    )


def test_what_is_left_out_is_as_the_datasource_says():
    @governed_asset(datasource=shown_as())
    def extract():
        return None

    spec = spec_of(extract)
    assert (spec.group_name, spec.description) == ("orders", "Orders.")
    assert (list(spec.owners), spec.kinds, spec.tags["domain"]) == (
        ["team:shop"],
        {"polars"},
        "shop",
    )
    assert spec.metadata["datasource_governance/producer"] == "extract"
    assert published_datasource(extract) == "orders"


def test_a_docstring_describes_it_before_the_datasource_does():
    @governed_asset(datasource=shown_as())
    def extract():
        """Fetch the orders."""

    assert spec_of(extract).description == "Fetch the orders."


def test_checks_are_those_of_the_policy_and_the_authors_own():
    own = dg.AssetCheckSpec("complete", asset="extract")

    @governed_asset(datasource=published(), check_specs=[own])
    def extract():
        return None

    assert {spec.name: spec.blocking for spec in extract.check_specs} == {
        "id_unique": True,
        "amount": True,
        "note_": False,
        "quality_policy": True,
        "schema_classification": True,
        "complete": False,
    }


def test_checks_of_a_partitioned_asset_have_its_partitions():
    partitions = dg.StaticPartitionsDefinition(["a", "b"])

    @governed_asset(datasource=published(), partitions_def=partitions)
    def extract():
        return None

    assert {spec.partitions_def for spec in extract.check_specs} == {partitions}


def test_inputs_configuration_and_resources_are_those_of_the_function():
    @governed_asset(datasource=published(), required_resource_keys={"shop"})
    def extract(context: dg.AssetExecutionContext, raw: "int", config: Pages) -> "list[int]":
        return [raw, config.pages]

    assert set(extract.keys_by_input_name) == {"raw"}
    assert extract.op.required_resource_keys == {"shop", "governance"}
    assert set(extract.op.config_schema.config_type.fields) == {"pages"}


def test_a_producer_is_among_the_definitions_of_its_datasource_and_leads_to_what_is_current():
    declared = published()

    @governed_asset(datasource=declared)
    def extract():
        return None

    defs = governed_definitions([declared], NOWHERE, producers=[extract])

    graph = defs.resolve_asset_graph()
    dg.Definitions.validate_loadable(defs)
    assert extract.key in graph.get(current_key("orders")).parent_keys
    assert defs.resolve_job_def("publish_orders").asset_layer.executable_asset_keys == {extract.key}


def test_a_producer_of_no_declared_datasource_is_told():
    stranger = build_governed_asset(lambda: None, published("users"))
    plain = dg.asset(name="plain")(lambda: None)

    with pytest.raises(InvalidArgumentError, match="producers users, plain publish to none"):
        governed_definitions([published("orders")], NOWHERE, producers=[stranger, plain])


def test_one_function_makes_the_assets_of_many_datasources():
    declarations = [published("orders"), published("users")]

    def extract(datasource: Datasource, raw):
        return datasource.id

    made = [build_governed_asset(extract, one) for one in declarations]

    assert [one.key.to_user_string() for one in made] == ["orders", "users"]
    assert [set(one.keys_by_input_name) for one in made] == [{"raw"}, {"raw"}]


def test_the_factory_takes_a_name_or_a_key():
    declared = published()

    named = build_governed_asset(lambda: None, declared, name="daily")
    keyed = build_governed_asset(lambda: None, declared, key=["shop", "daily"])

    assert (named.key, keyed.key) == (dg.AssetKey("daily"), dg.AssetKey(["shop", "daily"]))


def test_an_unknown_keyword_is_refused_by_dagster():
    with pytest.raises(TypeError, match="colour"):
        governed_asset(datasource=published(), colour="red")(lambda: None)
