"""Parquet files in the typed form, at once or in batches.

Columns are decoded plainly, which is what Arrow does fastest, in steps of so many rows that none
can become large, however often a text is repeated; and everything is counted as it is decoded.

Source: SPEC sections 3, "Hostile files", and 18.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO

from typing_extensions import override

from datasource_governance.errors import UnreadableSourceError
from datasource_governance.sources.batches import DEFAULT_BATCH_BYTES
from datasource_governance.sources.file_batches import FileBatches
from datasource_governance.sources.limits import (
    DEFAULT_LIMITS,
    Limits,
    Source,
    check,
    check_file_bytes,
    plain_bytes,
    size_problems,
)
from datasource_governance.sources.parquet.plan import Plan, estimated_bytes, opened, planned
from datasource_governance.sources.refusal import refused
from datasource_governance.sources.stored import StoredFile, stored_file
from datasource_governance.sources.typed import to_typed

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


def read_parquet(source: Source | BinaryIO, limits: Limits = DEFAULT_LIMITS) -> "pa.Table":
    """Read a Parquet file, by path, open or as bytes; page checksums are verified where present.

    Raises:
        UnreadableSourceError: kinds `malformed_parquet`, `too_large`, `not_found`, `unreadable`,
            and those of `to_typed`. No value is quoted, nothing is chained.
    """
    with stored_file(source) as file:
        check_file_bytes(file.name, file.size, limits)
        return file.read(lambda: _read(file, limits), _malformed(file.name))


def _read(file: StoredFile, limits: Limits) -> "pa.Table":
    import pyarrow as pa

    plan = planned(file, limits, DEFAULT_BATCH_BYTES)
    with opened(file, buffer_bytes=0) as parquet:
        batches = _decoded(file.name, parquet, plan, limits)
        return to_typed(pa.Table.from_batches(batches, schema=plan.schema))


def decoded_parquet_bytes(source: Source | BinaryIO) -> int:
    """Estimate from headers alone what the typed table takes in memory.

    Raises:
        UnreadableSourceError: kinds `malformed_parquet`, `not_found`, `unreadable`.
    """
    with stored_file(source) as file:
        return file.read(lambda: estimated_bytes(file), _malformed(file.name))


class ParquetBatches(FileBatches):
    """A local Parquet file of any size; page checksums are verified where present.

    Raises:
        UnreadableSourceError: as `read_parquet`, when it is made or while it is iterated.
    """

    @override
    def _checked(self, file: StoredFile, limits: Limits) -> "pa.Schema":
        self._plan = planned(file, limits, self._batch_bytes)
        return self._plan.schema

    @override
    def _decoded(
        self, file: StoredFile, limits: Limits, fields: Sequence[str] | None
    ) -> Iterator["pa.RecordBatch"]:
        with opened(file) as parquet:
            yield from _decoded(file.name, parquet, self._plan, limits, fields)

    @override
    def _malformed(self, name: str) -> UnreadableSourceError:
        return _malformed(name)


def _decoded(
    name: str,
    parquet: "pq.ParquetFile",
    plan: Plan,
    limits: Limits,
    fields: Sequence[str] | None = None,
) -> Iterator["pa.RecordBatch"]:
    size = 0
    for group, rows in enumerate(plan.rows_at_once):
        for batch in parquet.iter_batches(rows, row_groups=[group], columns=fields):
            batch.validate(full=True)
            size += plain_bytes(batch)
            check(name, size_problems(size, limits))
            yield batch


def _malformed(name: str) -> UnreadableSourceError:
    return refused(name, "malformed_parquet", "not a Parquet file, or a damaged one")
