"""`python -m benchmarks.publication`: how many publications a server takes, beside raw commits.

On a server of its own that waits for the disk. Every client is a process with a connection of its
own; all begin at one instant. A publication is a table of a few rows under a new key: validated,
fingerprinted and encoded, and written with its materialization, event and evidence. The least of
that, written by hand, is measured in the same rounds.
"""

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer

from benchmarks.clients import COMMITS, Barrier, RawCommits, echo_rates, rate
from benchmarks.hand_publication import prepare, publish_by_hand
from benchmarks.servers import Served, found_publishing, published, served
from datasource_governance.composition import Application, Settings
from datasource_governance.domain.canonical import Json
from datasource_governance.services.publishing import PublicationRequest

BY_HAND: Final = "written by hand, each client with a chain of its own"
APART: Final = "publications, each client in a datasource of its own"
TOGETHER: Final = "publications, all clients in one datasource"
GOAL: Final = 0.4
_TOGETHER: Final = "together"
_POLICY: Final[dict[str, Json]] = {
    "version": "v1",
    "rules": [
        {"id": "some", "type": "row_count", "minimum": 1},
        {"id": "known", "type": "field", "field": "id", "data_type": "integer"},
    ],
}


def _publish(
    start: Barrier, end: Barrier, settings: Settings, datasource: str, producer: str, acts: int
) -> None:
    import pyarrow as pa

    application = Application(settings)
    outlet = application.outlet()

    def publish(number: int) -> None:
        request = PublicationRequest(
            producer=producer, idempotency_key=f"output-{number}", datasource=datasource
        )
        outlet.publish(pa.table({"id": [1, 2, number]}), request)

    publish(0)  # imports, connects and is not counted
    start.wait()
    for number in range(1, acts + 1):
        publish(number)
    end.wait()
    application.close()


def main(
    clients: Annotated[int, typer.Option(min=1, help="How many publish at once.")] = 16,
    publications: Annotated[int, typer.Option(min=1, help="Publications of each client.")] = 40,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds behind each median.")] = 5,
) -> None:
    """Print a table of rates; each round measures all of them, one after the other."""
    with _press(clients) as press:
        found = [press.rates(number, publications) for number in range(rounds)]
        typer.echo(f"{clients} clients, {rounds} rounds, fsync {press.raw.fsync()}\n")
    echo_rates((COMMITS, BY_HAND, APART, TOGETHER), found)
    to_hand = statistics.median(one[APART] / one[BY_HAND] for one in found)
    typer.echo(f"\neach in a datasource of its own to what is written by hand: {to_hand:.2f}")
    typer.echo(f"\ngoal: each in a datasource of its own at least {GOAL} of raw commits")


class Press:
    """Datasources that `system` publishes to, on a server of their own."""

    def __init__(self, server: Served, clients: int) -> None:
        self._settings = server.settings
        self._apart = [f"client_{number}" for number in range(clients)]
        self.raw = RawCommits(server.url)
        names = (*self._apart, _TOGETHER)
        found_publishing(server, [published(name, _POLICY) for name in names])
        prepare(self.raw.url, self._apart)

    def rates(self, turn: int, publications: int) -> dict[str, float]:
        """Measure one round, of which every key is new."""
        clients = len(self._apart)
        return {
            COMMITS: self.raw.rate(clients, publications),
            BY_HAND: self._rate_by_hand(turn, publications),
            APART: self._rate(self._apart, turn, publications),
            TOGETHER: self._rate([_TOGETHER] * clients, turn, publications),
        }

    def _rate_by_hand(self, turn: int, publications: int) -> float:
        shares = [
            (self.raw.address, name, f"producer-{turn}-{name}", publications)
            for name in self._apart
        ]
        return rate(publish_by_hand, shares, publications)

    def _rate(self, datasources: list[str], turn: int, publications: int) -> float:
        shares = [
            (self._settings, datasource, f"producer-{turn}-{datasource}-{number}", publications)
            for number, datasource in enumerate(datasources)
        ]
        return rate(_publish, shares, publications)


@contextmanager
def _press(clients: int) -> Iterator[Press]:
    with served() as server:
        yield Press(server, clients)


if __name__ == "__main__":
    typer.run(main)
