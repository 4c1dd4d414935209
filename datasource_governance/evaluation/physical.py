"""Arrow arrays reduced to what is compared and hashed: numbers, bytes and their nesting.

Equal values of one type become equal plain values: text is its UTF-8 bytes, an instant its count of
units, a decimal its unscaled integer, -0.0 is 0.0, and there is one NaN. Types tell what a plain
value means and are kept elsewhere.

Source: SPEC section 3; acceptance decision NESTED_VALUES.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def is_list_like(arrow_type: "pa.DataType") -> bool:
    """Tell whether a cell is a sequence: any list, or a map, which is a list of its entries."""
    import pyarrow as pa

    return bool(
        pa.types.is_list(arrow_type)
        or pa.types.is_large_list(arrow_type)
        or pa.types.is_fixed_size_list(arrow_type)
        or pa.types.is_list_view(arrow_type)
        or pa.types.is_large_list_view(arrow_type)
        or pa.types.is_map(arrow_type)
    )


def is_text(arrow_type: "pa.DataType") -> bool:
    """Tell whether a cell is text, whatever its layout."""
    from pyarrow import types

    return bool(
        types.is_string(arrow_type)
        or types.is_large_string(arrow_type)
        or types.is_string_view(arrow_type)
    )


def is_bytes(arrow_type: "pa.DataType") -> bool:
    """Tell whether a cell is bytes of any length, whatever its layout."""
    from pyarrow import types

    return bool(
        types.is_binary(arrow_type)
        or types.is_large_binary(arrow_type)
        or types.is_binary_view(arrow_type)
    )


def as_type(column: "pa.ChunkedArray", kind: "pa.DataType") -> "pa.ChunkedArray":
    """Return the column as another type; as it is where it has the type.

    Arrow makes an invalid array of a sliced list of nulls when it is cast to its own type.
    """
    return column if column.type == kind else column.cast(kind)


def decoded(array: "pa.Array") -> "pa.Array":
    """Return the array without dictionary or run-end encoding, which lists and structs may keep."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type):
        return decoded(array.dictionary_decode())
    if pa.types.is_run_end_encoded(array.type):
        return decoded(pc.run_end_decode(array))
    return array


def plain(array: "pa.Array") -> "pa.Array":
    """Return a flat array as null, booleans, integers, floats, or bytes of fixed or any length."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_floating(kind):
        return _one_zero_one_nan(array)
    if pa.types.is_decimal(kind):
        return array.view(pa.binary(kind.bit_width // 8))
    if pa.types.is_interval(kind):
        return array.view(pa.binary(16))
    if pa.types.is_temporal(kind):
        return array.view(pa.int64() if kind.bit_width == 64 else pa.int32())  # noqa: PLR2004 - bits
    if is_text(kind):
        return array.cast(pa.large_string()).cast(pa.large_binary())
    return array.cast(pa.large_binary()) if is_bytes(kind) else array


def _one_zero_one_nan(array: "pa.Array") -> "pa.Array":
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    zeroed = pc.add(array, pa.scalar(0.0, array.type))
    return pc.if_else(pc.is_nan(zeroed), pa.scalar(float("nan"), array.type), zeroed)


def list_parts(array: "pa.Array") -> tuple["pa.Array", "pa.Array"]:
    """Return the int64 lengths of the cells (0 for a null one) and all their values in order."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_map(kind):
        array = array.cast(pa.large_list(pa.struct([kind.key_field, kind.item_field])))
    elif not (pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind)):
        # Arrow loses values when it flattens a slice of nulls or runs, which a cast puts right; of
        # an empty or sliced list view it is the cast that makes invalid lists.
        array = array.cast(pa.large_list(kind.value_type))
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    return lengths.cast(pa.int64()), array.flatten()


def one_array(column: "pa.ChunkedArray") -> "pa.Array":
    """Return the column in one piece, without a copy where it is one already."""
    import pyarrow as pa

    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
