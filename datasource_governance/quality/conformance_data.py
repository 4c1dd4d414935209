"""The edge data of the conformance suite.

Hardly a column has the nulls, duplicates or outliers of another one, so that columns that are mixed
up, and values that pass through a type that loses something, show in a count.

Source: SPEC sections 2.1, 3 and 14; facts on the quality plugin, 10.7.
"""

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

POSITION = "position"
"""The column that numbers the rows."""
MIXED = "mixed"
"""A column of mixed types, which only a table in memory can have."""
ROW_COUNT = 12
_EXACT = 1 << 53
_INT64 = 1 << 63


@dataclass(frozen=True, slots=True)
class EdgeColumn:
    """A column, by its type in Postgres and DuckDB, with None for null."""

    sql_type: str
    cells: tuple[object, ...]


def _decimals(*cells: str | None) -> tuple[Decimal | None, ...]:
    return tuple(None if cell is None else Decimal(cell) for cell in cells)


def _days(*days: int | None) -> tuple[dt.date | None, ...]:
    return tuple(None if day is None else dt.date(2024, 2, day) for day in days)


def _moments(*hours: int | None) -> tuple[dt.datetime | None, ...]:
    return tuple(None if hour is None else dt.datetime(2024, 2, 29, hour) for hour in hours)  # noqa: DTZ001 - without a zone, as the column


_TYPED: Final = {
    POSITION: EdgeColumn("BIGINT", tuple(range(1, ROW_COUNT + 1))),
    "integer": EdgeColumn("BIGINT", (1, 1, 0, -1, 2, 3, None, None, 10, 100, -5, 2)),
    "large integer": EdgeColumn(
        "BIGINT",
        (
            *(_EXACT, _EXACT + 1, _EXACT + 1, -_EXACT - 1, _INT64 - 1, -_INT64),
            *(None, _EXACT - 1, _INT64 - 2, 0, 1, _EXACT + 2),
        ),
    ),
    "huge": EdgeColumn(
        "NUMERIC(38,0)",
        _decimals(
            *map(str, (_INT64, _INT64 + 1, 2 * _INT64, 2 * _INT64, -_INT64 - 1)),
            *(None, "0", "1", str(_EXACT + 1), "1" + "0" * 37, "-1" + "0" * 37, "1"),
        ),
    ),
    "decimal": EdgeColumn(
        "NUMERIC(30,4)",
        _decimals(
            *("0.1", "0.1000", "0.3", "1", "-0.0001", None),
            *(f"{_EXACT + 1}.0001", f"{_EXACT + 1}", "27.0", "0.2999", "0.3001", "-1"),
        ),
    ),
    "double": EdgeColumn(
        "FLOAT8",
        (
            *(math.nan, None, math.inf, -math.inf, 0.0, -0.0),
            *(0.1, 0.1 + 0.2, 1e308, float(_EXACT), 27.0, math.nan),
        ),
    ),
    "single": EdgeColumn(
        "FLOAT4",
        (0.1, 0.3, math.nan, None, math.inf, 16777216.0, -0.0, 0.0, 1.5, 0.1, 27.0, -math.inf),
    ),
    "text": EdgeColumn(
        "TEXT",
        (
            *("1", "true", "", " ", None, "it's", 'say "no"', "{brace} {{ 1 }}"),
            *("100% %s %(a)s", "${env.HOME} $1 :name", "back\\slash \\' {% endraw %}", "1"),
        ),
    ),
    "unicode": EdgeColumn(
        "TEXT",
        ("é", "e\u0301", "ß", "SS", "ﬁ", "İ", "😀", "\u200b", "A", "a", None, "a"),
    ),
    "flag": EdgeColumn(
        "BOOLEAN", (True, False, None, True, True, True, False, True, None, True, True, None)
    ),
    "day": EdgeColumn("DATE", _days(29, 28, 29, None, 1, 2, 3, 4, 5, 6, None, None)),
    "moment": EdgeColumn("TIMESTAMP", _moments(0, 1, 0, 2, 3, 4, None, 5, 6, 7, 8, 0)),
    "nothing": EdgeColumn("BIGINT", (None,) * ROW_COUNT),
    "left": EdgeColumn("BIGINT", (1, 1, 1, None, None, None, 2, 2, None, 3, 3, 4)),
    "right": EdgeColumn(
        "TEXT", ("a", "a", "b", "a", "a", None, None, None, None, "c", "d", "left")
    ),
}
"""Columns by name, for what is in them."""
ODD_NAMES: Final = (
    *('quoted "name"', "it's", "two words", "per%cent %s", "{brace}", "{{ jinja }}"),
    *("colon:name", "${dollar}", "dot.ted", "back\\slash", "select", "naïve", "nai\u0308ve"),
)
"""Columns for what they are called; in a text of its own a framework may misread each of them."""
_NAMED: Final = {
    name: EdgeColumn("BIGINT", (*[None] * count, *range(count, ROW_COUNT)))
    for count, name in enumerate(ODD_NAMES[:11])
} | {
    ODD_NAMES[11]: EdgeColumn("TEXT", ("1", "1", *[None] * 8, "é", "e")),
    ODD_NAMES[12]: EdgeColumn("TEXT", (*[None] * 7, "1", "1", "1", "é", "e")),
}
EDGES: Final[Mapping[str, EdgeColumn]] = MappingProxyType(_TYPED | _NAMED)
"""All columns that a table has."""
_MIXED_CELLS = (True, 1, "1", 1.0, None, 27, "true", False, 0, "a", math.nan, 2)


def edge_frame(*, empty: bool) -> Any:  # noqa: ANN401 - a pandas frame
    """Return the columns as a pandas frame with Arrow types, and the mixed column; or no rows."""
    import pandas as pd
    import pyarrow as pa

    rows = 0 if empty else ROW_COUNT
    table = pa.table(
        {name: pa.array(one.cells[:rows], _arrow_type(one.sql_type)) for name, one in EDGES.items()}
    )
    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    frame[MIXED] = pd.Series(_MIXED_CELLS[:rows], dtype=object, index=frame.index)
    return frame


def _arrow_type(sql_type: str) -> "pa.DataType":
    import pyarrow as pa

    return {
        "BIGINT": pa.int64(),
        "NUMERIC(38,0)": pa.decimal128(38, 0),
        "NUMERIC(30,4)": pa.decimal128(30, 4),
        "FLOAT8": pa.float64(),
        "FLOAT4": pa.float32(),
        "TEXT": pa.string(),
        "BOOLEAN": pa.bool_(),
        "DATE": pa.date32(),
        "TIMESTAMP": pa.timestamp("us"),
    }[sql_type]
