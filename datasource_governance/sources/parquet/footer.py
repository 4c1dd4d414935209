"""What the footer of a Parquet file says: fields, rows, and where nulls are counted.

Source: SPEC section 10 ("footer"); Parquet format, "Metadata" and "Statistics".
"""

from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from datasource_governance.sources.limits import (
    DEFAULT_LIMITS,
    Limits,
    check,
    column_problems,
    nesting_problems,
)
from datasource_governance.sources.parquet.plan import opened
from datasource_governance.sources.parquet.read import ParquetBatches
from datasource_governance.sources.refusal import refused
from datasource_governance.sources.stored import StoredFile, stored_file
from datasource_governance.sources.typed import MARK, to_typed

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


class Footer(NamedTuple):
    """The fields in the typed form, the rows, and the nulls as far as they are counted."""

    schema: "pa.Schema"
    row_count: int
    with_nulls: frozenset[str]
    """Fields in which there are nulls."""
    without_nulls: frozenset[str]
    """Fields in which there are none, unless NaN is in them."""


def parquet_footer(file: BinaryIO, limits: Limits = DEFAULT_LIMITS) -> Footer:
    """Return what the footer of an open file tells; only a field with a mark is read.

    Raises:
        UnreadableSourceError: kinds `malformed_parquet`, `too_large`, `unreadable`, and those of
            `to_typed`.
    """
    with stored_file(file) as stored:
        message = "not a Parquet file, or a damaged one"
        malformed = refused(stored.name, "malformed_parquet", message)
        found = stored.read(lambda: _read(stored, limits), malformed)
    if any(MARK in (field.metadata or {}) for field in found.schema):
        return found._replace(schema=ParquetBatches(file, limits).schema)
    return found._replace(schema=to_typed(found.schema.empty_table()).schema)


def _read(file: StoredFile, limits: Limits) -> Footer:
    with opened(file) as parquet:
        schema, metadata = parquet.schema_arrow, parquet.metadata
    columns = max(len(schema.names), metadata.num_columns)
    check(file.name, [*column_problems(columns, limits), *nesting_problems(schema, limits)])
    counted = _null_counts(schema, metadata)
    # Not the number for the whole file that the footer has as well: what is read are these.
    rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    return Footer(
        schema=schema,
        row_count=sum(rows),
        with_nulls=frozenset(name for name, nulls in counted.items() if nulls),
        without_nulls=frozenset(name for name, nulls in counted.items() if nulls == 0),
    )


def _null_counts(schema: "pa.Schema", metadata: "pq.FileMetaData") -> dict[str, int | None]:
    """Return the nulls of each plain field; None where they are not counted in every row group."""
    # Of lists and structs the leaves are counted, and not the cells.
    plain = {field.name for field in schema if not field.type.num_fields}
    counts: dict[str, int | None] = {}
    for place in range(metadata.num_columns):
        path = metadata.schema.column(place).path
        if path in plain:
            # A leaf of a struct can have the path of a field with a point in its name.
            counts[path] = None if path in counts else _nulls(metadata, place)
    return counts


def _nulls(metadata: "pq.FileMetaData", place: int) -> int | None:
    if metadata.schema.column(place).max_definition_level == 0:
        return 0
    nulls = 0
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(place).statistics
        if statistics is None or not statistics.has_null_count:
            return None
        nulls += statistics.null_count
    return nulls
