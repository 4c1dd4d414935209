"""The typed form: one ordered Arrow table in which equal data has equal types.

- Names are distinct, not blank and exact; the order of rows is the order of records.
- Dictionary and run-end encoding are undone; `string` and `string_view` become `large_string`,
  every binary layout becomes `large_binary`. All other types stay: widths, units, time zones,
  decimals, lists, structs. Only the top level is touched.
- NaN in a floating column is null. Negative zero stays.
- Extension types are refused, registered or not: their meaning is code.
- A field may carry one mark, `{b"datasource_governance": mark}`:
  `integer`: a decimal of scale 0 that holds integers too large for 64 bits;
  `number`, `mixed`: a struct of kind and canonical bytes, see `cells`.
  All other metadata is dropped, and so is a mark that its column does not bear out.

Source: SPEC section 3; decisions NAN_IS_NULL, DUPLICATE_COLUMN_REFUSED, BLANK_NAME_REFUSED,
LOGICAL_TYPES.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from datasource_governance.domain.strict_json import text_problem
from datasource_governance.errors import Problem, UnreadableSourceError
from datasource_governance.sources.cells import KINDS, NUMBER, is_canonical_number

if TYPE_CHECKING:
    import pyarrow as pa

MARK = b"datasource_governance"
INTEGER_MARK = b"integer"
NUMBER_MARK = b"number"
MIXED_MARK = b"mixed"
EXTENSION_NAME = b"ARROW:extension:name"


class Column(NamedTuple):
    """An array and the mark of its field, if it needs one."""

    array: "pa.Array | pa.ChunkedArray"
    mark: bytes | None = None


def tagged_type() -> "pa.DataType":
    """Return the type of a column that holds kinds and canonical bytes."""
    import pyarrow as pa

    return pa.struct([("kind", pa.large_string()), ("value", pa.large_binary())])


def field_of(name: str, column: Column) -> "pa.Field":
    """Return the Arrow field of a column, with its mark."""
    import pyarrow as pa

    return pa.field(name, column.array.type, metadata=column.mark and {MARK: column.mark})


def table_of(names: Sequence[str], columns: Sequence[Column]) -> "pa.Table":
    """Put marked columns together and bring them to the typed form."""
    import pyarrow as pa

    fields = [field_of(name, column) for name, column in zip(names, columns, strict=True)]
    return to_typed(
        pa.Table.from_arrays([column.array for column in columns], schema=pa.schema(fields))
    )


def to_typed(table: "pa.Table") -> "pa.Table":
    """Return the typed form of a table. Idempotent; the number and order of rows stay.

    Raises:
        UnreadableSourceError: kinds `duplicate_column`, `blank_column_name`, `invalid_text`,
            `extension_type`; every problem at once.
    """
    import pyarrow as pa

    problems = name_problems(table.column_names)
    problems += [_extension(field.name) for field in table.schema if _is_extended(field)]
    if problems:
        raise UnreadableSourceError("table", problems)
    columns = [
        _typed(Column(column, (field.metadata or {}).get(MARK)))
        for field, column in zip(table.schema, table.columns, strict=True)
    ]
    fields = [
        field_of(name, column) for name, column in zip(table.column_names, columns, strict=True)
    ]
    return pa.Table.from_arrays([column.array for column in columns], schema=pa.schema(fields))


def typed_column(name: str, column: Column) -> Column:
    """Return one column in the typed form, its array in chunks.

    Raises:
        UnreadableSourceError: kind `extension_type`.
    """
    import pyarrow as pa

    array, mark = column
    if _is_extended(field_of(name, column)):
        raise UnreadableSourceError("table", [_extension(name)])
    if not isinstance(array, pa.ChunkedArray):
        array = pa.chunked_array([array])
    return _typed(Column(array, mark))


def _typed(column: Column) -> Column:
    return _marked(Column(_plain(column.array), column.mark))


def _extension(name: str) -> Problem:
    message = f"field {name!r} has an extension type; store the plain type"
    return Problem(kind="extension_type", message=message, names=(name,))


def _is_extended(field: "pa.Field") -> bool:
    import pyarrow as pa

    kind = field.type
    if isinstance(kind, pa.BaseExtensionType) or EXTENSION_NAME in (field.metadata or {}):
        return True
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _is_extended(pa.field("value", kind.value_type))
    return any(_is_extended(kind.field(place)) for place in range(kind.num_fields))


def _plain(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        # A cast has no kernel for dictionaries of lists; decoding by chunk takes every type.
        chunks = [chunk.dictionary_decode() for chunk in column.chunks]
        return _plain(pa.chunked_array(chunks, kind.value_type))
    if pa.types.is_run_end_encoded(kind):
        return _plain(pc.run_end_decode(column))
    if pa.types.is_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    if _is_binary(kind):
        return column.cast(pa.large_binary())
    if pa.types.is_floating(kind):
        return _without_nan(column)
    return column


def _is_binary(kind: "pa.DataType") -> bool:
    from pyarrow import types

    return bool(
        types.is_binary(kind) or types.is_binary_view(kind) or types.is_fixed_size_binary(kind)
    )


def _without_nan(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    import pyarrow as pa
    import pyarrow.compute as pc

    is_nan = pc.is_nan(column)
    if not pc.any(is_nan, min_count=0).as_py():
        return column
    return pc.if_else(is_nan, pa.scalar(None, column.type), column)


def _marked(column: Column) -> Column:
    """Keep a mark that the column bears out: files are free to carry any metadata."""
    import pyarrow as pa

    array, mark = column
    if mark == INTEGER_MARK and pa.types.is_decimal(array.type) and array.type.scale == 0:
        return column
    if mark in {NUMBER_MARK, MIXED_MARK} and array.type == tagged_type() and _is_tagged(column):
        return column
    return Column(array)


def _is_tagged(column: Column) -> bool:
    import pyarrow.compute as pc

    cells = column.array.drop_null()
    kinds, spellings = pc.struct_field(cells, 0), pc.struct_field(cells, 1)
    allowed = {NUMBER} if column.mark == NUMBER_MARK else KINDS
    if spellings.null_count or not allowed.issuperset(pc.unique(kinds).to_pylist()):
        return False
    # Equality compares bytes, so a number that is not spelled canonically would equal no other.
    numbers = pc.unique(spellings.filter(pc.equal(kinds, NUMBER)))
    return all(is_canonical_number(spelling) for spelling in numbers.to_pylist())


def name_problems(names: Iterable[object]) -> list[Problem]:
    """Return what is wrong with field names, each problem with the name or one-based position."""
    places: dict[str, list[int]] = {}
    problems = []
    for place, name in enumerate(names, start=1):
        if not isinstance(name, str):
            problems.append(_name_problem("column_name_not_text", place, "is not a text"))
        elif not name.strip():
            problems.append(_name_problem("blank_column_name", place, "is blank"))
        elif reason := text_problem(name):
            problems.append(_name_problem("invalid_text", place, f"has {reason}"))
        else:
            places.setdefault(name, []).append(place)
    for name, found in places.items():
        if len(found) > 1:
            where = ", ".join(str(place) for place in found)
            message = f"the name {name!r} is repeated, in columns {where}"
            problems.append(Problem(kind="duplicate_column", message=message, names=(name,)))
    return problems


def _name_problem(kind: str, place: int, reason: str) -> Problem:
    return Problem(kind=kind, message=f"the name of column {place} {reason}", names=(str(place),))


def check_bytes(columns: Iterable[tuple[str, "pa.Array | pa.ChunkedArray"]]) -> None:
    """Refuse columns whose bytes their types do not allow: text that is not UTF-8, bad offsets.

    Arrow takes any bytes in, and aborts the process when it computes with invalid offsets.

    Raises:
        UnreadableSourceError: kind `invalid_encoding`, for every field at once.
    """
    problems = [_invalid(name) for name, array in columns if not _is_valid(array)]
    if problems:
        raise UnreadableSourceError("table", problems)


def _invalid(name: str) -> Problem:
    message = f"field {name!r} has bytes that its type does not allow, such as text not in UTF-8"
    return Problem(kind="invalid_encoding", message=message, names=(name,))


def _is_valid(array: "pa.Array | pa.ChunkedArray") -> bool:
    import pyarrow as pa

    try:
        array.validate(full=True)
    except pa.ArrowException:
        return False
    return True


def check_names(names: Iterable[object], *, what: str) -> None:
    """Refuse names that are repeated, blank, no text, or hold NUL or a lone surrogate.

    Names are compared code point by code point; nothing is trimmed, folded or normalised.

    Raises:
        UnreadableSourceError: kinds `duplicate_column` (names the name), `blank_column_name`,
            `column_name_not_text`, `invalid_text` (name the one-based position).
    """
    if problems := name_problems(names):
        raise UnreadableSourceError(what, problems)


def similar_names(names: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Return groups of distinct names that are equal after NFC and case folding.

    A notice, not a refusal: such fields are different fields that people take for one.
    """
    groups: dict[str, dict[str, None]] = {}
    for name in names:
        # Folding can leave a text that is not NFC, hence twice.
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
        groups.setdefault(folded, {})[name] = None
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)
