"""`dagster dev -w workspace.yaml` works against a server that runs, with the repository's files.

It has no gate, and answers whoever signs a token as it answers anybody.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.orchestration.client import DagsterClient
from datasource_governance.persistence.loopback import any_free_port
from datasource_governance.signing import Signer, create_key

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

REPOSITORY = Path(__file__).parents[2]
START_SECONDS = 150
QUERY = """{ workspaceOrError { ... on Workspace {
    locationEntries { locationOrLoadError { __typename } } } } }"""


def test_dagster_dev_loads_the_code_location_with_the_instance_beside_it(
    governance_database, dagster_database, tmp_path
):
    for name in ("workspace.yaml", "dagster.yaml"):
        shutil.copy(REPOSITORY / name, tmp_path / name)
    port = any_free_port()
    create_key(tmp_path, "casey")
    client = DagsterClient(f"http://127.0.0.1:{port}", Signer(tmp_path, "casey", "default"))
    environment = {
        **{name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"},
        "GOVERNANCE_DATABASE_URL": governance_database.application_url,
        "DAGSTER_DATABASE_URL": dagster_database,
    }
    command = [sys.executable, "-m", "dagster", "dev", "-w", "workspace.yaml", "-p", str(port)]

    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            command,
            cwd=tmp_path,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ) as process,
    ):
        try:
            loaded = location_type(client, process)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # how it stops is Dagster's own matter

    assert loaded == "RepositoryLocation"


def location_type(client, process):
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            entries = client.ask(QUERY)["workspaceOrError"]["locationEntries"]
        except ServiceUnavailableError:
            entries = []
        if entries and entries[0]["locationOrLoadError"] is not None:
            return entries[0]["locationOrLoadError"]["__typename"]
        time.sleep(0.5)
    return "did not start"
