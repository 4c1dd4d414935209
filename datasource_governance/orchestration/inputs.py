"""What an input of an asset asks for, and the record of what it got.

An input says what it wants by its annotation and by its metadata. What it got is told on the asset
that was read, on the event of the loaded input, and on whatever the step materializes.

Source: SPEC section 15 ("readers load through a governed IO manager").
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args, get_origin

import dagster as dg

from datasource_governance.domain.materialization import Materialization
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.evaluation.forms import Form, checked_form
from datasource_governance.orchestration.metadata import (
    DATASOURCE,
    INPUTS,
    MATERIALIZATION_ID,
    REVISION,
    input_table,
)
from datasource_governance.services.reading import Wanted

AS = "as"
COLUMNS = "columns"
PINNED = "materialization_id"
"""Metadata of an input that say what it wants."""

_CLASSES: Final[Mapping[tuple[str, str], Form]] = {
    ("pandas", "DataFrame"): "pandas",
    ("polars", "DataFrame"): "polars",
    ("polars", "LazyFrame"): "lazy",
    ("pyarrow", "Table"): "arrow",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one input asks for: of each partition the same, and by partition if it says so."""

    datasource: str
    form: Form
    wanted: Sequence[Wanted]
    by_partition: bool


def asked_by(context: dg.InputContext) -> Asked:
    """Return what an input asks for.

    Raises:
        InvalidArgumentError: its annotation is nothing that can be loaded, its metadata say
            otherwise, or it wants one frame, or one materialization, of several partitions.
    """
    told = _told(context)
    by_partition, annotation = _annotated(context.dagster_type.typing_type)
    partitions = _partitions(context)
    one = len(partitions) == 1
    if not one and (told.get(PINNED) or (annotation is not Any and not by_partition)):
        raise InvalidArgumentError(
            f"the input is of {len(partitions)} partitions: annotate it as a dict[str, ...] of "
            f"frames, and pin no {PINNED}"
        )
    return Asked(
        datasource=_datasource(context),
        form=_form(annotation, told.get(AS)),
        wanted=[
            Wanted(partition=partition, materialization=told.get(PINNED), columns=told.get(COLUMNS))
            for partition in partitions
        ],
        by_partition=by_partition or not one,
    )


def record_loaded(context: dg.InputContext, loaded: Mapping[str, Materialization]) -> None:
    """Tell which materialization of each partition an input was given."""
    if len(loaded) == 1:
        (materialization,) = loaded.values()
        context.add_input_metadata(_named(materialization))
    try:
        step = context.step_context
    except dg.DagsterInvariantViolationError:
        return  # outside of a run there is nobody to tell
    _record_in_step(step, context.asset_key, loaded)


def _record_in_step(
    step: Any,  # noqa: ANN401 - Dagster has no public name for it
    asset: dg.AssetKey,
    loaded: Mapping[str, Materialization],
) -> None:
    if len(loaded) != 1:
        # Dagster's own record of an input has room for one partition.
        for partition, materialization in loaded.items():
            seen = dg.AssetObservation(asset, partition=partition, metadata=_named(materialization))
            dg.DagsterEvent.asset_observation(step, seen)
    for key in _downstream(step, asset):
        before = (step.get_asset_metadata(key) or {}).get(INPUTS)
        step.add_asset_metadata({INPUTS: input_table(before, asset, loaded)}, key)


def _downstream(step: Any, asset: dg.AssetKey) -> Iterator[dg.AssetKey]:  # noqa: ANN401 - as above
    for key in step.get_output_asset_keys():
        if asset in step.job_def.asset_layer.get(key).parent_keys:
            yield key


def _named(materialization: Materialization) -> dict[str, str | int]:
    revision = materialization.revision
    named: dict[str, str | int] = {MATERIALIZATION_ID: materialization.id}
    return named if revision is None else named | {REVISION: revision}


def _datasource(context: dg.InputContext) -> str:
    """Return whose data an asset holds: its definition says so, or its key begins with it."""
    upstream = context.upstream_output
    declared = upstream.definition_metadata.get(DATASOURCE) if upstream else None
    return str(_plain(declared) or context.asset_key.path[0])


def _told(context: dg.InputContext) -> dict[str, Any]:
    """Return the metadata of an input, of whatever class they were given as."""
    plain = {name: _plain(value) for name, value in context.definition_metadata.items()}
    told = {name: value for name, value in plain.items() if value is not None}
    if not isinstance(told.get(PINNED, ""), str) or not isinstance(told.get(COLUMNS, []), list):
        raise InvalidArgumentError(
            f"of the metadata of an input, {PINNED} is a text, and {COLUMNS} is a list of names"
        )
    return told


def _partitions(context: dg.InputContext) -> list[str]:
    return list(context.asset_partition_keys) if context.has_asset_partitions else [""]


def _annotated(annotation: Any) -> tuple[bool, Any]:  # noqa: ANN401 - whatever stands there
    """Return whether a mapping of frames is annotated, and the class of one frame, or Any."""
    if (get_origin(annotation) or annotation) in {dict, Mapping}:
        _, frame = get_args(annotation) or (str, Any)
        return True, frame
    return False, annotation


def _form(annotation: Any, told: object) -> Form:  # noqa: ANN401 - whatever stands there
    if annotation is Any:
        return checked_form(told or "pandas")
    form = _form_of(get_origin(annotation) or annotation)
    if form is None or told not in {None, form}:
        raise InvalidArgumentError(
            "an input is annotated as pandas.DataFrame, polars.DataFrame, polars.LazyFrame or "
            f"pyarrow.Table, or as nothing with metadata {AS!r}; not as one and told the other"
        )
    return form


def _form_of(annotation: Any) -> Form | None:  # noqa: ANN401 - whatever stands there
    # By name, so that no library is imported to find that the class is not one of its own.
    for base in getattr(annotation, "__mro__", ()):
        if form := _CLASSES.get((base.__module__.partition(".")[0], base.__name__)):
            return form
    return None


def _plain(value: Any) -> Any:  # noqa: ANN401 - of the author
    return value.value if isinstance(value, dg.MetadataValue) else value
