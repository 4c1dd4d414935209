"""Every way to launch a run, with an attempt to be somebody else: who is proved to have done it.

The rows are those of the reference page on identity. Each looks at what Postgres says of the stage
or the promotion; a tag is looked at only for what it shows.
"""

import json
import os
import subprocess
import sys

import dagster as dg
import pytest
from dagster_graphql import DagsterGraphQLClient
from dagster_webserver.app import create_app_from_workspace_process_context

from datasource_governance.domain.actor import SYSTEM, UNATTESTED
from datasource_governance.orchestration.jobs import promotion_run_config, stage_run_config
from datasource_governance.orchestration.registry import governed_definitions
from datasource_governance.web.settings import WebSettings
from datasource_governance_tests.end_to_end.running import (
    BOSS,
    BY_SCHEDULE,
    BY_SENSOR,
    LOCATION,
    PARTITIONS,
    TAG,
    running_system,
)
from datasource_governance_tests.orchestration.governed import (
    GOOD_TABLE,
    POLICY,
    REVIEW,
    declaration,
)
from datasource_governance_tests.web.serving import REPOSITORY, Client, free_port, listening
from datasource_governance_tests.world import TWO_APPROVALS

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(900)]

FOUND = """__typename ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message stack }
    ... on RunConfigValidationInvalid { errors { message } }"""
ONE = f"mutation($p: ExecutionParams!) {{ launchRun(executionParams: $p) {{ {FOUND} }} }}"
SEVERAL = f"""mutation($p: [ExecutionParams!]!) {{ launchMultipleRuns(executionParamsList: $p) {{
    ... on LaunchMultipleRunsResult {{ launchMultipleRunsResult {{ {FOUND} }} }} }} }}"""
AGAIN = f"""mutation($p: ReexecutionParams) {{
    launchRunReexecution(reexecutionParams: $p) {{ {FOUND} }} }}"""
BACKFILL = """mutation($p: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $p) {
    __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
SPOOFED = {TAG: BOSS, "user": BOSS, "dagster/owner": BOSS}


@pytest.fixture(scope="module")
def system(template, tmp_path_factory):
    with running_system(template, tmp_path_factory.mktemp("launching")) as running:
        yield running


def selector(job: str, *assets: list[str]) -> dict[str, object]:
    return {
        "pipelineName": job,
        "repositoryName": REPOSITORY,
        "repositoryLocationName": LOCATION,
        "assetSelection": [{"path": path} for path in assets] or None,
    }


def parameters(job: str, config: object, *assets: list[str], tags=SPOOFED) -> dict[str, object]:
    """Return a launch with tags that claim to be somebody else."""
    metadata = {"tags": [{"key": key, "value": value} for key, value in tags.items()]}
    return {
        "selector": selector(job, *assets),
        "runConfigData": json.dumps(config),
        "executionMetadata": metadata,
    }


def staging(delivery: str, attestation: str = "", **options) -> dict[str, object]:
    return parameters("stage_orders", stage_run_config("orders", delivery, attestation), **options)


def launched(system, name: str, query: str = ONE, p=None) -> str:
    """Launch as somebody who signed in; return the run's id."""
    (result,) = system.web.client(name).ask(query, p=p).json()["data"].values()
    assert result["__typename"] == "LaunchRunSuccess", result
    return result["run"]["runId"]


def shown(system, run_id: str) -> str:
    return system.run(run_id).tags[TAG]


# Through the governed webserver, signed in.


def test_from_the_launchpad_it_is_whoever_signed_in_who_then_cannot_approve(system):
    delivery = system.deliver("by_launchpad")

    run_id = launched(system, "steward", p=staging(delivery))

    assert system.creator_of(run_id, delivery) == "steward"
    assert shown(system, run_id) == "steward"
    stage = system.stage_of(delivery)
    with system.world.refuses("creator_cannot_approve"):
        system.world.decide("steward", stage)


def test_from_a_selection_of_assets_it_is_whoever_signed_in(system):
    delivery = system.deliver("by_selection")
    config = stage_run_config("orders", delivery, "")

    run_id = launched(system, "steward", p=parameters("__ASSET_JOB", config, ["orders", "stage"]))

    assert system.creator_of(run_id, delivery) == "steward"


def test_executed_again_it_is_whoever_does_so_with_the_parents_tags_and_all(system):
    delivery = system.deliver("by_reexecution")
    parent = launched(system, "steward", p=staging(delivery))
    first = system.creator_of(parent, delivery)
    extra = [{"key": TAG, "value": BOSS}]
    again = {
        "parentRunId": parent,
        "strategy": "ALL_STEPS",
        "useParentRunTags": True,
        "extraTags": extra,
    }

    run_id = launched(system, "second-steward", AGAIN, again)

    assert system.finished(run_id).is_success
    assert first == "steward"
    assert {stage.creator for stage in system.stages_of(delivery)} == {"steward", "second-steward"}
    assert shown(system, run_id) == "second-steward"


def test_a_copied_attestation_proves_nothing_in_tags_or_in_configuration(system):
    first = system.deliver("attested_first")
    assert system.creator_of(launched(system, "steward", p=staging(first)), first) == "steward"
    copied = system.stage_of(first).attestation_id
    tags = {"datasource_governance/attestation": copied, TAG: "steward"}
    by_tag, by_config = system.deliver("by_tag"), system.deliver("by_config", REVIEW)

    tagged = launched(system, "second-steward", p=staging(by_tag, tags=tags))
    configured = launched(system, "second-steward", p=staging(by_config, copied))

    assert system.creator_of(tagged, by_tag) == "second-steward"
    assert not system.finished(configured).is_success
    assert "another delivery" in system.failure_of(configured)
    assert system.stages_of(by_config) == []


def test_anothers_attestation_of_another_file_creates_nothing(system):
    attestation = system.world.attest_delivery("creator", "0" * 64)
    delivery = system.deliver("by_anothers")

    run_id = launched(system, "steward", p=staging(delivery, attestation))

    assert not system.finished(run_id).is_success
    assert "another subject" in system.failure_of(run_id)
    assert system.stages_of(delivery) == []


# Dagster's client asks its library in a way that this one will not answer for ever.
@pytest.mark.filterwarnings("ignore:Using variable_values:DeprecationWarning")
def test_through_dagsters_own_client_it_is_whose_token_it_sends_not_whom_headers_name(system):
    delivery = system.deliver("by_client")
    origin = system.web.client().origin
    token = system.world.signer("second-steward").bearer_token(origin)
    claimed = ("X-Forwarded-User", "X-Auth-Request-Email", "X-Governance-Actor", "Remote-User")
    client = DagsterGraphQLClient(
        "127.0.0.1",
        port_number=system.web.port,
        headers={"Authorization": f"Bearer {token}", **dict.fromkeys(claimed, BOSS)},
    )

    run_id = client.submit_job_execution(
        "stage_orders", run_config=stage_run_config("orders", delivery, ""), tags=SPOOFED
    )

    assert system.creator_of(run_id, delivery) == "second-steward"
    assert shown(system, run_id) == "second-steward"


def test_several_launches_are_each_of_whoever_signed_in(system):
    deliveries = [system.deliver(f"by_several_{number}") for number in range(2)]

    answer = system.web.client("steward").ask(SEVERAL, p=[staging(each) for each in deliveries])

    results = answer.json()["data"]["launchMultipleRuns"]["launchMultipleRunsResult"]
    run_ids = [result["run"]["runId"] for result in results]
    creators = [
        system.creator_of(run_id, delivery)
        for run_id, delivery in zip(run_ids, deliveries, strict=True)
    ]
    assert creators == ["steward", "steward"]


def test_a_promotion_is_of_the_operator_who_launches_it(system):
    stage = system.other.stage(table=GOOD_TABLE)
    config = promotion_run_config("countries", stage.id)

    run_id = launched(system, "operator", p=parameters("promote_countries", config))

    assert system.finished(run_id).is_success, system.failure_of(run_id)
    assert promoter_of(system, stage) == "operator"


def promoter_of(system, stage) -> str | None:
    with system.world.application.work() as work:
        made = work.materializations.of_stage(stage.id)
    return made and made.created_by


# Through the governed webserver, refused before any run is.


def test_without_signing_in_nothing_is_launched(system):
    delivery = system.deliver("by_nobody")
    client = system.web.client()
    before = system.instance.get_runs_count()

    answers = [
        client.ask(ONE, headers, p=staging(delivery))
        for headers in ({}, {"X-Forwarded-User": BOSS}, {"Authorization": "Bearer boss"})
    ]

    assert {answer.status for answer in answers} == {401}
    assert system.instance.get_runs_count() == before


def test_over_the_websocket_nothing_is_launched(system):
    from datasource_governance_tests.web.test_gate import subscribe

    delivery = system.deliver("by_websocket")
    before = system.instance.get_runs_count()

    answer = subscribe(system.web.client("steward"), ONE, p=staging(delivery))

    assert answer["type"] == "error"
    assert system.instance.get_runs_count() == before


# Ways that carry nobody: the daemon, the command line, Dagster's own webserver.


def test_a_backfill_is_nobodys_though_somebody_signed_in_and_asked_for_it(system):
    partition_set = {
        "partitionSetName": "stage_by_partition_partition_set",
        "repositorySelector": {
            "repositoryName": REPOSITORY,
            "repositoryLocationName": LOCATION,
        },
    }
    tags = [{"key": key, "value": value} for key, value in SPOOFED.items()]
    wanted = {"selector": partition_set, "partitionNames": list(PARTITIONS), "tags": tags}

    answer = system.web.client("backfiller").ask(BACKFILL, p=wanted)

    result = answer.json()["data"]["launchPartitionBackfill"]
    assert result["__typename"] == "LaunchBackfillSuccess", result
    for partition in PARTITIONS:
        assert system.stage_of(f"by_backfill_{partition}.csv").creator == UNATTESTED
    runs = system.runs_of(backfill=result["backfillId"])
    assert {run.tags[TAG] for run in runs} == {UNATTESTED}


@pytest.mark.parametrize(
    ("delivery", "by"),
    [
        (BY_SENSOR, {"sensor_name": "staging_sensor"}),
        (BY_SCHEDULE, {"schedule_name": "staging_schedule"}),
    ],
)
def test_what_launches_by_itself_is_nobodys(system, delivery, by):
    assert system.stage_of(delivery).creator == UNATTESTED
    assert {run.tags[TAG] for run in system.runs_of(**by)} == {UNATTESTED}


def test_a_promotion_by_the_quorum_sensor_is_the_systems(system):
    stage = system.world.stage(table=GOOD_TABLE)
    for approver in ("approver-1", "approver-2"):
        system.world.decide(approver, stage)

    promoted = system._await(lambda: promoter_of(system, stage), "a promotion")

    assert promoted == SYSTEM


@pytest.fixture(scope="module")
def stock(system, tmp_path_factory):
    """A client of Dagster's own webserver, which knows nobody and checks nothing."""
    settings = WebSettings(directory=tmp_path_factory.mktemp("stock"), port=free_port())
    with listening(create_app_from_workspace_process_context(system.web.context), settings):
        yield Client(settings.port, headers={"X-Forwarded-User": BOSS})


def test_through_dagsters_own_webserver_it_is_nobodys(system, stock):
    delivery = system.deliver("by_stock")

    (result,) = stock.ask(ONE, p=staging(delivery)).json()["data"].values()

    run_id = result["run"]["runId"]
    assert system.creator_of(run_id, delivery) == UNATTESTED
    assert shown(system, run_id) == UNATTESTED


def test_through_dagsters_own_webserver_no_configuration_reads_the_environment(system, stock):
    config = {"ops": {"report": {"config": {"text": {"env": "DAGSTER_DATABASE_URL"}}}}}

    (result,) = stock.ask(ONE, p=parameters("reporting", config)).json()["data"].values()

    assert result == {
        "__typename": "PythonError",
        "message": 'run configuration may not read environment variables: {"env": …}',
        "stack": [],
    }


def command(system, *arguments: str) -> None:
    """Run a command of Dagster's beside the running system."""
    done = subprocess.run(
        [sys.executable, "-m", "dagster", *arguments],
        cwd=system.directory,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_dagster_job_launch_is_nobodys(system):
    delivery = system.deliver("by_job_launch")
    config = json.dumps(stage_run_config("orders", delivery, ""))
    run_id = "11111111-2222-3333-4444-555555555555"

    command(
        system,
        *("job", "launch", "-w", "workspace.yaml", "-l", LOCATION, "-j", "stage_orders"),
        *("--config-json", config, "--tags", json.dumps(SPOOFED), "--run-id", run_id),
    )

    assert system.creator_of(run_id, delivery) == UNATTESTED
    assert shown(system, run_id) == UNATTESTED


def test_dagster_job_execute_is_nobodys_whatever_tag_it_keeps(system):
    delivery = system.deliver("by_job_execute")
    (system.directory / "config.json").write_text(
        json.dumps(stage_run_config("orders", delivery, ""))
    )

    command(
        system,
        *("job", "execute", "-f", f"{LOCATION}.py", "-j", "stage_orders", "-c", "config.json"),
        *("--tags", json.dumps(SPOOFED)),
    )

    assert system.stage_of(delivery).creator == UNATTESTED


def test_executed_in_process_it_is_nobodys_even_under_the_id_of_a_run_that_was_attested(system):
    first, second = system.deliver("attested"), system.deliver("by_process")
    attested = launched(system, "steward", p=staging(first))
    system.finished(attested)
    job = governed_definitions(
        [declaration(POLICY, TWO_APPROVALS)], system.world.application
    ).resolve_job_def("stage_orders")
    with dg.DagsterInstance.ephemeral() as elsewhere:
        for run_id in (attested, None):
            run = job.execute_in_process(
                run_config=stage_run_config("orders", second, ""),
                tags=SPOOFED,
                instance=elsewhere,
                run_id=run_id,
            )
            assert run.success

    assert {stage.creator for stage in system.stages_of(second)} == {UNATTESTED}


def test_a_promotion_from_the_command_line_is_the_systems_which_may_not_review(system):
    stage = system.other.stage(table=GOOD_TABLE)
    run_id = "11111111-2222-3333-4444-666666666666"

    command(
        system,
        *("job", "launch", "-w", "workspace.yaml", "-l", LOCATION, "-j", "promote_countries"),
        *("--config-json", json.dumps(promotion_run_config("countries", stage.id))),
        *("--tags", json.dumps({TAG: "operator"}), "--run-id", run_id),
    )

    assert not system.finished(run_id).is_success
    assert "waits for an operator" in system.failure_of(run_id)
    assert promoter_of(system, stage) is None


def test_an_attestation_made_on_the_command_line_proves_its_signer_whatever_launches_the_run(
    system,
):
    delivery = system.deliver("by_attestation")
    declared = declaration(POLICY, TWO_APPROVALS)
    _, sha256 = system.world.application.read_delivery(declared, delivery)
    attestation = system.world.attest_delivery("creator", sha256)
    run_id = "11111111-2222-3333-4444-777777777777"

    command(
        system,
        *("job", "launch", "-w", "workspace.yaml", "-l", LOCATION, "-j", "stage_orders"),
        *("--config-json", json.dumps(stage_run_config("orders", delivery, attestation))),
        *("--tags", json.dumps(SPOOFED), "--run-id", run_id),
    )

    assert system.creator_of(run_id, delivery) == "creator"


def test_at_the_end_every_stage_and_promotion_is_accounted_for_by_a_signature(system):
    assert system.world.verification().breaks == ()
