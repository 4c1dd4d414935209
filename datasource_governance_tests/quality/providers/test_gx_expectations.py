"""Which expectations make up a rule, and when one of them counts as not evaluated."""

from types import SimpleNamespace

import pyarrow as pa
import pytest

from datasource_governance.domain.quality_expectation import expectations
from datasource_governance.quality.providers import gx_expectations
from datasource_governance.quality.providers.gx_columns import GxColumn
from datasource_governance.quality.providers.gx_expectations import no_rows_of, parts_of
from datasource_governance.sources.frames import from_data
from datasource_governance_tests.builders import quality_policy

TABLE = from_data(pa.table({"a": [1, 2], "b": ["x", "y"]}))
NULL = ("ExpectColumnValuesToNotBeNull", {"column": "0"}, 1)
RAISED = {"raised_exception": True, "exception_message": "", "exception_traceback": ""}
NOT_RAISED = {"raised_exception": False, "exception_message": None, "exception_traceback": None}


def parts(**rule):
    [one] = expectations(quality_policy({"id": "r", **rule}))
    columns = [GxColumn(TABLE.schema.field(name), TABLE.column(name)) for name in one.fields]
    return [(part.type, dict(part.arguments), part.least) for part in parts_of(one.rule, columns)]


def test_a_row_count_is_one_expectation_with_its_bounds():
    bounds = {"min_value": 1, "max_value": None}

    assert parts(type="row_count", minimum=1) == [("ExpectTableRowCountToBeBetween", bounds, 1)]


def test_each_field_is_a_part_called_by_its_place():
    second = ("ExpectColumnValuesToNotBeNull", {"column": "1"}, 1)

    assert parts(type="not_null", fields=["b", "a"]) == [NULL, second]


def test_one_null_is_unique_and_two_are_not():
    values = ("ExpectColumnValuesToBeUnique", {"column": "0"}, 1)

    assert parts(type="unique", field="a") == [values, (*NULL[:2], 2)]
    assert parts(type="unique", field="a", ignore_nulls=True) == [values]


@pytest.mark.parametrize(
    ("ignore_nulls", "ignored"), [(False, "never"), (True, "any_value_is_missing")]
)
def test_a_key_of_several_fields_is_unique_as_a_whole(ignore_nulls, ignored):
    arguments = {"column_list": ["0", "1"], "ignore_row_if": ignored}
    whole = ("ExpectCompoundColumnsToBeUnique", arguments, 1)

    assert parts(type="unique", fields=["a", "b"], ignore_nulls=ignore_nulls) == [whole]


def test_nulls_are_a_part_of_their_own_unless_they_are_allowed():
    bounds = {"column": "0", "min_value": 1, "max_value": 2}
    values = ("ExpectColumnNumbersToBeBetween", bounds, 1)

    assert parts(type="range", field="a", minimum=0.5, maximum=2) == [NULL, values]
    assert parts(type="range", field="a", minimum=1, maximum=2, allow_null=True) == [values]


def test_codes_are_a_set_and_where_nothing_is_permitted_values_must_be_null():
    codes = ("ExpectColumnValuesToBeInSet", {"column": "0", "value_set": ["x"]}, 1)
    nothing = ("ExpectColumnValuesToBeNull", {"column": "0"}, 1)

    assert parts(type="referential", field="b", allowed_values=["x", 1]) == [NULL, codes]
    assert parts(type="referential", field="b", allowed_values=[1]) == [NULL, nothing]
    assert parts(type="range", field="b", minimum=0, allow_null=True) == [nothing]


def test_nothing_in_a_query_is_taken_for_a_parameter():
    query = no_rows_of('SELECT 1 FROM "{t} :k" WHERE x::text')

    assert query.arguments == {
        "unexpected_rows_query": r'SELECT 1 FROM "{{t}} \:k" WHERE x\:\:text'
    }


@pytest.mark.parametrize("info", [RAISED, {"metric": RAISED}, {"a": NOT_RAISED, "b": RAISED}])
def test_a_part_that_raised_was_not_evaluated_whichever_way_that_is_reported(info):
    result = SimpleNamespace(exception_info=info, success=False, result={})

    assert gx_expectations._found(result) is None


@pytest.mark.parametrize("info", [None, {}, NOT_RAISED, {"metric": NOT_RAISED}])
def test_a_part_that_did_not_raise_was_evaluated(info):
    result = SimpleNamespace(exception_info=info, success=True, result={"observed_value": 2})

    assert gx_expectations._found(result) == {"success": True, "observed_value": 2}
