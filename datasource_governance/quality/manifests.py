"""Read platform manifests from files: JSON or YAML, with the manifests that they extend.

Source: SPEC section 14; facts on the quality plugin, 5; ADR-0044, "Platform Configuration".
"""

from dataclasses import replace
from pathlib import Path

from datasource_governance.domain.manifest_document import Layer, parse_layer
from datasource_governance.domain.manifest_layers import resolve_layers
from datasource_governance.domain.platform_manifest import PlatformManifest
from datasource_governance.domain.strict_json import MAXIMUM_DOCUMENT_BYTES, read_json
from datasource_governance.errors import InvalidPolicyError, Problem
from datasource_governance.yaml_documents import json_from_yaml

MAXIMUM_LAYERS = 10
_YAML = frozenset({".yaml", ".yml"})
_WHAT = "platform manifest"


def read_platform_manifest(path: Path) -> PlatformManifest:
    """Read a manifest with all that it extends, each named relative to the file that extends it.

    Files that end in `.yaml` or `.yml` are YAML, all others JSON.

    Raises:
        InvalidPolicyError: with every problem at once: those of each file, with its name in front,
            a file that cannot be read or extends itself, or else those of `resolve_layers`.
    """
    layers: list[Layer] = []
    problems: list[Problem] = []
    read: list[Path] = []
    following: Path | None = path
    while following is not None:
        here, following = following, None
        try:
            content = _content(here, read)
            following = _extended(here, content)
            layers.append(parse_layer(content))
        except InvalidPolicyError as error:
            problems.extend(
                replace(one, message=f"{here.name}: {one.message}") for one in error.problems
            )
    if problems:
        raise InvalidPolicyError(_WHAT, problems)
    return resolve_layers(layers[::-1])


def _content(path: Path, read: list[Path]) -> str | bytes:
    """Return a manifest as JSON text; `read` are the files so far, to which it is added."""
    if path.resolve() in read:
        chain = " → ".join(one.name for one in (*read, path))
        raise _refused("cycle", f"it extends itself: {chain}")
    if len(read) == MAXIMUM_LAYERS:
        raise _refused("too_many_layers", f"there are more than {MAXIMUM_LAYERS} layers")
    read.append(path.resolve())
    try:
        with path.open("rb") as file:
            content = file.read(MAXIMUM_DOCUMENT_BYTES + 1)
    except OSError:
        content = None
    if content is None:
        raise _refused("unreadable", "it cannot be read")
    return json_from_yaml(content, what=_WHAT) if path.suffix.lower() in _YAML else content


def _extended(path: Path, content: str | bytes) -> Path | None:
    """Return the file that a manifest extends, whatever else may be wrong with it."""
    document, _ = read_json(content, what=_WHAT)
    named = document.get("extends") if isinstance(document, dict) else None
    return path.parent / named if isinstance(named, str) else None


def _refused(kind: str, message: str) -> InvalidPolicyError:
    return InvalidPolicyError(_WHAT, [Problem(kind=kind, message=message)])
