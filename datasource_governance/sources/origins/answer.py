"""What an origin says when it is asked.

Source: SPEC section 11.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datasource_governance.domain.canonical import Sha256

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A typed table, and what the origin says of it.

    `name` is the origin's in messages. `sha256` is that of the file that was read, None where there
    was none. `version` is what the origin calls this version, None where it does not say.
    """

    name: str
    table: "pa.Table" = field(repr=False)
    sha256: Sha256 | None = None
    version: str | None = None
    rows_numbered: bool = True
