"""Models and tests as dbt's `manifest.json` describes them, versions 10 to 12.

Only names are taken: of models, columns and tests. Whatever has not the form that it should have
counts as not there, so that it never makes a model better tested than it is.

Source: SPEC section 14; facts on the quality plugin, 8.5 and 10.2.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from datasource_governance.domain.coverage import Dataset, DatasetTest
from datasource_governance.domain.test_types import canonical_test_type
from datasource_governance.domain.tier import Tier
from datasource_governance.errors import InvalidPolicyError, Problem

VERSIONS: Final = range(10, 13)
_SCHEMA = re.compile(r"https://schemas\.getdbt\.com/dbt/manifest/v([0-9]{1,4})\.json")
_SINGULAR: Final = "singular"
"""The type of a test that is a query of its own: it is about a model, and about no field."""

_Node = Mapping[object, object]


def dbt_version(manifest: Mapping[str, object]) -> int | None:
    """Return the version of the schema that a manifest says it has; None if it is none of dbt's."""
    named = _object(manifest.get("metadata")).get("dbt_schema_version")
    found = _SCHEMA.fullmatch(named) if isinstance(named, str) else None
    return int(found[1]) if found else None


def dbt_datasets(manifest: Mapping[str, object]) -> tuple[Dataset, ...]:
    """Return the models of a manifest in its order, each with the tests that are attached to it.

    The tier of a model is `tier` of its `config.meta` or `meta`, or those of its tags that are
    tiers. A column whose `meta` says `technical: true` needs no test.

    Raises:
        InvalidPolicyError: the schema is of another version.
    """
    version = dbt_version(manifest)
    if version not in VERSIONS:
        message = f"expected version {VERSIONS[0]} to {VERSIONS[-1]} of dbt's schema, got {version}"
        problem = Problem(
            kind="unknown_version",
            pointer="/metadata/dbt_schema_version",
            names=("dbt_schema_version",),
            message=message,
        )
        raise InvalidPolicyError("dbt manifest", [problem])
    nodes = _object(manifest.get("nodes"))
    models = {
        _text(id_): _object(node) for id_, node in nodes.items() if _resource(node) == "model"
    }
    tests: dict[str, list[DatasetTest]] = {id_: [] for id_ in models}
    for node in nodes.values():
        if _resource(node) == "test":
            for id_ in _attached(_object(node)):
                tests.get(id_, []).append(_test(_object(node)))
    return tuple(_dataset(id_, node, tuple(tests[id_])) for id_, node in models.items())


def _dataset(id_: str, node: _Node, tests: tuple[DatasetTest, ...]) -> Dataset:
    columns = {
        _text(name): _object(column) for name, column in _object(node.get("columns")).items()
    }
    return Dataset(
        id=id_,
        tier=_tier(node),
        fields=tuple(columns),
        tests=tests,
        technical=frozenset(
            name
            for name, column in columns.items()
            if any(meta.get("technical") is True for meta in _metas(column))
        ),
    )


def _test(node: _Node) -> DatasetTest:
    metadata = _object(node.get("test_metadata"))
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not isinstance(name, str):
        return DatasetTest(type=_SINGULAR)
    full = f"{namespace}.{name}" if isinstance(namespace, str) and namespace else name
    return DatasetTest(type=canonical_test_type(full), fields=tuple(_columns(node, metadata)))


def _columns(node: _Node, metadata: _Node) -> Iterator[str]:
    arguments = _object(metadata.get("kwargs"))
    column = node.get("column_name") or arguments.get("column_name")
    together = arguments.get("combination_of_columns") or arguments.get("column_list")
    for name in (column, *(together if isinstance(together, list) else ())):
        if isinstance(name, str):
            yield _text(name)


def _attached(node: _Node) -> list[str]:
    """Return the models that a test is about.

    A singular test is about all that it reads. One that dbt attached to nothing reads a source, or
    is of a version that did not say so; then it is about the only model that it reads.
    """
    attached = node.get("attached_node")
    if isinstance(attached, str):
        return [_text(attached)]
    read = _object(node.get("depends_on")).get("nodes")
    models = [_text(one) for one in read if isinstance(one, str)] if isinstance(read, list) else []
    models = list(dict.fromkeys(one for one in models if one.startswith("model.")))
    return models if len(models) == 1 or not _object(node.get("test_metadata")) else []


def _tier(node: _Node) -> str | None:
    for meta in _metas(node):
        if meta.get("tier") is not None:
            return _text(meta["tier"])
    tags = node.get("tags")
    named = {one for one in tags if isinstance(one, str)} if isinstance(tags, list) else set()
    # Several are reported as the unknown tier that they are together.
    return "+".join(sorted(named & set(Tier))) or None


def _metas(node: _Node) -> tuple[_Node, _Node]:
    return _object(_object(node.get("config")).get("meta")), _object(node.get("meta"))


def _resource(node: object) -> object:
    return _object(node).get("resource_type")


def _text(value: object) -> str:
    """Return a name that can be printed: JSON can hold half a character, UTF-8 cannot."""
    return str(value).encode("utf-8", "replace").decode()


def _object(value: object) -> _Node:
    return value if isinstance(value, Mapping) else {}
