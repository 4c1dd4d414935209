"""What Dagster knows of the runs about a stage; shown to people, never decided by.

Source: SPEC section 15 ("projection").
"""

import json
import urllib.request

from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.orchestration.sensors import STAGE_TAG

_QUERY = """query Runs($tags: [ExecutionTag!]) {
  runsOrError(filter: {tags: $tags}) {
    ... on Runs { results { runId status tags { key value } } } } }"""
_SENSOR_TAG = "dagster/sensor_name"


def sensor_that_promoted(url: str, stage_id: str) -> str | None:
    """Return the sensor that launched the newest run about a stage; None if no sensor did.

    Raises:
        ServiceUnavailableError: when the webserver does not answer.
    """
    variables = {"tags": [{"key": STAGE_TAG, "value": stage_id}]}
    request = urllib.request.Request(
        f"{url}/graphql",
        data=canonical_bytes({"query": _QUERY, "variables": variables}),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            runs = json.load(response)["data"]["runsOrError"]["results"]
    except OSError:
        runs = None
    if runs is None:
        raise ServiceUnavailableError(f"no Dagster webserver answers at {url}")
    tags = {tag["key"]: tag["value"] for run in runs[:1] for tag in run["tags"]}
    return tags.get(_SENSOR_TAG)
