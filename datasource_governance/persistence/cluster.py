"""The files and the process of one embedded server: making, starting, recovering and ending it.

Source: SPEC sections 16 and 17.
"""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psycopg

from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.persistence.installation import Installation
from datasource_governance.persistence.loopback import HOST, any_free_port, is_free
from datasource_governance.persistence.processes import spawn

ADMINISTRATOR = "postgres"
START_SECONDS = 60
STOP_SECONDS = 30
PAUSE_SECONDS = 0.05

_PROCESSES = Path("/proc")  # Linux; elsewhere `ps` tells

_SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "jit": "off",
    "io_method": "sync",  # saves three processes, and a laptop gains nothing from them
    # The three that keep cell values out of the server's log.
    "log_min_error_statement": "panic",
    "log_parameter_max_length_on_error": "0",
    "log_error_verbosity": "terse",
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """One server's directory: `data`, `password`, `port`, `lock` and `server.log`.

    Whoever calls anything that changes it holds `lock`.
    """

    location: Path
    installation: Installation

    @classmethod
    def at(cls, directory: Path) -> Self:
        """Return the cluster of `directory`; nothing is started."""
        installation = Installation.find()
        return cls(installation.place(directory), installation)

    @property
    def data(self) -> Path:
        """What Postgres calls PGDATA."""
        return self.location / "data"

    def password(self) -> str:
        """Return the administrator's password."""
        return (self.location / "password").read_text()

    def remembered_port(self) -> int | None:
        """Return the port of the last start, if there was one."""
        try:
            return int((self.location / "port").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def answers(self, port: int) -> bool:
        """Whether this cluster's server, and no other one, answers on `port`."""
        try:
            psycopg.connect(
                host=HOST,
                port=port,
                user=ADMINISTRATOR,
                password=self.password(),
                dbname="postgres",
                connect_timeout=5,
            ).close()
        except (psycopg.OperationalError, FileNotFoundError):
            return False
        return True

    def launch(
        self, port: int | None, settings: Mapping[str, str]
    ) -> tuple[subprocess.Popen[bytes], int]:
        """Start the server, making it on first use; return when it answers, with its port.

        Raises:
            ServiceUnavailableError: `port` is taken, or it did not answer within a minute.
        """
        self._initialise()
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            self._retire_former_server()
            chosen = self._choose_port(port)
            process = self._serve(chosen, settings)
            if self._await(process, chosen, deadline):
                return process, chosen
            # Two causes pass by themselves: sessions that have not yet noticed that the former
            # server is gone, and another process on the port since it was probed.
            time.sleep(PAUSE_SECONDS)
        raise self._failure("does not start")

    def _initialise(self) -> None:
        if self.data.exists():
            return
        password = self.location / "password"
        password.unlink(missing_ok=True)
        password.touch(mode=0o600)
        password.write_text(secrets.token_urlsafe(32))
        # Renamed when complete, so that an interrupted initdb leaves nothing that looks usable.
        fresh = self.location / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        self.installation.hand_over(password, fresh)
        arguments = [f"--pgdata={fresh}", f"--username={ADMINISTRATOR}", f"--pwfile={password}"]
        arguments += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--data-checksums"]
        # Our passwords have 256 random bits, to which 4,096 rounds of hashing add nothing but time;
        # Dagster connects anew for every query.
        arguments += ["--no-instructions", "--set=scram_iterations=1"]
        if self.installation.run("initdb", *arguments, log=self.location / "server.log") != 0:
            raise self._failure("cannot be created")
        fresh.rename(self.data)

    def _choose_port(self, wanted: int | None) -> int:
        port = wanted or self.remembered_port()
        if port is None or not is_free(port):
            if wanted is not None:
                message = f"port {wanted} of {HOST} is taken; choose another one"
                raise ServiceUnavailableError(message, port=wanted)
            port = any_free_port()
        (self.location / "port").write_text(str(port))
        return port

    def _serve(self, port: int, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
        postgres = self.installation.program("postgres")
        command: list[str | Path] = [postgres, "-D", self.data, "-p", str(port)]
        for name, value in {**_SETTINGS, **settings}.items():
            command += ["-c", f"{name}={value}"]
        return spawn(
            command,
            environment=self.installation.environment(),
            log=self.location / "server.log",
            account=self.installation.account,
            on_parent_death=signal.SIGINT,  # a fast shutdown
        )

    def _await(self, process: subprocess.Popen[bytes], port: int, deadline: float) -> bool:
        ready = False
        try:
            while process.poll() is None and time.monotonic() < deadline and not ready:
                time.sleep(PAUSE_SECONDS)
                ready = self.answers(port)
        finally:
            if not ready:
                end(process)
        return ready

    def _retire_former_server(self) -> None:
        """End a server whose starter is gone, and remove what a killed one left.

        Postgres itself refuses to start while the process named in `postmaster.pid` exists, be it
        a zombie or a stranger with the same number.
        """
        pid_file = self.data / "postmaster.pid"
        try:
            pid = int(pid_file.read_text().partition("\n")[0])
        except FileNotFoundError:
            return
        except ValueError:  # killed between creating the file and filling it
            pid = 0
        deadline = time.monotonic() + STOP_SECONDS
        while str(self.data) in _command_line(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT if time.monotonic() < deadline else signal.SIGQUIT)
            time.sleep(PAUSE_SECONDS)
        pid_file.unlink(missing_ok=True)

    def _failure(self, what: str) -> ServiceUnavailableError:
        log = self.location / "server.log"
        return ServiceUnavailableError(f"the embedded server {what}; see {log}", log=str(log))


def end(process: subprocess.Popen[bytes]) -> None:
    """End a server by a fast shutdown, or by an immediate one after half a minute."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGQUIT)
        process.wait()


def _command_line(pid: int) -> str:
    """Return the command line of a process; empty for a zombie and for one that is not there."""
    if _PROCESSES.is_dir():
        try:
            return os.fsdecode((_PROCESSES / str(pid) / "cmdline").read_bytes())
        except (FileNotFoundError, ProcessLookupError):
            return ""
    shown = subprocess.run(  # noqa: S603  a number is all that varies
        ["/bin/ps", "-ww", "-p", str(pid), "-o", "command="],
        capture_output=True,
        text=True,
        check=False,
    )
    return shown.stdout
