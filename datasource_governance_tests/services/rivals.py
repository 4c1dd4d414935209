"""Two or more who act at once on real connections, and what it takes to show that locks matter."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import psycopg
import pytest

from datasource_governance.composition import Application
from datasource_governance.errors import GovernanceError
from datasource_governance.persistence.repositories import PostgresDatasources, PostgresStages
from datasource_governance_tests.postgres import admin_connection
from datasource_governance_tests.world import World

PATIENCE_SECONDS = 30
Act = Callable[[World], Any]


@dataclass(frozen=True)
class Rivals:
    """Each has connections of its own, which are kept from round to round."""

    worlds: tuple[World, ...]
    pool: ThreadPoolExecutor

    def at_once(self, *acts: Act) -> list[Any]:
        """Run each act in a thread, all from one instant on; return results or refusals' codes."""
        start = threading.Barrier(len(acts))

        def run(own: World, act: Act) -> Any:
            start.wait(PATIENCE_SECONDS)
            try:
                return act(own)
            except GovernanceError as refusal:
                return refusal.code

        return list(self.pool.map(run, self.worlds, acts))


@contextmanager
def rivals_in(world: World, number: int = 2) -> Iterator[Rivals]:
    """Yield rivals, two by default, who are connected already."""
    worlds = tuple(
        replace(world, application=Application(world.application.settings)) for _ in range(number)
    )
    for one in worlds:
        with one.application.work():
            pass
    with ThreadPoolExecutor(len(worlds)) as pool:
        yield Rivals(worlds, pool)
    for one in worlds:
        one.application.close()


def without_row_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let datasources and stages be read without locking them."""
    monkeypatch.setattr(PostgresDatasources, "get_for_update", PostgresDatasources.get)
    monkeypatch.setattr(PostgresStages, "get_for_update", PostgresStages.get)


class Pause:
    """Stops the first one who is about to call a method, until the other one is done.

    With the locks in place this would wait for ever: the other one could not be done.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: type, method: str) -> None:
        self._reached, self._over = threading.Event(), threading.Event()
        original = getattr(owner, method)

        def paused(this: object, *arguments: Any, **keys: Any) -> Any:
            if not self._reached.is_set():
                self._reached.set()
                assert self._over.wait(PATIENCE_SECONDS)
            return original(this, *arguments, **keys)

        monkeypatch.setattr(owner, method, paused)

    def meanwhile(self, act: Act) -> Act:
        """Return the act of the other one, who begins when the first one has read everything."""

        def acted(own: World) -> Any:
            assert self._reached.wait(PATIENCE_SECONDS)
            try:
                return act(own)
            finally:
                self._over.set()

        return acted


class TableClock:
    """A database clock that is a row, so that it moves in the midst of other transactions.

    A function that is replaced may be remembered by a session until its next transaction.
    """

    def __init__(self, connection: psycopg.Connection, at: datetime) -> None:
        self._connection = connection
        connection.execute("CREATE TABLE public.clock (at timestamptz)")
        connection.execute("GRANT SELECT ON public.clock TO PUBLIC")
        connection.execute("GRANT USAGE ON SCHEMA public TO PUBLIC")
        connection.execute("INSERT INTO public.clock VALUES (%s)", [at])
        connection.execute(
            "CREATE OR REPLACE FUNCTION governance.now() RETURNS timestamptz LANGUAGE sql "
            "VOLATILE AS 'SELECT at FROM public.clock'"
        )

    def move(self, at: datetime) -> None:
        self._connection.execute("UPDATE public.clock SET at = %s", [at])


@contextmanager
def table_clock(world: World, at: datetime) -> Iterator[TableClock]:
    """Yield a clock of a world that stands still until it is moved."""
    with admin_connection(world.database.admin_url) as connection:
        yield TableClock(connection, at)
