"""Columns as keys: values that Polars hashes and compares exactly as equality is meant.

Text is its bytes, numbers are numbers of one width, and nested cells are their content as bytes,
so that the key of a cell does not depend on which other cells it is read with.

Source: SPEC sections 2.1 and 3; acceptance decision NESTED_VALUES.
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
    import polars as pl
    import pyarrow as pa


def key_of(column: "pa.ChunkedArray") -> "pl.Series":
    """Return a series that is equal exactly where the cells of a typed column are.

    Null where the cell is. Two columns of one type have comparable keys.
    """
    import polars as pl
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return pl.Series([None], dtype=pl.Boolean).new_from_index(0, len(column))
    if pa.types.is_nested(column.type):
        return pl.Series(values=_content(one_array(column)), dtype=pl.Binary)
    chunks = [plain(chunk) for chunk in column.chunks]
    flat = pa.chunked_array(chunks, plain(pa.nulls(0, column.type)).type)
    # Chunks stay: to put them together costs more than to hash them.
    return pl.from_arrow(flat, rechunk=False)  # type: ignore[return-value]  # of an array, a Series


def _content(array: "pa.Array") -> "pa.Array":
    """Return the bytes of each cell, null where it is: equal exactly where cells are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = decoded(array)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), pa.large_binary())
    if pa.types.is_struct(array.type):
        parts = [_framed(_content(child)) for child in array.flatten()]
        content = _joined(parts) if parts else pa.array([b""] * len(array), pa.large_binary())
    elif is_list_like(array.type):
        content = _list_content(*list_parts(array))
    else:
        return _flat_content(plain(array))
    return pc.if_else(array.is_valid(), content, pa.scalar(None, pa.large_binary()))


def _flat_content(array: "pa.Array") -> "pa.Array":
    import pyarrow as pa

    if pa.types.is_large_binary(array.type):
        return array
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    return array.view(pa.binary(array.type.bit_width // 8)).cast(pa.large_binary())


def _framed(content: "pa.Array") -> "pa.Array":
    """Return each cell behind its length, or a mark of null, so that cells can stand in a row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    present = pc.fill_null(content, b"")
    lengths = _flat_content(pc.binary_length(present).cast(pa.int64()))
    framed = _joined([pa.scalar(b"\1", pa.large_binary()), lengths, present])
    return pc.if_else(content.is_valid(), framed, pa.scalar(b"\0", pa.large_binary()))


def _joined(parts: "list[pa.Array | pa.Scalar]") -> "pa.Array":
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))


def _list_content(lengths: "pa.Array", values: "pa.Array") -> "pa.Array":
    """Return the framed values of each list as one cell; their bytes already lie in a row."""
    import numpy as np
    import pyarrow as pa

    framed = _framed(_content(values))
    ends = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(np.asarray(lengths), out=ends[1:])
    offsets = np.frombuffer(framed.buffers()[1], np.int64)[framed.offset :][: len(framed) + 1]
    # A cell of values in a row: its ends are the ends of its first and last value.
    bounds = offsets[ends] if len(framed) else np.zeros_like(ends)
    buffers = [None, pa.py_buffer(np.ascontiguousarray(bounds)), framed.buffers()[2]]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(lengths), buffers)
