"""Platform manifests for tests: valid by default, so that a test says only what it is about."""

from datasource_governance.domain.manifest_document import parse_layer
from datasource_governance.domain.manifest_layers import parse_platform_manifest

SECTION = "plugins.data_quality"
CONFIG = f"{SECTION}.config"
GATES = f"{CONFIG}.quality_gates"


def manifest_document(config=None, *, name="acme", provider=None, **keys):
    """Return a platform manifest document with this configuration of data quality."""
    data_quality = {
        **({} if provider is None else {"provider": provider}),
        **({} if config is None else {"config": config}),
    }
    return {
        "apiVersion": "floe.dev/v1",
        "kind": "Manifest",
        "metadata": {"name": name, "version": "1.0.0"},
        "plugins": {"compute": "snowflake", "data_quality": data_quality},
        **keys,
    }


def platform_manifest(config=None, **keys):
    """Return the manifest of one document."""
    return parse_platform_manifest(manifest_document(config, **keys))


def layer(config=None, **keys):
    """Return the layer of one document."""
    return parse_layer(manifest_document(config, **keys))


def gates(**keys):
    """Return a configuration that has quality gates only."""
    return {"quality_gates": keys}


def waiver(**keys):
    """Return a waiver document: of `unique` for orders, unless told otherwise."""
    lifted = {} if "field" in keys else {"test": "unique"}
    return {
        "datasource": "orders",
        **lifted,
        "reason": "The key is checked upstream.",
        "approved_by": "steward@example.com",
        "expires": "2027-03-31",
        **keys,
    }
