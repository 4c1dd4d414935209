"""The least that a published record needs, written by hand: what two cores allow in Python.

No code of the package runs. The rules of `publication` are evaluated with Arrow, the payload is
encoded and hashed; then one transaction locks the key and looks it up, locks the head of a hash
chain, and writes payload, publication, materialization, event, chain entry and head. Statements
that need not wait for each other go in one trip.
"""

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

import psycopg
from sqlalchemy import URL

from benchmarks.clients import Barrier
from datasource_governance.persistence.administration import connect

if TYPE_CHECKING:
    import pyarrow as pa

_TABLES: Final = """
CREATE TABLE public.hand_publication (
    producer text, key text, sha256 text, body bytea, PRIMARY KEY (producer, key));
CREATE TABLE public.hand_materialization (
    sha256 text, chain text, sequence bigint, body bytea, PRIMARY KEY (chain, sequence));
CREATE TABLE public.hand_payload (
    chain text, sequence bigint, payload bytea, PRIMARY KEY (chain, sequence));
CREATE TABLE public.hand_event (
    chain text, number bigint, body bytea, PRIMARY KEY (chain, number));
CREATE TABLE public.hand_entry (
    chain text, sequence bigint, previous text, body bytea, hash text,
    PRIMARY KEY (chain, sequence));
CREATE TABLE public.hand_head (chain text PRIMARY KEY, sequence bigint, hash text);
"""
_BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
_LOOK: Final = "SELECT sha256, body FROM public.hand_publication WHERE producer = %s AND key = %s"
_HEAD: Final = "SELECT sequence, hash FROM public.hand_head WHERE chain = %s FOR UPDATE"
_WRITE: Final = """
WITH publication AS (
    INSERT INTO public.hand_publication VALUES (
        %(producer)s, %(key)s, %(sha256)s, %(publication)s)),
materialization AS (
    INSERT INTO public.hand_materialization VALUES (
        %(sha256)s, %(chain)s, %(sequence)s, %(publication)s)),
payload AS (
    INSERT INTO public.hand_payload VALUES (%(chain)s, %(sequence)s, %(payload)s)),
event AS (
    INSERT INTO public.hand_event VALUES (%(chain)s, %(sequence)s, %(publication)s)),
entry AS (
    INSERT INTO public.hand_entry VALUES (
        %(chain)s, %(sequence)s, %(previous)s, %(body)s, %(hash)s))
UPDATE public.hand_head SET sequence = %(sequence)s, hash = %(hash)s WHERE chain = %(chain)s
"""


def prepare(url: URL, chains: list[str]) -> None:
    """Create the tables, and a chain for each datasource."""
    with connect(url) as connection:
        connection.execute(_TABLES)
        for chain in chains:
            connection.execute("INSERT INTO public.hand_head VALUES (%s, 0, '')", [chain])


def publish_by_hand(
    start: Barrier, end: Barrier, url: str, chain: str, producer: str, acts: int
) -> None:
    """Publish a table of three rows so many times, as `rate` asks a client to."""
    import pyarrow as pa

    with psycopg.connect(url, autocommit=True) as connection:
        _publish(connection, pa.table({"id": [1, 2, 0]}), chain, producer, "output-0")
        start.wait()
        for number in range(1, acts + 1):
            table = pa.table({"id": [1, 2, number]})
            _publish(connection, table, chain, producer, f"output-{number}")
        end.wait()


def _publish(
    connection: psycopg.Connection[Any], table: "pa.Table", chain: str, producer: str, key: str
) -> None:
    validation = _validated(table)
    payload = _encoded(table)
    sha256 = hashlib.sha256(payload).hexdigest()
    with connection.pipeline():
        connection.execute(_BEGIN)
        connection.execute(_LOCK, [f"{producer}/{key}"])
        found = connection.execute(_LOOK, [producer, key])
        head = connection.execute(_HEAD, [chain])
        if found.fetchone() is not None:
            raise ValueError("every key is new")
        sequence, previous = head.fetchone() or (0, "")
        told = {"producer": producer, "key": key, "sha256": sha256, "validation": validation}
        publication = _spelled(told)
        body = _spelled({"facts": told, "rows": [hashlib.sha256(publication).hexdigest()] * 4})
        row = {
            "producer": producer,
            "key": key,
            "sha256": sha256,
            "publication": publication,
            "chain": chain,
            "sequence": sequence + 1,
            "payload": payload,
            "previous": previous,
            "body": body,
            "hash": hashlib.sha256(f"{previous}{sequence + 1}".encode() + body).hexdigest(),
        }
        connection.execute(_WRITE, row)
        connection.execute("COMMIT")


def _validated(table: "pa.Table") -> dict[str, bool]:
    import pyarrow as pa

    column = table.column("id")
    is_known = pa.types.is_integer(column.type) and column.null_count == 0
    found = {"some": table.num_rows >= 1, "known": is_known}
    if not all(found.values()):
        raise ValueError("every output passes")
    return found


def _encoded(table: "pa.Table") -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _spelled(document: object) -> bytes:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))  # noqa: TID251 - by hand
    return text.encode()
