"""The whole system on one machine, as `dev` and `demo` run it: Postgres and Dagster's processes.

Dagster's UI is reached through the governed webserver alone.

Source: SPEC section 16, `dev`; section 17 for the environment variables.
"""

import importlib.resources
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from datasource_governance.cli.demo_accounts import DemoAccount, demo_accounts
from datasource_governance.cli.founding import ADMINISTRATOR, found, signer_of
from datasource_governance.cli.readiness import accepts_connections, is_healthy
from datasource_governance.composition import (
    CODE_LOCATION,
    CONNECTIONS_FILE,
    Application,
    read_settings,
)
from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.orchestration.client import DagsterClient
from datasource_governance.persistence.connections import (
    DAGSTER_DATABASE,
    GOVERNANCE_DATABASE,
    Connections,
)
from datasource_governance.persistence.embedded import EmbeddedPostgres
from datasource_governance.persistence.loopback import HOST, any_free_port, is_free
from datasource_governance.persistence.preparation import prepare
from datasource_governance.persistence.processes import spawn, try_lock

_START_SECONDS = 180
_STOP_SECONDS = 15
_PAUSE_SECONDS = 0.2
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# An administrator's address, and settings of a webserver that is not this machine's.
_NOT_INHERITED = ("DATABASE_URL", "GOVERNANCE_WEB_CONFIG")
_WORKSPACE = """load_from:
  - grpc_server:
      socket: {socket}
      location_name: {module}
"""
_Handler = Callable[[int, FrameType | None], object] | int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemOptions:
    """What to run, and where it keeps its files.

    `state` is a directory, made on first use. `port` is the webserver's; 0 takes a free one. With
    `database_url` (administrative, as DATABASE_URL) that server is used instead of an embedded one.
    `module` is the code location; the interpreter `python` imports it from the current directory.
    """

    state: Path = Path(".governance")
    port: int = 3000
    database_url: str | None = None
    governance_database: str = GOVERNANCE_DATABASE
    dagster_database: str = DAGSTER_DATABASE
    module: str = CODE_LOCATION
    python: str = sys.executable


class System:
    """A running system: enter it in the main thread, then `wait`; leaving stops everything.

    Entering returns when the webserver answers, the daemon beats and the code location is loaded.
    From then on `url` is the webserver's address, `admin_url` and `connections` the databases';
    `<state>/connections.env` says the latter to other commands. `application` works on them, with
    an administrator and all declarations in force, and with `accounts` people sign in. While it is
    entered, Ctrl-C and
    SIGTERM both raise KeyboardInterrupt; while it stops, they are ignored. Postgres stops last. If
    this process is killed, on Linux, everything it started ends by itself.

    Raises on entering:
        ServiceUnavailableError: another system uses `state`, the port is taken, Postgres cannot be
            used, or a process does not start; the message names its log.
        InvalidArgumentError: what `provision` says about names and URL.
        GovernanceError: what `found` says about actors, keys and declarations.
    """

    url: str
    admin_url: str
    connections: Connections
    application: Application
    accounts: tuple[DemoAccount, ...]

    def __init__(self, options: SystemOptions) -> None:
        self._options = options
        self._state = options.state.resolve()
        self._logs = self._state / "logs"
        self._home = self._state / "dagster_home"
        self._environment: Mapping[str, str] = {}
        self._server: EmbeddedPostgres | None = None
        self._children: list[_Child] = []
        self._running = ExitStack()

    def __enter__(self) -> Self:
        former = {each: signal.signal(each, signal.default_int_handler) for each in _STOP_SIGNALS}
        self._running.callback(_set_handlers, former)
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop()

    def wait(self) -> None:
        """Return on Ctrl-C or SIGTERM.

        Raises:
            ServiceUnavailableError: one of the processes ended; the message names its log.
        """
        with suppress(KeyboardInterrupt):
            while True:
                self._check_processes()
                time.sleep(_PAUSE_SECONDS)

    def _start(self) -> None:
        for directory in (self._state, self._logs, self._home):
            directory.mkdir(parents=True, exist_ok=True)
        self._claim_state()
        port = self._choose_port()
        self.url = f"http://{HOST}:{port}"
        self._prepare_databases()
        self._prepare_instance()
        self._start_dagster(port)

    def _stop(self) -> None:
        _set_handlers(dict.fromkeys(_STOP_SIGNALS, signal.SIG_IGN))
        self._running.close()

    def _claim_state(self) -> None:
        lock = try_lock(self._state / "lock")
        if lock is None:
            message = f"another system runs on {self._state}; stop it, or choose another directory"
            raise ServiceUnavailableError(message)
        self._running.callback(os.close, lock)

    def _choose_port(self) -> int:
        port = self._options.port or any_free_port()
        if not is_free(port):
            message = f"port {port} of {HOST} is taken; choose another one for the webserver"
            raise ServiceUnavailableError(message, port=port)
        return port

    def _prepare_databases(self) -> None:
        options = self._options
        self.admin_url = options.database_url or self._start_postgres()
        self.connections = prepare(
            self.admin_url,
            self._state / CONNECTIONS_FILE,
            governance=options.governance_database,
            dagster=options.dagster_database,
        )

    def _start_postgres(self) -> str:
        self._server = EmbeddedPostgres.start(self._state / "postgres")
        self._running.enter_context(self._server)
        return self._server.url

    def _prepare_instance(self) -> None:
        """Make Dagster's home, and its tables before several processes would at once.

        Meanwhile the tenant is founded, without which nobody gets past the webserver's gate.
        """
        packaged = importlib.resources.files("datasource_governance.cli") / "dagster.yaml"
        (self._home / "dagster.yaml").write_bytes(packaged.read_bytes())
        inherited = {key: os.environ[key] for key in os.environ.keys() - set(_NOT_INHERITED)}
        self._environment = {
            **inherited,
            **self.connections.environment(),
            "DAGSTER_HOME": str(self._home),
            "GOVERNANCE_STATE": str(self._state),
            "GOVERNANCE_DAGSTER_URL": self.url,
        }
        with self._spawn("instance", "dagster", "instance", "migrate") as migration:
            self._found_tenant()
            if migration.process.wait() != 0:
                raise migration.failure("Dagster's tables cannot be made")

    def _found_tenant(self) -> None:
        self.application = found(read_settings(self._environment))
        self._running.callback(self.application.close)
        self.accounts = demo_accounts(self.application)

    def _start_dagster(self, port: int) -> None:
        # Not in the state directory: the system limits the length of a socket's path.
        sockets = Path(tempfile.mkdtemp(prefix="datasource_governance_"))
        self._running.callback(shutil.rmtree, sockets)
        listening, module = sockets / "code_server", self._options.module
        workspace = self._state / "workspace.yaml"
        workspace.write_text(_WORKSPACE.format(socket=listening, module=module))
        code = ("--socket", str(listening), "--module-name", module, "--location-name", module)
        self._launch("code_server", "dagster", "code-server", "start", *code)
        self._await(partial(accepts_connections, listening))
        before = time.time()
        self._launch("daemon", "dagster._daemon", "run", "--workspace", str(workspace))
        web = ("--host", HOST, "--port", str(port), "--workspace", str(workspace))
        self._launch("webserver", "datasource_governance.cli", "webserver", *web)
        client = DagsterClient(self.url, signer_of(self.application, ADMINISTRATOR))
        self._await(partial(is_healthy, client, since=before))

    def _spawn(self, name: str, module: str, *arguments: str) -> "_Child":
        log = self._logs / f"{name}.log"
        if log.exists():
            log.replace(log.with_suffix(".previous.log"))
        command = (self._options.python, "-m", module, *arguments)
        return _Child(name, spawn(command, environment=self._environment, log=log), log)

    def _launch(self, name: str, module: str, *arguments: str) -> None:
        child = self._running.enter_context(self._spawn(name, module, *arguments))
        self._children.append(child)

    def _await(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not condition():
            self._check_processes()
            if time.monotonic() > deadline:
                message = f"Dagster does not become ready; see the logs in {self._logs}"
                raise ServiceUnavailableError(message)
            time.sleep(_PAUSE_SECONDS)

    def _check_processes(self) -> None:
        if self._server is not None and not self._server.is_running:
            log = self._state / "postgres" / "server.log"
            raise ServiceUnavailableError(f"Postgres has ended; see {log}", log=str(log))
        for child in self._children:
            if child.process.poll() is not None:
                raise child.failure(f"the {child.name.replace('_', ' ')} has ended")


@dataclass(frozen=True, slots=True)
class _Child:
    """One of Dagster's processes with all its descendants, which are a process group."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_STOP_SECONDS)
        self._signal(signal.SIGKILL)
        self.process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def failure(self, what: str) -> ServiceUnavailableError:
        message = f"{what}; see {self.log}"
        return ServiceUnavailableError(message, process=self.name, log=str(self.log))


def _set_handlers(handlers: Mapping[signal.Signals, _Handler]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler if handler is not None else signal.SIG_DFL)
