"""Dagster's own GraphQL schema, and what an actor with some grants would be told."""

from datetime import UTC, datetime
from functools import cache

from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLSchema,
    get_named_type,
    is_leaf_type,
)

from datasource_governance.domain.actor import ActorId, Grant, Role
from datasource_governance.web.authority import ActorGrants
from datasource_governance.web.mutations import GraphQLGate
from datasource_governance.web.policy import Launch
from datasource_governance_tests.web.serving import LOCATION, REPOSITORY

DATASOURCES = frozenset({"orders", "users"})
RUNS = {
    "staged": Launch(job="stage_orders"),
    "applied": Launch(job="apply_retention_plan"),
    "materialized": Launch(job="__ASSET_JOB", assets=frozenset({("orders", "current")})),
}


@cache
def schema() -> GraphQLSchema:
    from dagster_graphql.schema import create_schema

    return create_schema().graphql_schema


def gate() -> GraphQLGate:
    return GraphQLGate(schema(), RUNS.get, lambda: DATASOURCES)


def granted(*roles: Role, datasource: str | None = None) -> ActorGrants:
    grants = [
        Grant(
            id=f"grant-{role}",
            actor=ActorId("ann"),
            role=role,
            datasource=datasource,
            attestation_id=None,
            granted_at=datetime(2026, 1, 1, tzinfo=UTC),
        )
        for role in roles
    ]
    return ActorGrants(actor=ActorId("ann"), grants=tuple(grants))


def mutation(name: str) -> str:
    """Return a mutation of a name, known to the schema or not, with whatever it must be given."""
    field = schema().mutation_type.fields.get(name)
    required = {
        argument: literal(given.type)
        for argument, given in (field.args.items() if field else ())
        if isinstance(given.type, GraphQLNonNull)
    }
    given = ", ".join(f"{argument}: {value}" for argument, value in required.items())
    selection = (
        "" if field is None or is_leaf_type(get_named_type(field.type)) else " { __typename }"
    )
    return f"mutation {{ {name}{f'({given})' if given else ''}{selection} }}"


def literal(kind: object) -> str:
    """Return some value of an input type, spelled as a literal."""
    if isinstance(kind, GraphQLNonNull):
        return literal(kind.of_type)
    if isinstance(kind, GraphQLList):
        return "[]"
    if isinstance(kind, GraphQLInputObjectType):
        members = ", ".join(
            f"{name}: {literal(member.type)}"
            for name, member in kind.fields.items()
            if isinstance(member.type, GraphQLNonNull)
        )
        return f"{{ {members} }}"
    if isinstance(kind, GraphQLEnumType):
        return next(iter(kind.values))
    return {"Boolean": "true", "Int": "1", "Float": "1.0"}.get(str(kind), '"some"')


def launch(job: str, *assets: list[str], **parameters: object) -> dict[str, object]:
    """Return the parameters of a launch."""
    selector = {
        "pipelineName": job,
        "repositoryName": REPOSITORY,
        "repositoryLocationName": LOCATION,
        "assetSelection": [{"path": path} for path in assets] or None,
    }
    return {"selector": selector, "mode": "default", **parameters}


LAUNCH = "mutation($p: ExecutionParams!) { launchRun(executionParams: $p) { __typename } }"
