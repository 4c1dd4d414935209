"""Dagster's GraphQL answers, without what whoever asks may not see.

The resolvers of Dagster's own schema are wrapped, so it does not matter how a document is spelled
or over which transport it comes. A field is covered for its type, its name and the interfaces of
the type it is on; so what a new release of Dagster adds is covered as it comes in.

Source: SPEC sections 5, 15 and 17; threat T-11.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing
from functools import lru_cache
from typing import Any

from graphql import (
    GraphQLField,
    GraphQLObjectType,
    GraphQLResolveInfo,
    GraphQLSchema,
    default_field_resolver,
    get_named_type,
)
from starlette.concurrency import run_in_threadpool

from datasource_governance.domain.actor import ActorId, Grant
from datasource_governance.errors import GovernanceError
from datasource_governance.web.authority import RememberedGrants
from datasource_governance.web.catalogue import Catalogue, catalogue_of
from datasource_governance.web.mutations import FindRun
from datasource_governance.web.omissions import (
    Omit,
    omit_entries,
    omit_link,
    omit_numbers,
    omit_numbers_of_error,
    omit_tags,
)
from datasource_governance.web.policy import LOG_FIELDS, READ, READ_COUNTS, READ_LOGS, Need

Locate = Callable[[Any, GraphQLResolveInfo], Need | None]
"""Returns what seeing the counts of an object needs; None for one that is not governed."""

EVENTS = frozenset({"AssetCheckEvaluation", "DisplayableEvent", "ErrorEvent", "MessageEvent"})
"""Interfaces of events and of what events carry, and the one such type that has none."""
DEFINITIONS = frozenset(
    {
        "InputDefinition",
        "Job",
        "ListDagsterType",
        "NullableDagsterType",
        "OutputDefinition",
        "Pipeline",
        "PipelineSnapshot",
        "RegularDagsterType",
        "Schedule",
        "Sensor",
    }
)
"""Types that speak of code and of no asset: loading never connects, so no count is in them."""
_OMIT_BY_TYPE: dict[str, Omit] = {"EventTag": omit_tags, "PythonError": omit_numbers_of_error}
_OMIT_BY_NAME: dict[str, Omit] = {
    **dict.fromkeys(("description", "label", "message"), omit_numbers),
    **dict.fromkeys(
        ("externalStderrUrl", "externalStdoutUrl", "externalUrl", "shellCmd"), omit_link
    ),
}
_KEYS = ("assetKey", "entityKey")
_REMEMBERED_RUNS = 1024


class Redaction:
    """Takes out of answers what the grants of their reader at that moment do not cover."""

    def __init__(self, remembered: RememberedGrants, find_run: FindRun) -> None:
        self._remembered = remembered
        # What a run was launched to do never changes while the same code is loaded.
        self._need_of_run = lru_cache(_REMEMBERED_RUNS)(
            lambda run_id, catalogue: catalogue.need_of_launch(find_run(run_id))
        )

    def apply(self, schema: GraphQLSchema) -> None:
        """Wrap the resolvers of a schema, in place; no other schema is touched."""
        for kind, name, omit in covered(schema):
            field = kind.fields[name]
            field.resolve = self._redacted(_resolver(field), self._locate(kind), omit)
        if schema.subscription_type is not None:
            for name, field in schema.subscription_type.fields.items():
                need = READ_LOGS if name in LOG_FIELDS else READ
                field.subscribe = self._watched(field.subscribe, need)

    def _redacted(
        self, resolve: Callable[..., Any], locate: Locate, omit: Omit
    ) -> Callable[..., object]:
        def shown(value: Any, source: Any, info: GraphQLResolveInfo) -> object:  # noqa: ANN401 - Dagster's
            if value is None:
                return None
            grants = self._grants(info)
            if READ_COUNTS.is_met_by(grants):
                return value
            need = locate(source, info)
            is_met = need is not None and need.is_met_by(grants)
            return value if is_met else omit(value, need)

        async def shown_later(
            value: Awaitable[Any], source: object, info: GraphQLResolveInfo
        ) -> object:
            return shown(await value, source, info)

        def redacted(source: object, info: GraphQLResolveInfo, **arguments: object) -> object:
            value = resolve(source, info, **arguments)
            if info.is_awaitable(value):
                return shown_later(value, source, info)
            return shown(value, source, info)

        return redacted

    def _watched(self, subscribe: Callable[..., Any] | None, need: Need) -> Callable[..., Any]:
        """Wrap a subscription, which ends with the first payload after its grant."""
        if subscribe is None:
            raise TypeError("a subscription of Dagster's has nothing to subscribe to")

        async def watched(
            source: object, info: GraphQLResolveInfo, **arguments: object
        ) -> AsyncIterator[object]:
            async with aclosing(subscribe(source, info, **arguments)) as payloads:
                async for payload in payloads:
                    granted = await run_in_threadpool(self._remembered.of, _actor(info))
                    granted.demand(need, "subscribing")
                    yield payload

        return watched

    def _grants(self, info: GraphQLResolveInfo) -> tuple[Grant, ...]:
        """Return the grants of whoever asks; none when they cannot be known."""
        try:
            return self._remembered.of(_actor(info)).grants
        except GovernanceError:
            return ()

    def _locate(self, kind: GraphQLObjectType) -> Locate:
        """Return how to tell what an object of a type is about, strictly where it cannot."""
        if kind.name in DEFINITIONS:
            return lambda _source, _info: None
        for name in _KEYS:
            if name in kind.fields:
                return _by_asset(_resolver(kind.fields[name]))
        if "evaluation" in kind.fields:
            return self._by_evaluation(kind.fields["evaluation"])
        if "runId" in kind.fields and "stepKey" in kind.fields:
            return self._by_run(_resolver(kind.fields["runId"]), _resolver(kind.fields["stepKey"]))
        return lambda _source, _info: READ_COUNTS

    def _by_evaluation(self, field: GraphQLField) -> Locate:
        evaluation, evaluated = _resolver(field), get_named_type(field.type)
        if not isinstance(evaluated, GraphQLObjectType):
            raise TypeError("an evaluation of Dagster's is no object")
        locate = self._locate(evaluated)
        return lambda source, info: locate(evaluation(source, info), info)

    def _by_run(self, run_id: Callable[..., Any], step_key: Callable[..., Any]) -> Locate:
        def locate(source: object, info: GraphQLResolveInfo) -> Need | None:
            step, catalogue = step_key(source, info), _catalogue(info)
            need = catalogue.need_of_step(step) if step else None
            return need or self._need_of_run(run_id(source, info), catalogue)

        return locate


def covered(schema: GraphQLSchema) -> Iterator[tuple[GraphQLObjectType, str, Omit]]:
    """Yield every field that may hold a count or a row number, with what leaves it out."""
    for kind in schema.type_map.values():
        if isinstance(kind, GraphQLObjectType):
            for name, field in kind.fields.items():
                omit = _omit(kind, name, get_named_type(field.type).name)
                if omit is not None:
                    yield kind, name, omit


def _omit(kind: GraphQLObjectType, name: str, named_type: str) -> Omit | None:
    if named_type == "MetadataEntry":
        return omit_entries
    if EVENTS.isdisjoint({kind.name, *(one.name for one in kind.interfaces)}):
        return None
    return _OMIT_BY_TYPE.get(named_type) or _OMIT_BY_NAME.get(name)


def _by_asset(key_of: Callable[..., Any]) -> Locate:
    def locate(source: object, info: GraphQLResolveInfo) -> Need | None:
        key = key_of(source, info)
        key = getattr(key, "assetKey", key)
        return READ_COUNTS if key is None else _catalogue(info).need_of_asset(tuple(key.path))

    return locate


def _catalogue(info: GraphQLResolveInfo) -> Catalogue:
    return catalogue_of(info.context.asset_graph)


def _resolver(field: GraphQLField) -> Callable[..., Any]:
    return field.resolve or default_field_resolver


def _actor(info: GraphQLResolveInfo) -> ActorId:
    """Return who asks: Dagster hands on the request that came through the gate."""
    actor: ActorId = info.context.source.state.actor
    return actor
