"""Payloads in the form that a reader wants: a frame of his library, an Arrow table, a lazy scan.

All forms hold the same rows, exactly. Where a library has no such type, nothing is rounded: it is
refused by the names of the fields.

Source: SPEC sections 3 and 10; issue "Readers".
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO, Final, Literal, get_args

from datasource_governance.domain.artifact import MediaType
from datasource_governance.errors import InvalidArgumentError, Problem, UnreadableSourceError
from datasource_governance.evaluation.frames import frame_of
from datasource_governance.sources.kept_open import KeptOpen
from datasource_governance.sources.open_files import scan_open
from datasource_governance.sources.refusal import refused, shielded

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Form = Literal["pandas", "polars", "arrow", "lazy"]
"""A pandas frame of Arrow dtypes, a Polars frame, an Arrow table, a Polars LazyFrame."""
FORMS: Final[tuple[Form, ...]] = get_args(Form)

_WHAT = "the payload"


def checked_form(name: object) -> Form:
    """Return a form by its name.

    Raises:
        InvalidArgumentError: there is no such form.
    """
    for form in FORMS:
        if form == name:
            return form
    raise InvalidArgumentError(f"a payload is read as one of {', '.join(FORMS)}")


def in_form(
    table: "pa.Table", form: Form
) -> "pd.DataFrame | pl.DataFrame | pa.Table | pl.LazyFrame":
    """Return a table of the typed form as what a reader wants.

    Raises:
        UnreadableSourceError: kind `unsupported_type`, with every field that Polars cannot hold.
    """
    if form == "arrow":
        return table
    if form == "pandas":
        return frame_of(table, "pandas")
    frame = _polars(table)
    return frame.lazy() if form == "lazy" else frame


def lazy_scan(
    file: BinaryIO, media_type: MediaType, columns: Sequence[str] | None = None
) -> "pl.LazyFrame":
    """Return an open file as a query that reads it in batches, each time that it is run.

    The file stays open for as long as there is a query of it. Only the columns that a query needs
    are decoded. A query fails if the file is no more what it is now.

    Raises:
        UnreadableSourceError: as `scan_open` and `in_form`.
    """
    from polars.io.plugins import register_io_source

    scan = _Scan(file, media_type, columns)
    return register_io_source(scan.frames, schema=scan.schema, explain_name="artifact")


class _Scan:
    def __init__(
        self, file: BinaryIO, media_type: MediaType, columns: Sequence[str] | None
    ) -> None:
        self._file = KeptOpen(file)
        self._media_type = media_type
        self._columns = columns
        batches = scan_open(self._file.view(), media_type, columns=columns)
        self.schema = _polars(batches.schema.empty_table()).schema

    def frames(
        self,
        columns: list[str] | None,
        predicate: "pl.Expr | None",
        rows: int | None,
        _at_once: int | None,
    ) -> Iterator["pl.DataFrame"]:
        """Yield what a query wants of the file, as Polars asks its sources for it."""
        wanted = self._columns if columns is None else columns
        for table in scan_open(self._file.view(), self._media_type, columns=wanted):
            frame = _polars(table).head(table.num_rows if rows is None else rows)
            if rows is not None:
                rows -= frame.height
            yield frame if predicate is None else frame.filter(predicate)
            if rows == 0:
                return


def _polars(table: "pa.Table") -> "pl.DataFrame":
    import polars as pl
    import pyarrow as pa

    lacking = tuple(field.name for field in table.schema if _is_lacking(field.type))
    if lacking:
        named = ", ".join(map(repr, lacking))
        message = f"Polars has no type for fields {named}; read them as pandas or arrow"
        problem = Problem(kind="unsupported_type", message=message, names=lacking)
        raise UnreadableSourceError(_WHAT, [problem])
    otherwise = refused(_WHAT, "unsupported_type", "a field has a value that Polars cannot hold")
    fields = [field.with_type(_in_milliseconds(field.type)) for field in table.schema]
    return shielded(lambda: pl.DataFrame(table.cast(pa.schema(fields))), otherwise)


def _is_lacking(kind: "pa.DataType", *, nested: bool = False) -> bool:
    """Tell whether Polars would fail at a type, or count on past the end of its own."""
    import pyarrow as pa

    if kind.num_fields:
        within = (kind.field(place).type for place in range(kind.num_fields))
        return any(_is_lacking(one, nested=True) for one in within)
    if pa.types.is_decimal(kind):
        return bool(pa.types.is_decimal256(kind) or kind.scale < 0)
    return nested and _counts_seconds(kind)


def _counts_seconds(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    counts = pa.types.is_timestamp(kind) or pa.types.is_duration(kind)
    return bool(counts and kind.unit == "s")


def _in_milliseconds(kind: "pa.DataType") -> "pa.DataType":
    """Return the type in which Polars holds seconds; it would not check that they fit."""
    import pyarrow as pa

    if not _counts_seconds(kind):
        return kind
    return pa.timestamp("ms", kind.tz) if pa.types.is_timestamp(kind) else pa.duration("ms")
