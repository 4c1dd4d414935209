"""What an actor may ask of Dagster's GraphQL: checked before Dagster sees the request.

Source: SPEC sections 7, 15 and 16; threats T-01, T-05, T-34.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import cast

from graphql import GraphQLSchema, OperationType

from datasource_governance.errors import GuardError, InvalidArgumentError
from datasource_governance.web.authority import ActorGrants
from datasource_governance.web.documents import GraphQLRequest, Mutation, read_request
from datasource_governance.web.policy import (
    ASSET_JOB,
    BACKFILL,
    LAUNCHES,
    LOG_FIELDS,
    MUTATIONS,
    OPERATE,
    READ_LOGS,
    Launch,
    Need,
    held_against,
    needs_of_launch,
)

Arguments = Mapping[str, object]
_PARTITION_SET = "_partition_set"
"""How Dagster names the partitions of a job: after it."""
FindRun = Callable[[str], Launch | None]
"""Returns what a run ran, by its id; None when there is no such run."""
FindDatasources = Callable[[], Collection[str]]
"""Returns the ids of all datasources."""


class GraphQLGate:
    """Decides about requests to Dagster's schema.

    Every method raises GuardError for what is not allowed, code `not_authorised` where another
    role could, and InvalidArgumentError for what cannot be read.
    """

    def __init__(
        self, schema: GraphQLSchema, find_run: FindRun, find_datasources: FindDatasources
    ) -> None:
        self._schema = schema
        self._find_run = find_run
        self._find_datasources = find_datasources

    def admit_post(self, payload: object, granted: ActorGrants) -> tuple[str, ...]:
        """Check a posted request; return the names of the mutations that it may make."""
        request = read_request(payload)
        if OperationType.SUBSCRIPTION in request.kinds:
            raise GuardError("subscriptions are made over the WebSocket")
        self._admit_reading(request, granted)
        mutations = request.mutations(self._schema)
        for mutation in mutations:
            for need in sorted(self._needs(mutation), key=str):
                granted.demand(need, mutation.name)
        return tuple(mutation.name for mutation in mutations)

    def admit_subscription(self, payload: object, granted: ActorGrants) -> None:
        """Check a request that came over the WebSocket."""
        request = read_request(payload)
        if request.kinds != {OperationType.SUBSCRIPTION}:
            raise GuardError("only subscriptions are made over the WebSocket")
        self._admit_reading(request, granted)

    def _admit_reading(self, request: GraphQLRequest, granted: ActorGrants) -> None:
        if request.reads_environment():
            raise GuardError('run configuration may not read environment variables: {"env": …}')
        if LOG_FIELDS & request.field_names():
            granted.demand(READ_LOGS, "reading compute logs")

    def _needs(self, mutation: Mutation) -> frozenset[Need]:
        if mutation.name == "__typename":
            return frozenset()
        if mutation.name in MUTATIONS:
            return frozenset({MUTATIONS[mutation.name]})
        if mutation.name in LAUNCHES:
            needs = frozenset[Need]().union(*map(needs_of_launch, self._launches(mutation)))
            return held_against(needs, self._find_datasources())
        if mutation.name == BACKFILL:
            needs = _needs_of_backfill(cast("Arguments", mutation.arguments["backfillParams"]))
            return held_against(needs, self._find_datasources())
        raise GuardError(f"{mutation.name} is not allowed through the governed webserver")

    def _launches(self, mutation: Mutation) -> tuple[Launch, ...]:
        given = cast("dict[str, Arguments | None]", mutation.arguments)
        several = cast("Sequence[Arguments]", given.get("executionParamsList") or ())
        launches = [
            launch
            for parameters in (given.get("executionParams"), *several)
            if parameters
            for launch in _selected(cast("Arguments", parameters["selector"]))
        ]
        if again := given.get("reexecutionParams"):
            launches.append(self._run(str(again["parentRunId"])))
        if not launches:
            raise InvalidArgumentError(f"{mutation.name} names nothing to run")
        return tuple(launches)

    def _run(self, run_id: str) -> Launch:
        launch = self._find_run(run_id)
        if launch is None:
            raise InvalidArgumentError("there is no such run to execute again")
        return launch


def _needs_of_backfill(parameters: Arguments) -> frozenset[Need]:
    """Return the needs of a backfill: its runs are the daemon's, so an operator answers for it."""
    ranges = cast("Sequence[Arguments]", parameters.get("partitionsByAssets") or ())
    assets = _paths((*_keys(parameters, "assetSelection"), *(each["assetKey"] for each in ranges)))
    selector = cast("Arguments", parameters.get("selector") or {})
    job = str(selector.get("partitionSetName") or ASSET_JOB).removesuffix(_PARTITION_SET)
    if parameters.get("forceSynchronousSubmission"):
        raise GuardError("a backfill is submitted by the daemon, whose runs are in nobody's name")
    return needs_of_launch(Launch(job=job, assets=assets)) | {OPERATE}


def _selected(selector: Arguments) -> list[Launch]:
    """Return what a selector may mean: Dagster reads one of two keys for the job's name."""
    checks = cast("Sequence[Arguments]", selector.get("assetCheckSelection") or ())
    assets = _paths((*_keys(selector, "assetSelection"), *(each["assetKey"] for each in checks)))
    names = {selector.get("jobName"), selector.get("pipelineName")} - {None, ""}
    return [Launch(job=str(name), assets=assets) for name in names]


def _keys(parameters: Arguments, name: str) -> Sequence[object]:
    return cast("Sequence[object]", parameters.get(name) or ())


def _paths(keys: Iterable[object]) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(cast("dict[str, list[str]]", key)["path"]) for key in keys)
