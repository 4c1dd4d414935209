import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.schema import DataType, Field, TableSchema
from datasource_governance.domain.schema_diff import (
    DEFAULTS,
    Change,
    Classification,
    compare_schemas,
)
from datasource_governance_tests.builders import schema

RANK = [Classification.COMPATIBLE, Classification.WARNING, Classification.BREAKING]

fields = st.builds(
    Field,
    name=st.sampled_from("abcde"),
    type=st.sampled_from(list(DataType)),
    nullable=st.booleans(),
)
schemas = st.lists(fields, max_size=5, unique_by=lambda field: field.name).map(TableSchema.of)
overrides = st.dictionaries(st.sampled_from(list(Change)), st.sampled_from(RANK))


def changes(previous, current):
    """Return (field, change, before, after) of every change, in order."""
    return [
        (one.field, one.change, one.before, one.after)
        for one in compare_schemas(previous, current, {}).changes
    ]


def test_added_and_removed_fields_carry_their_type_and_nullability():
    string, nullable = {"type": "string", "nullable": False}, {"type": "date", "nullable": True}

    assert changes(schema(b="string"), schema(a="date?", c="string")) == [
        ("a", Change.FIELD_ADDED_NULLABLE, None, nullable),
        ("b", Change.FIELD_REMOVED, string, None),
        ("c", Change.FIELD_ADDED_REQUIRED, None, string),
    ]


def test_type_and_nullability_change_on_their_own():
    assert changes(schema(a="integer"), schema(a="number?")) == [
        ("a", Change.NULLABILITY_RELAXED, False, True),
        ("a", Change.TYPE_WIDENED, "integer", "number"),
    ]
    assert changes(schema(a="string?"), schema(a="string")) == [
        ("a", Change.NULLABILITY_TIGHTENED, True, False)
    ]


@pytest.mark.parametrize("after", [one for one in DataType if one is not DataType.UNKNOWN])
def test_unknown_widens_to_any_type_and_no_type_to_unknown(after):
    assert changes(schema(a="unknown"), schema(a=after)) == [
        ("a", Change.TYPE_WIDENED, "unknown", after)
    ]
    assert changes(schema(a=after), schema(a="unknown")) == [
        ("a", Change.TYPE_CHANGED, after, "unknown")
    ]


def test_only_integer_widens_to_number():
    widening = [
        (before, after)
        for before in DataType
        for after in DataType
        if before is not DataType.UNKNOWN
        and [one[1] for one in changes(schema(a=before), schema(a=after))] == [Change.TYPE_WIDENED]
    ]

    assert widening == [(DataType.INTEGER, DataType.NUMBER)]


def test_order_is_compared_among_the_fields_of_both_sides():
    before = schema(a="date", b="date", gone="date", c="date")

    assert changes(before, schema(c="date", new="date", a="date", b="date")) == [
        (None, Change.FIELD_ORDER_CHANGED, ["a", "b", "c"], ["c", "a", "b"]),
        ("gone", Change.FIELD_REMOVED, {"type": "date", "nullable": False}, None),
        ("new", Change.FIELD_ADDED_REQUIRED, None, {"type": "date", "nullable": False}),
    ]
    assert [one[0] for one in changes(before, schema(new="date", a="date", b="date"))] == [
        "c",
        "gone",
        "new",
    ]


def test_names_are_compared_code_point_by_code_point():
    composed, decomposed = (
        TableSchema.of([Field(name=name, type=DataType.DATE, nullable=False)])
        for name in ("\u00e9", "e\u0301")
    )

    assert [one[1] for one in changes(composed, decomposed)] == [
        Change.FIELD_ADDED_REQUIRED,
        Change.FIELD_REMOVED,
    ]


def test_every_change_has_the_default_of_the_specification():
    assert DEFAULTS == {
        "field_added_nullable": "compatible",
        "field_added_required": "warning",
        "field_removed": "breaking",
        "type_widened": "compatible",
        "type_changed": "breaking",
        "nullability_relaxed": "breaking",
        "nullability_tightened": "compatible",
        "field_order_changed": "warning",
    }


@given(schemas)
def test_equal_schemas_have_no_change_and_are_compatible(same):
    diff = compare_schemas(same, same, dict.fromkeys(Change, Classification.BREAKING))

    assert (diff.classification, diff.changes) == (Classification.COMPATIBLE, ())


@given(schemas, schemas, overrides)
def test_a_diff_is_as_high_as_its_highest_change(previous, current, chosen):
    diff = compare_schemas(previous, current, chosen)

    for one in diff.changes:
        assert one.classification is chosen.get(one.change, DEFAULTS[one.change])
    assert RANK.index(diff.classification) == max(
        (RANK.index(one.classification) for one in diff.changes), default=0
    )


@given(schemas, schemas)
def test_a_diff_names_every_field_that_differs_and_no_other(previous, current):
    before = {field.name: field for field in previous.fields}
    after = {field.name: field for field in current.fields}

    named = {one.field for one in compare_schemas(previous, current, {}).changes} - {None}

    assert named == {name for name in before | after if before.get(name) != after.get(name)}


@given(schemas, schemas)
def test_changes_are_sorted_and_no_two_are_alike(previous, current):
    keys = [
        (one.field is not None, one.field or "", one.change)
        for one in compare_schemas(previous, current, {}).changes
    ]

    assert keys == sorted(set(keys))


@given(schemas, schemas)
def test_a_diff_has_canonical_bytes(previous, current):
    assert canonical_bytes(compare_schemas(previous, current, {}).document())
