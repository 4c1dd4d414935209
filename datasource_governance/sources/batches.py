"""A typed table that need not fit into memory: it is read in batches, as often as it takes.

Source: SPEC sections 3 and 18, "streaming, out of core".
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_BATCH_BYTES = 64 * 1024 * 1024
"""What one batch takes in memory, about."""
DEFAULT_MEMORY_BYTES = 512 * 1024 * 1024
"""What a source may take in memory, about; a larger one is read in batches."""


class Batches(Protocol):
    """The rows of a source in the typed form, in batches and in order.

    Making one checks names, types and limits as far as headers tell. Iterating reads the source
    from its first row, every time anew, and raises `UnreadableSourceError` for what is found wrong
    on the way; never with a value, a cause or a context.
    """

    @property
    def schema(self) -> "pa.Schema":
        """The fields of the typed form, with their marks; every batch has exactly these."""
        ...

    @property
    def rows_numbered(self) -> bool:
        """Whether the order of rows means something."""
        ...

    def __iter__(self) -> Iterator["pa.Table"]:
        """Yield the rows; a batch may be empty, and there may be none."""
        ...
