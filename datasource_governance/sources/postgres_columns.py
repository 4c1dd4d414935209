"""Columns of Postgres by their type: how they are stored while they are fetched, and what then.

Dates and times come as the integers that Postgres keeps, whose range Python's own classes do not
have. A `numeric` without precision becomes the narrowest exact type that holds the whole column.

Source: SPEC section 3, "no value ever passes through a lossy type"; Postgres, "Data Types".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from datasource_governance.sources.cells import UnsupportedCellError
from datasource_governance.sources.objects import (
    MAXIMUM_DECIMAL_DIGITS,
    NARROW_DECIMAL_DIGITS,
    object_column,
)
from datasource_governance.sources.typed import Column, field_of

if TYPE_CHECKING:
    import pyarrow as pa

_EPOCH_DAYS = 10_957
"""From 1970-01-01 to 2000-01-01, where Postgres begins to count."""
_MICROSECONDS_PER_DAY = 86_400_000_000
_EPOCH_MICROSECONDS = _EPOCH_DAYS * _MICROSECONDS_PER_DAY


@dataclass(frozen=True, slots=True)
class Reading:
    """How a column is stored while it is fetched, and what becomes of it then.

    `prepare` turns a value into one that `stored` holds, or raises UnsupportedCellError. `finish`
    returns the column and the number of values that it cannot hold; only without any is it of use.
    """

    stored: "pa.DataType"
    prepare: Callable[[Any], object] | None = None
    finish: Callable[["pa.ChunkedArray"], tuple[Column, int]] = lambda column: (Column(column), 0)


def readings_by_type() -> Mapping[str, Reading]:
    """Return how each type is read that has one way only, by Postgres' own names."""
    import pyarrow as pa

    words = Reading(pa.large_string())
    return {
        "int2": Reading(pa.int16()),
        "int4": Reading(pa.int32()),
        "int8": Reading(pa.int64()),
        "float4": Reading(pa.float32()),
        "float8": Reading(pa.float64()),
        "bool": Reading(pa.bool_()),
        "text": words,
        "varchar": words,
        "bpchar": words,
        "json": words,
        "jsonb": words,
        "uuid": Reading(pa.large_string(), prepare=str),
        "bytea": Reading(pa.large_binary()),
        "date": _counted(pa.int32(), pa.date32(), _EPOCH_DAYS),
        "timestamp": _counted(pa.int64(), pa.timestamp("us"), _EPOCH_MICROSECONDS),
        "timestamptz": _counted(pa.int64(), pa.timestamp("us", "UTC"), _EPOCH_MICROSECONDS),
        "time": _counted(pa.int64(), pa.time64("us"), 0, highest=_MICROSECONDS_PER_DAY - 1),
    }


def _counted(
    stored: "pa.DataType", kind: "pa.DataType", epoch: int, highest: int | None = None
) -> Reading:
    """Read integers as dates or times; Postgres keeps infinity as the outermost integers."""
    outermost = 2 ** (stored.bit_width - 1) - 1
    least, most = -outermost, outermost - epoch if highest is None else highest

    def finish(column: "pa.ChunkedArray") -> tuple[Column, int]:
        import pyarrow as pa
        import pyarrow.compute as pc

        is_beyond = pc.or_(pc.less(column, least), pc.greater(column, most))
        beyond = int(pc.sum(is_beyond, min_count=0).as_py())
        if beyond:
            return Column(column), beyond
        return Column(pc.add(column, pa.scalar(epoch, stored)).cast(kind)), 0

    return Reading(stored, finish=finish)


def numeric(digits: int | None, scale: int | None) -> Reading:
    """Read exact numbers of a declared precision, or of none; NaN is null where it has no place."""
    import pyarrow as pa

    if digits is None or scale is None or not 0 <= scale <= digits <= MAXIMUM_DECIMAL_DIGITS:
        return Reading(pa.large_string(), prepare=str, finish=_exact)
    decimal = pa.decimal128 if digits <= NARROW_DECIMAL_DIGITS else pa.decimal256
    return Reading(decimal(digits, scale), prepare=lambda value: None if value.is_nan() else value)


def _exact(column: "pa.ChunkedArray") -> tuple[Column, int]:
    import pyarrow as pa

    numbers = (None if cell is None else Decimal(cell) for cell in column.to_pylist())
    exact = object_column("numeric", numbers)
    if pa.types.is_null(exact.array.type):
        # A numeric column is one of numbers also where it has none.
        return Column(exact.array.cast(pa.decimal128(NARROW_DECIMAL_DIGITS, 0))), 0
    return exact, 0


def list_of(member: Reading) -> Reading:
    """Read arrays of one dimension."""
    import pyarrow as pa

    def prepare(cell: list[Any]) -> object:
        # Postgres declares no dimensions: each cell may have its own.
        if any(isinstance(one, list) for one in cell):
            raise UnsupportedCellError
        if member.prepare is None:
            return cell
        return [None if one is None else member.prepare(one) for one in cell]

    def finish(column: "pa.ChunkedArray") -> tuple[Column, int]:
        lists = _one_array(column)
        members, beyond = member.finish(pa.chunked_array([lists.values]))
        kind = pa.large_list(field_of("item", members))
        return Column(
            pa.LargeListArray.from_arrays(
                lists.offsets, _one_array(members.array), type=kind, mask=lists.is_null()
            )
        ), beyond

    return Reading(pa.large_list(member.stored), prepare=prepare, finish=finish)


def _one_array(column: "pa.Array | pa.ChunkedArray") -> "pa.Array":
    import pyarrow as pa

    if isinstance(column, pa.Array):
        return column
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
