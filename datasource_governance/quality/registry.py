"""Find providers by name, through entry points. Nothing of them is imported to list them.

Source: SPEC section 14.
"""

from collections.abc import Mapping
from importlib import metadata

from datasource_governance.errors import InvalidArgumentError
from datasource_governance.quality.plugin import (
    API_VERSION,
    DataQualityPlugin,
    PluginConfiguration,
)

ENTRY_POINTS = "datasource_governance.data_quality"


def provider_names() -> list[str]:
    """Return the names of all providers that some distribution declares, ordered."""
    return sorted(_entry_points())


def load_provider(name: str) -> type[DataQualityPlugin]:
    """Return a provider's class.

    Raises:
        InvalidArgumentError: code `provider_unknown`, naming those that are installed, for an
            unknown name, and for one whose class cannot be imported or is no provider;
            `provider_incompatible` for one that is written for another major version.
    """
    found = _entry_points().get(name)
    if found is None:
        raise InvalidArgumentError(
            f"there is no quality provider {name!r}; installed are {', '.join(provider_names())}. "
            f"A distribution declares one in the entry point group {ENTRY_POINTS}",
            code="provider_unknown",
            provider=name,
        )
    provider = _loaded(found)
    if provider is None:
        raise InvalidArgumentError(
            f"{found.value}, which is declared as quality provider {name!r}, cannot be imported or "
            "is no DataQualityPlugin",
            code="provider_unknown",
            provider=name,
        )
    if provider.api_version.partition(".")[0] != API_VERSION.partition(".")[0]:
        raise InvalidArgumentError(
            f"quality provider {name!r} is written for version {provider.api_version} of the "
            f"interface, and this is {API_VERSION}; install a matching release",
            code="provider_incompatible",
            provider=name,
        )
    return provider


def provider(name: str, configuration: PluginConfiguration | None = None) -> DataQualityPlugin:
    """Return a configured provider.

    Raises:
        InvalidArgumentError: as `load_provider`.
    """
    return load_provider(name)(configuration)


def _entry_points() -> Mapping[str, metadata.EntryPoint]:
    return {one.name: one for one in metadata.entry_points(group=ENTRY_POINTS)}


def _loaded(found: metadata.EntryPoint) -> type[DataQualityPlugin] | None:
    try:
        loaded = found.load()
    except (ImportError, AttributeError):
        return None
    is_provider = isinstance(loaded, type) and issubclass(loaded, DataQualityPlugin)
    return loaded if is_provider else None
