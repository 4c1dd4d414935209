import pytest

from datasource_governance.domain.test_types import TEST_TYPES, canonical_test_type

NAMES = {
    "not_null": """
        not_null dbt.not_null ExpectColumnValuesToNotBeNull missing missing_count
        dbt_expectations.expect_column_values_to_not_be_null""",
    "unique": """
        unique dbt_utils.unique_combination_of_columns ExpectCompoundColumnsToBeUnique
        dbt_expectations.expect_column_values_to_be_unique duplicate duplicate_count""",
    "referential": """
        referential accepted_values ExpectColumnValuesToBeInSet
        dbt_expectations.expect_column_distinct_values_to_be_in_set""",
    "relationships": "relationships dbt_utils.relationships_where",
    "range": "range accepted_range dbt_utils.accepted_range ExpectColumnValuesToBeBetween",
    "row_count": """
        row_count ExpectTableRowCountToBeBetween ExpectTableRowCountToEqual
        dbt_expectations.expect_table_row_count_to_be_between""",
}


@pytest.mark.parametrize(("expected", "names"), NAMES.items())
def test_each_framework_s_name_of_a_type_means_that_type(expected: str, names: str) -> None:
    assert {canonical_test_type(name) for name in names.split()} == {expected}


def test_every_type_is_its_own_alias() -> None:
    assert {canonical_test_type(name) for name in TEST_TYPES} == TEST_TYPES


@pytest.mark.parametrize(
    "name",
    [
        "is_even",
        "my_own.unique",
        "dbt_utils.not_null_proportion",
        "dbt_utils.equal_rowcount",
        "invalid",
        "ExpectColumnMaxToBeBetween",
        "ExpectSelectColumnValuesToBeUniqueWithinRecord",
        "",
    ],
)
def test_a_name_that_is_no_alias_stays_as_it_is(name: str) -> None:
    assert canonical_test_type(name) == name
