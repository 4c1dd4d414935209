"""Publish data of any class: inline while it is small, else as an artifact that is written first.

An artifact is written in row groups of one size, so that the same rows make the same object however
they come.

Source: SPEC section 10 (the limits of inline payloads).
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from datasource_governance.domain.actor import ActorId
from datasource_governance.domain.artifact import ArtifactReference, MediaType
from datasource_governance.domain.attestation import Attestation
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.schema import TableSchema
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.ports import Evaluator, UnitOfWork
from datasource_governance.ports.artifacts import ArtifactBackend, ArtifactEvaluator
from datasource_governance.services.artifacts import ArtifactRequest, store_artifact
from datasource_governance.services.publishing import (
    PublicationRequest,
    Published,
    check_publishable,
    publish,
    publish_artifact,
)

if TYPE_CHECKING:
    import pyarrow as pa

_ROW_GROUP = 1 << 17
_COPIED_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlet:
    """Where outputs of one tenant go: its records, and the backend that has its artifacts.

    `sign` is asked for an attestation of each output, of which it is told the checksum; where it
    signs as `signer`, that actor's grant is looked at before anything is kept. `on_bytes` is told
    how much of a file was copied to the backend so far.
    """

    tenant: str
    work: Callable[[], UnitOfWork]
    evaluator: Evaluator
    artifacts: ArtifactBackend
    artifact_evaluator: ArtifactEvaluator
    sign: Callable[[PublicationRequest, Sha256], Attestation] | None = None
    signer: ActorId | None = None
    on_bytes: Callable[[int], object] = lambda _: None

    def publish(self, data: object, request: PublicationRequest) -> Published:
        """Publish a frame, a LazyFrame, a file by its path, or an artifact that is kept already.

        Raises:
            InvalidArgumentError: data of another class, or a file of another kind.
            UnreadableSourceError: it cannot be read, or has no typed form.
            GovernanceError: as `services.publishing.publish` and `publish_artifact`.
        """
        if isinstance(data, ArtifactReference):
            return self._publish_artifact(data, request)
        if isinstance(data, (str, os.PathLike)):
            return self._publish_file(Path(data), request)
        return self._publish_batches(_batches_of(data), request)

    def store(
        self,
        datasource: str,
        write: Callable[[BinaryIO], object],
        media_type: MediaType = MediaType.PARQUET,
        schema: TableSchema | None = None,
    ) -> ArtifactReference:
        """Let `write` write an artifact for a datasource; return the reference to publish.

        Raises:
            GovernanceError: as `services.artifacts.store_artifact`.
        """
        request = ArtifactRequest(
            tenant=self.tenant, datasource=datasource, media_type=media_type, schema=schema
        )
        return store_artifact(self.artifacts, self.artifact_evaluator, request, write)

    def _publish_artifact(
        self, reference: ArtifactReference, request: PublicationRequest
    ) -> Published:
        backend, evaluator = self.artifacts, self.artifact_evaluator
        signed = self._signed(request, lambda: reference.sha256)
        return publish_artifact(self.work(), backend, evaluator, reference, signed)

    def _publish_file(self, path: Path, request: PublicationRequest) -> Published:
        from datasource_governance.sources.batches import DEFAULT_MEMORY_BYTES
        from datasource_governance.sources.files import read_file
        from datasource_governance.sources.open_files import media_type_of
        from datasource_governance.sources.scan import decoded_bytes

        media_type = media_type_of(path.name)
        if decoded_bytes(path) <= DEFAULT_MEMORY_BYTES:
            published = self._publish_inline(read_file(path), request)
            if published is not None:
                return published
        self._check_publishable(request)
        copy = partial(_copy, path, self.on_bytes)
        reference = self.store(request.datasource, copy, media_type)
        return self._publish_artifact(reference, request)

    def _publish_batches(
        self, batches: Iterable["pa.Table"], request: PublicationRequest
    ) -> Published:
        from datasource_governance.evaluation.payload import MAXIMUM_INLINE_ROWS
        from datasource_governance.sources.refusal import refused, shielded

        coming = iter(batches)
        head = _first_rows(coming, MAXIMUM_INLINE_ROWS)
        if head.num_rows <= MAXIMUM_INLINE_ROWS:
            published = self._publish_inline(head, request)
            if published is not None:
                return published
        self._check_publishable(request)
        rows = chain([head], coming)
        message = "it has a type or values that Parquet cannot hold"
        otherwise = refused("the data", "unsupported_value", message)
        reference = self.store(
            request.datasource, lambda file: shielded(lambda: _write_parquet(rows, file), otherwise)
        )
        return self._publish_artifact(reference, request)

    def _publish_inline(self, table: "pa.Table", request: PublicationRequest) -> Published | None:
        """Publish a table that may be kept inline; return None if it is too large."""
        from datasource_governance.evaluation.payload import MAXIMUM_INLINE_ROWS, TypedPayload

        if table.num_rows > MAXIMUM_INLINE_ROWS:
            return None
        payload = TypedPayload(table)
        signed = self._signed(request, lambda: self.evaluator.fingerprint(payload))
        try:
            return publish(self.work(), self.evaluator, payload, signed)
        except InvalidArgumentError as error:
            if error.code != "payload_too_large":
                raise
        return None

    def _check_publishable(self, request: PublicationRequest) -> None:
        """Refuse, before anything is kept, what is known to be in vain."""
        if self.sign is None or self.signer is not None:
            check_publishable(self.work(), request, self.signer)

    def _signed(
        self, request: PublicationRequest, checksum: Callable[[], Sha256]
    ) -> PublicationRequest:
        if self.sign is None:
            return request
        return replace(request, attestation=self.sign(request, checksum()))


def _batches_of(data: object) -> Iterable["pa.Table"]:
    """Return data in the typed form, in at least one batch; a LazyFrame is read as it comes."""
    from datasource_governance.sources.frames import from_data
    from datasource_governance.sources.lazy import lazy_batches

    batches = lazy_batches(data)
    if batches is None:
        return [from_data(data)]
    return chain([batches.schema.empty_table()], batches)


def _first_rows(batches: Iterator["pa.Table"], limit: int) -> "pa.Table":
    """Return the rows up to the batch with which they are more than a limit, or all of them."""
    import pyarrow as pa

    taken = [next(batches)]
    while sum(batch.num_rows for batch in taken) <= limit:
        batch = next(batches, None)
        if batch is None:
            break
        taken.append(batch)
    return pa.concat_tables(taken)


def _write_parquet(batches: Iterable["pa.Table"], file: BinaryIO) -> None:
    import pyarrow.parquet as pq

    groups = _row_groups(iter(batches))
    first = next(groups)
    with pq.ParquetWriter(file, first.schema, compression="zstd") as writer:
        for group in chain([first], groups):
            writer.write_table(group, row_group_size=_ROW_GROUP)


def _row_groups(batches: Iterator["pa.Table"]) -> Iterator["pa.Table"]:
    """Yield the same rows in contiguous tables of one length, but for the last."""
    import pyarrow as pa

    rest = next(batches)
    for batch in batches:
        rest = pa.concat_tables([rest, batch])
        while rest.num_rows > _ROW_GROUP:
            yield rest.slice(0, _ROW_GROUP).combine_chunks()
            rest = rest.slice(_ROW_GROUP)
    for start in range(0, max(rest.num_rows, 1), _ROW_GROUP):
        yield rest.slice(start, _ROW_GROUP).combine_chunks()


def _copy(path: Path, on_bytes: Callable[[int], object], file: BinaryIO) -> None:
    with path.open("rb") as source:
        while block := source.read(_COPIED_BYTES):
            file.write(block)
            on_bytes(source.tell())
