"""Counts and row numbers reach stewards of the datasource and nobody else, whatever is asked."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from anyio.from_thread import start_blocking_portal
from graphql import (
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLUnionType,
    build_schema,
    execute,
    get_named_type,
    parse,
)
from playwright.sync_api import expect

from datasource_governance.domain.actor import Role
from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.orchestration.metadata import NAMESPACE
from datasource_governance.web import authority
from datasource_governance.web.authority import ActorGrants
from datasource_governance.web.policy import LOG_FIELDS
from datasource_governance.web.redaction import DEFINITIONS, Redaction, covered
from datasource_governance_tests.browser.pages import SIZE
from datasource_governance_tests.postgres import cloned_governance
from datasource_governance_tests.web.counting import (
    AFFECTED,
    FIRST,
    FREELY_NAMED,
    RESTRICTED,
    ROWS,
    STEWARDS,
    UNGOVERNED,
    Counted,
    counted,
    counts_in,
)
from datasource_governance_tests.web.everything import everything
from datasource_governance_tests.web.schema import RUNS, granted, schema
from datasource_governance_tests.web.serving import Client, unique_actor, with_accounts
from datasource_governance_tests.web.test_browser import sign_in
from datasource_governance_tests.web.test_gate import websocket
from datasource_governance_tests.world import new_world

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
MILLISECONDS = 60_000
# What only stewards of all may ask, what leads back to where one comes from, what fails in Dagster.
NOT_ASKED = (
    *("capturedLogs", "capturedLogsMetadata"),
    *("repository", "run", "runOrError", "stepStats"),
    *("dataVersionByPartition", "staleStatusByPartition", "staleCausesByPartition"),
    *("AssetMaterializationPlannedEvent.pipelineName", "ErrorChainLink.message"),
)


HOLDERS = {
    *("CapturedLogs", "CapturedLogsMetadata", "LogRetrievalShellCommand"),
    *("EventTag", "GenericScalar", "InstigationEvent", "PythonError", "RunConfigData", "Table"),
}
"""Types of fields in which a count can stand, besides metadata entries."""
TELLING = {"description", "message", "skipReason", "stack", "stderr", "stdout", "text"}
"""Names of fields that tell something in words."""
KNOWN = {
    "behind a covered field": """TableMetadataEntry.table TextMetadataEntry.text
        ErrorChainLink.error ErrorChainLink.message
        PythonError.cause PythonError.causes PythonError.message PythonError.stack
        LogRetrievalShellCommand.stderr LogRetrievalShellCommand.stdout TableColumn.description""",
    "compute logs": """CapturedLogs.stderr CapturedLogs.stdout Query.capturedLogs
        Query.capturedLogsMetadata Run.capturedLogs Subscription.capturedLogs""",
    "ticks, daemons and backfills, which launch and look at no data": """
        DaemonStatus.lastHeartbeatErrors InstigationEvent.message
        InstigationEventConnection.events InstigationTick.error
        InstigationTick.skipReason PartitionBackfill.description PartitionBackfill.error
        ScheduleTickFailureData.error
        TickEvaluation.error TickEvaluation.skipReason""",
    "what somebody wrote or asked": """AppManagedComponentValidationError.message
        LocationStateChangeEvent.message PipelineRunLogsSubscriptionFailure.message
        RefreshComponentStateError.message Run.runConfig TerminateRunFailure.message
        TextRuleEvaluationData.text EvaluationStackMapKeyEntry.mapKey
        EvaluationStackMapValueEntry.mapKey Repository.assetManifest""",
}
"""Fields that are not covered, by why they need not be."""
DESCRIBED_IN_CODE = """
    ArrayConfigType AssetCheck AssetNode AutoMaterializeRule BackfillPolicy ComponentTypeInfo
    CompositeConfigType CompositeSolidDefinition ConfigTypeField DimensionDefinitionType
    EnumConfigType EnumConfigValue Graph InputDefinition Job ListDagsterType Logger MapConfigType
    Mode NullableConfigType NullableDagsterType OutputDefinition PartitionDefinition
    PartitionMapping PartitionedAssetConditionEvaluationNode Pipeline PipelineSnapshot
    RegularConfigType RegularDagsterType Resource ResourceDetails ScalarUnionConfigType Schedule
    Sensor SolidDefinition SpecificPartitionAssetConditionEvaluationNode
    UnpartitionedAssetConditionEvaluationNode"""
"""Types whose description stands in code, which is loaded without looking at data."""


def object_types() -> list[GraphQLObjectType]:
    return [one for one in schema().type_map.values() if isinstance(one, GraphQLObjectType)]


def metadata_entries() -> set[str]:
    possible = schema().get_possible_types(schema().type_map["MetadataEntry"])
    return {"MetadataEntry", *(one.name for one in possible)}


def is_refusal(kind: GraphQLObjectType) -> bool:
    """Tell whether a type says why a request failed; errors of runs are `PythonError`."""
    interfaces = {one.name for one in kind.interfaces}
    named = {"Error", "PipelineConfigValidationError"}
    return bool(interfaces & named) and kind.name not in ("PythonError", "ErrorChainLink")


def may_tell(kind: GraphQLObjectType, name: str) -> bool:
    if kind.name.startswith("__") or is_refusal(kind):
        return False
    if name == "description" and kind.name in metadata_entries():
        return False  # of the entry, which Dagster leaves empty
    named_type = get_named_type(kind.fields[name].type).name
    return name in TELLING or named_type in HOLDERS or named_type in metadata_entries()


def test_a_later_dagster_brings_no_field_that_nobody_has_thought_of():
    telling = {
        f"{one.name}.{name}" for one in object_types() for name in one.fields if may_tell(one, name)
    }
    known = {field for fields in KNOWN.values() for field in fields.split()}
    described = {f"{name}.description" for name in DESCRIBED_IN_CODE.split()}
    found = {f"{kind.name}.{name}" for kind, name, _ in covered(schema())}

    assert sorted(telling - found) == sorted(known | described)


def test_metadata_entries_are_reached_through_lists_of_the_interface_alone():
    entries, found = metadata_entries(), {(kind.name, name) for kind, name, _ in covered(schema())}
    for kind in schema().type_map.values():
        if isinstance(kind, GraphQLUnionType):
            assert entries.isdisjoint(one.name for one in kind.types)
        if isinstance(kind, GraphQLObjectType):
            for name, field in kind.fields.items():
                if get_named_type(field.type).name in entries:
                    assert str(field.type) == "[MetadataEntry!]!"
                    assert (kind.name, name) in found


def test_what_reads_compute_logs_needs_a_steward_of_all_datasources():
    logs = {"CapturedLogs", "CapturedLogsMetadata"}
    reading = {
        name
        for kind in schema().type_map.values()
        if isinstance(kind, GraphQLObjectType | GraphQLInterfaceType)
        for name, field in kind.fields.items()
        if get_named_type(field.type).name in logs
    }

    assert reading == LOG_FIELDS


def test_types_that_are_about_code_exist_and_are_of_no_asset():
    assert set(schema().type_map) >= DEFINITIONS
    assert not any("assetKey" in schema().type_map[name].fields for name in DEFINITIONS)


LATER = """
interface MessageEvent { message: String! }
type LaterEvent implements MessageEvent { message: String! }
type Query { later: LaterEvent! }
"""


class Remembered:
    """Grants of whoever asks, or why they cannot be known."""

    def __init__(self, grants: ActorGrants | None) -> None:
        self._grants = grants

    def of(self, actor: str) -> ActorGrants:
        assert actor == "ann"
        if self._grants is None:
            raise ServiceUnavailableError("the database is away")
        return self._grants


def later_message(grants: ActorGrants | None) -> str:
    """Return what is told of an event that says nothing of what it is about, and says it later."""

    async def message(_event: object, _info: object) -> str:
        return "4711 rows"

    built = build_schema(LATER)
    built.query_type.fields["later"].resolve = lambda _root, _info: {}
    built.type_map["LaterEvent"].fields["message"].resolve = message
    Redaction(Remembered(grants), RUNS.get).apply(built)
    asked = SimpleNamespace(source=SimpleNamespace(state=SimpleNamespace(actor="ann")))

    async def answer() -> str:
        told = await execute(built, parse("{ later { message } }"), context_value=asked)
        return told.data["later"]["message"]

    with start_blocking_portal() as portal:  # a browser of this module occupies the own thread
        return portal.call(answer)


def test_of_what_it_cannot_tell_only_stewards_of_all_see_counts():
    assert later_message(granted(Role.STEWARD)) == "4711 rows"
    assert later_message(granted(Role.STEWARD, datasource="orders")) == "… rows"
    assert later_message(granted(*set(Role) - {Role.STEWARD})) == "… rows"


def test_who_has_grants_that_cannot_be_known_sees_no_counts():
    assert later_message(None) == "… rows"


@pytest.fixture(scope="module")
def told(template, tmp_path_factory) -> Iterator[Counted]:
    for database in cloned_governance(template):
        directory = tmp_path_factory.mktemp("told")
        world = new_world(database, directory)
        with counted(world, directory) as served:
            yield served
        world.application.close()


def ask_for(field: str, kind: str, depth: int) -> str:
    return f"{{ asked: {field} {everything(schema(), kind, depth, without=NOT_ASKED)} }}"


def log_of(run_id: str) -> str:
    return ask_for(f'logsForRun(runId: "{run_id}")', "EventConnectionOrError", 4)


def results_of(asset: str, check: str) -> str:
    key = f'{asset_key(asset)}, checkName: "{check}", limit: 9'
    return ask_for(f"assetCheckExecutions({key})", "AssetCheckExecution", 3)


def asset_key(asset: str) -> str:
    path = [asset] if asset == FREELY_NAMED else ["orders", asset]
    return f"assetKey: {{ path: {json.dumps(path)} }}"


def node_of(asset: str) -> str:
    key = asset_key(asset)
    return ask_for(f"assetNodeOrError({key})", "AssetNodeOrError", 2)


ASSETS = ask_for("assetsOrError", "AssetsOrError", 4)


def answer_to(client: Client, query: str) -> str:
    answer = client.ask(query)
    assert answer.status == 200, [e["path"] for e in answer.json()["errors"]]
    return answer.text


def questions(told: Counted) -> dict[str, str]:
    """Return queries that together ask for all that there is, with the canaries in their answers.

    The canaries are those that a steward of all datasources finds.
    """
    staged = told.runs["staged"]
    return {
        log_of(staged): {AFFECTED, ROWS, FIRST},
        log_of(told.runs["failed"]): {AFFECTED},
        log_of(told.runs["published"]): {AFFECTED},
        ask_for(f'runOrError(runId: "{staged}")', "RunOrError", 3): {AFFECTED, ROWS, FIRST},
        ASSETS: {AFFECTED, ROWS, FIRST},
        node_of("stage"): {AFFECTED, ROWS, FIRST},
        node_of("current"): {AFFECTED, ROWS, FIRST},
        node_of(FREELY_NAMED): {AFFECTED, ROWS, FIRST},
        results_of("stage", "amount"): {AFFECTED, FIRST},
        results_of("stage", "quality_policy"): {AFFECTED},
        results_of("current", "own"): {AFFECTED, ROWS, FIRST},
        results_of(FREELY_NAMED, "amount"): {AFFECTED, ROWS, FIRST},
    }


def test_whatever_a_viewer_asks_no_count_is_in_the_answer(told):
    viewer, steward = told.serving.client("viewer"), told.serving.client("everywhere")
    for query, canaries in questions(told).items():
        assert counts_in(answer_to(steward, query)) == canaries, query[:200]
        assert counts_in(answer_to(viewer, query)) == set(), query[:200]


@pytest.mark.parametrize("name", [*RESTRICTED, *STEWARDS])
def test_counts_are_for_stewards_of_the_datasource(told, name):
    client, seen = told.serving.client(name), name in STEWARDS

    asked = (("stage", "amount"), ("current", "own"), (FREELY_NAMED, "amount"))
    for query in (*(results_of(*one) for one in asked), ASSETS):
        canaries = counts_in(answer_to(client, query))
        assert canaries >= {AFFECTED, FIRST} if seen else canaries == set()


def subscription(run_id: str) -> str:
    messages = everything(schema(), "DagsterRunEvent", 3, without=NOT_ASKED)
    return f"""subscription {{ pipelineRunLogs(runId: "{run_id}") {{
        ... on PipelineRunLogsSubscriptionSuccess {{ messages {messages} }} }} }}"""


@pytest.mark.parametrize("name", [*RESTRICTED, *STEWARDS])
def test_over_the_websocket_it_is_the_same(told, name):
    with subscribed(told.serving.client(name), subscription(told.runs["staged"])) as connection:
        told_of = connection.recv(30)

    assert "orders__stage" in told_of
    assert counts_in(told_of) == ({AFFECTED, ROWS, FIRST} if name in STEWARDS else set())


@contextmanager
def subscribed(client: Client, query: str):
    """Open a WebSocket and start one subscription over it."""
    with websocket(client) as connection:
        connection.send(json.dumps({"type": "connection_init", "payload": {}}))
        assert json.loads(connection.recv(10)) == {"type": "connection_ack"}
        connection.send(json.dumps({"type": "start", "id": "1", "payload": {"query": query}}))
        yield connection


def test_a_grant_that_is_withdrawn_is_missed_in_an_open_subscription(told, monkeypatch):
    monkeypatch.setattr(authority, "FRESH_SECONDS", 0.0)
    name, world = unique_actor(), told.world
    world.admit(name)
    reading, counting = (world.grant(name, role, "orders") for role in (Role.VIEWER, Role.STEWARD))
    with_accounts(told.serving.settings, name)
    instance = told.serving.context.instance
    run = instance.get_run_by_id(told.runs["failed"])

    def told_next(connection) -> str:
        instance.report_engine_event(f"{AFFECTED} rows", run, step_key="orders__stage")
        return connection.recv(30)

    with subscribed(told.serving.client(name), subscription(run.run_id)) as connection:
        assert counts_in(connection.recv(30)) == {AFFECTED}
        assert counts_in(told_next(connection)) == {AFFECTED}
        world.withdraw(counting)
        narrowed = told_next(connection)
        world.withdraw(reading)
        ended = told_next(connection)

        assert "orders__stage" in narrowed
        assert counts_in(narrowed) == set()
        assert "subscribing needs the role" in ended
        assert json.loads(connection.recv(30))["type"] == "complete"


VERDICTS = """{ assetCheckExecutions(
    assetKey: { path: ["orders", "stage"] }, checkName: "%s", limit: 1) { evaluation {
        success description metadataEntries { label
            ... on TextMetadataEntry { text } ... on IntMetadataEntry { intValue }
            ... on TableMetadataEntry { table { schema { columns { name } } records } } } } } }"""


def verdict_of(client: Client, check: str) -> tuple[dict, dict]:
    """Return the newest result of a check, and its metadata by key."""
    (execution,) = client.ask(VERDICTS % check).json()["data"]["assetCheckExecutions"]
    evaluation = execution["evaluation"]
    entries = {
        entry.pop("label").removeprefix(f"{NAMESPACE}/"): entry
        for entry in evaluation["metadataEntries"]
    }
    return evaluation, entries


def test_a_viewer_keeps_the_verdict_of_a_rule(told):
    evaluation, entries = verdict_of(told.serving.client("viewer"), "amount")

    assert evaluation["success"] is False
    assert evaluation["description"] == "The rule does not hold: `out_of_range` in … rows."
    assert {key: entry["text"] for key, entry in entries.items()} == {
        "rule_id": "amount",
        "status": "failed",
        "reason": "out_of_range",
        "fields": "amount",
        "restricted": "counts and row numbers need the role steward on datasource 'orders'",
    }


def test_a_viewer_keeps_the_table_of_rules_without_its_counts(told):
    evaluation, entries = verdict_of(told.serving.client("viewer"), "quality_policy")
    table = entries["rules"]["table"]

    assert evaluation["description"] == "1 of 2 rules passed; outcome: review"
    assert entries["failed_rules"] == {"intValue": 1}
    columns = [column["name"] for column in table["schema"]["columns"]]
    assert columns == ["rule", "status", "reason", "severity", "type", "fields"]
    records = [json.loads(record) for record in table["records"]]
    assert [(one["rule"], one["status"]) for one in records] == [
        ("amount", "failed"),
        ("id-unique", "passed"),
    ]
    assert {frozenset(one) for one in records} == {frozenset(columns)}


def test_what_is_not_governed_is_not_touched(told):
    query = """{ assetOrError(assetKey: { path: ["free"] }) { ... on Asset {
        assetMaterializations(limit: 1) { description metadataEntries { label
            ... on IntMetadataEntry { intValue }
            ... on TableMetadataEntry { table { records } } } } } } }"""
    asked = told.serving.client("viewer").ask(query).json()["data"]["assetOrError"]

    assert asked["assetMaterializations"] == [
        {
            "description": f"{UNGOVERNED} rows",
            "metadataEntries": [
                {"label": "rows", "intValue": UNGOVERNED},
                {"label": "table", "table": {"records": [json.dumps({"n": UNGOVERNED})]}},
            ],
        }
    ]


@pytest.mark.parametrize("name", [*RESTRICTED, "steward"])
def test_debug_files_are_for_stewards_of_all_datasources(told, name):
    path = f"/download_debug/{told.runs['staged']}"

    assert told.serving.client(name).fetch("HEAD", path).status == 403
    assert told.serving.client("everywhere").fetch("HEAD", path).status == 200


def test_in_a_browser_a_viewer_reads_verdicts_without_counts(browser, told):
    page = browser.new_page(viewport=SIZE)
    page.set_default_timeout(MILLISECONDS)
    sign_in(page, told.serving, "viewer", "/assets/orders/stage?view=checks&checkDetail=amount")
    for sentence in (
        "The rule does not hold: out_of_range in … rows.",
        "counts and row numbers need the role steward on datasource 'orders'",
    ):
        expect(page.get_by_text(sentence).first).to_be_visible(timeout=MILLISECONDS)
    assert counts_in(page.content()) == set()
