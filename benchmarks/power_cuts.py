"""`python -m benchmarks.power_cuts`: Postgres is killed under writers; nothing is lost or doubled.

On a server of its own that waits for the disk. Each writer publishes one output after the other and
tries again, under the same key, until it is told what became of it. Meanwhile all processes of the
server are killed, and it is started again.
"""

import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from benchmarks.servers import Served, found_publishing, migrated, published
from datasource_governance.composition import Application, Settings
from datasource_governance.domain.canonical import Json
from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.persistence.administration import administrative_url, connect
from datasource_governance.persistence.embedded import EmbeddedPostgres
from datasource_governance.services.publishing import PublicationRequest

if TYPE_CHECKING:
    import pyarrow as pa

_PAUSE_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 120
_POLICY: Final[Json] = {
    "version": "v1",
    "rules": [{"id": "some", "type": "row_count", "minimum": 1}],
}
_KEPT: Final = """
SELECT (SELECT count(*) FROM governance.publication),
       (SELECT count(*) FROM governance.materialization),
       (SELECT count(*) FROM governance.outbox WHERE type = 'datasource.publication.published')
"""


@dataclass(slots=True)
class Survival:
    """What writers were told, and what the server has in the end.

    `told` has the id of the publication by key. `replayed` counts those that were written before
    the server died, and of which the writer learned when it tried again; `cut_off` the attempts
    that were not answered. `kept` are the server's publications by key, `counted` its publications,
    materializations and events.
    """

    told: dict[str, str] = field(default_factory=dict)
    replayed: int = 0
    cut_off: int = 0
    cuts: int = 0
    seconds: float = 0
    kept: Mapping[str, str] = field(default_factory=dict)
    counted: tuple[int, ...] = ()
    verifies: bool = False

    def lost(self) -> set[str]:
        """Return the keys that were acknowledged, and are not there as they were."""
        return {key for key, one in self.told.items() if self.kept.get(key) != one}


class Server:
    """A server whose power is cut."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running = EmbeddedPostgres.start(directory)

    @property
    def url(self) -> str:
        """The administrator's."""
        return self._running.url

    def cut(self) -> None:
        """Kill every process of the server, and start it again at the same port."""
        first = int((self._directory / "data" / "postmaster.pid").read_text().splitlines()[0])
        # While it stands still, it makes no process and lets go of the number of none.
        os.kill(first, signal.SIGSTOP)
        for process in (*_children(first), first):
            os.kill(process, signal.SIGKILL)
        self.stop()
        self._running = EmbeddedPostgres.start(self._directory, port=self._running.port)

    def stop(self) -> None:
        """End it."""
        self._running.stop()


class Writers:
    """Publish so many outputs in all, each under a key of its own."""

    def __init__(self, settings: Settings, datasources: list[str], publications: int) -> None:
        self._settings = settings
        self._datasources = datasources
        self._keys = iter(range(publications))
        self._lock = threading.Lock()
        self.survival = Survival()

    def write(self, number: int) -> None:
        """Publish until all keys are taken; run in a thread."""
        import pyarrow as pa

        application, datasource = Application(self._settings), self._datasources[number]
        while (key := self._next()) is not None:
            self._publish(application, datasource, key, pa.table({"id": [key]}))
        application.close()

    def acknowledged(self) -> int:
        """Return how many publications writers were told of."""
        return len(self.survival.told)

    def _next(self) -> int | None:
        with self._lock:
            return next(self._keys, None)

    def _publish(
        self, application: Application, datasource: str, number: int, data: "pa.Table"
    ) -> None:
        key, cut_off, published = f"k{number}", 0, None
        request = PublicationRequest(producer="w", idempotency_key=key, datasource=datasource)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while published is None:
            try:
                published = application.publish(data, request)
            except ServiceUnavailableError:
                if time.monotonic() > deadline:
                    raise
                cut_off += 1
                time.sleep(_PAUSE_SECONDS)
        with self._lock:
            self.survival.told[key] = published.publication.id
            self.survival.replayed += published.replayed
            self.survival.cut_off += cut_off


def survive(publications: int, cuts: int, writers: int = 8) -> Survival:
    """Publish so many outputs while the power is cut so many times, at even distances."""
    with _server() as (server, served):
        # Two writers share a datasource, so that some wait for each other when the power goes.
        datasources = [f"shared_{number // 2}" for number in range(writers)]
        found_publishing(served, [published(name, _POLICY) for name in sorted({*datasources})])
        application = Application(served.settings)
        work = Writers(served.settings, datasources, publications)
        began = time.monotonic()
        with ThreadPoolExecutor(writers) as pool:
            running = [pool.submit(work.write, number) for number in range(writers)]
            for number in range(1, cuts + 1):
                while work.acknowledged() < number * publications // (cuts + 1):
                    _raise_failure(running)
                    time.sleep(_PAUSE_SECONDS / 20)
                server.cut()
                work.survival.cuts += 1
            for one in running:
                one.result()
        work.survival.seconds = time.monotonic() - began
        _look(work.survival, server, application)
        application.close()
        return work.survival


def _children(process: int) -> list[int]:
    return [
        int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ]


def _raise_failure(running: list[Future[None]]) -> None:
    for one in running:
        if one.done():
            one.result()


@contextmanager
def _server() -> Iterator[tuple[Server, Served]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o711)  # the server may run as another user
        server = Server(folder / "postgres")
        yield server, migrated(server.url, folder)
        server.stop()


def _look(survival: Survival, server: Server, application: Application) -> None:
    """Take down what the server has."""
    address = administrative_url(server.url).set(database="governance")
    with connect(address) as connection:
        survival.counted = connection.execute(_KEPT).fetchone() or ()
        kept = connection.execute("SELECT idempotency_key, id FROM governance.publication")
        survival.kept = dict(kept.fetchall())
    survival.verifies = application.verify_evidence().holds


def main(
    publications: Annotated[int, typer.Option(min=1, help="How many are made in all.")] = 2000,
    cuts: Annotated[int, typer.Option(min=0, help="How often the server is killed.")] = 5,
) -> None:
    """Print what survived; exit with 1 unless everything did, once."""
    found = survive(publications, cuts)
    typer.echo(
        f"{len(found.told)} publications acknowledged in {found.seconds:.0f} s, {found.cuts} cuts, "
        f"{found.cut_off} attempts not answered, {found.replayed} of them written all the same\n"
        f"lost: {len(found.lost())}; publications, materializations and events: {found.counted}; "
        f"evidence verifies: {found.verifies}"
    )
    if found.lost() or set(found.counted) != {publications} or not found.verifies:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
