"""Parquet files in the typed form.

Source: SPEC section 3, "Hostile files".
"""

from typing import TYPE_CHECKING

from datasource_governance.sources.limits import (
    DEFAULT_LIMITS,
    Limits,
    Source,
    check,
    column_problems,
    nesting_problems,
    plain_bytes,
    read_bounded,
    size_problems,
)
from datasource_governance.sources.refusal import refused, shielded
from datasource_governance.sources.typed import to_typed

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_BATCH_ROWS = 65_536
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_SHORTEST_TEXT = 8
"""Bytes that any text or binary value takes at least: its offset."""


def read_parquet(source: Source, limits: Limits = DEFAULT_LIMITS) -> "pa.Table":
    """Read a Parquet file, by path or as bytes; page checksums are verified where present.

    Raises:
        UnreadableSourceError: kinds `malformed_parquet`, `too_large`, `not_found`, `unreadable`,
            and those of `to_typed`. No value is quoted, nothing is chained.
    """
    name, content = read_bounded(source, limits)
    otherwise = refused(name, "malformed_parquet", "not a Parquet file, or a damaged one")
    return shielded(lambda: _read(name, content, limits), otherwise)


def _read(name: str, content: bytes, limits: Limits) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(pa.BufferReader(content), arrow_extensions_enabled=False) as file:
        schema = file.schema_arrow
        check(
            name,
            [
                *column_problems(max(len(schema.names), file.metadata.num_columns), limits),
                *nesting_problems(schema, limits),
                *size_problems(len(content), _promised_bytes(file.metadata), limits),
            ],
        )
        repeated = _dictionary_encoded(file.metadata)
    with pq.ParquetFile(
        pa.BufferReader(content),
        arrow_extensions_enabled=False,
        page_checksum_verification=True,
        # A dictionary may repeat a long text a million times; it is weighed before it is decoded.
        read_dictionary=repeated,
    ) as file:
        batches = []
        decoded = 0
        for batch in file.iter_batches(_BATCH_ROWS):
            decoded += plain_bytes(batch)
            check(name, size_problems(len(content), decoded, limits))
            batches.append(batch)
        table = pa.Table.from_batches(batches, schema=batches[0].schema if batches else schema)
    table.validate(full=True)
    return to_typed(table)


def _promised_bytes(metadata: "pq.FileMetaData") -> int:
    """Return the least that the values take in memory, whatever the file says about its bytes."""
    widths = [
        _WIDTHS.get(column.physical_type) or max(column.length, _SHORTEST_TEXT)
        for column in map(metadata.schema.column, range(metadata.num_columns))
    ]
    groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
    values = sum(
        max(group.column(place).num_values, group.num_rows) * width
        for group in groups
        for place, width in enumerate(widths)
    )
    pages = sum(
        group.column(place).total_uncompressed_size
        for group in groups
        for place in range(metadata.num_columns)
    )
    return max(values, pages)


def _dictionary_encoded(metadata: "pq.FileMetaData") -> list[str]:
    """Return the paths of text and binary columns that are stored with a dictionary."""
    groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
    chunks = [group.column(place) for group in groups for place in range(metadata.num_columns)]
    paths = {
        chunk.path_in_schema
        for chunk in chunks
        if chunk.physical_type == "BYTE_ARRAY" and chunk.has_dictionary_page
    }
    return sorted(paths)
