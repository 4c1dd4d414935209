"""`dagster dev -w workspace.yaml` works against a server that runs, with the repository's files."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from datasource_governance.persistence.loopback import any_free_port

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
            loaded = location_type(port, process)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(START_SECONDS)
            finally:
                os.killpg(process.pid, signal.SIGKILL) if process.poll() is None else None

    assert loaded == "RepositoryLocation"


def location_type(port, process):
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/graphql",
            data=json.dumps({"query": QUERY}).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310 - loopback
                entries = json.load(response)["data"]["workspaceOrError"]["locationEntries"]
        except (urllib.error.URLError, OSError):
            entries = []
        if entries and entries[0]["locationOrLoadError"] is not None:
            return entries[0]["locationOrLoadError"]["__typename"]
        time.sleep(0.5)
    return "did not start"
