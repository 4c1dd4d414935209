"""Object columns: cells of any Python class become one Arrow column by their common type.

- All values of one kind: the plain Arrow type of that kind. Integers are int64, else uint64, else a
  decimal of scale 0 with the mark `integer` (up to 76 digits). Integers and doubles together are
  float64 as long as no integer exceeds 2^53. Integers and decimals together are decimals.
- Numbers without an exact common type: a struct of kind and canonical bytes, mark `number`.
- Any other mixture: the same struct, mark `mixed`.
- No value at all, or no row: Arrow null.
- Lists and dicts are typed by the same rules one level down; a dict is a struct of its keys.

Source: SPEC section 3; decision LOGICAL_TYPES.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from datasource_governance.errors import Problem, UnreadableSourceError
from datasource_governance.sources.cells import (
    BINARY,
    BOOLEAN,
    DATE,
    DATETIME,
    LIST,
    NUMBER,
    OBJECT,
    STRING,
    TIME,
    canonical_cell,
    kind_of_class,
    plain,
)
from datasource_governance.sources.refusal import first_positions
from datasource_governance.sources.typed import (
    INTEGER_MARK,
    MIXED_MARK,
    NUMBER_MARK,
    Column,
    field_of,
    tagged_type,
)

if TYPE_CHECKING:
    import pyarrow as pa

MAXIMUM_EXACT_IN_DOUBLE = 2**53
NARROW_DECIMAL_DIGITS = 38
MAXIMUM_DECIMAL_DIGITS = 76
MAXIMUM_MEMBERS = 256
"""Dicts with more different keys than this are compared as a whole instead of by member."""


def object_column(field: str, values: Iterable[object]) -> Column:
    """Type the cells of one object column, in order.

    Raises:
        UnreadableSourceError: kind `unsupported_value`, naming the field and the first rows whose
            values have no kind (see `cells.plain`); nothing of the values.
    """
    cells: list[object] = []
    refused_rows = []
    for row, value in enumerate(values, start=1):
        try:
            cells.append(plain(value))
        except (ValueError, OverflowError):
            refused_rows.append(row)
    if refused_rows:
        message = (
            f"field {field!r} has {len(refused_rows)} value(s) that are no number, text, boolean, "
            f"date, datetime, time, bytes, list or object, first in row {refused_rows[0]}"
        )
        names = (field, *first_positions(refused_rows))
        problem = Problem(kind="unsupported_value", message=message, names=names)
        raise UnreadableSourceError("table", [problem])
    return _typed(cells)


def exact_numbers(values: Sequence[object]) -> Column:
    """Return numbers by exact value as kind and canonical bytes, mark `number`."""
    return Column(_tagged(values), NUMBER_MARK)


def _typed(cells: Sequence[object]) -> Column:
    import pyarrow as pa

    kinds = {kind_of_class(cls) for cls in set(map(type, cells)) - {type(None)}}
    if not kinds:
        return Column(pa.nulls(len(cells)))
    if len(kinds) > 1:
        return Column(_tagged(cells), MIXED_MARK)
    (kind,) = kinds
    typed = _BUILDERS[str(kind)](cells)
    if typed is not None:
        return typed
    return Column(_tagged(cells), NUMBER_MARK if kind == NUMBER else MIXED_MARK)


def _tagged(cells: Sequence[object]) -> "pa.Array":
    import pyarrow as pa

    tagged = [(None, None) if cell is None else canonical_cell(cell) for cell in cells]
    kinds = pa.array([kind for kind, _ in tagged], pa.large_string())
    spellings = pa.array([spelling for _, spelling in tagged], pa.large_binary())
    return pa.StructArray.from_arrays(
        [kinds, spellings], fields=list(tagged_type()), mask=kinds.is_null()
    )


def _numbers(cells: Sequence[object]) -> Column | None:
    import pyarrow as pa

    classes = {type(cell) for cell in cells if cell is not None}
    integers = [cell for cell in cells if isinstance(cell, int)]
    if all(issubclass(cls, int) for cls in classes):
        return integer_column(cells, min(integers), max(integers))
    if not any(issubclass(cls, float) for cls in classes):
        return _decimals(cells)
    exact = all(abs(cell) <= MAXIMUM_EXACT_IN_DOUBLE for cell in integers)
    if exact and not any(issubclass(cls, Decimal) for cls in classes):
        doubles = [None if cell is None else float(cell) for cell in cells]  # type: ignore[arg-type]  # only int and float are left
        return Column(pa.array(doubles, pa.float64()))
    return None


def integer_column(cells: Sequence[object], lowest: int, highest: int) -> Column:
    """Return integers in the narrowest type that holds them all; exact numbers beyond 76 digits."""
    import pyarrow as pa

    if lowest >= -(2**63) and highest < 2**63:
        return Column(pa.array(cells, pa.int64()))
    if lowest >= 0 and highest < 2**64:
        return Column(pa.array(cells, pa.uint64()))
    magnitude = max(abs(lowest), abs(highest))
    for digits, decimal in (
        (NARROW_DECIMAL_DIGITS, pa.decimal128),
        (MAXIMUM_DECIMAL_DIGITS, pa.decimal256),
    ):
        if magnitude < 10**digits:
            exact = [None if cell is None else Decimal(cell) for cell in cells]  # type: ignore[arg-type]  # every cell is an int
            return Column(pa.array(exact, decimal(digits, 0)), INTEGER_MARK)
    return exact_numbers(cells)


def decimal_type(whole_digits: int, fraction_digits: int) -> "pa.DataType | None":
    """Return the narrowest decimal type with room for both, None beyond 76 digits."""
    import pyarrow as pa

    digits = max(1, whole_digits + fraction_digits)
    if digits > MAXIMUM_DECIMAL_DIGITS:
        return None
    decimal = pa.decimal128 if digits <= NARROW_DECIMAL_DIGITS else pa.decimal256
    return decimal(digits, fraction_digits)


def _decimals(cells: Sequence[object]) -> Column | None:
    import pyarrow as pa

    exact = [None if cell is None else Decimal(cell) for cell in cells]  # type: ignore[arg-type]  # int or Decimal
    known = [cell for cell in exact if cell is not None]
    if any(cell.is_infinite() for cell in known):
        return None
    whole = max(max(cell.adjusted() + 1, 0) for cell in known)
    fraction = max(max(-int(cell.as_tuple().exponent), 0) for cell in known)
    kind = decimal_type(whole, fraction)
    return None if kind is None else Column(pa.array(exact, kind))


def _instants(cells: Sequence[object]) -> Column | None:
    import pyarrow as pa

    instants: list[tuple[int, bool] | None] = cells  # type: ignore[assignment]  # every cell is an Instant
    known = [cell for cell in instants if cell is not None]
    if len({has_offset for _, has_offset in known}) > 1:
        return None
    if all(nanoseconds % 1000 == 0 for nanoseconds, _ in known):
        unit, divisor = "us", 1000
    else:
        unit, divisor = "ns", 1
    if any(not -(2**63) < nanoseconds // divisor < 2**63 for nanoseconds, _ in known):
        return None
    counts = [None if cell is None else cell[0] // divisor for cell in instants]
    zone = "UTC" if known[0][1] else None
    return Column(pa.array(counts, pa.int64()).cast(pa.timestamp(unit, tz=zone)))


def _lists(cells: Sequence[object]) -> Column:
    import pyarrow as pa

    lists: list[list[object] | None] = cells  # type: ignore[assignment]  # every cell is a list
    members = _typed([member for cell in lists if cell is not None for member in cell])
    ends = list(accumulate((len(cell or ()) for cell in lists), initial=0))
    starts = [None if cell is None else start for cell, start in zip(lists, ends, strict=False)]
    offsets = pa.array([*starts, ends[-1]], pa.int64())
    kind = pa.large_list(field_of("item", members))
    return Column(pa.LargeListArray.from_arrays(offsets, members.array, type=kind))


def _structs(cells: Sequence[object]) -> Column | None:
    import pyarrow as pa

    dicts: list[dict[str, object] | None] = cells  # type: ignore[assignment]  # every cell is a dict
    keys = list(dict.fromkeys(key for cell in dicts for key in cell or ()))
    if len(keys) > MAXIMUM_MEMBERS:
        return None
    if not keys:
        # Without members an array would not know its length.
        return Column(pa.array(dicts, pa.struct([])))
    members = {key: _typed([(cell or {}).get(key) for cell in dicts]) for key in keys}
    return Column(
        pa.StructArray.from_arrays(
            [member.array for member in members.values()],
            fields=[field_of(key, member) for key, member in members.items()],
            mask=pa.array([cell is None for cell in dicts]),
        )
    )


def _as(type_name: str) -> Callable[[Sequence[object]], Column | None]:
    def build(cells: Sequence[object]) -> Column:
        import pyarrow as pa

        return Column(pa.array(cells, pa.type_for_alias(type_name)))

    return build


_BUILDERS: Final[Mapping[str, Callable[[Sequence[object]], Column | None]]] = {
    NUMBER: _numbers,
    STRING: _as("large_string"),
    BOOLEAN: _as("bool"),
    DATE: _as("date32"),
    DATETIME: _instants,
    TIME: _as("time64[us]"),
    BINARY: _as("large_binary"),
    LIST: _lists,
    OBJECT: _structs,
}
