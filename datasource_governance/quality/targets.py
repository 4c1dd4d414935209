"""What a provider reads: a typed table in memory, or a table of a database.

Source: SPEC sections 3 and 14.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

DIALECTS: Final[Mapping[str, str]] = MappingProxyType(
    {"postgres": "postgresql", "postgresql": "postgresql", "duckdb": "duckdb"}
)
"""The dialects that are read, by each name that they go by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameTarget:
    """A typed table in memory (SPEC section 3), with only the columns that rules name, or one."""

    table: "pa.Table"

    @property
    def columns(self) -> "pa.Schema":
        """Names and Arrow types of the columns."""
        return self.table.schema


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlTarget:
    """A table or view of a database.

    `url` is a SQLAlchemy URL with everything that is needed to connect; `dialect` is `postgresql`
    or `duckdb`; `columns` are those of the table, with the Arrow types of their typed form.
    """

    url: str = field(repr=False)
    dialect: str
    table: str
    schema: str | None
    columns: "pa.Schema"
    timeout_seconds: int


Target = FrameTarget | SqlTarget
