"""What a typed table says about itself: logical types, marks and the detected schema.

Source: SPEC sections 3 and 4; acceptance decisions LOGICAL_TYPES, FIELD_NULLABLE_BY.
"""

from collections.abc import Container
from typing import TYPE_CHECKING

from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.domain.schema import DataType, Field, TableSchema
from datasource_governance.evaluation.physical import is_list_like
from datasource_governance.sources.typed import INTEGER_MARK, MARK, MIXED_MARK, NUMBER_MARK

if TYPE_CHECKING:
    import pyarrow as pa

_TYPE_OF_MARK = {
    INTEGER_MARK: DataType.INTEGER,
    NUMBER_MARK: DataType.NUMBER,
    MIXED_MARK: DataType.UNKNOWN,
}


def mark_of(field: "pa.Field") -> bytes | None:
    """Return the mark that reading left on a field whose Arrow type alone says too little."""
    mark: bytes | None = (field.metadata or {}).get(MARK)
    return mark


def is_kind_struct(field: "pa.Field") -> bool:
    """Tell whether the cells are structs of a kind and the value's canonical bytes."""
    return mark_of(field) in (NUMBER_MARK, MIXED_MARK)


def logical_type(field: "pa.Field") -> DataType:
    """Return the logical type of one typed field: every width, unit and time zone is one type."""
    import pyarrow as pa

    mark = mark_of(field)
    if mark in _TYPE_OF_MARK:
        return _TYPE_OF_MARK[mark]
    kinds = (
        (pa.types.is_integer, DataType.INTEGER),
        (pa.types.is_floating, DataType.NUMBER),
        (pa.types.is_decimal, DataType.NUMBER),
        (pa.types.is_boolean, DataType.BOOLEAN),
        (pa.types.is_large_string, DataType.STRING),
        (pa.types.is_large_binary, DataType.BINARY),
        (pa.types.is_date, DataType.DATE),
        (pa.types.is_timestamp, DataType.DATETIME),
        (pa.types.is_time, DataType.TIME),
        (pa.types.is_map, DataType.OBJECT),
        (pa.types.is_struct, DataType.OBJECT),
        (is_list_like, DataType.LIST),
    )
    matching = (logical for belongs, logical in kinds if belongs(field.type))
    return next(matching, DataType.UNKNOWN)


def detect_schema(table: "pa.Table", policy: QualityPolicy) -> TableSchema:
    """Return the fields of a typed table in column order, as `fields_of`."""
    return fields_of(table.schema, names_with_nulls(table), policy)


def names_with_nulls(table: "pa.Table") -> set[str]:
    """Return the names of the columns in which nulls are present."""
    columns = zip(table.column_names, table.columns, strict=True)
    return {name for name, column in columns if column.null_count}


def fields_of(
    schema: "pa.Schema", with_nulls: Container[str], policy: QualityPolicy
) -> TableSchema:
    """Return the fields of a typed form in column order.

    A field is nullable when nulls are present or the policy declares `nullable: true`; over zero
    rows no nulls are present. Flags of the source do not count.
    """
    return TableSchema.of(
        Field(
            name=field.name,
            type=logical_type(field),
            nullable=field.name in with_nulls or policy.permits_null(field.name),
        )
        for field in schema
    )
