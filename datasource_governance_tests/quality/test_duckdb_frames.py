import datetime as dt

import duckdb
import pyarrow as pa
import pytest

from datasource_governance.domain.rules import (
    NotNullRule,
    RowCountRule,
    Severity,
    UniqueRule,
)
from datasource_governance.quality.duckdb_frames import duckdb_frame


def failed(frame, rule):
    with duckdb.connect() as connection:
        connection.register("rows", frame.table)
        return len(connection.execute(frame.query(rule, "rows")).fetchall())


def not_null(*fields):
    return NotNullRule(id="r", severity=Severity.ERROR, fields=fields)


def unique(*fields):
    return UniqueRule(id="r", severity=Severity.ERROR, fields=fields, ignore_nulls=False)


def test_fields_that_differ_only_in_case_are_two():
    frame = duckdb_frame(pa.table({"id": [1, 2, 3], "ID": [7, 7, None]}))

    assert (failed(frame, unique("id")), failed(frame, unique("ID"))) == (0, 2)
    assert (failed(frame, not_null("id")), failed(frame, not_null("id", "ID"))) == (0, 1)


def test_a_rule_about_the_number_of_rows_needs_no_column():
    frame = duckdb_frame(pa.table({"id": [1, 2]}))
    rule = RowCountRule(id="r", severity=Severity.ERROR, minimum=3, maximum=None)

    assert failed(frame, rule) == 1


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1], None, [1]]),
        pa.array([{"a": 1}, None, {"a": 1}]),
        pa.array([1, None, 1], pa.decimal256(60, 2)),
        pa.array([dt.timedelta(1), None, dt.timedelta(1)]),
        pa.array([1, None, 1], pa.timestamp("ns", "UTC")),
    ],
)
def test_of_what_duckdb_does_not_hold_only_nulls_are_known(column):
    frame = duckdb_frame(pa.table({"a": column}))

    assert failed(frame, not_null("a")) == 1
    assert frame.query(unique("a"), "rows") is None
