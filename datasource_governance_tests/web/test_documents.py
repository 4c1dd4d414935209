"""GraphQL requests are read to their last corner, within limits."""

import json

import pytest
from graphql import OperationType
from hypothesis import given
from hypothesis import strategies as st

from datasource_governance.errors import InvalidArgumentError
from datasource_governance.web import documents
from datasource_governance.web.documents import read_request, reads_environment
from datasource_governance_tests.web.schema import schema

ENV = {"env": "DAGSTER_DATABASE_URL"}


def request(query: str, **variables: object):
    return read_request({"query": query, "variables": variables})


@pytest.mark.parametrize(
    "query",
    [
        "mutation { reloadWorkspace }",
        "mutation M { harmless: reloadWorkspace }",
        "mutation { ...f } fragment f on Mutation { reloadWorkspace }",
        "mutation { ...f } fragment f on X { ...g } fragment g on X { reloadWorkspace }",
        "mutation { ... on Mutation { ... { reloadWorkspace } } }",
        "mutation { ...f } fragment f on Elsewhere { reloadWorkspace }",
        "query A { version } mutation B { reloadWorkspace }",
        "mutation($no: Boolean = false) { reloadWorkspace @include(if: $no) }",
        "fragment f on Mutation { x: reloadWorkspace } query A { version } mutation { ...f }",
    ],
)
def test_a_mutation_is_found_wherever_it_is(query):
    assert [each.name for each in request(query).mutations(schema())] == ["reloadWorkspace"]


def test_arguments_are_those_that_the_resolver_gets():
    query = """
    mutation($p: [ExecutionParams!]!, $name: String = "promote_orders") {
      launchMultipleRuns(executionParamsList: $p) { __typename }
      launchRun(executionParams: {selector: {
        jobName: $name, repositoryName: "r", repositoryLocationName: "l",
        assetSelection: {path: "a"}
      }}) { __typename }
    }"""
    one = {"selector": {"jobName": "x", "repositoryName": "r", "repositoryLocationName": "l"}}

    several, single = request(query, p=one).mutations(schema())

    assert several.arguments["executionParamsList"] == [one]
    selector = single.arguments["executionParams"]["selector"]
    assert selector["jobName"] == "promote_orders"
    assert selector["assetSelection"] == [{"path": ["a"]}]


@pytest.mark.parametrize(
    "query",
    [
        "mutation($p: ExecutionParams!) { launchRun(executionParams: $p) { __typename } }",
        "mutation { launchRun(executionParams: 1) { __typename } }",
        "mutation { launchRun { __typename } }",
    ],
)
def test_variables_and_arguments_must_fit(query):
    with pytest.raises(InvalidArgumentError, match="do not fit"):
        request(query).mutations(schema())


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        [{"query": "{ version }"}],
        {"id": "persisted"},
        {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "0"}}},
        {"query": None},
        {"query": 1},
        {"query": ""},
        {"query": "{"},
        {"query": "{ version }", "variables": "{}"},
        {"query": "{ version }", "variables": [1]},
        {"query": "fragment f on Query { version } fragment f on Query { test } { ...f }"},
    ],
)
def test_what_is_no_single_request_is_refused(payload):
    with pytest.raises(InvalidArgumentError):
        read_request(payload)


def nested(depth: int) -> str:
    return "{a" * depth + "}" * depth


def test_depth_is_bounded_exactly():
    read_request({"query": nested(documents.MAXIMUM_DEPTH)})

    with pytest.raises(InvalidArgumentError, match="nested"):
        read_request({"query": nested(documents.MAXIMUM_DEPTH + 1)})


@pytest.mark.parametrize(
    "query",
    [
        "{ ...f } fragment f on Query { ...f }",
        "{ ...f } fragment f on Query { a { ...g } } fragment g on Query { a { ...f } }",
        nested(3_000),
        "{" + " a" * 21_000 + "}",
        "".join(
            f"fragment f{n} on Query {{ a {{ ...f{n + 1} }} b {{ ...f{n + 1} }} }} "
            for n in range(40)
        )
        + "fragment f40 on Query { c } { ...f0 }",
    ],
    ids=["itself", "each other", "deep", "long", "doubling"],
)
def test_documents_that_would_take_for_ever_are_refused(query):
    with pytest.raises(InvalidArgumentError):
        read_request({"query": query})


@pytest.mark.parametrize(
    ("query", "variables"),
    [
        ("query($c: RunConfigData) { x(runConfigData: $c) }", {"c": {"ops": {"a": ENV}}}),
        ("query($c: RunConfigData) { x(runConfigData: $c) }", {"c": json.dumps({"a": [ENV]})}),
        ("query($c: RunConfigData) { x(runConfigData: $c) }", {"c": "ops: {a: {env: HOME}}"}),
        ("query($c: RunConfigData) { x(runConfigData: $c) }", {"c": "ops:\n  a:\n    env: HOME\n"}),
        ("query($c: RunConfigData) { x(runConfigData: $c) }", {"c": "{a: &x [*x, {env: HOME}]}"}),
        ("query($c: RunConfigData) { x(runConfigData: $c) }", {"c": '{"\\u0065nv": HOME}'}),
        ("mutation($p: X) { launchRun(executionParams: $p) }", {"p": {"runConfigData": ENV}}),
        ("mutation($p: X) { launchRun(executionParams: $p) }", {"p": {"runConfigData": "env: A"}}),
        ('{ x(runConfigData: {ops: {a: {env: "HOME"}}}) }', {}),
        ('{ x(runConfigData: "ops: {a: {env: HOME}}") }', {}),
        ('query($c: RunConfigData = {a: {env: "HOME"}}) { x(runConfigData: $c) }', {}),
        ('query($v: String = "HOME") { x(runConfigData: {a: {env: $v}}) }', {}),
        ("query A { y } query B($c: X) { x(p: {runConfigData: $c}) }", {"c": "{env: HOME}"}),
        ('{ ...f } fragment f on Query { a { b(runConfigData: {env: "HOME"}) } }', {}),
    ],
)
def test_environment_is_found_wherever_it_is_read(query, variables):
    assert request(query, **variables).reads_environment()


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"ops": {"orders__stage": {"config": {"delivery": "env", "attestation": "none"}}}},
        {"environment": "HOME"},
        {"env": "a", "and": "more"},
        "ops: {a: {config: {delivery: 'env: HOME'}}}",
        "not: [yaml",
    ],
)
def test_configuration_without_it_passes(config):
    query = "query($c: RunConfigData) { x(runConfigData: $c) }"

    assert not request(query, c=config).reads_environment()


@pytest.mark.parametrize("config", ["a: &a {}\nb: {<<: *a}", "[" * 5_000, "a" * 100_001])
def test_configuration_that_is_hard_to_read_is_refused(config):
    with pytest.raises(InvalidArgumentError):
        request("query($c: X) { x(runConfigData: $c) }", c=config).reads_environment()


trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=4), below),
    max_leaves=10,
)


@given(trees, st.lists(st.sampled_from(["list", "key"]), max_size=6))
def test_environment_is_found_at_any_depth_and_nowhere_else(tree, path):
    hidden: object = ENV
    for step in path:
        hidden = [tree, hidden] if step == "list" else {"other": tree, "config": hidden}

    assert reads_environment(hidden)
    assert reads_environment(tree) is ('{"env": ' in json.dumps(tree) and only_env(tree))


def only_env(tree: object) -> bool:
    if isinstance(tree, dict):
        return set(tree) == {"env"} or any(map(only_env, tree.values()))
    return isinstance(tree, list) and any(map(only_env, tree))


def test_kinds_and_names_of_fields_are_those_of_the_whole_document():
    read = request("query A { x: version } subscription { capturedLogs { stdout } }")

    assert read.kinds == {OperationType.QUERY, OperationType.SUBSCRIPTION}
    assert read.field_names() == {"version", "capturedLogs", "stdout"}
