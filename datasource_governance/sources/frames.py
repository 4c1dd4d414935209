"""Data in memory: pandas, Polars and Arrow objects in the typed form.

Typed columns keep the type they declare; object columns get the type of their values. The index of
a DataFrame is dropped: rows are counted by position.

Source: SPEC section 3; decisions ROW_NUMBERS, LOGICAL_TYPES.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from datasource_governance.errors import InvalidArgumentError
from datasource_governance.sources.objects import object_column
from datasource_governance.sources.refusal import refused, shielded
from datasource_governance.sources.typed import (
    Column,
    check_bytes,
    check_names,
    table_of,
    to_typed,
    typed_column,
)

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


def from_data(data: object) -> "pa.Table":
    """Return the typed form of a DataFrame, LazyFrame (collected), Arrow table or record batch.

    Raises:
        InvalidArgumentError: data of another class.
        UnreadableSourceError: names that are repeated, blank or no text; kind `unsupported_type` or
            `unsupported_value`, naming the field, for what has no typed form; kind
            `invalid_encoding`, naming the field, for bytes that its type does not allow; kind
            `unreadable` when a lazy query fails. Never holds a value, nor does its context.
    """
    # By name, so that no library is imported to find that the data is not one of its own.
    for base in type(data).__mro__:
        library = base.__module__.partition(".")[0]
        if read := _READERS.get((library, base.__name__)):
            what = f"{library} {base.__name__}"
            otherwise = refused(what, "unreadable", "the data could not be read")
            return shielded(lambda: read(data), otherwise)
    raise InvalidArgumentError(
        f"cannot read a {type(data).__name__}; expected a pandas or Polars frame or an Arrow table"
    )


def names_of(frame: "pd.DataFrame | pl.DataFrame") -> list[str]:
    """Return the names of a frame's fields in order, checked.

    Raises:
        UnreadableSourceError: names that are repeated, blank or no text.
    """
    check_names(frame.columns, what="DataFrame")
    return [str(name) for name in frame.columns]


def column_of(frame: Any, name: str, place: int) -> Column:  # noqa: ANN401 - of pandas or Polars
    """Return one field of a frame in the typed form.

    Raises:
        UnreadableSourceError: as `from_data`.
    """
    if type(frame).__module__.startswith("pandas"):
        return typed_column(name, _pandas_column(name, frame.iloc[:, place]))
    return typed_column(name, _polars_column(frame.to_series(place)))


def _from_pandas(frame: "pd.DataFrame") -> "pa.Table":
    names = names_of(frame)
    return table_of(
        names, [_pandas_column(name, frame.iloc[:, place]) for place, name in enumerate(names)]
    )


def _pandas_column(name: str, series: "pd.Series") -> Column:
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        return _category(name, series)
    if series.dtype == object:
        return object_column(name, series.array)
    return _arrow_column(name, lambda: _pandas_array(series))


def _category(name: str, series: "pd.Series") -> Column:
    import pyarrow as pa

    if series.cat.categories.dtype == object:
        # Unused levels are no data and must not decide about the type of the others.
        return object_column(name, series.astype(object).array)
    levels = _pandas_column(name, series.cat.categories.to_series())
    codes = series.cat.codes.to_numpy()
    return Column(levels.array.take(pa.array(codes, mask=codes < 0)))


def _pandas_array(series: "pd.Series") -> "pa.Array":
    import pandas as pd
    import pyarrow as pa

    if isinstance(series.dtype, pd.SparseDtype):
        return pa.array(series.to_numpy(), from_pandas=True)
    return pa.array(series)


def _from_polars(frame: "pl.DataFrame") -> "pa.Table":
    return table_of(names_of(frame), [_polars_column(series) for series in frame])


def _polars_column(series: "pl.Series") -> Column:
    import polars as pl

    # Arrow has no such types: Polars would hand out addresses for the one and fail for the others.
    if series.dtype in {pl.Object, pl.Int128, pl.UInt128}:
        return object_column(series.name, series.to_list())
    return _arrow_column(series.name, series.to_arrow)


def _arrow_column(name: str, convert: Callable[[], "pa.Array"]) -> Column:
    message = f"field {name!r} has a type without an Arrow equivalent"
    array = shielded(convert, refused("table", "unsupported_type", message, name))
    # pandas and Polars take Arrow's bytes as they are.
    check_bytes([(name, array)])
    return Column(array)


def _from_table(table: "pa.Table") -> "pa.Table":
    check_bytes(zip(table.column_names, table.columns, strict=True))
    return to_typed(table)


def _from_lazy(query: "pl.LazyFrame") -> "pa.Table":
    return _from_polars(query.collect())


def _from_batch(batch: "pa.RecordBatch") -> "pa.Table":
    import pyarrow as pa

    return _from_table(pa.Table.from_batches([batch]))


_READERS: Final[Mapping[tuple[str, str], Callable[..., "pa.Table"]]] = {
    ("pandas", "DataFrame"): _from_pandas,
    ("polars", "DataFrame"): _from_polars,
    ("polars", "LazyFrame"): _from_lazy,
    ("pyarrow", "Table"): _from_table,
    ("pyarrow", "RecordBatch"): _from_batch,
}
