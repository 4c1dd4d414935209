"""Artifact stores that do not do what they are asked."""

from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.ports.artifacts import ArtifactBackend


class Broken:
    """A store that deletes nothing, and else is the one that it is given."""

    def __init__(self, backend: ArtifactBackend) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> object:
        return getattr(self._backend, name)

    def delete(self, _locator: str) -> bool:
        raise ServiceUnavailableError("the store refuses to delete")


class Elsewhere:
    """Another store, in which nothing is."""

    name = "elsewhere"

    def delete(self, _locator: str) -> bool:
        return False
