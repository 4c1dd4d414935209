"""Canaries: planted bait values, and a sweep of every place where one could come out.

The sweep looks for each value in the forms that software gives to values on their way out.
"""

import base64
import datetime as dt
import logging
import secrets
import traceback
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from datasource_governance_tests.postgres import admin_connection

PAYLOADS = {("stage_payload", "payload"), ("materialization_payload", "payload")}
TRUNCATED = 12
"""How many characters of a value still tell which it is."""


@dataclass(frozen=True)
class Canary:
    """One bait value of each kind: random, so that a coincidence is out of the question."""

    text: str
    number: int
    date: dt.date

    def values(self) -> tuple[object, ...]:
        return (self.text, self.number, self.date)

    @property
    def bait(self) -> str:
        """All values in one text, for a leak of every kind at once."""
        return " ".join(map(str, self.values()))

    def kinds(self) -> set[str]:
        """Return the kinds of value, as `leaks` names them."""
        return {type(value).__name__ for value in self.values()}


def new_canary() -> Canary:
    return Canary(
        text=secrets.token_hex(10) + "/ +é",
        number=10**18 + secrets.randbelow(8 * 10**18),
        date=dt.date(1800, 1, 1) + dt.timedelta(days=secrets.randbelow(30_000)),
    )


def forms(value: object) -> set[str]:
    """Return how a value looks: plain, truncated, quoted, rounded, in hex, in a URL, in Base64."""
    plain = str(value)
    raw = plain.encode()
    rounded = {repr(float(value))[:TRUNCATED]} if isinstance(value, int) else set()
    return {
        plain[:TRUNCATED],
        repr(value),
        *rounded,
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


def database(url: str, schema: str, table: str | None = None) -> dict[str, str]:
    """Return every column of every table, or of one, as text, except the two payloads."""
    with admin_connection(url) as connection:
        columns = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = %s AND coalesce(%s::text, table_name) = table_name"
            " ORDER BY 1, 2",
            (schema, table),
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
        return f"{_inflated(value).decode('utf-8', 'replace')}\n{value!r}"
    return f"{value}\n{value!r}"


def _inflated(value: bytes) -> bytes:
    """Return what is behind zlib, in which Dagster keeps its snapshots, or else the bytes."""
    try:
        return zlib.decompress(value)
    except zlib.error:
        return value


def files(directory: Path) -> dict[str, str]:
    """Return the content of every file below a directory, by its path there."""
    return {
        str(path.relative_to(directory)): path.read_bytes().decode("utf-8", "replace")
        for path in directory.rglob("*")
        if path.is_file()
    }


def server_log(url: str) -> dict[str, str]:
    """Return the Postgres server's log, where it is a file beside the data of a local server."""
    with admin_connection(url) as connection:
        ((data,),) = connection.execute("SHOW data_directory").fetchall()
    return {path.name: path.read_text(errors="replace") for path in Path(data).parent.glob("*.log")}


def error_text(error: BaseException) -> str:
    """Return all that an exception tells, by each of its faces."""
    return "\n".join(face(error) for face in FACES.values())


def _hidden_frames(error: BaseException) -> str:
    """Return the local variables of what an exception hides: a crash reporter shows them."""
    frames = [
        repr(frame.f_locals)
        for hidden in (error.__cause__, error.__context__)
        if hidden is not None
        for frame, _ in traceback.walk_tb(hidden.__traceback__)
    ]
    return "\n".join(frames)


def _told(hidden: BaseException | None) -> str:
    return "" if hidden is None else error_text(hidden)


FACES: Mapping[str, Callable[[BaseException], str]] = {
    "message": str,
    "repr": repr,
    "arguments": lambda error: repr(error.args),
    "attributes": lambda error: repr(vars(error)),
    "notes": lambda error: "\n".join(getattr(error, "__notes__", ())),
    "cause": lambda error: _told(error.__cause__),
    "context": lambda error: _told(error.__context__),
    "frames of cause and context": _hidden_frames,
    "printed traceback": lambda error: "".join(traceback.format_exception(error)),
    # What pickle would write; in its bytes a number is binary.
    "pickle": lambda error: repr(error.__reduce_ex__(4)),
}
"""The ways in which an exception tells something."""


class Listener(logging.Handler):
    """Everything that any logger says, arguments and exceptions included, by its name."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.heard: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        said = f"{record.getMessage()}\n{record.args!r}\n{record.__dict__!r}"
        self.heard.append((record.name, said))
        if record.exc_info and record.exc_info[1]:
            self.heard.append((record.name, error_text(record.exc_info[1])))
