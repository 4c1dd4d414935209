"""Whether the processes of a system answer, asked from outside as anyone else would.

Source: SPEC section 16, `dev`.
"""

import socket
from pathlib import Path

from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.orchestration.client import DagsterClient

_QUERY = """{
  instance { daemonHealth { allDaemonStatuses { required lastHeartbeatTime } } }
  workspaceOrError { ... on Workspace {
    locationEntries { name loadStatus locationOrLoadError { __typename } } } }
}"""


def accepts_connections(path: Path) -> bool:
    """Whether a server listens on the Unix socket at `path`."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def is_healthy(client: DagsterClient, *, since: float) -> bool:
    """Whether the webserver answers, every required daemon beats and the code location is loaded.

    Heartbeats before `since`, in seconds since the epoch, were a former daemon's; Dagster itself
    counts them for half an hour. Behind the gate only a reader is told.

    Raises:
        GuardError: the gate refuses to tell.
        ServiceUnavailableError: the code location cannot be loaded.
    """
    try:
        report = client.ask(_QUERY)
    except ServiceUnavailableError:
        return False
    locations = report["workspaceOrError"].get("locationEntries", ())
    loaded = [entry for entry in locations if entry["loadStatus"] == "LOADED"]
    for entry in loaded:
        if entry["locationOrLoadError"]["__typename"] == "PythonError":
            message = f"code location {entry['name']} cannot be loaded; see code_server.log"
            raise ServiceUnavailableError(message, location=entry["name"])
    daemons = report["instance"]["daemonHealth"]["allDaemonStatuses"]
    beats = [each["lastHeartbeatTime"] or 0 for each in daemons if each["required"]]
    return bool(loaded) and min(beats, default=0) >= since
