"""What Dagster knows of the runs about a stage; shown to people, never decided by.

Source: SPEC section 15 ("projection").
"""

import json
import urllib.request
from dataclasses import dataclass

from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.orchestration.launching import dagster_address
from datasource_governance.orchestration.sensors import STAGE_TAG

_QUERY = """query Runs($tags: [ExecutionTag!]) {
  runsOrError(filter: {tags: $tags}) {
    ... on Runs { results { runId status tags { key value } } } } }"""
_SENSOR_TAG = "dagster/sensor_name"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRun:
    """A run about a stage. `sensor` launched it; None: somebody or something else did."""

    id: str
    status: str
    sensor: str | None


def newest_run_about(url: str, stage_id: str) -> StageRun | None:
    """Return the newest run that is tagged with a stage; None if there is none.

    Raises:
        InvalidArgumentError: when `url` is not the address of a webserver.
        ServiceUnavailableError: when the webserver does not answer.
    """
    dagster_address(url)
    variables = {"tags": [{"key": STAGE_TAG, "value": stage_id}]}
    request = urllib.request.Request(  # noqa: S310 - our own webserver's address
        f"{url}/graphql",
        data=canonical_bytes({"query": _QUERY, "variables": variables}),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310 - as above
            runs = json.load(response)["data"]["runsOrError"]["results"]
    except OSError:
        runs = None
    if runs is None:
        raise ServiceUnavailableError(f"no Dagster webserver answers at {url}")
    if not runs:
        return None
    tags = {tag["key"]: tag["value"] for tag in runs[0]["tags"]}
    return StageRun(id=runs[0]["runId"], status=runs[0]["status"], sensor=tags.get(_SENSOR_TAG))
