"""A Polars query in batches, in the typed form.

Source: SPEC section 3.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from datasource_governance.sources.batches import DEFAULT_BATCH_BYTES, Batches
from datasource_governance.sources.frames import from_data
from datasource_governance.sources.refusal import refused, shielded

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

_BYTES_PER_CELL = 16
"""What a cell takes, about: nobody knows before a query is run."""


def lazy_batches(data: object, batch_bytes: int = DEFAULT_BATCH_BYTES) -> Batches | None:
    """Return a LazyFrame as batches; None for other data, and for types known by values only.

    Raises:
        UnreadableSourceError: repeated or blank names; kind `unreadable` for a query that does not
            even tell its columns.
    """
    if type(data).__name__ != "LazyFrame" or not type(data).__module__.startswith("polars"):
        return None
    import polars as pl

    query: pl.LazyFrame = data  # type: ignore[assignment]  # its class has the name
    unreadable = refused("polars LazyFrame", "unreadable", "the query failed")
    columns = shielded(query.collect_schema, unreadable)
    if any(dtype in {pl.Object, pl.Int128, pl.UInt128} for dtype in columns.dtypes()):
        return None
    return _LazyBatches(query, from_data(pl.DataFrame(schema=columns)).schema, batch_bytes)


class _LazyBatches:
    """The answer of a query, as it comes."""

    rows_numbered = True

    def __init__(self, query: "pl.LazyFrame", schema: "pa.Schema", batch_bytes: int) -> None:
        self._query = query
        self.schema = schema
        self._rows = max(1, batch_bytes // (_BYTES_PER_CELL * max(1, len(schema))))

    def __iter__(self) -> Iterator["pa.Table"]:
        """Run the query and yield its rows."""
        parts = self._query.collect_batches(chunk_size=self._rows, maintain_order=True)
        unreadable = refused("polars LazyFrame", "unreadable", "the query failed")
        while (part := shielded(lambda: next(parts, None), unreadable)) is not None:
            yield from_data(part)
