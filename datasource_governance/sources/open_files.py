"""Files that are open already, by their media type: artifacts that their backend has verified.

Source: SPEC sections 3 and 10.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from datasource_governance.domain.artifact import MediaType
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.sources.arrow_ipc import (
    FILE_MAGIC,
    ArrowBatches,
    decoded_arrow_bytes,
    read_arrow,
)
from datasource_governance.sources.batches import DEFAULT_BATCH_BYTES
from datasource_governance.sources.file_batches import FileBatches
from datasource_governance.sources.limits import DEFAULT_LIMITS
from datasource_governance.sources.parquet.footer import Footer, parquet_footer
from datasource_governance.sources.parquet.read import (
    ParquetBatches,
    decoded_parquet_bytes,
    read_parquet,
)
from datasource_governance.sources.refusal import refused

if TYPE_CHECKING:
    import pyarrow as pa


class _Format(NamedTuple):
    read: Callable[[BinaryIO], "pa.Table"]
    batches: type[FileBatches]
    decoded_bytes: Callable[[BinaryIO], int]


_ARROW: Final = _Format(read_arrow, ArrowBatches, decoded_arrow_bytes)
_FORMATS: Final[Mapping[MediaType, _Format]] = {
    MediaType.PARQUET: _Format(read_parquet, ParquetBatches, decoded_parquet_bytes),
    MediaType.ARROW_FILE: _ARROW,
    MediaType.ARROW_STREAM: _ARROW,
}

_SUFFIXES: Final[Mapping[str, MediaType]] = {
    ".parquet": MediaType.PARQUET,
    ".arrow": MediaType.ARROW_FILE,
    ".feather": MediaType.ARROW_FILE,
    ".ipc": MediaType.ARROW_FILE,
    ".arrows": MediaType.ARROW_STREAM,
}
"""As IANA registered them, with those that are usual besides."""


def read_open(file: BinaryIO, media_type: MediaType) -> "pa.Table":
    """Read an open file as a whole into the typed form.

    Raises:
        UnreadableSourceError: as the reader of the format.
    """
    return _FORMATS[media_type].read(file)


def scan_open(
    file: BinaryIO,
    media_type: MediaType,
    batch_bytes: int = DEFAULT_BATCH_BYTES,
    columns: Sequence[str] | None = None,
) -> FileBatches:
    """Return an open file of any size as batches of about `batch_bytes`, of some columns or all.

    One pass over it at a time: they share the place at which the file is read.

    Raises:
        UnreadableSourceError: as the reader of the format.
    """
    return _FORMATS[media_type].batches(file, DEFAULT_LIMITS, batch_bytes, columns)


def decoded_bytes_of(file: BinaryIO, media_type: MediaType) -> int:
    """Estimate from its headers what the typed table of an open file takes in memory.

    Raises:
        UnreadableSourceError: as the reader of the format.
    """
    return _FORMATS[media_type].decoded_bytes(file)


def read_footer(file: BinaryIO, media_type: MediaType) -> Footer:
    """Return what an open file says of itself; Arrow has no such place, and is read in batches.

    Raises:
        UnreadableSourceError: as the reader of the format; kind `malformed_arrow` also for a
            stream that is called a file, and the reverse.
    """
    if media_type is MediaType.PARQUET:
        return parquet_footer(file)
    file.seek(0)
    if (file.read(len(FILE_MAGIC)) == FILE_MAGIC) is not (media_type is MediaType.ARROW_FILE):
        raise refused("content", "malformed_arrow", f"it is no {media_type}")
    batches = ArrowBatches(file)
    rows, with_nulls = 0, set()
    for table in batches:
        rows += table.num_rows
        with_nulls |= {name for name in table.column_names if table[name].null_count}
    without = frozenset(batches.schema.names) - with_nulls
    return Footer(batches.schema, rows, frozenset(with_nulls), without)


def media_type_of(name: str) -> MediaType:
    """Return what a file is, by the suffix of its name.

    Raises:
        InvalidArgumentError: for any other suffix than those of Parquet and Arrow IPC.
    """
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in _SUFFIXES:
        known = ", ".join(_SUFFIXES)
        raise InvalidArgumentError(f"the name of an artifact ends in one of {known}")
    return _SUFFIXES[suffix]
