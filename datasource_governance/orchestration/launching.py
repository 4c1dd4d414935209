"""Launch a stage job on the running system and wait for its stage.

Source: SPEC section 6 (`stage create` … launches the job and waits).
"""

import time
from collections.abc import Mapping
from typing import cast
from urllib.parse import SplitResult, urlsplit

from datasource_governance.errors import (
    GovernanceError,
    InvalidArgumentError,
    ServiceUnavailableError,
)

POLL_SECONDS = 0.5
WAIT_SECONDS = 300.0


def launch(url: str, job: str, run_config: Mapping[str, object]) -> str:
    """Launch a job through the webserver at `url`; return the run's id.

    Raises:
        ServiceUnavailableError: when no webserver answers there or the job is not loaded.
    """
    from dagster_graphql import DagsterGraphQLClient, DagsterGraphQLClientError

    try:
        run_id: str = _client(url, DagsterGraphQLClient).submit_job_execution(
            job, run_config=dict(run_config)
        )
    except DagsterGraphQLClientError:
        run_id = ""
    if not run_id:
        raise ServiceUnavailableError(
            f"Dagster at {url} did not launch {job}; is it running, and is its code location "
            "loaded? `--in-process` works without Dagster"
        )
    return run_id


def wait_for_run(url: str, run_id: str) -> str:
    """Wait until a run has ended and return its status: SUCCESS, FAILURE or CANCELED.

    Raises:
        GovernanceError: code `run_timeout` after five minutes.
    """
    from dagster_graphql import DagsterGraphQLClient, DagsterGraphQLClientError

    client = _client(url, DagsterGraphQLClient)
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        try:
            status = str(client.get_run_status(run_id).value)
        except DagsterGraphQLClientError:
            status = "UNKNOWN"
        if status in ("SUCCESS", "FAILURE", "CANCELED"):
            return status
        time.sleep(POLL_SECONDS)
    raise GovernanceError(
        f"run {run_id} did not end within {WAIT_SECONDS:.0f} seconds; look at {url}/runs/{run_id}",
        code="run_timeout",
    )


def dagster_address(url: str) -> SplitResult:
    """Return the parts of a webserver's address.

    Raises:
        InvalidArgumentError: when it is not of the form `http://host:port` or `https://…`.
    """
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts
    except ValueError:
        pass
    raise InvalidArgumentError(
        "GOVERNANCE_DAGSTER_URL must be the address of a Dagster webserver, http://host:port"
    )


def _client(url: str, client: type) -> "DagsterGraphQLClient":  # type: ignore[name-defined]  # noqa: F821 - the class is imported where it is used
    from dagster_graphql import DagsterGraphQLClientError

    parts = dagster_address(url)
    try:
        made = client(
            cast("str", parts.hostname),
            port_number=parts.port,
            use_https=parts.scheme == "https",
        )
    except DagsterGraphQLClientError:
        made = None
    if made is None:
        raise ServiceUnavailableError(
            f"no Dagster webserver answers at {url}; start one (`datasource-governance dev`), set "
            "GOVERNANCE_DAGSTER_URL, or use --in-process"
        )
    return made
