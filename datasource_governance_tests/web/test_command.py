"""`webserver` and `webserver account`, as processes."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from datasource_governance.domain.actor import Role
from datasource_governance.web.accounts import Accounts, read_accounts
from datasource_governance_tests.web.serving import CODE, LOCATION, PASSWORD, Client, free_port
from datasource_governance_tests.world import new_world

COMMAND = [sys.executable, "-c", "from datasource_governance.cli import main; main()", "webserver"]
_START_SECONDS = 60


def run(*arguments: str, directory, typed: str = "") -> subprocess.CompletedProcess[str]:
    foreign = ("GOVERNANCE_", "DAGSTER_", "DATABASE_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=directory,
        env=environment,
        input=typed,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_account_is_made_from_a_line_on_the_standard_input(tmp_path):
    arguments = ("account", "Ann", "--actor", "ann@example.org", "--json")

    ended = run(*arguments, directory=tmp_path, typed=f"{PASSWORD}\nmore\n")

    path = tmp_path / ".governance" / "webserver" / "accounts.json"
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["actor"] == "ann@example.org"
    assert Accounts(path).verify("ann", PASSWORD).actor == "ann@example.org"
    assert PASSWORD not in ended.stdout + ended.stderr


def test_an_account_stands_for_the_actor_of_its_name_and_can_be_removed(tmp_path):
    run("account", "ann", directory=tmp_path, typed=PASSWORD)
    path = tmp_path / ".governance" / "webserver" / "accounts.json"
    assert read_accounts(path)["ann"].actor == "ann"

    assert run("account", "ANN", "--remove", directory=tmp_path).returncode == 0
    assert read_accounts(path) == {}
    assert run("account", "ann", "--remove", directory=tmp_path).returncode == 2


@pytest.mark.parametrize("typed", ["", "\n", "too short\n"])
def test_no_password_or_a_short_one_makes_no_account(tmp_path, typed):
    ended = run("account", "ann", directory=tmp_path, typed=typed)

    assert ended.returncode == 2
    assert not (tmp_path / ".governance" / "webserver" / "accounts.json").exists()


def test_without_a_workspace_nothing_is_served(tmp_path):
    ended = run(directory=tmp_path)

    assert ended.returncode == 2
    assert "name the workspace file" in ended.stderr


@pytest.mark.postgres
@pytest.mark.slow
def test_the_webserver_serves_and_stops_cleanly(governance_database, tmp_path):
    world = new_world(governance_database, tmp_path)
    world.admit("viewer", Role.VIEWER)
    world.application.close()
    run("account", "viewer", directory=tmp_path, typed=PASSWORD)
    (tmp_path / LOCATION).write_text(CODE)
    (tmp_path / "workspace.yaml").write_text(f"load_from: [{{python_file: {LOCATION}}}]\n")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(tmp_path / "home"),
        "GOVERNANCE_DATABASE_URL": governance_database.application_url,
    }
    client = Client(free_port())

    with subprocess.Popen(
        [*COMMAND, "--port", str(client.port)],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        wait_for(client, process)
        signed_in = client.sign_in("viewer").status
        page = client.get("/").status
        process.send_signal(signal.SIGTERM)
        printed = process.communicate(timeout=30)[0]

    assert (signed_in, page) == (303, 200)
    assert f"http://127.0.0.1:{client.port}" in printed
    assert "key register gateway --kind gateway --public-key" in printed  # nobody did yet
    assert '"event":"signed_in"' in printed
    assert PASSWORD not in printed
    assert process.returncode == 0, printed


def wait_for(client: Client, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None
        try:
            assert client.get("/health").text == "ok"
        except ConnectionRefusedError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError
