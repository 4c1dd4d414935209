"""Which quality provider evaluates, in which version, configured how: what an approval is bound to.

Source: SPEC section 14.
"""

from dataclasses import dataclass

from datasource_governance.domain.canonical import Json, Sha256

EVALUATOR_VERSION = "1"
"""Changes whenever the same payload and policy may get another verdict."""
NATIVE = "pandera"
"""The provider that is this package's own evaluator, and the one where none is chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderBinding:
    """A provider as a platform manifest configures it.

    `version` is the installed framework's, `configuration` the hash of the manifest's resolved
    section about data quality.
    """

    name: str
    version: str
    configuration: Sha256

    def document(self) -> dict[str, Json]:
        """Return the JSON form, as it is among the evidence."""
        return {"name": self.name, "version": self.version, "configuration": self.configuration}


def beside_native(version: str) -> dict[str, Json]:
    """Return an evaluator's version as a document says it: only where it is not the native one."""
    return {} if version == EVALUATOR_VERSION else {"evaluator_version": version}


def evaluator_version(provider: ProviderBinding | None) -> str:
    """Return what a stage is bound to: with another one its verdict might be another.

    Without a platform manifest it is the version of the native evaluator alone.
    """
    if provider is None:
        return EVALUATOR_VERSION
    return f"{EVALUATOR_VERSION}+{provider.name}@{provider.version}/{provider.configuration}"
