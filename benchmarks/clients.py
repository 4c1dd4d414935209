"""Processes that do one thing over and over at once, and how often all of them do it in a second.

What they do stands beside the raw commit rate of the same server: a hand-written loop that inserts
one row of as many bytes as an evidence entry has, and commits.
"""

import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

import psycopg
import typer
from sqlalchemy import URL

from datasource_governance.persistence.administration import administrative_url, connect

COMMITS: Final = "raw commits of one row"
COMMITS_PER_ACT: Final = 10
"""So many raw commits beside one act of a client, so that both are measured for some time."""
_ROW: Final = b"\0" * 1024


class Barrier(Protocol):
    """Where processes wait for each other."""

    def wait(self) -> int:
        """Return when all have come."""
        ...

    def abort(self) -> None:
        """Let nobody wait who waits now or later: their waiting fails."""
        ...


def rate(client: Callable[..., None], shares: Sequence[tuple[object, ...]], acts: int) -> float:
    """Return how many acts are done in a second, when each client does so many of its share.

    Counted from the instant on which all begin, until the last one is done.
    """
    # Forks of a process that has one thread and nothing open.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__"])
    start, end = context.Barrier(len(shares) + 1), context.Barrier(len(shares) + 1)
    processes = [context.Process(target=_run, args=(client, start, end, *one)) for one in shares]
    for process in processes:
        process.start()
    start.wait()
    began = time.perf_counter()
    end.wait()
    elapsed = time.perf_counter() - began
    for process in processes:
        process.join()
    return len(shares) * acts / elapsed


def _run(client: Callable[..., None], start: Barrier, end: Barrier, *share: object) -> None:
    """Run a client; where it fails, nobody waits for it."""
    try:
        client(start, end, *share)
    except BaseException:
        start.abort()
        end.abort()
        raise


class RawCommits:
    """The yardstick, on the server of an administrative address."""

    def __init__(self, admin_url: str) -> None:
        self.url: URL = administrative_url(admin_url).set(database="governance")
        with connect(self.url) as connection:
            connection.execute("CREATE TABLE public.raw (id bigserial PRIMARY KEY, body bytea)")

    def rate(self, clients: int, acts: int) -> float:
        """Return how many rows are inserted and committed in a second."""
        commits = acts * COMMITS_PER_ACT
        return rate(_commit, [(self.address, commits)] * clients, commits)

    @property
    def address(self) -> str:
        """Where the driver alone finds the database."""
        return self.url.set(drivername="postgresql").render_as_string(hide_password=False)

    def fsync(self) -> str:
        """Return whether the server waits for the disk."""
        with connect(self.url) as connection:
            (found,) = connection.execute("SHOW fsync").fetchone() or ("unknown",)
        return str(found)


def _commit(start: Barrier, end: Barrier, url: str, acts: int) -> None:
    with psycopg.connect(url) as connection:
        start.wait()
        for _ in range(acts):
            connection.execute("INSERT INTO public.raw (body) VALUES (%s)", [_ROW])
            connection.commit()
        end.wait()


def echo_rates(names: Iterable[str], rounds: Sequence[Mapping[str, float]]) -> None:
    """Print a table of rates and of their ratios to raw commits, each taken within a round."""
    typer.echo("| what | per second | to raw commits |")
    typer.echo("| --- | ---: | ---: |")
    for name in names:
        rates = [one[name] for one in rounds]
        ratios = [one[name] / one[COMMITS] for one in rounds]
        typer.echo(f"| {name} | {_middle(rates, 0)} | {_middle(ratios, 2)} |")


def _middle(values: Sequence[float], digits: int) -> str:
    """Return the median, and the least and the greatest value."""
    middle, least, greatest = statistics.median(values), min(values), max(values)
    return f"{middle:,.{digits}f} ({least:,.{digits}f} to {greatest:,.{digits}f})"
