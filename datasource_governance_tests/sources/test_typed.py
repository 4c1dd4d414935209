"""The typed form: equal data has equal types, and names are exact."""

import math

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from datasource_governance.sources.typed import check_names, similar_names, to_typed
from datasource_governance_tests.sources.refusals import kinds_and_names

TAGGED = pa.struct([("kind", pa.large_string()), ("value", pa.large_binary())])


def typed(array, metadata=None):
    field = pa.field("a", array.type, metadata=metadata)
    return to_typed(pa.Table.from_arrays([array], schema=pa.schema([field])))


def marked(array, mark):
    return typed(array, {b"datasource_governance": mark}).schema.field("a").metadata


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array(["x"]), pa.large_string()),
        (pa.array(["x"], pa.string_view()), pa.large_string()),
        (pa.array([b"x"]), pa.large_binary()),
        (pa.array([b"x"], pa.binary_view()), pa.large_binary()),
        (pa.array([b"x"], pa.binary(1)), pa.large_binary()),
        (pa.array(["x"]).dictionary_encode(), pa.large_string()),
        (pc.run_end_encode(pa.array(["x"])), pa.large_string()),
        (pa.array([1], pa.uint8()), pa.uint8()),
        (pa.array([1], pa.timestamp("s", "Europe/Berlin")), pa.timestamp("s", "Europe/Berlin")),
        (pa.array([["x"]]), pa.list_(pa.string())),
        (pa.array([{"k": "x"}]), pa.struct([("k", pa.string())])),
        (pa.nulls(1), pa.null()),
    ],
)
def test_encodings_are_undone_and_all_else_stays(array, expected):
    table = typed(array)

    assert table.column("a").type == expected
    assert table.column("a").to_pylist() == array.to_pylist()
    assert to_typed(table).equals(table, check_metadata=True)


def test_dictionaries_of_lists_are_decoded():
    levels = pa.array([[1], [2]])

    table = typed(pa.DictionaryArray.from_arrays(pa.array([1, None, 0]), levels))

    assert table.column("a").to_pylist() == [[2], None, [1]]


@pytest.mark.parametrize("width", [pa.float16(), pa.float32(), pa.float64()])
def test_nan_is_null_and_negative_zero_stays(width):
    values = typed(pa.array([math.nan, -0.0, None, 1.5]).cast(width)).column("a").to_pylist()

    assert values == [None, 0.0, None, 1.5]
    assert math.copysign(1, values[1]) == -1


def test_nan_behind_a_dictionary_is_null():
    levels = pa.array([1.0, math.nan])

    table = typed(pa.DictionaryArray.from_arrays(pa.array([1, 0]), levels))

    assert table.column("a").to_pylist() == [None, 1.0]


def test_extension_types_are_refused_wherever_they_are():
    uuids = pa.array([bytes(16)], pa.uuid())
    table = pa.table(
        {
            "a": uuids,
            "b": pa.ListArray.from_arrays([0, 1], uuids),
            "c": pa.StructArray.from_arrays([uuids], ["u"]),
            "d": [1],
        }
    )

    assert kinds_and_names(lambda: to_typed(table)) == [
        ("extension_type", ("a",)),
        ("extension_type", ("b",)),
        ("extension_type", ("c",)),
    ]


def test_an_extension_type_that_is_not_registered_is_refused_too():
    metadata = {b"ARROW:extension:name": b"vendor.secret"}

    assert kinds_and_names(lambda: typed(pa.array([1]), metadata)) == [("extension_type", ("a",))]


def test_metadata_is_dropped():
    table = pa.table({"a": [1]}).replace_schema_metadata({b"pandas": b"{}"})

    assert to_typed(table).schema.metadata is None
    assert typed(pa.array([1]), {b"note": b"x"}).schema.field("a").metadata is None


def test_a_mark_stays_only_where_the_column_bears_it_out():
    integers = pa.array([1], pa.decimal128(38, 0))
    cents = pa.array([1], pa.decimal128(38, 2))
    number = pa.array([{"kind": "number", "value": b"1.5"}, None], TAGGED)
    text = pa.array([{"kind": "string", "value": b"x"}], TAGGED)
    respelled = pa.array([{"kind": "number", "value": b"1.50"}], TAGGED)
    garbage = pa.array([{"kind": "number", "value": b"x"}], TAGGED)
    unknown = pa.array([{"kind": "other", "value": b"x"}], TAGGED)

    assert marked(integers, b"integer")
    assert not marked(cents, b"integer")
    assert marked(number, b"number")
    assert marked(number, b"mixed")
    assert marked(text, b"mixed")
    assert not marked(text, b"number")
    assert not marked(respelled, b"number")
    assert not marked(garbage, b"mixed")
    assert not marked(unknown, b"mixed")
    assert not marked(pa.array([1]), b"number")


def test_a_table_without_columns_is_a_table():
    assert to_typed(pa.table({})).num_columns == 0


def test_names_are_refused_all_at_once_by_name_or_position():
    names = ["a", "", " \t", "b", "a", "b", 5, "n\0l", "\ud800", "A", "a "]

    assert kinds_and_names(lambda: check_names(names, what="table")) == [
        ("blank_column_name", ("2",)),
        ("blank_column_name", ("3",)),
        ("column_name_not_text", ("7",)),
        ("invalid_text", ("8",)),
        ("invalid_text", ("9",)),
        ("duplicate_column", ("a",)),
        ("duplicate_column", ("b",)),
    ]


def test_names_are_similar_when_equal_after_nfc_and_case_folding():
    names = ["Straße", "café", "x", "STRASSE", "cafe\u0301", "y"]

    assert similar_names(names) == (("Straße", "STRASSE"), ("café", "cafe\u0301"))
    assert similar_names(["x", "y"]) == ()
