"""Find providers by name, through entry points. Nothing of them is imported to list them.

Source: SPEC section 14.
"""

from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from inspect import isabstract

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
            `provider_ambiguous` for a name that several distributions give to different classes;
            `provider_incompatible` for one that is written for another major version.
    """
    values = _entry_points().get(name)
    if not values:
        raise InvalidArgumentError(
            f"there is no quality provider {name!r}; installed are {', '.join(provider_names())}. "
            f"A distribution declares one in the entry point group {ENTRY_POINTS}",
            code="provider_unknown",
            provider=name,
        )
    if len(values) > 1:
        raise InvalidArgumentError(
            f"several distributions declare a quality provider {name!r}: "
            f"{', '.join(sorted(values))}; uninstall all but one",
            code="provider_ambiguous",
            provider=name,
        )
    [(value, found)] = values.items()
    provider = _loaded(found)
    if provider is None:
        raise InvalidArgumentError(
            f"{value}, which is declared as quality provider {name!r}, cannot be imported or "
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


def _entry_points() -> Mapping[str, Mapping[str, metadata.EntryPoint]]:
    """Return what is declared, by name and by the class that it stands for."""
    declared: dict[str, dict[str, metadata.EntryPoint]] = {}
    for one in metadata.entry_points(group=ENTRY_POINTS):
        declared.setdefault(one.name, {})[one.value] = one
    return declared


def _loaded(found: metadata.EntryPoint) -> type[DataQualityPlugin] | None:
    with suppress(Exception):  # a module may raise anything while it is imported
        loaded = found.load()
        is_provider = isinstance(loaded, type) and issubclass(loaded, DataQualityPlugin)
        return None if not is_provider or isabstract(loaded) else loaded
    return None
