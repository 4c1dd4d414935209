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
    ratio_problems,
    read_bounded,
    size_problems,
)
from datasource_governance.sources.refusal import refused, shielded
from datasource_governance.sources.typed import to_typed

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_BATCH_ROWS = 2**20
"""A usual row group: its dictionary grows with every batch of it, and is weighed every time."""
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
                *size_problems(_least_bytes(file.metadata), limits),
                *ratio_problems(len(content), _page_bytes(file.metadata), limits),
            ],
        )
        texts = _text_columns(file.metadata)
    with pq.ParquetFile(
        pa.BufferReader(content),
        arrow_extensions_enabled=False,
        page_checksum_verification=True,
        # A file may repeat a long text a million times, which is weighed before it is written out.
        read_dictionary=texts,
    ) as file:
        batches = []
        decoded = 0
        for batch in file.iter_batches(_BATCH_ROWS):
            batch.validate(full=True)
            decoded += plain_bytes(batch)
            check(name, size_problems(decoded, limits))
            batches.append(batch)
        table = pa.Table.from_batches(batches, schema=batches[0].schema if batches else schema)
    return to_typed(_as_declared(table, schema))


def _as_declared(table: "pa.Table", schema: "pa.Schema") -> "pa.Table":
    """Undo the dictionaries that only the reader asked for, inside lists and structs too."""
    import pyarrow as pa

    columns = [
        column if pa.types.is_dictionary(column.type) else column.cast(field.type)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    fields = [field.with_type(column.type) for field, column in zip(schema, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _least_bytes(metadata: "pq.FileMetaData") -> int:
    """Return rows times width: the least that the values take in memory."""
    # Column chunks would tell more, but pyarrow aborts the process where one of them is damaged.
    columns = map(metadata.schema.column, range(metadata.num_columns))
    return int(metadata.num_rows) * sum(
        _WIDTHS.get(column.physical_type) or max(column.length, _SHORTEST_TEXT)
        for column in columns
    )


def _page_bytes(metadata: "pq.FileMetaData") -> int:
    """Return what the header says that all pages take once they are decompressed."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return sum(int(group.total_byte_size) for group in groups)


def _text_columns(metadata: "pq.FileMetaData") -> list[str]:
    """Return the paths of text and binary columns, inside lists and structs too."""
    columns = map(metadata.schema.column, range(metadata.num_columns))
    return [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
