"""Arrow IPC files and streams in the typed form, at once or in batches.

A file is read as the stream it contains: its footer may list one batch a thousand times. Before a
batch is decoded, its header is read for the number of rows and the size of every buffer; those are
binding, since a buffer that decompresses to any other size is an error.

Source: SPEC sections 3, "Hostile files", and 18; Arrow columnar format, "Serialization and IPC".
"""

import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO

from typing_extensions import override

from datasource_governance.errors import UnreadableSourceError
from datasource_governance.sources.file_batches import FileBatches
from datasource_governance.sources.limits import (
    DEFAULT_LIMITS,
    Limits,
    Source,
    check,
    check_file_bytes,
    column_problems,
    nesting_problems,
    plain_bytes,
    ratio_problems,
    size_problems,
)
from datasource_governance.sources.refusal import refused
from datasource_governance.sources.stored import StoredFile, stored_file
from datasource_governance.sources.typed import to_typed

if TYPE_CHECKING:
    import pyarrow as pa

FILE_MAGIC = b"ARROW1\0\0"
"""What a file begins with, and a stream does not."""
_CONTINUATION = b"\xff\xff\xff\xff"

# Positions of members in the flatbuffers of the format: Message, RecordBatch, DictionaryBatch.
_MESSAGE_KIND, _MESSAGE_HEADER, _MESSAGE_BODY_BYTES = 1, 2, 3
_BATCH_NODES, _BATCH_BUFFERS, _BATCH_COMPRESSION = 1, 2, 3
_DICTIONARY_DATA = 1
_PAIR_BYTES = 16
_DICTIONARY, _RECORDS = 2, 3
"""Kinds of messages that hold buffers."""


def read_arrow(source: Source | BinaryIO, limits: Limits = DEFAULT_LIMITS) -> "pa.Table":
    """Read an Arrow IPC file or stream, by path, open or as bytes.

    Raises:
        UnreadableSourceError: kinds `malformed_arrow`, `too_large`, `not_found`, `unreadable`, and
            those of `to_typed`. No value is quoted, nothing is chained.
    """
    with stored_file(source) as file:
        check_file_bytes(file.name, file.size, limits)
        return file.read(lambda: _read(file, limits), _malformed(file.name))


def _read(file: StoredFile, limits: Limits) -> "pa.Table":
    import pyarrow as pa

    schema = _checked(file, limits)
    return to_typed(pa.Table.from_batches(_decoded(file, limits), schema=schema))


def decoded_arrow_bytes(source: Source | BinaryIO) -> int:
    """Return what the headers of an Arrow IPC file say that its buffers take in memory.

    Raises:
        UnreadableSourceError: kinds `malformed_arrow`, `not_found`, `unreadable`.
    """
    with stored_file(source) as file:
        return file.read(lambda: _promised_bytes(file), _malformed(file.name))


class ArrowBatches(FileBatches):
    """A local Arrow IPC file or stream of any size, decoded one of its record batches at a time.

    Raises:
        UnreadableSourceError: as `read_arrow`, when it is made or while it is iterated.
    """

    @override
    def _checked(self, file: StoredFile, limits: Limits) -> "pa.Schema":
        return _checked(file, limits)

    @override
    def _decoded(
        self, file: StoredFile, limits: Limits, fields: Sequence[str] | None
    ) -> Iterator["pa.RecordBatch"]:
        places = None
        if fields is not None:
            places = [self._file_schema.get_field_index(name) for name in fields]
        return _decoded(file, limits, places)

    @override
    def _malformed(self, name: str) -> UnreadableSourceError:
        return _malformed(name)


def _malformed(name: str) -> UnreadableSourceError:
    return refused(name, "malformed_arrow", "not an Arrow IPC file, or a damaged one")


def _checked(file: StoredFile, limits: Limits) -> "pa.Schema":
    size = _promised_bytes(file)
    check(file.name, [*size_problems(size, limits), *ratio_problems(file.size, size, limits)])
    with _opened(file) as stream:
        schema = stream.schema
    problems = column_problems(len(schema.names), limits)
    check(file.name, [*problems, *nesting_problems(schema, limits)])
    return schema


def _opened(
    file: StoredFile, places: Sequence[int] | None = None
) -> "pa.ipc.RecordBatchStreamReader":
    import pyarrow as pa

    reader = file.reader()
    reader.seek(_start(reader))
    options = pa.ipc.IpcReadOptions(included_fields=places)
    return pa.ipc.open_stream(reader, options=options)


def _start(reader: "pa.NativeFile") -> int:
    magic = reader.read_at(len(FILE_MAGIC), 0)
    return len(FILE_MAGIC) if magic == FILE_MAGIC else 0


def _decoded(
    file: StoredFile, limits: Limits, places: Sequence[int] | None = None
) -> Iterator["pa.RecordBatch"]:
    size = 0
    with _opened(file, places) as stream:
        for batch in stream:
            # First of all: Arrow aborts the process when it computes with invalid offsets.
            batch.validate(full=True)
            size += plain_bytes(batch)
            check(file.name, size_problems(size, limits))
            yield batch


def _promised_bytes(file: StoredFile) -> int:
    """Return what all batches and dictionaries take in memory, from their headers alone."""
    reader = file.reader()
    size, position = 0, _start(reader)
    while found := _header_bytes(reader, position):
        prefix_bytes, header_bytes = found
        body = position + prefix_bytes + header_bytes
        message = _Table.root(reader.read_at(header_bytes, position + prefix_bytes))
        kind = message.byte(_MESSAGE_KIND)
        if kind in {_DICTIONARY, _RECORDS}:
            batch = message.table(_MESSAGE_HEADER)
            if kind == _DICTIONARY:
                batch = batch.table(_DICTIONARY_DATA)
            size += _batch_bytes(batch, reader, body)
        position = body + _not_negative(message.long(_MESSAGE_BODY_BYTES))
    return size


def _header_bytes(reader: "pa.NativeFile", position: int) -> tuple[int, int] | None:
    """Return the bytes of a message's prefix and of its header; None at the end of the stream."""
    prefix = reader.read_at(8, position)
    # Before version 0.15 nothing stood before the length.
    prefix_bytes = 8 if prefix.startswith(_CONTINUATION) else 4
    length = prefix[prefix_bytes - 4 : prefix_bytes]
    header_bytes = _not_negative(struct.unpack("<i", length)[0]) if length else 0
    return (prefix_bytes, header_bytes) if header_bytes else None


def _not_negative(size: int) -> int:
    if size < 0:
        raise ValueError("a size is negative")
    return size


def _batch_bytes(batch: "_Table", reader: "pa.NativeFile", body: int) -> int:
    # A column of nulls has a length and no bytes, hence a byte for every value as well.
    size = sum(length for length, _ in batch.pairs(_BATCH_NODES))
    is_compressed = batch.has(_BATCH_COMPRESSION)
    for offset, length in batch.pairs(_BATCH_BUFFERS):
        uncompressed = -1
        if is_compressed and length:
            (uncompressed,) = struct.unpack("<q", reader.read_at(8, body + offset))
        size += length if uncompressed < 0 else uncompressed
    return size


class _Table:
    """A table of a flatbuffer: members are found through a list of offsets, absent ones are 0."""

    def __init__(self, content: bytes, position: int) -> None:
        self._content = content
        self._position = position
        self._offsets = position - self._int(position)

    @staticmethod
    def root(content: bytes) -> "_Table":
        """Return the outermost table."""
        return _Table(content, struct.unpack_from("<I", content, 0)[0])

    def _int(self, position: int, form: str = "<i") -> int:
        return int(struct.unpack_from(form, self._content, position)[0])

    def _member(self, place: int) -> int:
        entry = 4 + 2 * place
        if entry >= self._int(self._offsets, "<H"):
            return 0
        offset = self._int(self._offsets + entry, "<H")
        return self._position + offset if offset else 0

    def has(self, place: int) -> bool:
        """Tell whether a member is present."""
        return self._member(place) != 0

    def byte(self, place: int) -> int:
        """Return a member of 8 bits."""
        return self._int(member, "<B") if (member := self._member(place)) else 0

    def long(self, place: int) -> int:
        """Return a member of 64 bits."""
        return self._int(member, "<q") if (member := self._member(place)) else 0

    def table(self, place: int) -> "_Table":
        """Return a member that is a table."""
        member = self._member(place)
        return _Table(self._content, member + self._int(member, "<I"))

    def pairs(self, place: int) -> list[tuple[int, int]]:
        """Return a member that is a list of structs of two 64-bit integers."""
        if not (member := self._member(place)):
            return []
        start = member + self._int(member, "<I")
        count = self._int(start, "<I")
        body = self._content[start + 4 : start + 4 + count * _PAIR_BYTES]
        return list(struct.iter_unpack("<qq", body))
