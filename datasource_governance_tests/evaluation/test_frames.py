import datetime as dt
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

from datasource_governance.evaluation.columns import FrameColumns
from datasource_governance.evaluation.frames import frame_of
from datasource_governance.sources.frames import from_data
from datasource_governance.sources.typed import to_typed

FAR = 2**62
COLUMNS = [
    pa.array([1, None], pa.uint64()),
    pa.array([0.5, None], pa.float16()),
    pa.array([Decimal("1.5"), None], pa.decimal128(10, 2)),
    pa.array([Decimal("1E+50"), None], pa.decimal256(60, 3)),
    pa.array([Decimal("1.5"), None], pa.decimal32(5, 1)),
    pa.array([Decimal("1E+3"), None], pa.decimal128(5, -2)),
    pa.array(["a", None]),
    pa.array([b"a", None]),
    pa.array([True, None]),
    pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    pa.array([dt.date(1, 1, 1), None], pa.date64()),
    pa.array([FAR, None], pa.timestamp("s")),
    pa.array([FAR, None], pa.timestamp("ns", "Europe/Berlin")),
    pa.array([FAR, None], pa.duration("s")),
    pa.array([1, None], pa.time32("s")),
    pa.array([1, None], pa.time64("ns")),
    pa.array([[1], None]),
    pa.array([[FAR], None], pa.list_(pa.timestamp("s"))),
    pa.array([[1, 2], None], pa.list_(pa.int8(), 2)),
    pa.array(
        [{"a": 1, "b": Decimal(1)}, None],
        pa.struct([("a", pa.time32("s")), ("b", pa.decimal256(50, 0))]),
    ),
    pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int8())),
    pa.nulls(2),
    pa.nulls(0, pa.int8()),
]


def restored(frame, typed):
    """Return the typed columns of a frame as a table."""
    columns = FrameColumns(frame, typed)
    found = [columns[name] for name in typed.names]
    fields = pa.schema([column.field for column in found])
    return pa.Table.from_arrays([column.values for column in found], schema=fields)


@pytest.mark.parametrize("engine", ["pandas", "polars"])
@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_every_type_survives_the_way_through_a_frame(column, engine):
    typed = to_typed(pa.table({"index": column, "^.*$": column}))

    back = restored(frame_of(typed, engine), typed.schema)

    assert back.schema.equals(typed.schema, check_metadata=True)
    assert back.equals(typed)


@pytest.mark.parametrize("engine", ["pandas", "polars"])
def test_marks_survive_the_way_through_a_frame(engine):
    cells = {"i": [1, 2**70], "n": [0.5, Decimal("0.1")], "m": [1, "a"]}
    typed = from_data(
        pd.DataFrame({name: pd.Series(two, dtype=object) for name, two in cells.items()})
    )

    back = restored(frame_of(typed, engine), typed.schema)

    assert back.schema.equals(typed.schema, check_metadata=True)
    assert back.equals(typed)
