"""What services need of artifacts, as Protocols.

Source: SPEC section 10.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol

from datasource_governance.domain.artifact import (
    Description,
    KeptObject,
    MediaType,
    StoredArtifact,
)
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.domain.quality_provider import ProviderBinding
from datasource_governance.domain.schema import TableSchema
from datasource_governance.domain.validation import RuleOutcome, Validation
from datasource_governance.errors import ServiceUnavailableError


class ArtifactUpload(Protocol):
    """An artifact on its way to a backend; if its block ends before, nothing of it is left."""

    @property
    def file(self) -> BinaryIO:
        """What to write to, once and in order; it hashes, has no descriptor and cannot seek."""
        ...

    @property
    def position(self) -> int:
        """How many bytes have been taken, those before an interruption included."""
        ...

    @property
    def failure(self) -> ServiceUnavailableError | None:
        """Why the file did not take everything, whatever error a writer made of it."""
        ...

    @property
    def checkpoint(self) -> str:
        """What to begin with again, should the process be killed."""
        ...

    def written(self) -> AbstractContextManager[BinaryIO]:
        """Open what was written so far, to look at it before it is finished."""
        ...

    def suspend(self) -> str:
        """Keep what was written so far beyond the block; return the checkpoint."""
        ...

    def finish(self) -> StoredArtifact:
        """Make the artifact durable under a locator, unless just this one is there already.

        Raises:
            GuardError: code `artifact_tampered`, when there are other bytes in its place.
            ServiceUnavailableError: when the store did not take it.
        """
        ...


class ArtifactBackend(Protocol):
    """Keeps artifacts of one tenant; see SPEC section 10. It makes the locators."""

    @property
    def name(self) -> str:
        """What references call this backend."""
        ...

    def begin(
        self, datasource: str, checkpoint: str | None = None
    ) -> AbstractContextManager[ArtifactUpload]:
        """Begin an upload, or go on with the one of a checkpoint.

        Raises:
            InvalidArgumentError: when it is no id of a datasource, or no checkpoint of this.
            NotFoundError: when there is no such upload any more.
            ServiceUnavailableError: when nothing can be written; code `busy` when somebody else
                goes on with it.
        """
        ...

    def open(self, datasource: str, artifact: StoredArtifact) -> AbstractContextManager[BinaryIO]:
        """Verify size and digest; then yield the very file that was verified.

        Raises:
            GuardError: codes `artifact_foreign` for what is no object of this backend and
                datasource, `artifact_missing`, and `artifact_tampered`, also when the block ends
                and the file is not what it was.
            ServiceUnavailableError: when the store cannot be read.
        """
        ...

    def version(self, datasource: str, artifact: StoredArtifact) -> str:
        """Return what changes when an object is replaced or written to; none of it is read.

        Raises:
            GuardError: codes `artifact_foreign` and `artifact_missing`, as `open`.
            ServiceUnavailableError: when the store cannot be read.
        """
        ...

    def delete(self, locator: str) -> bool:
        """Delete an object or an unfinished upload; return whether it was there.

        Nobody asks here if something refers to it.

        Raises:
            GuardError: code `artifact_foreign`.
            ServiceUnavailableError: when the store did not delete it.
        """
        ...

    def kept(self) -> Iterator[KeptObject]:
        """Yield everything of the tenant that a locator can name, unfinished uploads too.

        Raises:
            ServiceUnavailableError: when the store cannot be listed.
        """
        ...


class ArtifactEvaluator(Protocol):
    """Reads what is in an artifact that its backend has verified; nothing else looks into one.

    Every method may raise UnreadableSourceError for a file that is refused.
    """

    @property
    def provider(self) -> ProviderBinding | None:
        """Who evaluates rules about rows; None for natively, without a platform manifest."""
        ...

    def appraised(self, validation: Validation) -> Validation:
        """Return a validation with who evaluates and its score, as a platform manifest says."""
        ...

    def describe(self, artifact: BinaryIO, media_type: MediaType) -> Description:
        """Return schema and rows by the file's own account, without reading rows of Parquet."""
        ...

    def judge(self, policy: QualityPolicy, description: Description) -> Mapping[str, RuleOutcome]:
        """Return the outcomes, by rule id, that are certain without looking at the rows."""
        ...

    def validate(
        self,
        policy: QualityPolicy,
        artifact: BinaryIO,
        media_type: MediaType,
        previous: TableSchema | None,
    ) -> Validation:
        """Return the validation of all rows, read as a stream; what is hashed is as for frames."""
        ...
