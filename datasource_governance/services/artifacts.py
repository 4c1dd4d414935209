"""Take artifacts in, and open them as what their references say that they are.

Nothing here writes to the database: a reference is worth something once a publication keeps it.

Source: SPEC section 10; facts 2.8 and I-069.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import BinaryIO

from datasource_governance.domain.artifact import (
    ArtifactReference,
    Description,
    KeptObject,
    MediaType,
    datasource_fingerprint,
    foreign,
    orphans,
    tampered,
)
from datasource_governance.domain.schema import TableSchema
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.ports import UnitOfWork
from datasource_governance.ports.artifacts import (
    ArtifactBackend,
    ArtifactEvaluator,
    ArtifactUpload,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactRequest:
    """What is to be taken in, and for whom.

    `schema` is what the producer knows of nulls that a footer does not tell, such as NaN; without
    it the file's own account holds. `checkpoint` is of an upload that was interrupted.
    `resume_checkpoint` is a text of the producer's own, for the reference.
    """

    tenant: str
    datasource: str
    media_type: MediaType
    schema: TableSchema | None = None
    checkpoint: str | None = None
    resume_checkpoint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedArtifact:
    """An open file that is what its reference says, and what it says of itself."""

    file: BinaryIO
    description: Description


def store_artifact(
    backend: ArtifactBackend,
    evaluator: ArtifactEvaluator,
    request: ArtifactRequest,
    write: Callable[[BinaryIO], object],
) -> ArtifactReference:
    """Let `write` write an artifact, keep it, and return the reference to it.

    It is written once, hashed on the way, and kept if it can be read. Where `write` fails, nothing
    of it is left. After an interruption it goes on where `tell` says that the file ends.

    Raises:
        InvalidArgumentError: the schema of the request is not the file's.
        UnreadableSourceError: what was written is no file of the media type, or is refused.
        GuardError: code `artifact_tampered`, when there are other bytes in its place.
        ServiceUnavailableError: the store did not take it.
        Exception: whatever `write` raises for reasons of its own.
    """
    with backend.begin(request.datasource, request.checkpoint) as upload:
        _write(upload, write)
        with upload.written() as written:
            description = evaluator.describe(written, request.media_type)
        schema = request.schema or description.schema
        _check_schema(schema, description)
        stored = upload.finish()
    return ArtifactReference(
        backend=stored.backend,
        locator=stored.locator,
        sha256=stored.sha256,
        byte_count=stored.byte_count,
        schema=schema,
        datasource_fingerprint=datasource_fingerprint(request.tenant, request.datasource, schema),
        row_count=description.row_count,
        media_type=request.media_type,
        resume_checkpoint=request.resume_checkpoint,
    )


@contextmanager
def verified_artifact(
    backend: ArtifactBackend,
    evaluator: ArtifactEvaluator,
    reference: ArtifactReference,
    *,
    tenant: str,
    datasource: str,
) -> Iterator[VerifiedArtifact]:
    """Open an artifact once everything that its reference says of it holds.

    Before any row of the catalogue is written, and again whenever it is read; what the block
    computes counts only if the block ends without an error.

    Raises:
        GuardError: codes `artifact_foreign`, `artifact_missing`, `artifact_tampered`.
        UnreadableSourceError: it is no file of its media type, or is refused.
        ServiceUnavailableError: the store cannot be read.
    """
    _check_whose(reference, tenant, datasource)
    with backend.open(datasource, reference) as file:
        description = evaluator.describe(file, reference.media_type)
        if (otherwise := description.contradicts(reference)) is not None:
            raise tampered(reference.locator, otherwise)
        yield VerifiedArtifact(file=file, description=description)


def artifact_version(
    backend: ArtifactBackend, reference: ArtifactReference, *, tenant: str, datasource: str
) -> str:
    """Return what changes when an artifact is replaced, without reading any of it.

    Taken before an artifact is verified and again later, it tells that nothing happened since.

    Raises:
        GuardError: codes `artifact_foreign` and `artifact_missing`.
        ServiceUnavailableError: the store cannot be read.
    """
    _check_whose(reference, tenant, datasource)
    return backend.version(datasource, reference)


def _check_whose(reference: ArtifactReference, tenant: str, datasource: str) -> None:
    if not reference.is_of(tenant, datasource):
        raise foreign("it was made for another datasource or schema")


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphans:
    """What nothing referred to at an instant of the database's clock, oldest first."""

    objects: tuple[KeptObject, ...]
    at: datetime


def orphaned_artifacts(
    work: UnitOfWork, backend: ArtifactBackend, unchanged_for: timedelta
) -> Orphans:
    """Return what the backend keeps of the tenant and no record refers to.

    Only what nobody has written to for so long: an artifact is there before its publication is. A
    locator that a record names under another backend is no orphan either. Nothing is deleted.

    Raises:
        ServiceUnavailableError: the database or the store cannot be used.
    """
    # Listed before the records are read, so that what is published meanwhile is no orphan.
    kept = list(backend.kept())
    with work:
        referenced, now = work.materializations.artifacts(), work.now()
    return Orphans(objects=orphans(kept, referenced, before=now - unchanged_for), at=now)


def _write(upload: ArtifactUpload, write: Callable[[BinaryIO], object]) -> None:
    try:
        write(upload.file)
    except Exception:
        if upload.failure is None:
            raise
    if upload.failure is not None:
        raise upload.failure


def _check_schema(schema: TableSchema, description: Description) -> None:
    if (otherwise := description.contradicts_schema(schema)) is not None:
        raise InvalidArgumentError(f"the schema given is not what was written: {otherwise}")
