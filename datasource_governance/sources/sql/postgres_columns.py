"""Columns of Postgres by their type: how they are stored while they are fetched, and what then.

Dates and times come as the integers that Postgres keeps, whose range Python's own classes do not
have. A `numeric` without precision becomes the narrowest exact type that holds the whole column.

Source: SPEC section 3, "no value ever passes through a lossy type"; Postgres, "Data Types".
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from datasource_governance.sources.cells import UnsupportedCellError
from datasource_governance.sources.objects import (
    MAXIMUM_DECIMAL_DIGITS,
    NARROW_DECIMAL_DIGITS,
    decimal_type,
    exact_numbers,
)
from datasource_governance.sources.sql.batches import Extent
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

    `prepare` turns a value into one that `stored` holds, or raises UnsupportedCellError. `survey`
    tells how far the stored values go, where `finish`, which returns the column, depends on it.
    """

    stored: "pa.DataType"
    prepare: Callable[[Any], object] | None = None
    survey: Callable[["pa.Array"], Extent] | None = None
    finish: Callable[["pa.ChunkedArray", Extent], Column] = lambda column, _: Column(column)

    def store(self, values: Iterable[object]) -> tuple["pa.Array", Extent]:
        """Return values as they are stored, null where they cannot be, and their extent."""
        import pyarrow as pa

        unsupported = 0
        if self.prepare:
            prepared: list[object] = []
            for value in values:
                try:
                    prepared.append(None if value is None else self.prepare(value))
                except UnsupportedCellError:
                    unsupported += 1
                    prepared.append(None)
            values = prepared
        array = pa.array(values, self.stored)
        extent = self.survey(array) if self.survey else Extent()
        return array, extent | Extent(unsupported=unsupported)


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

    def survey(array: "pa.Array") -> Extent:
        import pyarrow.compute as pc

        is_beyond = pc.or_(pc.less(array, least), pc.greater(array, most))
        return Extent(unsupported=pc.sum(is_beyond, min_count=0).as_py())

    def finish(column: "pa.ChunkedArray", _: Extent) -> Column:
        import pyarrow as pa
        import pyarrow.compute as pc

        return Column(pc.add(column, pa.scalar(epoch, stored)).cast(kind))

    return Reading(stored, survey=survey, finish=finish)


def numeric(digits: int | None, scale: int | None) -> Reading:
    """Read exact numbers of a declared precision, or of none; NaN is null."""
    import pyarrow as pa

    if digits is None or scale is None or not 0 <= scale <= digits <= MAXIMUM_DECIMAL_DIGITS:
        spelled = pa.large_string()
        return Reading(
            spelled,
            prepare=lambda value: None if value.is_nan() else str(value),
            survey=_digits,
            finish=_exact,
        )
    decimal = pa.decimal128 if digits <= NARROW_DECIMAL_DIGITS else pa.decimal256
    return Reading(decimal(digits, scale), prepare=lambda value: None if value.is_nan() else value)


def _digits(array: "pa.Array") -> Extent:
    numbers = [Decimal(cell) for cell in array.to_pylist() if cell is not None]
    finite = [number for number in numbers if number.is_finite()]
    whole = max((number.adjusted() + 1 for number in finite), default=0)
    fraction = max((-int(number.as_tuple().exponent) for number in finite), default=0)
    if len(finite) < len(numbers):
        # Infinity is more than any decimal type holds.
        whole = MAXIMUM_DECIMAL_DIGITS + 1
    return Extent(whole_digits=max(whole, 0), fraction_digits=max(fraction, 0))


def _exact(column: "pa.ChunkedArray", extent: Extent) -> Column:
    import pyarrow as pa

    numbers = [None if cell is None else Decimal(cell) for cell in column.to_pylist()]
    kind = decimal_type(extent.whole_digits, extent.fraction_digits)
    if kind is None:
        return exact_numbers(numbers)
    if extent == Extent():
        # Without a number there is nothing to be narrow for.
        kind = pa.decimal128(NARROW_DECIMAL_DIGITS, 0)
    return Column(pa.array(numbers, kind))


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

    def survey(array: "pa.Array") -> Extent:
        return member.survey(array.values) if member.survey else Extent()

    def finish(column: "pa.ChunkedArray", extent: Extent) -> Column:
        lists = _one_array(column)
        members = member.finish(pa.chunked_array([lists.values]), extent)
        kind = pa.large_list(field_of("item", members))
        return Column(
            pa.LargeListArray.from_arrays(
                lists.offsets, _one_array(members.array), type=kind, mask=lists.is_null()
            )
        )

    return Reading(pa.large_list(member.stored), prepare, survey, finish)


def _one_array(column: "pa.Array | pa.ChunkedArray") -> "pa.Array":
    import pyarrow as pa

    if isinstance(column, pa.Array):
        return column
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
