"""Limits on files, checked from sizes and headers before anything is decoded.

A file's own claims about its size may lie, so the number of rows and cells counts, not the bytes
that a header promises; what is only known while decoding is counted then, batch by batch.

Source: SPEC section 3, "Hostile files".
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from datasource_governance.errors import Problem, UnreadableSourceError
from datasource_governance.sources.opening import opened
from datasource_governance.sources.refusal import refused, shielded

if TYPE_CHECKING:
    import pyarrow as pa

Source = str | os.PathLike[str] | bytes
"""A path, or the bytes of a file."""

MEBIBYTE = 1024 * 1024
TOO_LARGE = "too_large"
_OFFSET_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a file may ask of the reader. Every limit is inclusive."""

    file_bytes: int = 1024 * MEBIBYTE
    """Size of the file as stored."""
    table_bytes: int = 4096 * MEBIBYTE
    """Size of the table in memory: rows times the width of their types, or counted bytes."""
    columns: int = 2000
    """Fields at the top level."""
    nesting: int = 16
    """Lists and structs within one another; a plain column has 0."""
    compression_ratio: int = 200
    """Decompressed bytes per stored byte, for files of more than `ratio_free_bytes` then."""
    ratio_free_bytes: int = 64 * MEBIBYTE
    """A constant column compresses without bound; that only matters when the result is large."""

    def streaming(self, stored: int) -> "Limits":
        """Return the limits on a file of so many bytes that is never in memory as a whole.

        It may have any size and, decoded, be `compression_ratio` times as large. A small file may
        become what it may become in memory, so that the same bombs are refused.
        """
        table_bytes = max(self.table_bytes, self.compression_ratio * stored)
        return replace(self, file_bytes=max(self.file_bytes, stored), table_bytes=table_bytes)


DEFAULT_LIMITS = Limits()


def read_bounded(source: Source, limits: Limits) -> tuple[str, bytes]:
    """Return the name for messages and the bytes of a source, all read at once.

    Checks and decoding see the same bytes, whatever happens to the file meanwhile. A name is the
    last part of the path.

    Raises:
        UnreadableSourceError: kinds `not_found`; `unreadable` for a directory, a device, a file
            without permission; `too_large`.
    """
    if isinstance(source, bytes):
        name, content = "content", source
    else:
        name = Path(source).name
        with opened(Path(source)) as file:
            unreadable = refused(name, "unreadable", "the file cannot be opened or read")
            content = shielded(lambda: file.read(limits.file_bytes + 1), unreadable)
    check_file_bytes(name, len(content), limits)
    return name, content


def check_file_bytes(name: str, size: int, limits: Limits) -> None:
    """Refuse a file that is larger than the limit, as kind `too_large`."""
    if size > limits.file_bytes:
        raise refused(name, TOO_LARGE, f"more than {limits.file_bytes} bytes")


def check(what: str, problems: Iterable[Problem]) -> None:
    """Refuse a source with these problems; none is fine.

    Raises:
        UnreadableSourceError: with every problem.
    """
    if found := list(problems):
        raise UnreadableSourceError(what, found)


def column_problems(count: int, limits: Limits) -> list[Problem]:
    """Return what is wrong with a number of columns."""
    return _over("columns", count, limits.columns)


def nesting_problems(schema: "pa.Schema", limits: Limits) -> list[Problem]:
    """Return the fields that are nested too deeply, as one problem."""
    deep = tuple(field.name for field in schema if nesting_of(field.type) > limits.nesting)
    if not deep:
        return []
    message = f"fields nested deeper than {limits.nesting}: {', '.join(map(repr, deep))}"
    return [Problem(kind=TOO_LARGE, message=message, names=deep)]


def nesting_of(kind: "pa.DataType") -> int:
    """Return how many lists and structs are within one another."""
    if not kind.num_fields:
        return 0
    return 1 + max(nesting_of(kind.field(place).type) for place in range(kind.num_fields))


def size_problems(decoded: int, limits: Limits) -> list[Problem]:
    """Return what is wrong with the size of a table in memory, in bytes."""
    return _over("bytes in memory", decoded, limits.table_bytes)


def ratio_problems(stored: int, decompressed: int, limits: Limits) -> list[Problem]:
    """Return what is wrong with the size of a file before and after decompression, in bytes."""
    is_free = decompressed <= limits.ratio_free_bytes
    if is_free or decompressed <= limits.compression_ratio * stored:
        return []
    message = f"compressed more than {limits.compression_ratio} times"
    return [Problem(kind=TOO_LARGE, message=message)]


def _over(unit: str, count: int, limit: int) -> list[Problem]:
    if count <= limit:
        return []
    return [Problem(kind=TOO_LARGE, message=f"{count} {unit}, the limit is {limit}")]


def plain_bytes(table: "pa.Table | pa.RecordBatch") -> int:
    """Return the size of a table once its dictionaries and runs are undone, without doing so."""
    import pyarrow as pa

    chunks = [
        chunk
        for column in table.columns
        for chunk in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])
    ]
    return sum(_plain_array_bytes(chunk) for chunk in chunks)


def _plain_array_bytes(array: "pa.Array") -> int:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type):
        widths = _widths(array.dictionary).take(array.indices)
        return int(pc.sum(widths, min_count=0).as_py())
    if pa.types.is_run_end_encoded(array.type):
        # An upper bound: as if the widest run filled the array.
        return len(array) * int(pc.max(_widths(array.values)).as_py() or 0)
    if pa.types.is_nested(array.type) and not pa.types.is_union(array.type):
        if pa.types.is_map(array.type):
            array = array.cast(pa.list_(array.type.field(0)))
        members = array.flatten()
        parts = members if isinstance(members, list) else [members]
        return len(array) * _OFFSET_BYTES + sum(map(_plain_array_bytes, parts))
    return int(array.nbytes)


def _widths(values: "pa.Array") -> "pa.Array":
    """Return the bytes that each value takes, as int64."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if has_lengths(values.type):
        return pc.cast(pc.binary_length(values), pa.int64())
    average = values.nbytes // len(values) + 1 if len(values) else 0
    return pa.array([average] * len(values), pa.int64())


def has_lengths(kind: "pa.DataType") -> bool:
    """Tell whether values are texts or bytes of which Arrow computes the lengths."""
    from pyarrow import types

    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
    )
