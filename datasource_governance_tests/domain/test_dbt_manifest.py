import pytest

from datasource_governance.domain.coverage import Dataset, DatasetTest
from datasource_governance.domain.dbt_manifest import dbt_datasets, dbt_version
from datasource_governance.errors import InvalidPolicyError

MODEL = "model.shop.orders"


def manifest(*nodes, version=12):
    schema = f"https://schemas.getdbt.com/dbt/manifest/v{version}.json"
    return {
        "metadata": {"dbt_schema_version": schema},
        "nodes": {node["unique_id"]: node for node in nodes},
    }


def model(id_=MODEL, **keys):
    return {"unique_id": id_, "resource_type": "model", **keys}


def generic(name, column=None, *, attached=MODEL, namespace=None, reads=(), **arguments):
    return {
        "unique_id": f"test.shop.{name}.{column}.{arguments}",
        "resource_type": "test",
        "test_metadata": {"name": name, "namespace": namespace, "kwargs": arguments},
        "column_name": column,
        "attached_node": attached,
        "depends_on": {"nodes": list(reads)},
    }


def singular(*reads):
    return {
        "unique_id": "test.shop.totals",
        "resource_type": "test",
        "depends_on": {"nodes": list(reads)},
    }


def the_model(*nodes, **keys):
    (found,) = dbt_datasets(manifest(model(**keys), *nodes))
    return found


def the_tests(*nodes):
    return [(test.type, test.fields) for test in the_model(*nodes).tests]


@pytest.mark.parametrize("version", [10, 11, 12])
def test_models_with_columns_and_their_tests_are_read(version):
    found = dbt_datasets(
        manifest(
            model(columns={"id": {"name": "id"}, "note": {}}, config={"meta": {"tier": "gold"}}),
            generic("unique", "id"),
            {"unique_id": "seed.shop.s", "resource_type": "seed"},
            version=version,
        )
    )

    assert found == (
        Dataset(
            id=MODEL,
            tier="gold",
            fields=("id", "note"),
            tests=(DatasetTest(type="unique", fields=("id",)),),
        ),
    )


@pytest.mark.parametrize("version", [9, 13, 100])
def test_another_version_is_refused(version):
    with pytest.raises(InvalidPolicyError, match=f"expected version 10 to 12 .* got {version}"):
        dbt_datasets(manifest(version=version))


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"metadata": None},
        {"metadata": {"dbt_schema_version": 12}},
        {"metadata": {"dbt_schema_version": "https://example.com/dbt/manifest/v12.json"}},
        {"metadata": {"dbt_schema_version": "https://schemas.getdbt.com/dbt/run-results/v6.json"}},
    ],
)
def test_what_is_no_manifest_of_dbt_has_no_version(document):
    assert dbt_version(document) is None


def test_types_of_tests_are_canonical_by_package_and_name():
    assert the_tests(
        generic("accepted_values", "status"),
        generic("accepted_range", "amount", namespace="dbt_utils"),
        generic("unique", "id", namespace="my_own"),
        generic(
            "unique_combination_of_columns",
            namespace="dbt_utils",
            combination_of_columns=["id", "day", 1],
        ),
        generic("expect_column_values_to_be_unique", column_name="id"),
    ) == [
        ("referential", ("status",)),
        ("range", ("amount",)),
        ("my_own.unique", ("id",)),
        ("unique", ("id", "day")),
        ("unique", ("id",)),
    ]


def test_a_test_that_dbt_attached_to_nothing_is_about_the_only_model_that_it_reads():
    customers = "model.shop.customers"

    assert the_tests(generic("not_null", "id", attached=None, reads=[MODEL, MODEL, "macro.x"]))
    assert not the_tests(generic("relationships", "id", attached=None, reads=[customers, MODEL]))
    assert not the_tests(generic("not_null", "id", attached=customers, reads=[MODEL]))
    assert not the_tests(generic("not_null", "id", attached=None, reads=["source.shop.raw"]))


def test_a_query_of_its_own_counts_for_every_model_that_it_reads_and_no_field():
    other = "model.shop.customers"
    found = dbt_datasets(manifest(model(), model(other), singular(MODEL, other, "source.shop.x")))

    assert [one.tests for one in found] == [(DatasetTest(type="singular"),)] * 2


@pytest.mark.parametrize(
    ("keys", "tier"),
    [
        ({"config": {"meta": {"tier": "gold"}}, "meta": {"tier": "bronze"}}, "gold"),
        ({"config": {"meta": {}}, "meta": {"tier": "bronze"}, "tags": ["gold"]}, "bronze"),
        ({"tags": ["nightly", "silver"]}, "silver"),
        ({"tags": ["silver", "gold"]}, "gold+silver"),
        ({"meta": {"tier": "GOLD"}}, "GOLD"),
        ({"meta": {"tier": 1}}, "1"),
        ({"tags": ["nightly", ["gold"]]}, None),
        ({"tags": "gold", "meta": None, "config": []}, None),
    ],
)
def test_the_tier_is_of_the_meta_or_the_tags(keys, tier):
    assert the_model(**keys).tier == tier


def test_a_column_is_technical_when_its_meta_says_so():
    columns = {
        "a": {"meta": {"technical": True}},
        "b": {"config": {"meta": {"technical": True}}},
        "c": {"meta": {"technical": "yes"}},
        "d": None,
    }

    assert the_model(columns=columns).technical == {"a", "b"}


def test_what_has_not_its_form_counts_as_not_there():
    document = manifest()
    document["nodes"] = {"a": None, "b": {"resource_type": "model", "columns": ["x"]}}

    assert dbt_datasets(document) == (Dataset(id="b", tier=None, fields=(), tests=()),)
    assert dbt_datasets({**document, "nodes": []}) == ()


def test_names_can_be_printed_whatever_they_are():
    found = the_model(generic("unique", "\ud800"), columns={"\ud800": {}}, meta={"tier": "\udfff"})

    assert (found.fields, found.tier) == (("?",), "?")
    assert found.tests[0].fields == ("?",)
