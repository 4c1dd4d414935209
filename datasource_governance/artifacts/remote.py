"""Artifacts at an address of fsspec: S3, Google Cloud Storage, Azure, or what else it reaches.

A digest names an object, and is known when its last byte is; so an upload is written to a file of
this machine first, and handed over as a whole. What is read is copied to a file without a name
while it is verified, and read from there.

Source: SPEC section 10; facts 4.10 and T-14.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from datasource_governance.artifacts.checking import check_bytes
from datasource_governance.artifacts.directories import unbuffered
from datasource_governance.artifacts.files import TenantFiles
from datasource_governance.artifacts.locators import (
    check_reference,
    checked_name,
    is_name,
    is_object_name,
    names_of,
)
from datasource_governance.artifacts.shielding import NOT_DELETED, NOT_LISTED, UNREADABLE, shielded
from datasource_governance.artifacts.upload import Partial, Upload
from datasource_governance.domain.artifact import (
    BACKEND,
    KeptObject,
    StoredArtifact,
    missing,
    tampered,
)
from datasource_governance.errors import InvalidArgumentError


class RemoteArtifacts:
    """See ports.artifacts.ArtifactBackend.

    Args:
        address: Where artifacts are kept, such as `s3://bucket/prefix`.
        tenant: Whose artifacts.
        spool: A directory of this machine with room for uploads, and copies that are read.

    Raises:
        InvalidArgumentError: the address has not just one protocol.
    """

    def __init__(self, address: str, tenant: str, spool: Path) -> None:
        self.name = _protocol(address)
        self._address = address
        self._tenant = checked_name("tenant", tenant)
        self._spool = spool
        self._uploads = TenantFiles(spool, tenant)

    def begin(
        self, datasource: str, checkpoint: str | None = None
    ) -> AbstractContextManager[Upload]:
        """See ports.artifacts.ArtifactBackend."""
        return self._uploads.upload(datasource, checkpoint, self.name, self._keep)

    @contextmanager
    def open(self, datasource: str, artifact: StoredArtifact) -> Iterator[BinaryIO]:
        """See ports.artifacts.ArtifactBackend."""
        check_reference(self.name, datasource, artifact)
        with shielded(lambda: self._copy(artifact), UNREADABLE) as file:
            yield file

    def version(self, datasource: str, artifact: StoredArtifact) -> str:
        """See ports.artifacts.ArtifactBackend."""
        check_reference(self.name, datasource, artifact)
        return shielded(lambda: self._version(artifact), UNREADABLE)

    def delete(self, locator: str) -> bool:
        """See ports.artifacts.ArtifactBackend."""
        names = names_of(locator)
        return shielded(lambda: self._uploads.delete(*names) or self._deleted(locator), NOT_DELETED)

    def kept(self) -> Iterator[KeptObject]:
        """See ports.artifacts.ArtifactBackend."""
        return chain(
            shielded(self._uploads.kept, NOT_LISTED),
            shielded(lambda: list(self._kept()), NOT_LISTED),
        )

    @cached_property
    def _store(self) -> tuple[Any, str]:
        """The file system, and the path of the tenant in it; no listing is remembered."""
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]  # it has no types

        filesystem, path = url_to_fs(self._address, use_listings_cache=False)
        return filesystem, f"{path.rstrip('/')}/{self._tenant}"

    def _copy(self, artifact: StoredArtifact) -> BinaryIO:
        filesystem, base = self._store
        self._spool.mkdir(parents=True, exist_ok=True)
        with (
            contextlib.suppress(FileNotFoundError),
            tempfile.TemporaryFile(dir=self._spool) as copy,
        ):
            with filesystem.open(f"{base}/{artifact.locator}", "rb") as file:
                check_bytes(file, artifact, copy)
            copy.seek(0)
            return unbuffered(os.dup(copy.fileno()))
        raise missing(artifact.locator)

    def _version(self, artifact: StoredArtifact) -> str:
        filesystem, base = self._store
        with contextlib.suppress(FileNotFoundError):
            return str(filesystem.ukey(f"{base}/{artifact.locator}"))
        raise missing(artifact.locator)

    def _keep(self, partial: Partial, artifact: StoredArtifact) -> None:
        filesystem, base = self._store
        local, path = self._uploads.path_of(partial), f"{base}/{artifact.locator}"
        with contextlib.suppress(FileExistsError):
            filesystem.put_file(os.fspath(local), path, mode="create")
            if filesystem.info(path)["size"] == artifact.byte_count:
                return
            filesystem.rm_file(path)
            raise tampered(artifact.locator, "the store took another number of bytes")
        with self.open(partial.datasource, artifact):
            pass

    def _deleted(self, locator: str) -> bool:
        filesystem, base = self._store
        try:
            filesystem.info(f"{base}/{locator}")
            filesystem.rm_file(f"{base}/{locator}")
        except FileNotFoundError:
            # A bucket that is not there has lost nothing.
            filesystem.info(_bucket(base))
            return False
        return True

    def _kept(self) -> Iterator[KeptObject]:
        filesystem, base = self._store
        for path, facts in filesystem.find(base, detail=True).items():
            datasource, name = path.split("/")[-2:]
            if is_name(datasource) and is_object_name(name):
                yield KeptObject(
                    locator=f"{datasource}/{name}",
                    byte_count=int(facts["size"]),
                    changed_at=_aware(filesystem.modified(path)),
                )


def _protocol(address: str) -> str:
    protocol, separator, _ = address.partition("://")
    if not separator or "::" in address or not BACKEND.fullmatch(protocol):
        raise InvalidArgumentError(
            "artifacts are kept in a directory, or at an address of one protocol and no chain of "
            "them, such as s3://bucket/prefix"
        )
    return protocol


def _bucket(path: str) -> str:
    """Return where a path begins, which has to be there before anything is kept."""
    first, *_ = path.lstrip("/").split("/")
    return path[: path.index(first) + len(first)]


def _aware(instant: datetime) -> datetime:
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
