"""The whole system as separate processes: it starts, serves, and leaves nothing behind."""

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL, make_url

from datasource_governance.cli import supervisor
from datasource_governance.cli.supervisor import System, SystemOptions
from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.persistence.connections import read_connections
from datasource_governance.persistence.loopback import HOST
from datasource_governance.persistence.processes import try_lock
from datasource_governance_tests.postgres import admin_connection, reachable_directory

# As a shell leaves a command that it starts in the background: with SIGINT ignored.
SCRIPT = """
import signal, sys
from pathlib import Path
from datasource_governance.cli.supervisor import System, SystemOptions
signal.signal(signal.SIGINT, signal.SIG_IGN)
with System(SystemOptions(state=Path("state"), port=0, module=sys.argv[1])) as system:
    print(system.url, flush=True)
    system.wait()
print("stopped", flush=True)
"""
MODULES = {
    "trivial": "import dagster as dg\ndefs = dg.Definitions(assets=[dg.AssetSpec('trivial')])\n",
    "broken": "raise RuntimeError('broken')\n",
}


@pytest.fixture
def directory() -> Iterator[Path]:
    """A working directory with code locations to serve."""
    path = reachable_directory()
    for name, text in MODULES.items():
        (path / f"{name}.py").write_text(text)
    yield path
    shutil.rmtree(path)


def launch(directory: Path, module: str = "trivial") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, module],
        cwd=directory,
        env={
            **os.environ,
            "DATABASE_URL": "postgresql://zq-secret@nowhere/",
            "GOVERNANCE_WEB_CONFIG": "zq-secret.toml",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def descendants(pid: int) -> set[int]:
    """Return the processes below `pid`."""
    listed = subprocess.run(
        ["ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=True
    )
    parents = {
        int(child): int(parent) for child, parent in map(str.split, listed.stdout.splitlines())
    }
    found, border = set(), {pid}
    while border:
        border = {child for child, parent in parents.items() if parent in border}
        found |= border
    return found


def alive(pids: set[int]) -> set[int]:
    """Return those that still run; a zombie does not."""
    listed = subprocess.run(
        ["ps", "-axo", "pid=,stat="], capture_output=True, text=True, check=True
    )
    states = dict(map(str.split, listed.stdout.splitlines()))
    return {pid for pid in pids if not states.get(str(pid), "Z").startswith("Z")}


def process_of(pids: set[int], words: str) -> int:
    listed = subprocess.run(
        ["ps", "-axww", "-o", "pid=,command="], capture_output=True, text=True, check=True
    )
    found = re.findall(rf"^\s*(\d+) .*{re.escape(words)}", listed.stdout, re.MULTILINE)
    (pid,) = {int(each) for each in found} & pids
    return pid


def status(address: URL, path: str) -> int:
    """Return how the webserver answers somebody who has not signed in."""
    connection = http.client.HTTPConnection(address.host, address.port)
    connection.request("GET", path)
    answer = connection.getresponse().status
    connection.close()
    return answer


def eventually(condition, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.mark.postgres
@pytest.mark.slow
def test_a_killed_system_leaves_nothing_and_starts_again_with_its_records(directory: Path) -> None:
    first = launch(directory)
    assert first.stdout.readline().startswith("http://127.0.0.1:")
    connections = read_connections(directory / "state" / "connections.env")
    started = descendants(first.pid)
    first.kill()
    first.communicate()
    eventually(lambda: alive(started) == set(), seconds=30)

    second = launch(directory)
    address = make_url(second.stdout.readline().strip())
    open_to_all = [status(address, path) for path in ("/health", "/server_info", "/runs")]
    started = descendants(second.pid)
    kept = read_connections(directory / "state" / "connections.env")
    with admin_connection(kept.governance_url) as connection:
        assert connection.execute("SELECT count(*) FROM governance.stage").fetchone() == (0,)
    second.send_signal(signal.SIGINT)
    output, errors = second.communicate(timeout=60)

    assert open_to_all == [200, 401, 401]
    assert (output, errors, second.returncode) == ("stopped\n", "", 0)
    assert alive(started) == set()
    assert kept == connections


@pytest.mark.postgres
@pytest.mark.slow
def test_when_one_process_ends_all_do_and_the_error_names_its_log(directory: Path) -> None:
    system = launch(directory)
    system.stdout.readline()
    started = descendants(system.pid)
    webserver = process_of(started, "-m datasource_governance.cli webserver")
    environment = Path(f"/proc/{webserver}/environ").read_bytes().split(b"\0")

    os.kill(process_of(started, "-m dagster._daemon"), signal.SIGKILL)
    _, errors = system.communicate(timeout=60)

    log = directory / "state" / "logs" / "daemon.log"
    assert f"ServiceUnavailableError: the daemon has ended; see {log}" in errors
    assert system.returncode == 1
    assert alive(started) == set()
    assert {each.partition(b"=")[0] for each in environment} >= {
        b"GOVERNANCE_DATABASE_URL",
        b"DAGSTER_DATABASE_URL",
        b"DAGSTER_HOME",
    }
    assert not any(b"zq-secret" in each for each in environment)


@pytest.mark.postgres
@pytest.mark.slow
def test_sigterm_while_starting_stops_what_has_started(directory: Path) -> None:
    system = launch(directory)
    code_server = directory / "state" / "logs" / "code_server.log"
    eventually(code_server.exists, seconds=60)
    started = descendants(system.pid)

    system.terminate()
    output, errors = system.communicate(timeout=60)

    assert output == ""
    assert "KeyboardInterrupt" in errors
    assert alive(started) == set()


@pytest.mark.postgres
@pytest.mark.slow
def test_a_code_location_that_cannot_be_loaded_is_named(directory: Path) -> None:
    system = launch(directory, "broken")

    output, errors = system.communicate(timeout=120)

    assert output == ""
    assert "ServiceUnavailableError: code location broken cannot be loaded" in errors


def test_two_systems_do_not_share_a_directory(directory: Path) -> None:
    lock = try_lock(directory / "lock")

    with pytest.raises(ServiceUnavailableError), System(SystemOptions(state=directory, port=0)):
        pass

    os.close(lock)


def test_a_taken_port_is_refused_and_the_directory_is_free_again(directory: Path) -> None:
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        port = other.getsockname()[1]

        with pytest.raises(ServiceUnavailableError) as refused:
            System(SystemOptions(state=directory, port=port)).__enter__()

    assert refused.value.facts == {"port": port}
    assert os.close(try_lock(directory / "lock")) is None


def test_what_signals_meant_before_they_mean_again_afterwards(directory: Path) -> None:
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    options = SystemOptions(state=directory, port=0, database_url="not a url")

    with pytest.raises(ValueError, match="DATABASE_URL"):
        System(options).__enter__()

    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


def test_the_instance_of_dagster_dev_is_configured_as_that_of_dev() -> None:
    package = Path(supervisor.__file__).parent
    repository = Path(__file__).parents[2]

    assert (repository / "dagster.yaml").samefile(package / "dagster.yaml")
