"""A backend under test, and a hand that changes objects behind its back."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import fsspec

from datasource_governance.domain.artifact import StoredArtifact

TENANT = "acme"
DATASOURCE = "orders"
CONTENT = b"rows and rows and rows" * 1000


@dataclass(frozen=True)
class Place:
    """A backend, and where it keeps its objects."""

    backend: object
    root: object

    def put(self, content=CONTENT, datasource=DATASOURCE):
        """Upload some bytes and return what is stored."""
        with self.backend.begin(datasource) as upload:
            upload.file.write(content)
            return upload.finish()

    def read(self, artifact, datasource=DATASOURCE):
        """Return the bytes that a reader gets."""
        with self.backend.open(datasource, artifact) as file:
            return file.read()

    def locators(self):
        return sorted(one.locator for one in self.backend.kept())

    def overwrite(self, artifact, content):
        """Put other bytes in the place of an object."""
        if isinstance(self.root, Path):
            path = self.root / TENANT / artifact.locator
            path.unlink()
            path.write_bytes(content)
            return
        protocol = self.backend.name
        base = f"{self.root}/kept" if protocol == "s3" else self.root
        filesystem = fsspec.filesystem(protocol, use_listings_cache=False)
        filesystem.pipe_file(f"{base}/{TENANT}/{artifact.locator}", content)


def stored(content, backend="local", datasource=DATASOURCE):
    """Return what a backend says of some bytes that it keeps."""
    sha256 = hashlib.sha256(content).hexdigest()
    return StoredArtifact(
        backend=backend, locator=f"{datasource}/{sha256}", sha256=sha256, byte_count=len(content)
    )
