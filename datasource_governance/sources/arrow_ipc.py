"""Arrow IPC files and streams in the typed form.

A file is read as the stream it contains: its footer may list one batch a thousand times. Before a
batch is decoded, its header is read for the number of rows and the size of every buffer; those are
binding, since a buffer that decompresses to any other size is an error.

Source: SPEC section 3, "Hostile files"; Arrow columnar format, "Serialization and IPC".
"""

import struct
from typing import TYPE_CHECKING

from datasource_governance.sources.limits import (
    DEFAULT_LIMITS,
    Limits,
    Source,
    check,
    column_problems,
    nesting_problems,
    plain_bytes,
    ratio_problems,
    read_bounded,
    size_problems,
)
from datasource_governance.sources.refusal import refused, shielded
from datasource_governance.sources.typed import to_typed

if TYPE_CHECKING:
    import pyarrow as pa

_FILE_MAGIC = b"ARROW1\0\0"

# Positions of members in the flatbuffers of the format: Message, RecordBatch, DictionaryBatch.
_MESSAGE_HEADER = 2
_BATCH_NODES, _BATCH_BUFFERS, _BATCH_COMPRESSION = 1, 2, 3
_DICTIONARY_DATA = 1
_PAIR_BYTES = 16


def read_arrow(source: Source, limits: Limits = DEFAULT_LIMITS) -> "pa.Table":
    """Read an Arrow IPC file or stream, by path or as bytes.

    Raises:
        UnreadableSourceError: kinds `malformed_arrow`, `too_large`, `not_found`, `unreadable`, and
            those of `to_typed`. No value is quoted, nothing is chained.
    """
    name, content = read_bounded(source, limits)
    otherwise = refused(name, "malformed_arrow", "not an Arrow IPC file, or a damaged one")
    return shielded(lambda: _read(name, content, limits), otherwise)


def _read(name: str, content: bytes, limits: Limits) -> "pa.Table":
    import pyarrow as pa

    stream = pa.py_buffer(content)
    if content.startswith(_FILE_MAGIC):
        stream = stream.slice(len(_FILE_MAGIC))
    size = _promised_bytes(stream)
    check(name, [*size_problems(size, limits), *ratio_problems(len(content), size, limits)])
    with pa.ipc.open_stream(stream) as reader:
        schema = reader.schema
        problems = column_problems(len(schema.names), limits)
        check(name, [*problems, *nesting_problems(schema, limits)])
        table = reader.read_all()
    # First of all: Arrow aborts the process when it computes with offsets that are not valid.
    table.validate(full=True)
    check(name, size_problems(plain_bytes(table), limits))
    return to_typed(table)


def _promised_bytes(stream: "pa.Buffer") -> int:
    """Return what all batches and dictionaries take in memory, from their headers alone."""
    import pyarrow as pa

    size = 0
    for message in pa.ipc.MessageReader.open_stream(stream):
        header = _Table.root(message.metadata.to_pybytes()).table(_MESSAGE_HEADER)
        if message.type == "dictionary":
            size += _batch_bytes(header.table(_DICTIONARY_DATA), message.body)
        elif message.type == "record batch":
            size += _batch_bytes(header, message.body)
    return size


def _batch_bytes(batch: "_Table", body: "pa.Buffer") -> int:
    # A column of nulls has a length and no bytes, hence a byte for every value as well.
    size = sum(length for length, _ in batch.pairs(_BATCH_NODES))
    is_compressed = batch.has(_BATCH_COMPRESSION)
    for offset, length in batch.pairs(_BATCH_BUFFERS):
        uncompressed = -1
        if is_compressed and length:
            (uncompressed,) = struct.unpack("<q", body.slice(offset, 8).to_pybytes())
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
