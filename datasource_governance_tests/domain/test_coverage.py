from datasource_governance.domain.coverage import Dataset, DatasetTest, coverage_of


def dataset(*tested, fields=("id", "amount", "note"), **keys):
    """Return a gold dataset with a `not_null` test of each of these fields."""
    tests = tuple(DatasetTest(type="not_null", fields=(name,)) for name in tested)
    return Dataset(**{"id": "orders", "tier": "gold", "fields": fields, "tests": tests, **keys})


def test_coverage_is_the_share_of_fields_with_a_test_of_any_type():
    (found,) = coverage_of([dataset("id", "id", "amount")]).datasets

    assert found.document() == {
        "dataset": "orders",
        "tier": "gold",
        "eligible": 3,
        "covered": 2,
        "share": 2 / 3,
        "uncovered": ["note"],
    }


def test_technical_fields_are_not_eligible_whoever_names_them():
    named = dataset("id", "amount", "note", technical=frozenset({"note"}))

    assert coverage_of([named]).datasets[0].eligible == ("id", "amount")
    assert coverage_of([dataset("id")], ["note", "other"]).datasets[0].share == 0.5


def test_a_test_of_a_field_that_is_not_described_covers_nothing():
    assert coverage_of([dataset("ghost")]).datasets[0].share == 0


def test_where_no_field_is_eligible_nothing_is_covered():
    assert coverage_of([dataset(fields=())]).datasets[0].share == 0
    assert coverage_of([dataset("id", fields=("id",))], ["id"]).datasets[0].share == 0


def test_a_test_of_several_fields_covers_each_of_them():
    key = DatasetTest(type="unique", fields=("id", "note"))

    assert coverage_of([dataset(tests=(key,))]).datasets[0].uncovered == ("amount",)


def test_models_are_counted_by_tier_for_any_test_even_one_of_no_field():
    of_rows = (DatasetTest(type="row_count"),)
    found = coverage_of(
        [
            dataset(tests=of_rows),
            dataset(),
            dataset("id", tier="bronze"),
            dataset("id", tier=None),
        ]
    )

    assert found.models == {"gold": 0.5, "bronze": 1}
    assert found.datasets[0].share == 0
    assert coverage_of([]).document() == {"datasets": [], "models": {}}
