"""The typed table as a frame that Pandera takes, and back.

A pandas frame of Arrow dtypes holds every Arrow type without a copy. Polars lacks a few types; such
columns travel as whole numbers or text of the same content. Neither library keeps the marks of
fields. Both are undone by `columns.FrameColumns`, which knows the schema of the typed form.

Source: SPEC sections 3 and 5.
"""

from typing import TYPE_CHECKING, Literal

from datasource_governance.evaluation.physical import as_type

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Engine = Literal["pandas", "polars"]
"""The frame library whose Pandera backend runs the checks."""


def frame_of(table: "pa.Table", engine: Engine) -> "pd.DataFrame | pl.DataFrame":
    """Return the typed table as a frame of the engine's library."""
    if engine == "pandas":
        import pandas as pd

        return table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)  # type: ignore[no-any-return]  # pyarrow is untyped
    return _polars_frame(table)


def _polars_frame(table: "pa.Table") -> "pl.DataFrame":
    import polars as pl
    import pyarrow as pa

    columns = [as_type(column, _carrier(column.type)) for column in table.columns]
    carried = pa.Table.from_arrays(columns, names=table.column_names)
    return pl.DataFrame(carried)


def _carrier(kind: "pa.DataType") -> "pa.DataType":
    """Return the type in which Polars holds the same content without rounding or overflow."""
    import pyarrow as pa

    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.large_list(_carrier(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _carrier(field.type)) for field in kind])
    if pa.types.is_decimal(kind) and (kind.bit_width != 128 or kind.scale < 0):  # noqa: PLR2004 - bits
        return pa.large_string()
    if pa.types.is_time32(kind):
        return pa.int32()
    counts_seconds = getattr(kind, "unit", None) == "s"
    return pa.int64() if counts_seconds or pa.types.is_date64(kind) else kind
