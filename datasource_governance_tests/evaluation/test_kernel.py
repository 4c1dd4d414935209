import numpy as np
import pyarrow as pa
import pytest

from datasource_governance.domain.validation import Reason, Status
from datasource_governance_tests.evaluation.judging import judge, rows

THREE = pa.array([1, None, 3])


@pytest.mark.parametrize(
    ("bounds", "reason"),
    [
        ({"minimum": 3}, None),
        ({"maximum": 3}, None),
        ({"minimum": 3, "maximum": 3}, None),
        ({"minimum": 4}, Reason.ROW_COUNT),
        ({"maximum": 2}, Reason.ROW_COUNT),
    ],
)
def test_row_count_includes_both_bounds_and_tells_no_rows(bounds, reason):
    found = judge(THREE, "row_count", **bounds)

    assert (found.reason, found.affected, found.rows) == (reason, None, None)


def test_required_fields_names_every_missing_field_in_the_order_of_the_rule():
    found = judge(THREE, "required_fields", fields=["z", "x", "a"])

    assert (found.status, found.reason, found.fields) == (
        Status.FAILED,
        Reason.MISSING_FIELD,
        ("z", "a"),
    )


def test_required_fields_are_met_by_an_all_null_column():
    found = judge(pa.nulls(2), "required_fields", fields=["x"])

    assert (found.status, found.affected, found.fields) == (Status.PASSED, None, ("x",))


@pytest.mark.parametrize(
    ("rule_type", "keys"),
    [
        ("field", {"field": "gone", "nullable": False}),
        ("not_null", {"fields": ["x", "gone"]}),
        ("unique", {"fields": ["x", "gone"], "ignore_nulls": True}),
        ("range", {"field": "gone", "minimum": 0}),
        ("referential", {"field": "gone", "allowed_values": [1]}),
    ],
)
def test_a_rule_about_a_missing_field_fails_and_names_it(rule_type, keys):
    found = judge(THREE, rule_type, **keys)

    assert (found.reason, found.fields, found.affected, found.rows) == (
        Reason.MISSING_FIELD,
        ("gone",),
        None,
        None,
    )


def test_names_are_compared_code_point_by_code_point():
    found = judge(pa.table({"e\u0301": [1], "A": [1]}), "required_fields", fields=["é", "a", "A"])

    assert found.fields == ("é", "a")


@pytest.mark.parametrize(
    ("column", "keys", "expected"),
    [
        (THREE, {"data_type": "integer"}, (Status.PASSED, None, None, None)),
        (THREE, {"data_type": "number"}, (Status.PASSED, None, None, None)),
        (THREE, {"data_type": "string"}, (Status.FAILED, Reason.TYPE_MISMATCH, None, None)),
        (THREE, {"nullable": True}, (Status.PASSED, None, None, None)),
        (THREE, {"nullable": False}, (Status.FAILED, Reason.NULLABILITY, 1, (2,))),
        (pa.array([1, 2]), {"nullable": False}, (Status.PASSED, None, 0, ())),
        (
            THREE,
            {"data_type": "string", "nullable": False},
            (Status.FAILED, Reason.TYPE_MISMATCH, None, None),
        ),
        (pa.nulls(1), {"data_type": "unknown"}, (Status.FAILED, Reason.TYPE_MISMATCH, None, None)),
    ],
)
def test_field_judges_the_type_before_the_nulls(column, keys, expected):
    found = judge(column, "field", field="x", **keys)

    assert (found.status, found.reason, found.affected, found.rows) == expected


def test_not_null_counts_a_row_with_two_nulls_once():
    table = pa.table({"x": [None, None, 1], "y": [None, 1, 1]})

    found = judge(table, "not_null", fields=["x", "y"])

    assert (found.reason, found.affected, found.rows) == (Reason.NULL, 2, (1, 2))


def test_only_the_cell_is_null_and_not_what_is_inside():
    cells = pa.array([[None], [], None], pa.list_(pa.int64()))

    assert rows(cells, "not_null") == (3,)


def test_nan_is_null_and_negative_zero_is_not():
    assert rows(pa.array([float("nan"), -0.0, 0.0]), "not_null") == (1,)


@pytest.mark.parametrize(("nulls", "listed"), [(24, 24), (25, 25), (26, 25)])
def test_the_count_is_exact_and_the_list_ends_at_25(nulls, listed):
    found = judge(pa.array([1, *[None] * nulls, 2]), "not_null", field="x")

    assert found.affected == nulls
    assert found.rows == tuple(range(2, listed + 2))
    assert found.truncated is (nulls > listed)


def test_rows_are_counted_over_the_whole_table_whatever_its_chunks():
    chunks = pa.chunked_array([[1] * 70_000, [], [None], [1] * 70_000, [None, None]], pa.int64())

    assert rows(chunks, "not_null") == (70_001, 140_002, 140_003)


@pytest.mark.parametrize("row", [1, 65_536, 65_537, 65_538, 131_072, 131_073])
def test_a_row_is_found_on_either_side_of_every_block(row):
    column = pa.array([1] * (row - 1) + [None] + [1] * 9)

    assert rows(column, "not_null") == (row,)


@pytest.mark.parametrize(
    ("rule_type", "keys"),
    [
        ("field", {"field": "x", "nullable": False}),
        ("not_null", {"field": "x"}),
        ("unique", {"field": "x"}),
        ("range", {"field": "x", "minimum": 0}),
        ("referential", {"field": "x", "allowed_values": [1]}),
    ],
)
def test_over_zero_rows_a_rule_about_rows_passes_with_none_affected(rule_type, keys):
    found = judge(pa.array([], pa.null()), rule_type, **keys)

    assert (found.status, found.affected, found.rows) == (Status.PASSED, 0, ())


def test_evidence_is_made_of_plain_integers():
    found = judge(pa.array(np.array([1, 1])), "unique", field="x")

    assert {type(found.affected), *map(type, found.rows)} == {int}
