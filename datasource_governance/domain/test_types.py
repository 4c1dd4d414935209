"""What frameworks call the same test: one word for each type, a policy's where it has one.

A name that depends on its arguments for what it tests, such as Soda's `invalid`, is no alias; nor
is a weaker test, such as one of a proportion, of a test that holds for every row.

Source: SPEC section 14; facts on the quality plugin, 8.8 and 10.4.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_ALIASES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "not_null": ("expect_column_values_to_not_be_null", "missing", "missing_count"),
        "unique": (
            "unique_combination_of_columns",
            "expect_column_values_to_be_unique",
            "expect_compound_columns_to_be_unique",
            "duplicate",
            "duplicate_count",
        ),
        "referential": (
            "accepted_values",
            "expect_column_values_to_be_in_set",
            "expect_column_distinct_values_to_be_in_set",
        ),
        "relationships": ("relationships_where",),
        "range": ("accepted_range", "expect_column_values_to_be_between"),
        "row_count": ("expect_table_row_count_to_be_between", "expect_table_row_count_to_equal"),
    }
)
_CANONICAL: Final = MappingProxyType(
    {alias: name for name, aliases in _ALIASES.items() for alias in (name, *aliases)}
)
_PACKAGES = frozenset({"dbt", "dbt_utils", "dbt_expectations"})
"""The dbt packages whose names are known; another one's `unique` may be anything."""

TEST_TYPES: Final = frozenset(_ALIASES)
"""The canonical types. `referential` is a list of allowed values, `relationships` a foreign key."""


def canonical_test_type(name: str) -> str:
    """Return the canonical type of a test, or its name as it is when that is no known alias.

    Known are names of dbt, dbt_utils, dbt_expectations, Great Expectations (also of its classes)
    and Soda, those of dbt packages with and without the package.

    >>> canonical_test_type("dbt_utils.accepted_range"), canonical_test_type("my_own.unique")
    ('range', 'my_own.unique')
    """
    package, dot, short = name.rpartition(".")
    if dot and package not in _PACKAGES:
        return name
    return _CANONICAL.get(_snake_case(short), name)


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
