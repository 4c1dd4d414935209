import pandas as pd
import pyarrow as pa
import pytest

from datasource_governance.domain.schema import DataType
from datasource_governance.evaluation.detect import detect_schema
from datasource_governance.sources.frames import from_data
from datasource_governance_tests.builders import quality_policy, rule, schema

TYPES = {
    DataType.INTEGER: [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64()],
    DataType.NUMBER: [
        pa.float16(),
        pa.float32(),
        pa.float64(),
        pa.decimal128(5, 0),
        pa.decimal256(50, 2),
    ],
    DataType.BOOLEAN: [pa.bool_()],
    DataType.STRING: [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
    ],
    DataType.BINARY: [pa.binary(), pa.large_binary(), pa.binary(3), pa.binary_view()],
    DataType.DATE: [pa.date32(), pa.date64()],
    DataType.DATETIME: [pa.timestamp("s"), pa.timestamp("ns", "Europe/Berlin")],
    DataType.TIME: [pa.time32("s"), pa.time64("ns")],
    DataType.LIST: [pa.list_(pa.int8()), pa.large_list(pa.int8()), pa.list_(pa.int8(), 2)],
    DataType.OBJECT: [pa.struct([("a", pa.int8())]), pa.map_(pa.string(), pa.int8())],
    DataType.UNKNOWN: [pa.null(), pa.duration("s"), pa.month_day_nano_interval()],
}


@pytest.mark.parametrize(
    ("arrow_type", "logical"),
    [(arrow_type, logical) for logical, types in TYPES.items() for arrow_type in types],
    ids=str,
)
def test_every_width_unit_and_layout_of_a_kind_is_one_logical_type(arrow_type, logical):
    assert detected(pa.table({"x": pa.nulls(0, arrow_type)})) == schema(x=logical)


@pytest.mark.parametrize(
    ("cells", "logical"),
    [
        ([1, 2**70], DataType.INTEGER),
        ([1, 2.5], DataType.NUMBER),
        ([2**60, 0.5], DataType.NUMBER),
        ([1, "a"], DataType.UNKNOWN),
        ([1, True], DataType.UNKNOWN),
    ],
)
def test_marks_tell_what_the_arrow_type_does_not(cells, logical):
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object)})

    assert detected(from_data(frame)) == schema(x=logical)


def test_a_field_is_nullable_when_nulls_are_present_or_the_policy_permits_them():
    table = pa.table({"full": [1, 2], "gap": [1, None], "permitted": [1, 2], "nan": [1.0, None]})
    permits = rule("field", field="permitted", nullable=True)

    found = detect_schema(table, quality_policy(permits))

    assert [field.nullable for field in found.fields] == [False, True, True, True]


def test_flags_of_the_source_do_not_count():
    fields = [pa.field("x", pa.int8(), nullable=False), pa.field("y", pa.int8(), nullable=True)]
    table = pa.table([pa.array([None], pa.int8()), pa.array([1], pa.int8())], pa.schema(fields))

    assert detected(table) == schema(x="integer?", y="integer")


def test_over_zero_rows_no_field_is_nullable():
    assert detected(pa.table({"x": pa.nulls(0)})) == schema(x="unknown")


def detected(table):
    return detect_schema(from_data(table), quality_policy())
