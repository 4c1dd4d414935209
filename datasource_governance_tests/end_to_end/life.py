"""One installation and everything about it that could say something."""

import io
import logging
import os
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg
import psycopg
import pytest
from sqlalchemy import event

from datasource_governance import cli
from datasource_governance.domain.stage import Stage
from datasource_governance.domain.validation import Validation
from datasource_governance.errors import GovernanceError
from datasource_governance.persistence import connection as border
from datasource_governance_tests.end_to_end.canaries import (
    Canary,
    Listener,
    database,
    error_text,
    files,
    new_canary,
    server_log,
)
from datasource_governance_tests.postgres import admin_connection
from datasource_governance_tests.sources.databases import Database
from datasource_governance_tests.world import World

LOUD = ("", "sqlalchemy", "sqlalchemy.engine", "dagster", "pandera", "psycopg", "fsspec")
"""Loggers that are set to DEBUG; all others inherit it from the first, the root."""


@dataclass(frozen=True)
class Answer:
    """What a command left behind."""

    arguments: tuple[str, ...]
    code: object
    out: str
    err: str


@dataclass
class Scene:
    """One installation, and what it has said so far; `listening` has to be on for some of it."""

    world: World
    instance: dg.DagsterInstance
    dagster_url: str
    origin: Database
    folder: Path
    listener: Listener = field(default_factory=Listener)
    canary: Canary = field(default_factory=new_canary)
    reason: str = field(default_factory=lambda: f"{new_canary().text} is why")
    errors: dict[str, list[BaseException]] = field(default_factory=lambda: defaultdict(list))
    answers: list[Answer] = field(default_factory=list)
    validations: list[Validation] = field(default_factory=list)
    carriers: list[object] = field(default_factory=list)
    outcomes: list[object] = field(default_factory=list)
    children: list[dict[str, str]] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    passing: list[str] = field(default_factory=list)
    statements: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for part in (self.printed, self.temporary, self.rows):
            part.mkdir()

    @property
    def printed(self) -> Path:
        """Where `stdout` and `stderr` of this process go."""
        return self.folder / "printed"

    @property
    def temporary(self) -> Path:
        """Where temporary files go."""
        return self.folder / "temporary"

    @property
    def rows(self) -> Path:
        """Where the test keeps data outside the installation."""
        return self.folder / "rows"

    @property
    def home(self) -> Path:
        """Dagster's home."""
        return Path(self.instance.root_directory)

    @property
    def state(self) -> Path:
        """The installation's own directory, with the delivery folder in it."""
        return self.world.application.settings.state

    def stages(self) -> list[Stage]:
        with self.world.application.work() as work:
            return list(work.stages.list("orders", ()))

    def glance(self, _rows: int) -> None:
        """Keep what is in temporary files that have a name, in the middle of a validation."""
        self.passing += files(self.temporary).values()

    def attempt(self, origin: str, action: Callable[[], object]) -> None:
        """Do what must be refused, and keep the refusal under where it comes from."""
        with pytest.raises(GovernanceError) as refusal:
            action()
        self.errors[origin].append(refusal.value)

    def command(self, *arguments: object) -> Answer:
        """Run the command line in this process."""
        words = tuple(map(str, arguments))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["datasource-governance", *words])
            patch.setenv("GOVERNANCE_STATE", str(self.state))
            patch.setenv("GOVERNANCE_DATABASE_URL", self.world.database.application_url)
            return self.printing(cli.main, words)

    def printing(self, action: Callable[[], object], words: tuple[str, ...]) -> Answer:
        """Keep what an action prints and returns or exits with."""
        code: object = 0
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            try:
                code = action()
            except SystemExit as stop:
                code = stop.code
        answer = Answer(words, code, out.getvalue(), err.getvalue())
        self.answers.append(answer)
        return answer

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Catch what is said while a block runs: logs, warnings, prints, statements, files."""
        with (
            _loggers_at_debug(self.listener),
            warnings.catch_warnings(record=True) as caught,
            _printed_to(self.printed),
            pytest.MonkeyPatch.context() as patch,
            self._watched_statements(),
        ):
            warnings.simplefilter("always")
            patch.setattr(tempfile, "tempdir", str(self.temporary))
            yield
        self.warned += [f"{one.message}\n{one.message.args!r}\n{one.source!r}" for one in caught]

    @contextmanager
    def _watched_statements(self) -> Iterator[None]:
        """Keep what the server shows, to whoever may look, of each statement that runs."""
        engine = self.world.application.engine
        with admin_connection(self.world.database.admin_url) as watch:

            def look(*_: object) -> None:
                self.statements |= _running(watch)

            def answers(driver, steps):
                # Of those that go in one trip, the server shows only the last one afterwards.
                self.statements |= {step.statement.text.decode() for step in steps}
                found = sent(driver, steps)
                look()
                return found

            sent = border._answers
            event.listen(engine, "after_cursor_execute", look)
            try:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(border, "_answers", answers)
                    yield
            finally:
                event.remove(engine, "after_cursor_execute", look)

    def places(self) -> dict[str, str]:
        """Return every place where a value could have come out, at once."""
        return {
            **database(self.world.database.admin_url, "governance"),
            **database(self.dagster_url, "public"),
            **{f"home {name}": text for name, text in files(self.home).items()},
            **{f"state {name}": text for name, text in self.state_files().items()},
            **{f"temporary {name}": text for name, text in files(self.temporary).items()},
            **{f"printed {name}": text for name, text in files(self.printed).items()},
            **server_log(self.world.database.admin_url),
            "logged": "\n".join(text for _, text in self.listener.heard),
            "warned": "\n".join(self.warned),
            "passing": "\n".join(self.passing),
            "statements": "\n".join(self.statements),
            "answered": repr(self.answers),
            "raised": "\n".join(error_text(one) for some in self.errors.values() for one in some),
        }

    def state_files(self) -> dict[str, str]:
        """Return the files of the installation's directory, without the deliveries themselves."""
        found = files(self.state)
        return {name: text for name, text in found.items() if not name.startswith("deliveries/")}


def _running(watch: psycopg.Connection) -> set[str]:
    shown = watch.execute(
        "SELECT application_name || ' ' || query FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    return {text for (text,) in shown}


@contextmanager
def _loggers_at_debug(listener: Listener) -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in LOUD]
    levels = [one.level for one in loggers]
    for one in loggers:
        one.setLevel(logging.DEBUG)
    loggers[0].addHandler(listener)
    try:
        yield
    finally:
        loggers[0].removeHandler(listener)
        for one, level in zip(loggers, levels, strict=True):
            one.setLevel(level)


@contextmanager
def _printed_to(folder: Path) -> Iterator[None]:
    """Append what this process and its children print to `stdout` and `stderr` in a folder."""
    with ExitStack() as stack:
        for number, redirect in ((1, redirect_stdout), (2, redirect_stderr)):
            kept = os.dup(number)
            stack.callback(os.close, kept)
            name = "stdout" if number == 1 else "stderr"
            opened = os.open(folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.dup2(opened, number)
            os.close(opened)
            stack.callback(os.dup2, kept, number)
            stream = stack.enter_context(os.fdopen(number, "w", closefd=False))
            stack.enter_context(redirect(stream))
        yield
