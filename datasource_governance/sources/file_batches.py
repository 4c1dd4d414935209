"""What files that are read in batches have in common, whatever their format.

Source: SPEC sections 3 and 18, "streaming, out of core".
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from datasource_governance.errors import UnreadableSourceError
from datasource_governance.sources.batches import DEFAULT_BATCH_BYTES
from datasource_governance.sources.limits import DEFAULT_LIMITS, Limits, plain_bytes
from datasource_governance.sources.stored import StoredFile, stored_file
from datasource_governance.sources.typed import to_typed

if TYPE_CHECKING:
    import pyarrow as pa

Result = TypeVar("Result")


class FileBatches(ABC):
    """The rows of a local file in the typed form; see `batches.Batches`.

    The file may be larger than the memory: limits on bytes are those of `Limits.streaming`. It is
    opened for every pass unless it is open, and must be the same file all the time. A mark is kept
    if the whole column bears it out, for which a marked column is read once more at first.

    Of some `columns` only these are decoded, in their order; all of them must be there.
    """

    schema: "pa.Schema"
    """The fields of the typed form, with their marks; every batch has exactly these."""
    rows_numbered = True
    """The order of rows is that of the file."""

    def __init__(
        self,
        source: str | os.PathLike[str] | BinaryIO,
        limits: Limits = DEFAULT_LIMITS,
        batch_bytes: int = DEFAULT_BATCH_BYTES,
        columns: Sequence[str] | None = None,
    ) -> None:
        self._source = source
        self._batch_bytes = batch_bytes
        self._columns = columns
        with stored_file(source) as file:
            self._stamp = file.stamp
            self._limits = limits = limits.streaming(file.size)
            stored = file.read(lambda: self._checked(file, limits), self._malformed(file.name))
        self._declare(stored)
        self._file_schema = stored
        if columns is not None:
            stored = _selection(stored, columns)
            self._declare(stored)
        marked = [field.name for field in self.schema if field.metadata]
        broken = self._pass(self._broken_marks, marked) if marked else ()
        self._declare(_without_marks(stored, frozenset().union(*broken)))

    def __iter__(self) -> Iterator["pa.Table"]:
        """Yield the rows anew, in tables of about `batch_bytes`."""
        return self._pass(self._typed, self._columns)

    def _declare(self, stored: "pa.Schema") -> None:
        self._stored_schema = stored
        self.schema = to_typed(stored.empty_table()).schema

    def _pass(
        self,
        take: Callable[[Iterator["pa.RecordBatch"]], Iterator[Result]],
        fields: Sequence[str] | None = None,
    ) -> Iterator[Result]:
        """Yield what `take` makes of the decoded rows, for as long as the file is the same."""
        with stored_file(self._source) as file:
            taken = take(self._decoded(file, self._limits, fields))
            otherwise = self._malformed(file.name)
            while (one := file.read(lambda: next(taken, None), otherwise, self._stamp)) is not None:
                yield one

    def _typed(self, decoded: Iterator["pa.RecordBatch"]) -> Iterator["pa.Table"]:
        import pyarrow as pa

        if self._columns is not None:
            columns = self._columns
            decoded = (batch.select(columns) for batch in decoded)
        for batches in _gathered(decoded, self._batch_bytes):
            yield to_typed(pa.Table.from_batches(batches, schema=self._stored_schema))

    def _broken_marks(self, decoded: Iterator["pa.RecordBatch"]) -> Iterator[frozenset[str]]:
        """Yield, step by step, the fields whose cells do not bear their mark out."""
        import pyarrow as pa

        for batch in decoded:
            typed = to_typed(pa.Table.from_batches([batch]))
            yield frozenset(field.name for field in typed.schema if not field.metadata)

    @abstractmethod
    def _checked(self, file: StoredFile, limits: Limits) -> "pa.Schema":
        """Check all that headers tell; return the fields as they are stored."""

    @abstractmethod
    def _decoded(
        self, file: StoredFile, limits: Limits, fields: Sequence[str] | None
    ) -> Iterator["pa.RecordBatch"]:
        """Yield valid rows as they are stored, at least of these fields; no more than `limits`."""

    @abstractmethod
    def _malformed(self, name: str) -> UnreadableSourceError:
        """Return the refusal of a damaged file."""


def _selection(schema: "pa.Schema", columns: Sequence[str]) -> "pa.Schema":
    import pyarrow as pa

    return pa.schema([schema.field(name) for name in columns])


def _without_marks(schema: "pa.Schema", names: AbstractSet[str]) -> "pa.Schema":
    import pyarrow as pa

    fields = [field.remove_metadata() if field.name in names else field for field in schema]
    return pa.schema(fields)


def _gathered(
    decoded: Iterable["pa.RecordBatch"], batch_bytes: int
) -> Iterator[list["pa.RecordBatch"]]:
    """Yield lists of batches that together take `batch_bytes`, and less than twice as much."""
    gathered, size = [], 0
    for batch in decoded:
        for piece, piece_bytes in _pieces(batch, batch_bytes):
            gathered.append(piece)
            size += piece_bytes
            if size >= batch_bytes:
                yield gathered
                gathered, size = [], 0
    if gathered:
        yield gathered


def _pieces(batch: "pa.RecordBatch", most: int) -> Iterator[tuple["pa.RecordBatch", int]]:
    """Halve a batch until no part takes more than `most` bytes, or it has a single row."""
    size, rows = plain_bytes(batch), batch.num_rows
    if size <= most or rows <= 1:
        yield batch, size
        return
    for half in (batch.slice(0, rows // 2), batch.slice(rows // 2)):
        yield from _pieces(half, most)
