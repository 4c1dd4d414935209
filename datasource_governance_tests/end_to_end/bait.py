"""Bait in every form in which data comes: files, frames, tables, payloads, and rules it breaks."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import make_url

from datasource_governance_tests.end_to_end.canaries import Canary
from datasource_governance_tests.sources.databases import Database

NAMES = ("text", "number", "date")
DECLARED_TYPES = {"text": "string", "number": "integer", "date": "date"}


def strict_rules() -> list[dict[str, object]]:
    """Return rules of every type that no row of bait meets."""
    per_field = [
        rule
        for name in NAMES
        for rule in (
            {"id": f"{name}-unique", "type": "unique", "field": name},
            {"id": f"{name}-null", "type": "not_null", "field": name},
            {"id": f"{name}-range", "type": "range", "field": name, "minimum": 5, "maximum": 6},
            {"id": f"{name}-set", "type": "referential", "field": name, "allowed_values": ["x", 1]},
            {"id": f"{name}-type", "type": "field", "field": name, "data_type": "boolean"},
        )
    ]
    return [
        *per_field,
        {"id": "key", "type": "unique", "fields": list(NAMES)},
        {"id": "rows", "type": "row_count", "minimum": 100},
        {"id": "fields", "type": "required_fields", "fields": ["gone"]},
    ]


def rows_of(canary: Canary, times: int = 2) -> str:
    row = f"{canary.text},{canary.number},{canary.date}\n"
    return "text,number,date\n" + row * times + ",,\n"


def table_of(canary: Canary) -> pa.Table:
    return pa.table({name: [value] * 2 for name, value in zip(NAMES, canary.values(), strict=True)})


def refused_deliveries(canary: Canary) -> dict[str, str | bytes]:
    """Return files that no rule ever sees, each with bait at the place that refuses it."""
    text, number, date = canary.values()
    header = "text,number,date\n"
    whole = rows_of(canary)
    parquet = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": [text] * 50}), parquet, compression="none")
    return {
        "ragged.csv": f"{whole}{text},{number},{date},{text}\n",
        "undecodable.csv": whole.encode() + str(text).encode("utf-16") + b"\xff\xfe\n",
        "misfit_number.csv": f"{header}{text},{text},{date}\n",
        "misfit_date.csv": f"{header}{text},{number},{number}\n",
        "open_quote.csv": f'{header}"{text},{number},{date}\n',
        "nul.csv": f"{header}{text}\0,{number},{date}\n",
        "truncated.parquet": bytes(parquet.getvalue())[:-20],
        "odd.parquet": b"PAR1" + whole.encode() + b"PAR1",
        "torn.arrow": b"ARROW1\0\0" + whole.encode(),
    }


class BrokenPayload:
    """A payload that cannot be had, and says why at length."""

    def __init__(self, bait: str) -> None:
        self._bait = bait

    def encoded(self) -> bytes:
        raise ValueError(f"could not convert {self._bait}")


def mixed_frame(canary: Canary) -> pd.DataFrame:
    """Return a frame of object columns, one of each kind of value and one of all."""
    columns = {name: [value] * 3 for name, value in zip(NAMES, canary.values(), strict=True)}
    cells = {**columns, "mixed": list(canary.values()), "lists": [[canary.text]] * 3}
    return pd.DataFrame({name: pd.Series(one, dtype=object) for name, one in cells.items()})


def fill(origin: Database, canary: Canary) -> None:
    """Make a table of bait. What a server says of its own rows in its own log is not ours."""
    url = make_url(origin.url)
    if url.drivername != "duckdb":
        origin.run(f"ALTER DATABASE {url.database} SET log_min_messages = 'panic'")
    origin.run(
        f"CREATE TABLE bait AS SELECT '{canary.text}' AS text, {canary.number} AS number,"
        f" DATE '{canary.date}' AS date"
    )
