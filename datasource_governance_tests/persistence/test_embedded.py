"""The embedded server: who may reach it, what survives, what is left behind."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.persistence import cluster, installation
from datasource_governance.persistence.embedded import EmbeddedPostgres
from datasource_governance.persistence.installation import Installation
from datasource_governance_tests.postgres import (
    admin_connection,
    reachable_directory,
)

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

START_AND_WAIT = """
import sys, time
from pathlib import Path
from datasource_governance.persistence.embedded import EmbeddedPostgres
server = EmbeddedPostgres.start(Path(sys.argv[1]), settings={"fsync": "off"})
print(server.port, flush=True)
sys.stdin.read()
server.stop()
"""

# Root gives its rights away after the imports: others may not be able to read its Python.
BECOME_NORMAL = """
import encodings.idna, os, pwd, shutil, sys
from datasource_governance.persistence.embedded import EmbeddedPostgres
if os.geteuid() == 0:
    user = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    if not os.access(sys.executable, os.X_OK):
        sys.executable = shutil.which("python3", path="/usr/bin:/usr/local/bin")
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    parent = reachable_directory()
    yield parent / "postgres"
    shutil.rmtree(parent)


def start(directory: Path, **options) -> EmbeddedPostgres:
    return EmbeddedPostgres.start(directory, settings={"fsync": "off"}, **options)


def start_elsewhere(directory: Path, script: str = START_AND_WAIT) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, str(directory)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> None:
    process.communicate(timeout=30)
    assert process.returncode == 0


def processes_of(directory: Path) -> list[int]:
    """Return the living postmasters of a directory; sessions end with theirs."""
    listed = subprocess.run(
        ["ps", "-axww", "-o", "pid=,command="], capture_output=True, text=True, check=True
    )
    lines = [line.split(maxsplit=1) for line in listed.stdout.splitlines()]
    return [int(pid) for pid, command in lines if f"-D {directory}" in command]


def postmaster(directory: Path) -> int:
    return int((directory / "data" / "postmaster.pid").read_text().split()[0])


def remember(server: EmbeddedPostgres, number: int) -> None:
    with admin_connection(server.url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (number integer)")
        connection.execute("INSERT INTO kept VALUES (%s)", (number,))


def remembered(server: EmbeddedPostgres) -> list[int]:
    with admin_connection(server.url) as connection:
        return [number for (number,) in connection.execute("SELECT number FROM kept")]


def eventually(condition, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_stopping_leaves_no_process_and_keeps_data_and_port(directory: Path) -> None:
    with start(directory) as server:
        first_port = server.port
        remember(server, 1)
    left = processes_of(directory)

    with start(directory) as server:
        assert remembered(server) == [1]
        assert server.port == first_port
    assert left == []


def test_a_password_is_required(directory: Path) -> None:
    with start(directory) as server:
        wrong = server.url.replace(str(make_url(server.url).password), "wrong")

        with pytest.raises(psycopg.OperationalError):
            admin_connection(wrong)


def test_files_with_secrets_are_private(directory: Path) -> None:
    with start(directory):
        private = [directory / name for name in ("password", "server.log", "lock")]

        assert {path.stat().st_mode & 0o777 for path in private} == {0o600}
        assert (directory / "data").stat().st_mode & 0o777 == 0o700


def test_the_server_listens_on_the_loopback_interface_only(directory: Path) -> None:
    with start(directory) as server, admin_connection(server.url) as connection:
        shown = {
            name: connection.execute("SELECT current_setting(%s)", (name,)).fetchone()[0]
            for name in ("listen_addresses", "unix_socket_directories", "data_checksums")
        }

    assert shown == {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "data_checksums": "on",
    }


def test_environment_variables_of_another_server_do_not_reach_this_one(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGDATA", "/nowhere")

    with start(directory) as server, admin_connection(server.url) as connection:
        assert connection.execute("SHOW port").fetchone() == (str(server.port),)


def test_values_in_failing_statements_do_not_reach_the_log(directory: Path) -> None:
    with start(directory) as server, admin_connection(server.url) as connection:
        connection.execute("SET log_min_messages = 'fatal'")  # as the application's role has it
        for statement in ("SELECT %s::text::integer", "INSERT INTO nowhere VALUES (%s)"):
            with pytest.raises(psycopg.Error):
                connection.execute(statement, ("zq-canary",))

    assert "zq-canary" not in (directory / "server.log").read_text()


def test_a_killed_server_starts_again_with_its_data(directory: Path) -> None:
    server = start(directory)
    remember(server, 1)
    os.kill(postmaster(directory), signal.SIGKILL)
    server.stop()

    with start(directory) as again:
        assert remembered(again) == [1]


def test_a_process_number_taken_over_by_a_stranger_does_not_stop_a_start(directory: Path) -> None:
    server = start(directory)
    pid_file = directory / "data" / "postmaster.pid"
    left_behind = pid_file.read_text().replace(str(postmaster(directory)), str(os.getpid()), 1)
    server.stop()
    pid_file.write_text(left_behind)

    with start(directory) as again:
        assert again.url


def test_an_interrupted_creation_is_done_again(directory: Path) -> None:
    (directory / "data.new").mkdir(parents=True)
    (directory / "data.new" / "PG_VERSION").write_text("18")
    (directory / "password").touch()

    with start(directory) as server:
        remember(server, 1)


def test_a_port_that_was_taken_meanwhile_is_replaced_by_a_free_one(directory: Path) -> None:
    with start(directory) as server:
        first_port = server.port
    with start(directory.with_name("other"), port=first_port) as other, start(directory) as server:
        assert other.port == first_port
        assert server.port != first_port


def test_a_port_asked_for_and_taken_is_refused(directory: Path) -> None:
    with start(directory) as server, pytest.raises(ServiceUnavailableError) as refused:
        start(directory.with_name("other"), port=server.port)

    assert refused.value.facts == {"port": server.port}


def test_a_server_ends_when_its_starter_is_killed(directory: Path) -> None:
    starter = start_elsewhere(directory)
    starter.stdout.readline()

    starter.kill()
    starter.communicate()

    eventually(lambda: processes_of(directory) == [])
    with start(directory) as server:
        remember(server, 1)


def test_killing_the_starter_and_its_server_at_once_loses_nothing(directory: Path) -> None:
    with start(directory) as server:
        remember(server, 1)
    starter = start_elsewhere(directory)
    starter.stdout.readline()

    os.kill(postmaster(directory), signal.SIGKILL)
    starter.kill()
    starter.communicate()

    with start(directory) as server:
        assert remembered(server) == [1]


def test_two_processes_that_start_at_once_share_one_server(directory: Path) -> None:
    both = [start_elsewhere(directory), start_elsewhere(directory)]

    ports = {process.stdout.readline() for process in both}
    running = processes_of(directory)
    for process in both:
        finish(process)

    assert len(ports) == 1
    assert len(running) == 1
    assert processes_of(directory) == []


def test_stopping_a_shared_server_leaves_it_to_its_starter(directory: Path) -> None:
    with start(directory) as server:
        start(directory).stop()

        remember(server, 1)


def test_a_normal_user_runs_the_server_as_itself(directory: Path) -> None:
    user = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    directory.mkdir()
    os.chown(directory, user.pw_uid, user.pw_gid)

    process = start_elsewhere(directory, script=BECOME_NORMAL + START_AND_WAIT)
    process.stdout.readline()
    owner = Path(f"/proc/{postmaster(directory)}").stat().st_uid
    finish(process)

    assert owner == user.pw_uid


def test_a_directory_closed_to_others_stays_closed(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "SHARED", directory.with_name("shared"))
    closed = directory.with_name("closed")
    closed.mkdir(mode=0o700)

    with start(closed / "postgres") as server:
        remember(server, 1)
    with start(closed / "postgres") as server:
        assert remembered(server) == [1]
    assert closed.stat().st_mode & 0o777 == 0o700


def test_what_the_account_cannot_reach_is_kept_elsewhere_which_a_warning_says(
    directory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(installation, "SHARED", directory.with_name("shared"))
    directory.mkdir(mode=0o700)
    postgres = Installation(Path("unused"), pwd.getpwnam("nobody"))

    first = postgres.place(directory)
    directory.chmod(0o755)
    second = postgres.place(directory)

    assert first == second
    assert first.parent == directory.with_name("shared")
    assert str(directory) in caplog.text
    assert str(first) in caplog.text


def test_binaries_that_the_account_cannot_reach_are_copied_once_for_it(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "SHARED", directory.with_name("shared"))
    installed = directory.with_name("installed")
    for part in ("bin", "lib", "share"):
        (installed / part).mkdir(parents=True, mode=0o700)
    (installed / "bin" / "postgres").touch(mode=0o700)

    copies = {installation._copy(installed), installation._copy(installed)}

    (copy,) = copies
    assert (copy / "bin" / "postgres").stat().st_mode & 0o777 == 0o755
    assert [path.name for path in copy.parent.iterdir()] == [copy.name]


def test_without_the_wheel_the_error_says_what_to_install(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)

    with pytest.raises(ServiceUnavailableError) as refused:
        start(directory)

    assert "pip install 'datasource-governance[demo]'" in str(refused.value)
    assert "DATABASE_URL" in str(refused.value)


@pytest.mark.parametrize("processes", [Path("/proc"), Path("/nowhere")])
def test_a_process_is_told_by_its_command_line_on_every_system(
    processes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_PROCESSES", processes)

    own = cluster._command_line(os.getpid())
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    gone = cluster._command_line(ended.pid)

    assert Path(sys.executable).name in own
    assert gone == ""
