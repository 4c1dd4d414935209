"""Launch a job on the running system and wait for its end.

Source: SPEC section 6 (`stage create` … launches the job and waits).
"""

import time
from collections.abc import Mapping
from typing import Any

from datasource_governance.errors import GovernanceError, GuardError, ServiceUnavailableError
from datasource_governance.orchestration.client import DagsterClient

POLL_SECONDS = 0.5
WAIT_SECONDS = 300.0
JOBS = """{ repositoriesOrError { ... on RepositoryConnection {
    nodes { name location { name } jobs { name } } } } }"""
LAUNCH = """mutation Launch($parameters: ExecutionParams!) {
  launchRun(executionParams: $parameters) {
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { className message } } }"""
_LAUNCH_AGAIN = """mutation LaunchAgain($parameters: ReexecutionParams!) {
  launchRunReexecution(reexecutionParams: $parameters) {
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { className message } } }"""
_STATUS = """query Status($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"""


def launch(client: DagsterClient, job: str, run_config: Mapping[str, object]) -> str:
    """Launch a job; return the run's id.

    Raises:
        GuardError: when the gate or the run coordinator refuses it.
        ServiceUnavailableError: when no webserver answers or the job is not loaded.
    """
    selector = selector_of(client.ask(JOBS), job)
    if selector is not None:
        parameters = {"selector": selector, "runConfigData": dict(run_config)}
        run_id = launched(client.ask(LAUNCH, parameters=parameters)["launchRun"])
        if run_id is not None:
            return run_id
    raise ServiceUnavailableError(
        f"Dagster at {client.url} did not launch {job}; is its code location loaded? "
        "`--in-process` works without Dagster"
    )


def launch_again(client: DagsterClient, run_id: str) -> str:
    """Execute every step of a run again, as a run that knows its parent; return the new one's id.

    Raises:
        GuardError: when the gate or the run coordinator refuses it.
        ServiceUnavailableError: when no webserver answers or the job is not loaded any more.
    """
    parameters = {"parentRunId": run_id, "strategy": "ALL_STEPS"}
    answer = client.ask(_LAUNCH_AGAIN, parameters=parameters)["launchRunReexecution"]
    again = launched(answer)
    if again is None:
        raise ServiceUnavailableError(
            f"Dagster at {client.url} did not execute run {run_id} again; is its code location "
            "loaded?"
        )
    return again


def launched(answer: Mapping[str, object]) -> str | None:
    """Return the id of the run that a launch is answered with; None when Dagster could not.

    Raises:
        GuardError: when the run coordinator refused it.
    """
    match answer:
        case {"run": {"runId": str(run_id)}}:
            return run_id
        case {"className": GuardError.__name__, "message": str(sentence)}:
            raise GuardError(sentence)
    return None


def wait_for_run(client: DagsterClient, run_id: str) -> str:
    """Wait until a run has ended and return its status: SUCCESS, FAILURE or CANCELED.

    Raises:
        GuardError: when the gate refuses to tell.
        GovernanceError: code `run_timeout` after five minutes.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        try:
            status = client.ask(_STATUS, id=run_id)["runOrError"].get("status")
        except ServiceUnavailableError:
            status = None
        if status in ("SUCCESS", "FAILURE", "CANCELED"):
            return str(status)
        time.sleep(POLL_SECONDS)
    raise GovernanceError(
        f"run {run_id} did not end within {WAIT_SECONDS:.0f} seconds; look at "
        f"{client.url}/runs/{run_id}",
        code="run_timeout",
    )


def selector_of(answer: Mapping[str, Any], job: str) -> dict[str, str] | None:
    """Return where a job is, of all that `JOBS` is answered with; None when it is not loaded."""
    for repository in answer["repositoriesOrError"].get("nodes", ()):
        if any(each["name"] == job for each in repository["jobs"]):
            return {
                "repositoryLocationName": repository["location"]["name"],
                "repositoryName": repository["name"],
                "jobName": job,
            }
    return None
