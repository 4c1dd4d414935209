"""Canaries: planted bait values, and a sweep of every place where one could come out.

The sweep looks for each value in the forms that software gives to values on their way out.
"""

import base64
import datetime as dt
import logging
import secrets
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from datasource_governance_tests.postgres import admin_connection

PAYLOADS = {("stage_payload", "payload"), ("materialization_payload", "payload")}


@dataclass(frozen=True)
class Canary:
    """One bait value of each kind: random, so that a coincidence is out of the question."""

    text: str
    number: int
    date: dt.date

    def values(self) -> tuple[object, ...]:
        return (self.text, self.number, self.date)


def new_canary() -> Canary:
    return Canary(
        text=secrets.token_hex(10) + "/ +é",
        number=10**18 + secrets.randbelow(8 * 10**18),
        date=dt.date(1800, 1, 1) + dt.timedelta(days=secrets.randbelow(30_000)),
    )


def forms(value: object) -> set[str]:
    """Return how a value looks plain, quoted, as hex, URL-encoded and inside Base64."""
    plain = str(value)
    raw = plain.encode()
    return {
        plain,
        repr(value),
        raw.hex(),
        raw.hex().upper(),
        quote(plain, safe=""),
        *_base64_forms(raw),
    }


def _base64_forms(raw: bytes) -> Iterator[str]:
    """Yield what is left of a value in the Base64 of something longer, at each alignment."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + raw).decode().rstrip("=")
        yield encoded[(0, 2, 3)[before] : len(encoded) - 1]


def leaks(places: Mapping[str, str], values: Iterable[object]) -> dict[str, set[str]]:
    """Return the places in which any form of any value occurs, with the kinds of value."""
    wanted = {form: type(value).__name__ for value in values for form in forms(value)}
    found = {
        place: {kind for form, kind in wanted.items() if form in text}
        for place, text in places.items()
    }
    return {place: kinds for place, kinds in found.items() if kinds}


def database(url: str, schema: str) -> dict[str, str]:
    """Return every column of every table of a schema as text, except the two payloads."""
    with admin_connection(url) as connection:
        columns = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = %s ORDER BY 1, 2",
            (schema,),
        ).fetchall()
        return {
            f"{schema}.{table}.{column}": _column(connection, schema, table, column)
            for table, column in columns
            if (table, column) not in PAYLOADS
        }


def _column(connection: psycopg.Connection, schema: str, table: str, column: str) -> str:
    query = sql.SQL("SELECT {} FROM {}").format(
        sql.Identifier(column), sql.Identifier(schema, table)
    )
    return "\n".join(_text(value) for (value,) in connection.execute(query))


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return f"{value.decode('utf-8', 'replace')}\n{value!r}"
    return f"{value}\n{value!r}"


def files(directory: Path) -> dict[str, str]:
    """Return the content of every file below a directory."""
    return {
        f"file {path.relative_to(directory)}": path.read_bytes().decode("utf-8", "replace")
        for path in directory.rglob("*")
        if path.is_file()
    }


def server_log(url: str) -> dict[str, str]:
    """Return the Postgres server's log, where it is a file beside the data of a local server."""
    with admin_connection(url) as connection:
        ((data,),) = connection.execute("SHOW data_directory").fetchall()
    return {
        f"server log {path.name}": path.read_text(errors="replace")
        for path in Path(data).parent.glob("*.log")
    }


def error_text(error: BaseException) -> str:
    """Return all that an exception tells, with what hangs on it by cause and by context.

    Also the local variables of the frames of those that it hides: a crash reporter shows them.
    """
    parts = ["".join(traceback.format_exception(error)), repr(error), repr(vars(error))]
    for hidden in (error.__cause__, error.__context__):
        if hidden is not None:
            frames = traceback.walk_tb(hidden.__traceback__)
            parts += [error_text(hidden), *(repr(frame.f_locals) for frame, _ in frames)]
    return "\n".join(parts)


class Listener(logging.Handler):
    """Everything that any logger says, arguments and exceptions included."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(f"{record.getMessage()}\n{record.args!r}\n{record.__dict__!r}")
        if record.exc_info and record.exc_info[1]:
            self.heard.append(error_text(record.exc_info[1]))
