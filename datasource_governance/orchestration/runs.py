"""What Dagster knows of runs; shown to people, never decided by.

Source: SPEC section 15 ("projection").
"""

from dataclasses import dataclass

from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.orchestration.client import DagsterClient
from datasource_governance.orchestration.metadata import REPLAYED
from datasource_governance.orchestration.sensors import STAGE_TAG

_QUERY = """query Runs($tags: [ExecutionTag!]) {
  runsOrError(filter: {tags: $tags}) {
    ... on Runs { results { runId status tags { key value } } } } }"""
_PUBLISHED = """query Published($id: ID!) { runOrError(runId: $id) { ... on Run {
  assetMaterializations {
    metadataEntries { label ... on BoolMetadataEntry { boolValue } } } } } }"""
_SENSOR_TAG = "dagster/sensor_name"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRun:
    """A run about a stage. `sensor` launched it; None: somebody or something else did."""

    id: str
    status: str
    sensor: str | None


def newest_run_about(client: DagsterClient, stage_id: str) -> StageRun | None:
    """Return the newest run that is tagged with a stage; None if there is none.

    Raises:
        GuardError: when the gate refuses to tell.
        ServiceUnavailableError: when the webserver does not answer.
    """
    answer = client.ask(_QUERY, tags=[{"key": STAGE_TAG, "value": stage_id}])
    runs = answer["runsOrError"].get("results")
    if runs is None:
        raise ServiceUnavailableError(f"Dagster at {client.url} cannot tell its runs")
    if not runs:
        return None
    tags = {tag["key"]: tag["value"] for tag in runs[0]["tags"]}
    return StageRun(id=runs[0]["runId"], status=runs[0]["status"], sensor=tags.get(_SENSOR_TAG))


def replayed_by(client: DagsterClient, run_id: str) -> list[bool]:
    """Return of each publication that a run shows whether it had been published before.

    Raises:
        GuardError: when the gate refuses to tell.
        ServiceUnavailableError: when the webserver does not answer.
    """
    shown = client.ask(_PUBLISHED, id=run_id)["runOrError"].get("assetMaterializations", ())
    return [
        bool(entry["boolValue"])
        for materialization in shown
        for entry in materialization["metadataEntries"]
        if entry["label"] == REPLAYED
    ]
