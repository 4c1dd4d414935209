"""What an author says about a governed asset, resolved and checked when the code is loaded.

Reads files beside the code and declarations in the repository; connects to nothing.

Source: SPEC section 15 ("Authoring"; "a load-time check refuses a bad one with its pointer").
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import dagster as dg

from datasource_governance.composition import read_settings
from datasource_governance.declarations import FILE_NAME, read_declaration, read_declarations
from datasource_governance.domain.datasource import Datasource, DatasourceKind
from datasource_governance.domain.quality_policy import QualityPolicy, parse_quality_policy
from datasource_governance.errors import InvalidPolicyError, Problem
from datasource_governance.orchestration.idempotency import (
    KeyOf,
    default_key,
    filled,
    template_problems,
)
from datasource_governance.orchestration.publication_metadata import metadata_problems

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Governing:
    """What `governed_asset` has beside the keywords of `dg.asset`, as it was written."""

    datasource: Datasource | str
    producer: str | None = None
    policy: str | Path | None = None
    idempotency_key: str | KeyOf | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Authored:
    """What a governed asset publishes, as whom and under which keys.

    `supplied` is the policy that it brings with it; None: the datasource's is in force.
    `is_required`: a function that returns nothing has failed.
    """

    datasource: Datasource
    key: dg.AssetKey
    producer: str
    supplied: QualityPolicy | None
    key_of: KeyOf
    is_required: bool

    @property
    def declared(self) -> QualityPolicy | None:
        """The quality policy that this location knows the output to be held to."""
        return self.supplied or self.datasource.quality_policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The Dagster side of a governed asset: where it is, and what it runs."""

    key: dg.AssetKey
    function: Callable[..., object]
    partitions_def: dg.PartitionsDefinition[Any] | None
    backfill_policy: dg.BackfillPolicy | None
    dagster_type: object | None
    metadata: Mapping[str, Any]
    is_required: bool


def resolve(governing: Governing, place: Place) -> Authored:
    """Return what is published, once everything about it was found to be right.

    Raises:
        InvalidPolicyError: with every problem of the asset, of the declaration and of the policy
            that it names.
    """
    problems: list[Problem] = [*_place_problems(place)]
    datasource = _collect(problems, lambda: _declared(governing.datasource))
    supplied = _collect(problems, lambda: _supplied(governing.policy, place.function))
    producer = governing.producer or place.key.to_user_string()
    is_partitioned = place.partitions_def is not None
    template = governing.idempotency_key or default_key(is_partitioned=is_partitioned)
    if isinstance(template, str):
        found = template_problems(template, is_partitioned=is_partitioned)
        problems += [_wrong(f"idempotency_key {one}") for one in found]
    if datasource is not None:
        problems += _datasource_problems(datasource, governing.policy)
    if problems or datasource is None:
        raise InvalidPolicyError(f"governed asset {place.key.to_user_string()}", problems)
    return Authored(
        datasource=datasource,
        key=place.key,
        producer=producer,
        supplied=supplied,
        key_of=filled(template) if isinstance(template, str) else template,
        is_required=place.is_required,
    )


def _collect(problems: list[Problem], read: Callable[[], T]) -> T | None:
    """Return what is read; None with its problems added."""
    try:
        return read()
    except InvalidPolicyError as error:
        problems += error.problems
    return None


def _wrong(message: str) -> Problem:
    return Problem(kind="invalid_value", message=message)


def _declared(datasource: Datasource | str) -> Datasource:
    """Return a declaration, by its id from the repository's."""
    if isinstance(datasource, Datasource):
        return datasource
    directory = read_settings().datasources
    beside = directory / datasource / FILE_NAME
    # Its own folder first: reading all declarations for each asset would be quadratic.
    found = [read_declaration(beside)] if beside.is_file() else read_declarations(directory)
    for one in found:
        if one.id == datasource:
            return one
    known = ", ".join(one.id for one in found)
    message = f"datasource {datasource!r} is not declared in {directory}; there are: {known}"
    raise InvalidPolicyError(
        str(directory), [Problem(kind="not_found", names=(datasource,), message=message)]
    )


def _supplied(policy: str | Path | None, function: Callable[..., object]) -> QualityPolicy | None:
    """Return the policy of a JSON file beside the code; each problem of it names the file."""
    if policy is None:
        return None
    path = Path(inspect.getfile(inspect.unwrap(function))).parent / policy
    try:
        return parse_quality_policy(path.read_bytes())
    except OSError as error:
        problems = [Problem(kind="not_found", message=f"{policy}: {error.strerror}")]
    except InvalidPolicyError as error:
        problems = [replace(one, message=f"{policy}: {one.message}") for one in error.problems]
    raise InvalidPolicyError(str(policy), problems)


def _datasource_problems(datasource: Datasource, policy: str | Path | None) -> Iterator[Problem]:
    if datasource.kind is not DatasourceKind.PUBLISHED:
        yield _wrong(
            f"datasource {datasource.id!r} is of kind {datasource.kind}; only one of kind "
            f"{DatasourceKind.PUBLISHED} takes publications"
        )
    if policy is not None and not datasource.allow_supplied_policy:
        yield _wrong(
            f"datasource {datasource.id!r} takes no policy of a producer: leave out policy, or "
            "declare governance.allow_supplied_policy"
        )


def _place_problems(place: Place) -> Iterator[Problem]:
    function = inspect.unwrap(place.function)
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        yield _wrong("the function is asynchronous; return the output from a plain function")
    elif inspect.isgeneratorfunction(function):
        yield _wrong("the function yields; return one output")
    yield from map(_wrong, metadata_problems(place.metadata))
    if place.dagster_type is not None:
        yield _wrong("dagster_type is about values in Dagster's I/O, which an output never enters")
    backfill = place.backfill_policy
    if place.partitions_def and backfill and backfill.max_partitions_per_run != 1:
        yield _wrong(
            "backfill_policy puts several partitions into a run; each is published by its own: "
            "dg.BackfillPolicy.multi_run(max_partitions_per_run=1)"
        )
