"""Every mutation that Dagster has: allowed to somebody, or refused to everybody."""

import pytest

from datasource_governance.domain.actor import Role
from datasource_governance.errors import GovernanceError, GuardError, InvalidArgumentError
from datasource_governance.web.policy import BACKFILL, LAUNCHES, MUTATIONS
from datasource_governance_tests.web.schema import (
    LAUNCH,
    gate,
    granted,
    launch,
    literal,
    mutation,
    schema,
)

EVERYBODY = {Role.VIEWER, Role.STEWARD, Role.APPROVER, Role.OPERATOR, Role.ADMINISTRATOR}
OPERATOR = {Role.OPERATOR}
NOBODY: set[Role] = set()
BY_WHAT_RUNS = None
ALLOWED = {
    "addDynamicPartition": NOBODY,
    "cancelPartitionBackfill": OPERATOR,
    "deleteAppManagedComponent": NOBODY,
    "deleteConcurrencyLimit": NOBODY,
    "deleteDynamicPartitions": NOBODY,
    "deletePipelineRun": NOBODY,
    "deleteRun": NOBODY,
    "freeConcurrencySlots": OPERATOR,
    "freeConcurrencySlotsForRun": OPERATOR,
    "launchMultipleRuns": BY_WHAT_RUNS,
    "launchPartitionBackfill": BY_WHAT_RUNS,
    "launchPipelineExecution": BY_WHAT_RUNS,
    "launchPipelineReexecution": BY_WHAT_RUNS,
    "launchRun": BY_WHAT_RUNS,
    "launchRunReexecution": BY_WHAT_RUNS,
    "logTelemetry": EVERYBODY,
    "reexecutePartitionBackfill": NOBODY,
    "refreshComponentState": NOBODY,
    "reloadRepositoryLocation": OPERATOR,
    "reloadWorkspace": OPERATOR,
    "reportAssetCheckEvaluations": NOBODY,
    "reportRunlessAssetEvents": NOBODY,
    "resetSchedule": OPERATOR,
    "resetSensor": OPERATOR,
    "resumePartitionBackfill": NOBODY,
    "scheduleDryRun": OPERATOR,
    "sensorDryRun": OPERATOR,
    "setAppManagedComponent": NOBODY,
    "setAutoMaterializePaused": OPERATOR,
    "setConcurrencyLimit": NOBODY,
    "setNuxSeen": EVERYBODY,
    "setSensorCursor": NOBODY,
    "shutdownRepositoryLocation": NOBODY,
    "startSchedule": OPERATOR,
    "startSensor": OPERATOR,
    "stopRunningSchedule": OPERATOR,
    "stopSensor": OPERATOR,
    "terminatePipelineExecution": OPERATOR,
    "terminateRun": OPERATOR,
    "terminateRuns": OPERATOR,
    "wipeAssets": NOBODY,
}
LAUNCH_BACKFILL = """mutation($p: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $p) { __typename }
}"""
REPOSITORY = {"repositoryName": "__repository__", "repositoryLocationName": "location"}


def post(query: str, who, **variables: object) -> tuple[str, ...]:
    return gate().admit_post({"query": query, "variables": variables}, who)


def may(query: str, *roles: Role, datasource: str | None = None, **variables: object) -> bool:
    try:
        post(query, granted(*roles, datasource=datasource), **variables)
    except GovernanceError:
        return False
    return True


def roles_that_may(query: str, **variables: object) -> set[Role]:
    return {role for role in Role if may(query, role, **variables)}


def test_every_mutation_of_dagster_is_decided_here():
    assert set(schema().mutation_type.fields) == set(ALLOWED)
    assert set(MUTATIONS) | LAUNCHES | {BACKFILL} <= set(ALLOWED)


@pytest.mark.parametrize("name", [name for name, roles in ALLOWED.items() if roles is not None])
def test_mutation_is_allowed_to(name):
    assert roles_that_may(mutation(name)) == ALLOWED[name]


@pytest.mark.parametrize("name", [name for name, roles in ALLOWED.items() if roles == NOBODY])
def test_what_nobody_may_is_refused_in_a_sentence_to_all_roles_together(name):
    with pytest.raises(GuardError, match=f"^{name} is not allowed through the governed webserver"):
        post(mutation(name), granted(*Role))


def test_a_mutation_that_a_later_dagster_adds_is_refused():
    with pytest.raises(GuardError, match="rewriteHistory is not allowed"):
        post("mutation { rewriteHistory }", granted(*Role))


def test_operator_of_one_datasource_does_not_stop_sensors():
    assert not may(mutation("stopSensor"), Role.OPERATOR, datasource="orders")


@pytest.mark.parametrize(
    ("job", "roles"),
    [
        ("stage_orders", {Role.STEWARD}),
        ("promote_orders", {Role.OPERATOR}),
        ("apply_retention_plan", {Role.ADMINISTRATOR}),
        ("report", {Role.OPERATOR}),
        ("stage_website", {Role.OPERATOR}),
        ("publish_website", {Role.OPERATOR}),
    ],
)
@pytest.mark.parametrize("name", sorted(LAUNCHES))
def test_launching_is_allowed_by_job_whatever_launches_it(name, job, roles):
    kind = "[ExecutionParams!]!" if name == "launchMultipleRuns" else "ExecutionParams!"
    argument = "executionParamsList" if name == "launchMultipleRuns" else "executionParams"
    query = f"mutation($p: {kind}) {{ {name}({argument}: $p) {{ __typename }} }}"

    assert roles_that_may(query, p=launch(job)) == roles


def test_of_several_launches_each_is_needed():
    query = """mutation($p: [ExecutionParams!]!) {
      launchMultipleRuns(executionParamsList: $p) { __typename }
    }"""
    both = [launch("stage_orders"), launch("promote_orders")]

    assert roles_that_may(query, p=both) == set()
    assert may(query, Role.STEWARD, Role.OPERATOR, p=both)


def test_of_several_mutations_in_one_document_each_is_needed():
    query = """mutation($p: ExecutionParams!) {
      setNuxSeen
      logTelemetry: launchRun(executionParams: $p) { __typename }
    }"""

    assert may(query, Role.STEWARD, p=launch("stage_orders"))
    assert not may(query, Role.VIEWER, p=launch("stage_orders"))


@pytest.mark.parametrize("datasource", ["orders", None])
def test_a_steward_launches_the_stage_job_of_an_own_datasource(datasource):
    assert may(LAUNCH, Role.STEWARD, datasource=datasource, p=launch("stage_orders"))
    assert may(LAUNCH, Role.STEWARD, datasource="other", p=launch("stage_orders")) is False


def test_selected_assets_need_their_own_roles():
    stage, current = ["orders", "stage"], ["orders", "current"]

    assert roles_that_may(LAUNCH, p=launch("__ASSET_JOB", stage)) == {Role.STEWARD}
    assert roles_that_may(LAUNCH, p=launch("__ASSET_JOB", current)) == {Role.OPERATOR}
    assert roles_that_may(LAUNCH, p=launch("__ASSET_JOB_0", stage, current)) == set()
    assert roles_that_may(LAUNCH, p=launch("__ASSET_JOB")) == set()
    assert roles_that_may(LAUNCH, p=launch("stage_orders", current)) == set()


def test_a_selected_check_needs_what_its_asset_needs():
    parameters = launch("__ASSET_JOB")
    parameters["selector"]["assetCheckSelection"] = [
        {"assetKey": {"path": ["orders", "current"]}, "name": "x"}
    ]

    assert roles_that_may(LAUNCH, p=parameters) == {Role.OPERATOR}


def test_two_names_for_one_job_need_what_both_need():
    parameters = launch("stage_orders")
    parameters["selector"]["jobName"] = "promote_orders"

    assert roles_that_may(LAUNCH, p=parameters) == set()


def test_a_launch_without_a_job_is_refused():
    with pytest.raises(InvalidArgumentError, match="names nothing to run"):
        post(LAUNCH, granted(*Role), p=launch(""))


AGAIN = """mutation($p: ReexecutionParams) {
  launchRunReexecution(reexecutionParams: $p) { __typename }
}"""


@pytest.mark.parametrize(
    ("run", "roles"),
    [
        ("staged", {Role.STEWARD}),
        ("applied", {Role.ADMINISTRATOR}),
        ("materialized", {Role.OPERATOR}),
        ("unknown", set()),
    ],
)
def test_executing_a_run_again_needs_what_the_run_needed(run, roles):
    parameters = {"parentRunId": run, "strategy": "ALL_STEPS"}

    assert roles_that_may(AGAIN, p=parameters) == roles


def test_a_backfill_needs_an_operator_and_what_its_assets_need():
    keys = [{"path": ["reports", "daily"]}]
    ranges = [{"assetKey": {"path": ["orders", "stage"]}}]

    assert roles_that_may(LAUNCH_BACKFILL, p={"assetSelection": keys}) == {Role.OPERATOR}
    assert roles_that_may(LAUNCH_BACKFILL, p={"partitionsByAssets": ranges}) == set()
    assert may(LAUNCH_BACKFILL, Role.OPERATOR, Role.STEWARD, p={"partitionsByAssets": ranges})


def test_a_backfill_needs_what_the_job_of_its_partitions_needs():
    selector = {"partitionSetName": "stage_orders_partition_set", "repositorySelector": REPOSITORY}
    keys = [{"path": ["reports", "daily"]}]

    assert (
        roles_that_may(LAUNCH_BACKFILL, p={"selector": selector, "assetSelection": keys}) == set()
    )
    assert may(LAUNCH_BACKFILL, Role.OPERATOR, Role.STEWARD, p={"selector": selector})


def test_a_backfill_is_never_submitted_in_somebodys_name():
    parameters = {"assetSelection": [], "forceSynchronousSubmission": True}

    with pytest.raises(GuardError, match="in nobody's name"):
        post(LAUNCH_BACKFILL, granted(*Role), p=parameters)


def test_configuration_from_the_environment_is_refused_to_every_role():
    parameters = launch("stage_orders", runConfigData={"ops": {"a": {"env": "HOME"}}})

    with pytest.raises(GuardError, match="may not read environment variables"):
        post(LAUNCH, granted(*Role), p=parameters)


def test_a_query_may_not_read_the_environment_either():
    query = '{ isPipelineConfigValid(runConfigData: {a: {env: "HOME"}}) { __typename } }'

    assert roles_that_may(query) == set()


@pytest.mark.parametrize("field", ["capturedLogs", "capturedLogsMetadata"])
def test_compute_logs_are_for_stewards_alone(field):
    query = f'{{ {field}(logKey: ["a"]) {{ __typename }} }}'

    assert roles_that_may(query) == {Role.STEWARD}


def test_queries_are_for_readers():
    # Whoever reaches the route may read; the route itself is what asks for the role.
    assert post("{ version }", granted(Role.VIEWER)) == ()


def test_subscriptions_and_nothing_else_go_over_the_websocket():
    subscription = 'subscription { pipelineRunLogs(runId: "a") { __typename } }'
    over_websocket = gate().admit_subscription

    over_websocket({"query": subscription}, granted(Role.VIEWER))
    for query in (
        mutation("logTelemetry"),
        "{ version }",
        f"{subscription[:-1]} }} mutation {{ setNuxSeen }}",
    ):
        with pytest.raises(GuardError, match="only subscriptions"):
            over_websocket({"query": query}, granted(*Role))
    with pytest.raises(GuardError, match="over the WebSocket"):
        post(subscription, granted(*Role))


def test_logs_over_the_websocket_are_not_for_viewers():
    payload = {"query": 'subscription { capturedLogs(logKey: ["a"]) { stdout } }'}

    gate().admit_subscription(payload, granted(Role.STEWARD))
    with pytest.raises(GuardError, match="reading compute logs"):
        gate().admit_subscription(payload, granted(Role.VIEWER))


def test_a_refusal_says_what_would_help():
    with pytest.raises(GuardError) as refused:
        post(LAUNCH, granted(Role.VIEWER), p=launch("stage_orders"))

    assert refused.value.code == "not_authorised"
    assert str(refused.value) == (
        "launchRun needs the role steward on datasource 'orders', which ann does not have; "
        "an administrator can give it: actor grant ann steward"
    )


def test_literals_of_the_tests_fit_every_required_argument():
    assert literal(schema().type_map["SensorSelector"]).count(":") == 3
