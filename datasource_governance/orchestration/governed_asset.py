"""An author's own asset, whose output passes the gate before anything of it exists.

`governed_asset` is `dg.asset` with a datasource: every keyword of the one is one of the other. The
function returns its output; publishing it is not its business.

Source: SPEC sections 9 and 15 ("publication", "Authoring").
"""

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypedDict, Unpack, get_type_hints

import dagster as dg

from datasource_governance.domain.datasource import Datasource
from datasource_governance.orchestration.assets import GOVERNANCE, IO_MANAGER
from datasource_governance.orchestration.authoring import Authored, Governing, Place, resolve
from datasource_governance.orchestration.checks import policy_check_specs
from datasource_governance.orchestration.idempotency import KeyOf
from datasource_governance.orchestration.metadata import DATASOURCE
from datasource_governance.orchestration.publication import Event, published_events
from datasource_governance.orchestration.publication_metadata import author_metadata

Compute = Callable[..., object]
DECLARATION = "datasource"
"""The parameter by which a function that serves many datasources is told which."""


class AssetKeywords(TypedDict, total=False):
    """Every keyword of `dg.asset`, with its meaning there.

    Left out, `group_name`, `owners`, `kinds`, `tags` and `description` are the datasource's.
    """

    name: str | None
    key_prefix: str | Sequence[str] | None
    ins: Mapping[str, dg.AssetIn] | None
    deps: Iterable[Any] | None
    metadata: Mapping[str, Any] | None
    tags: Mapping[str, str] | None
    description: str | None
    config_schema: Any
    required_resource_keys: AbstractSet[str] | None
    resource_defs: Mapping[str, object] | None
    hooks: AbstractSet[dg.HookDefinition] | None
    io_manager_def: object | None
    io_manager_key: str | None
    dagster_type: dg.DagsterType | None
    partitions_def: dg.PartitionsDefinition[Any] | None
    op_tags: Mapping[str, Any] | None
    group_name: str | None
    output_required: bool
    automation_condition: dg.AutomationCondition[Any] | None
    freshness_policy: dg.FreshnessPolicy | None
    backfill_policy: dg.BackfillPolicy | None
    retry_policy: dg.RetryPolicy | None
    code_version: str | None
    key: Any
    check_specs: Sequence[dg.AssetCheckSpec] | None
    owners: Sequence[str] | None
    kinds: AbstractSet[str] | None
    pool: str | None
    is_virtual: bool


def governed_asset(
    *,
    datasource: Datasource | str,
    producer: str | None = None,
    policy: str | Path | None = None,
    idempotency_key: str | KeyOf | None = None,
    **asset: Unpack[AssetKeywords],
) -> Callable[[Compute], dg.AssetsDefinition]:
    """Make an asset of a function whose output is published to a datasource.

    The function returns a pandas or Polars frame, an Arrow table, a LazyFrame, the `Path` of a
    Parquet or Arrow IPC file, a callable that writes one of them to the binary file it is given, or
    a `GovernedOutput` around one of these. Its parameters are those of any asset.

    Rejected: failed checks and a failed step, nothing is materialized and nothing is stored. Review
    required: the checks and an observation, nothing is materialized. Published: a materialization
    whose data version is the governed one's id. A retry of the step and a re-execution of the run
    publish under the same key, so they converge.

    Args:
        datasource: A declaration of kind `published`, or the id of one in GOVERNANCE_DATASOURCES.
        producer: Whose keys these are, 1 to 255 characters; the asset's key unless given.
        policy: A JSON file beside the function's with the quality policy to validate by, where the
            datasource allows that; else the datasource's policy in force.
        idempotency_key: A text in which `{run}`, `{asset}` and `{partition}` are filled in, or a
            callable that returns the key for the step's context; `{run}/{asset}`, and for
            partitions `{run}/{asset}/{partition}`, unless given. `{run}` is the run that was
            launched first.
        asset: Every keyword of `dg.asset`.

    Raises:
        InvalidPolicyError: when the function is decorated, with every problem of the asset, the
            declaration and the policy file.

    Source: SPEC sections 9 and 15.
    """
    governing = Governing(
        datasource=datasource, producer=producer, policy=policy, idempotency_key=idempotency_key
    )
    return lambda function: _assets_definition(function, governing, asset, given=())


def build_governed_asset(
    function: Compute,
    datasource: Datasource | str,
    *,
    producer: str | None = None,
    policy: str | Path | None = None,
    idempotency_key: str | KeyOf | None = None,
    **asset: Unpack[AssetKeywords],
) -> dg.AssetsDefinition:
    """Return the governed asset of one datasource from a function that serves many.

    As `governed_asset`, but the asset is named after the datasource unless told otherwise, and a
    parameter `datasource` of the function gets the declaration. One function for a directory:
    `[build_governed_asset(extract, one) for one in read_declarations(directory)]`.

    Raises:
        InvalidPolicyError: as `governed_asset`.
    """
    governing = Governing(
        datasource=datasource, producer=producer, policy=policy, idempotency_key=idempotency_key
    )
    if not asset.get("name") and not asset.get("key"):
        asset["name"] = datasource if isinstance(datasource, str) else datasource.id
    return _assets_definition(function, governing, asset, given=(DECLARATION,))


def published_datasource(producer: dg.AssetsDefinition) -> str | None:
    """Return the id of the datasource that a governed asset publishes to; None of any other."""
    datasource: str | None = producer.metadata_by_key[producer.key].get(DATASOURCE)
    return datasource


def _assets_definition(
    function: Compute, governing: Governing, asset: AssetKeywords, given: Sequence[str]
) -> dg.AssetsDefinition:
    key, partitions_def = _key(function, asset), asset.get("partitions_def")
    place = Place(
        key=key,
        function=function,
        partitions_def=partitions_def,
        backfill_policy=asset.get("backfill_policy"),
        dagster_type=asset.get("dagster_type"),
        metadata=asset.get("metadata") or {},
        is_required=asset.get("output_required", True),
    )
    authored = resolve(governing, place)
    with warnings.catch_warnings():
        # Checks of a partition are a preview in Dagster; that is our choice, not the author's.
        warnings.simplefilter("ignore", dg.PreviewWarning)
        checks = policy_check_specs(authored.declared, key, partitions_def)
    keywords: dict[str, Any] = {
        **asset,
        **_described(function, authored.datasource, asset),
        "metadata": {
            **author_metadata(authored.datasource, authored.producer, authored.supplied),
            **(asset.get("metadata") or {}),
        },
        "check_specs": [*checks, *(asset.get("check_specs") or ())],
        "required_resource_keys": {GOVERNANCE, *(asset.get("required_resource_keys") or ())},
        # What needs review is not materialized, and the step has not failed.
        "output_required": False,
    }
    if not asset.get("io_manager_def"):
        keywords["io_manager_key"] = asset.get("io_manager_key") or IO_MANAGER
    made: dg.AssetsDefinition = dg.asset(**keywords)(_publishing(function, authored, given))
    return made


def _key(function: Compute, asset: AssetKeywords) -> dg.AssetKey:
    """Return the key that `dg.asset` will give the asset."""
    if key := asset.get("key"):
        return dg.AssetKey.from_coercible(key)
    prefix = asset.get("key_prefix") or []
    parts = [prefix] if isinstance(prefix, str) else prefix
    return dg.AssetKey([*parts, asset.get("name") or function.__name__])


def _described(function: Compute, datasource: Datasource, asset: AssetKeywords) -> dict[str, Any]:
    """Return how the asset is shown: as its author says, else as the datasource is."""
    return {
        "group_name": asset.get("group_name") or datasource.id,
        "owners": asset.get("owners") or datasource.owners,
        "kinds": asset.get("kinds") or set(datasource.kinds),
        "tags": {**datasource.tags, **(asset.get("tags") or {})},
        "description": asset.get("description")
        or (None if function.__doc__ else datasource.description),
    }


def _publishing(
    function: Compute, authored: Authored, given: Sequence[str]
) -> Callable[..., Iterator[Event]]:
    """Return what Dagster runs: it takes what the function takes, and publishes its output.

    Parameters that are named in `given` get the declaration, and Dagster sees none of them.
    """
    known = inspect.signature(function).parameters
    bound = {name: authored.datasource for name in given if name in known}

    @functools.wraps(function)
    def publish(*context: object, **inputs: object) -> Iterator[Event]:
        step = dg.AssetExecutionContext.get()
        yield from published_events(step, authored, function(*context, **inputs, **bound))

    parameters = [_resolved(one, function) for name, one in known.items() if name not in bound]
    publish.__annotations__ = {one.name: one.annotation for one in parameters}
    publish.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what `inspect` and Dagster read
    return publish


def _resolved(parameter: inspect.Parameter, function: Compute) -> inspect.Parameter:
    """Return a parameter with what its annotation means where the function is.

    Dagster would look up a name where the wrapper is; of one that is nowhere it tells the author.
    """
    annotated = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    names = getattr(inspect.unwrap(function), "__globals__", {})
    try:
        hints = get_type_hints(annotated, globalns=names, include_extras=True)
    except NameError:
        return parameter
    return parameter.replace(annotation=hints[parameter.name])
