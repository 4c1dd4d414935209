"""Unique: which rows share their key with another row.

Rows are hashed and the hashes sorted; only rows whose hash occurs again are compared by content. A
nested key is first numbered by content, from the inside out.

Source: SPEC section 2.1; acceptance decisions UNIQUE_COUNT, UNIQUE_NULL_SKIP, NESTED_VALUES.
"""

from typing import TYPE_CHECKING

from datasource_governance.evaluation.physical import (
    decoded,
    is_list_like,
    list_parts,
    one_array,
    plain,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl
    import pyarrow as pa


def duplicated(columns: list["pa.ChunkedArray"]) -> "pa.Array":
    """Return true for every row whose complete key occurs more than once.

    Null parts equal each other here; leaving such rows out is the caller's decision.
    """
    import numpy as np
    import polars as pl
    import pyarrow as pa

    # Positions as names: a field name never reaches an expression language.
    keys = pl.DataFrame([_key(column).alias(str(place)) for place, column in enumerate(columns)])
    hashes = keys.hash_rows()
    ordered = hashes.sort()
    repeated = ordered.filter(ordered == ordered.shift(1)).unique()
    mask = np.zeros(keys.height, dtype=np.bool_)
    if len(repeated):
        candidates = hashes.is_in(repeated.implode())
        mask[candidates.to_numpy()] = keys.filter(candidates).is_duplicated().to_numpy()
    return pa.array(mask)


def _key(column: "pa.ChunkedArray") -> "pl.Series":
    import polars as pl
    import pyarrow as pa

    if pa.types.is_nested(column.type):
        return pl.Series(_numbered(one_array(column)))
    if pa.types.is_null(column.type):
        return pl.Series([None], dtype=pl.Boolean).new_from_index(0, len(column))
    chunks = [plain(chunk) for chunk in column.chunks]
    return pl.Series(values=pa.chunked_array(chunks, plain(pa.nulls(0, column.type)).type))


def _numbered(array: "pa.Array") -> "npt.NDArray[np.int64]":
    """Return one number per cell, equal exactly where cells are equal by content; null is -1."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    array = decoded(array)
    if pa.types.is_null(array.type):
        return np.full(len(array), -1, dtype=np.int64)
    if pa.types.is_struct(array.type):
        content = _row_bytes([_numbered(child) for child in array.flatten()], len(array))
    elif is_list_like(array.type):
        content = _list_bytes(*list_parts(array))
    else:
        content = plain(array)
    numbers = content.dictionary_encode().indices.cast(pa.int64())
    present = pc.if_else(pc.is_valid(array), numbers, pa.scalar(-1, pa.int64()))
    return np.asarray(pc.fill_null(present, -1))


def _row_bytes(parts: list["npt.NDArray[np.int64]"], length: int) -> "pa.Array":
    """Return the numbers of each struct's fields as one cell of bytes."""
    import numpy as np
    import pyarrow as pa

    rows = np.column_stack(parts) if parts else np.zeros((length, 1), dtype=np.int64)
    width = rows.shape[1] * rows.itemsize
    buffers = [None, pa.py_buffer(np.ascontiguousarray(rows))]
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), length, buffers)


def _list_bytes(lengths: "pa.Array", values: "pa.Array") -> "pa.Array":
    """Return the numbers of each list's values as one cell of bytes."""
    import numpy as np
    import pyarrow as pa

    numbers = _numbered(values)
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(np.asarray(lengths) * numbers.itemsize, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(numbers)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(lengths), buffers)
