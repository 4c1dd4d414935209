"""The columns that rules are about, each brought to the typed form when it is first asked for.

A rule names one or a few fields, so a frame of many columns is not converted whole. What Polars
already holds in a comparable form is used as it is: to change the layout of text costs more than
most rules do.

Source: SPEC sections 3 and 5.
"""

import functools
import operator
import threading
from typing import TYPE_CHECKING, Any, Protocol

from datasource_governance.evaluation.keys import key_of
from datasource_governance.evaluation.physical import as_type
from datasource_governance.sources.frames import column_of, names_of
from datasource_governance.sources.typed import field_of

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa


_FEW_TEXTS = 8


class Column(Protocol):
    """One typed column. All masks are Arrow booleans without nulls, one per row."""

    @property
    def field(self) -> "pa.Field":
        """Name, type and mark."""
        ...

    @property
    def values(self) -> "pa.ChunkedArray":
        """The typed values."""
        ...

    @property
    def has_nulls(self) -> bool:
        """Whether any value is null."""
        ...

    def nulls(self) -> "pa.Array | pa.ChunkedArray":
        """Return true where the value is null."""
        ...

    def keys(self, start: int, length: int) -> "pl.Series":
        """Return some rows' keys: equal exactly where values are, null where they are."""
        ...

    def keys_where(self, mask: "pl.Series") -> "pl.Series":
        """Return the keys of the rows for which the mask is true."""
        ...

    def texts_among(self, texts: list[str]) -> "pa.Array | pa.ChunkedArray":
        """Return true where a value of this text column is one of the texts; false for null."""
        ...


class ArrowColumn:
    """A column whose typed form is at hand."""

    def __init__(self, field: "pa.Field", values: "pa.ChunkedArray") -> None:
        self.field = field
        self.values = values

    @property
    def has_nulls(self) -> bool:
        """Whether any value is null."""
        return bool(self.values.null_count)

    def nulls(self) -> "pa.Array | pa.ChunkedArray":
        """Return true where the value is null."""
        import pyarrow.compute as pc

        return pc.is_null(self.values)

    def keys(self, start: int, length: int) -> "pl.Series":
        """Return some values as Polars compares them."""
        return key_of(self.values.slice(start, length))

    def keys_where(self, mask: "pl.Series") -> "pl.Series":
        """Return the values of some rows as Polars compares them."""
        return key_of(self.values.filter(mask.to_arrow()))

    def texts_among(self, texts: list[str]) -> "pa.Array | pa.ChunkedArray":
        """Return true where a value is one of the texts."""
        import pyarrow as pa
        import pyarrow.compute as pc

        return pc.is_in(self.values, value_set=pa.array(texts, self.values.type))


class PolarsColumn:
    """A column of a Polars frame whose own values compare as typed ones do."""

    def __init__(self, field: "pa.Field", series: "pl.Series") -> None:
        # Without the frame it is of: a cycle would keep the frame until somebody looks for cycles.
        self.field = field
        # A field name never reaches an expression language.
        self._series = series.alias("")

    @functools.cached_property
    def values(self) -> "pa.ChunkedArray":
        """The typed values."""
        column = column_of(self._series.to_frame(), self.field.name, 0)
        return as_type(column.array, self.field.type)

    @property
    def has_nulls(self) -> bool:
        """Whether any value is null."""
        return self._series.null_count() > 0

    def nulls(self) -> "pa.Array | pa.ChunkedArray":
        """Return true where the value is null."""
        return self._series.is_null().to_arrow()

    def keys(self, start: int, length: int) -> "pl.Series":
        """Return a part of the series itself."""
        return self._series.slice(start, length)

    def keys_where(self, mask: "pl.Series") -> "pl.Series":
        """Return some rows of the series."""
        return self._series.filter(mask)

    def texts_among(self, texts: list[str]) -> "pa.Array | pa.ChunkedArray":
        """Return true where a value is one of the texts."""
        import polars as pl

        text = pl.col(self._series.name)
        if 0 < len(texts) <= _FEW_TEXTS:
            # A few comparisons of texts cost less than one look-up in a set.
            found = functools.reduce(operator.or_, (text == one for one in texts))
        else:
            found = text.is_in(texts)
        masks = self._series.to_frame().select(found.fill_null(value=False))
        return masks.to_series().to_arrow()


class FrameColumns:
    """The columns of a pandas or Polars frame.

    `typed` is the Arrow schema of the typed form where the frame was made from one: types and marks
    that the library cannot carry are restored from it.

    Raises:
        UnreadableSourceError: names that are repeated, blank or no text; a column without a typed
            form is refused when it is asked for.
    """

    def __init__(self, frame: Any, typed: "pa.Schema | None") -> None:  # noqa: ANN401 - Pandera is untyped
        self._frame = frame
        self._typed = typed
        self._places = {name: place for place, name in enumerate(names_of(frame))}
        self._found: dict[str, Column] = {}
        self._converting = threading.Lock()

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return len(self._frame)

    def __contains__(self, name: object) -> bool:
        """Tell whether there is a column of exactly that name."""
        return name in self._places

    def __getitem__(self, name: str) -> Column:
        """Return the column of a name that there is; rules in several threads share it."""
        with self._converting:
            if name not in self._found:
                self._found[name] = self._column(name)
            return self._found[name]

    def _column(self, name: str) -> Column:
        if type(self._frame).__module__.startswith("polars"):
            series = self._frame.to_series(self._places[name])
            if _compares_alike(series.dtype):
                return PolarsColumn(self._field(name, series.dtype), series)
        return self._typed_column(name)

    def _field(self, name: str, dtype: "pl.DataType") -> "pa.Field":
        import pyarrow as pa

        if self._typed is not None:
            return self._typed.field(self._typed.get_field_index(name))
        return pa.field(name, _typed_type(dtype))

    def _typed_column(self, name: str) -> ArrowColumn:
        column = column_of(self._frame, name, self._places[name])
        if self._typed is None:
            return ArrowColumn(field_of(name, column), column.array)
        field = self._typed.field(self._typed.get_field_index(name))
        return ArrowColumn(field, as_type(column.array, field.type))


@functools.cache
def _typed_type(dtype: "pl.DataType") -> "pa.DataType":
    import polars as pl

    return column_of(pl.DataFrame(schema={"": dtype}), "", 0).array.type


def _compares_alike(dtype: "pl.DataType") -> bool:
    """Tell whether a Polars column is null and equal just where its typed form is."""
    import polars as pl

    # No floats: the typed form has null for NaN and compares -0.0 as 0.0.
    integers = dtype.is_integer() and dtype not in {pl.Int128, pl.UInt128}
    return integers or dtype.is_temporal() or dtype in {pl.Boolean, pl.String, pl.Binary}
