"""The content fingerprint of a typed table.

It depends on names, types, order and values, and on nothing else: not on chunks, file layout,
compression, dictionaries, offsets of a slice, or bytes under a null.

Format, domain `datasource_governance/payload/v1`. The row count, and the lengths in `frame(x)` (8
bytes, then x), are big-endian as in `domain.canonical.digest`; everything in `cells` is
little-endian.

- fingerprint = `digest(domain, rows, column 1, column 2, …)`, where `rows` is the row count in 8
  bytes and each column is its SHA-256 in 32 bytes.
- column = SHA-256 of frame(name in UTF-8), frame(type spelling in UTF-8), and for every 65,536 rows
  (the last block may be shorter) the block's cells.
- cells(array) = one byte per cell, 1 for a value and 0 for null, then by type
  - null: nothing;
  - boolean: one byte per cell, 0 or 1;
  - number, date, time, datetime, duration, interval, decimal: the cell's value in the fixed width
    of its Arrow type (decimals: unscaled two's complement; float16 as float32), zeros where null.
    -0.0 is 0.0, every NaN (inside a list or struct) is one NaN;
  - string and binary: the length of every cell in 8 bytes (0 where null), then all bytes;
  - list and map: the length of every cell in 8 bytes (0 where null), then cells(all values, in
    order); the values of a map are structs of key and value;
  - struct: cells(field) for every field in order, fields of a null struct being null.
- type spelling: Arrow's name without what is no content: `string`, `binary`, `list<T>` (of any
  variety), `map<K,V>`, `struct<"name":T,…>` with names as JSON texts, else what Arrow prints, such
  as `int64`, `timestamp[us, tz=UTC]` or `decimal128(10, 2)`; followed by `:` and the mark where
  reading left one (SPEC section 3).

Source: SPEC sections 2.4 and 5.
"""

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from datasource_governance.domain.canonical import Sha256, canonical_bytes, digest
from datasource_governance.evaluation.detect import mark_of
from datasource_governance.evaluation.physical import (
    decoded,
    is_bytes,
    is_list_like,
    is_text,
    list_parts,
    one_array,
    plain,
)

if TYPE_CHECKING:
    import pyarrow as pa

DOMAIN = "datasource_governance/payload/v1"
_BLOCK = 1 << 16


def fingerprint(table: "pa.Table") -> tuple[Sha256, int]:
    """Return the fingerprint of a typed table and the number of canonical bytes behind it.

    The bytes counted are those of names, types and cells, before hashing.
    """
    content = Fingerprint(table.schema)
    content.add(table)
    return content.result()


class Fingerprint:
    """The fingerprint of a typed table that comes in parts, whatever their lengths.

    Memory stays bounded by the last part and, for every column, one block of 65,536 rows.
    """

    def __init__(self, schema: "pa.Schema") -> None:
        self._columns = [_ColumnDigest(field) for field in schema]
        self._rows = 0

    def add(self, part: "pa.Table") -> None:
        """Take the next rows, which have the schema; columns are hashed side by side."""
        self._rows += part.num_rows
        if part.num_rows * part.num_columns < _BLOCK:
            # To start a thread takes longer than to hash so few cells.
            list(map(_ColumnDigest.add, self._columns, part.columns))
            return
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            # A list, so that what went wrong in a thread is raised here.
            list(pool.map(_ColumnDigest.add, self._columns, part.columns))

    def result(self) -> tuple[Sha256, int]:
        """Return the fingerprint of all rows and their number of canonical bytes; ends it."""
        digests = [column.finish() for column in self._columns]
        total = sum(column.byte_count for column in self._columns)
        return digest(DOMAIN, self._rows.to_bytes(8, "big"), *digests), total


class _ColumnDigest:
    """The SHA-256 of one column, block by block."""

    def __init__(self, field: "pa.Field") -> None:
        import pyarrow as pa

        self._state = hashlib.sha256()
        self.byte_count = 0
        self._rest = pa.chunked_array([], field.type)
        mark = mark_of(field)
        spelling = type_spelling(field.type) + (f":{mark.decode()}" if mark else "")
        for text in (field.name.encode(), spelling.encode()):
            self._take(memoryview(len(text).to_bytes(8, "big")))
            self._take(memoryview(text))

    def add(self, column: "pa.ChunkedArray") -> None:
        """Hash every whole block and keep the rest."""
        import pyarrow as pa

        rows = pa.chunked_array([*self._rest.chunks, *column.chunks], column.type)
        whole = len(rows) - len(rows) % _BLOCK
        for start in range(0, whole, _BLOCK):
            self._take_block(rows.slice(start, _BLOCK))
        self._rest = rows.slice(whole)

    def finish(self) -> bytes:
        """Hash the last block, which may be shorter, and return the digest."""
        if len(self._rest):
            self._take_block(self._rest)
        return self._state.digest()

    def _take_block(self, rows: "pa.ChunkedArray") -> None:
        for part in _cells(one_array(rows)):
            self._take(part)

    def _take(self, part: memoryview) -> None:
        self._state.update(part)
        self.byte_count += part.nbytes


def type_spelling(arrow_type: "pa.DataType") -> str:
    """Return the one spelling of a type; layouts and nullable flags are no part of it."""
    import pyarrow as pa

    if pa.types.is_dictionary(arrow_type) or pa.types.is_run_end_encoded(arrow_type):
        return type_spelling(arrow_type.value_type)
    if pa.types.is_nested(arrow_type):
        return _nested_spelling(arrow_type)
    if is_text(arrow_type):
        return "string"
    return "binary" if is_bytes(arrow_type) else str(arrow_type)


def _nested_spelling(arrow_type: "pa.DataType") -> str:
    import pyarrow as pa

    if pa.types.is_map(arrow_type):
        key, item = type_spelling(arrow_type.key_type), type_spelling(arrow_type.item_type)
        return f"map<{key},{item}>"
    if is_list_like(arrow_type):
        return f"list<{type_spelling(arrow_type.value_type)}>"
    fields = (
        f"{canonical_bytes(field.name).decode()}:{type_spelling(field.type)}"
        for field in arrow_type
    )
    return f"struct<{','.join(fields)}>"


def _cells(array: "pa.Array") -> Iterator[memoryview]:
    import pyarrow as pa

    array = decoded(array)
    yield _bytes_of(array.is_valid().cast(pa.uint8()))
    if pa.types.is_null(array.type):
        return
    if pa.types.is_struct(array.type):
        for child in array.flatten():
            yield from _cells(child)
    elif is_list_like(array.type):
        lengths, values = list_parts(array)
        yield _bytes_of(lengths)
        yield from _cells(values)
    else:
        yield from _flat(plain(array))


def _flat(array: "pa.Array") -> Iterator[memoryview]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_large_binary(array.type):
        compact = pc.fill_null(array, b"") if array.null_count else array
        yield _bytes_of(pc.binary_length(compact))
        offsets = np.frombuffer(compact.buffers()[1], np.int64)[compact.offset :][: len(array) + 1]
        if len(array) and offsets[-1] > offsets[0]:
            yield memoryview(compact.buffers()[2])[offsets[0] : offsets[-1]]
    elif pa.types.is_boolean(array.type):
        yield _bytes_of(array.fill_null(fill_value=False).cast(pa.uint8()))
    else:
        yield _bytes_of(array)


def _bytes_of(array: "pa.Array") -> memoryview:
    """Return the fixed-width cells of an array as bytes, zeros where null."""
    import numpy as np

    width = array.type.bit_width // 8
    if not len(array) * width:
        return memoryview(b"")
    cells = np.frombuffer(array.buffers()[1], np.uint8)[array.offset * width :]
    cells = cells[: len(array) * width]
    if array.null_count:
        cells = cells.reshape(len(array), width).copy()
        cells[np.asarray(array.is_null())] = 0
    return memoryview(cells.reshape(-1).data)
