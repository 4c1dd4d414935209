"""Data of any class is published: inline while it is small, else as an artifact."""

from dataclasses import replace

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import datasource_governance
from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.domain.publication import PublicationState
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.evaluation.payload import MAXIMUM_INLINE_ROWS
from datasource_governance.services.publishing import PublicationRequest
from datasource_governance_tests.sources.refusals import kinds_and_names

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

ROWS = [1, 2]
MANY = MAXIMUM_INLINE_ROWS + 1


@pytest.fixture(scope="module")
def world(shared_world):
    """Every test publishes under keys of its own."""
    shared_world.declare(kind="published", artifact_evaluation="here")
    shared_world.grant(SYSTEM, Role.PRODUCER)
    return shared_world


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame({"id": ROWS}),
        pl.DataFrame({"id": ROWS}),
        pl.LazyFrame({"id": ROWS}),
        pa.table({"id": ROWS}),
    ],
    ids=["pandas", "polars", "lazy", "arrow"],
)
def test_the_same_small_rows_of_any_class_are_one_inline_output(world, data):
    made = world.publish(data, "small")

    assert made.materialization.artifact is None
    assert made.materialization.row_count == len(ROWS)


def test_what_is_just_small_enough_stays_inline(world):
    made = world.publish(pa.table({"id": range(MAXIMUM_INLINE_ROWS)}), "full")

    assert made.materialization.artifact is None


def test_one_row_more_makes_one_artifact_however_it_comes(world):
    table = pa.table({"id": range(MANY)})
    parts = pa.concat_tables([table.slice(0, 7), table.slice(7)])

    made = world.publish(table, "large")
    again = world.publish(parts, "large")
    lazily = world.publish(pl.LazyFrame({"id": range(MANY)}), "large")

    assert made.publication.state is PublicationState.PUBLISHED
    assert made.materialization.artifact is not None
    assert again.replayed
    assert lazily.replayed


@pytest.mark.parametrize("rows", [len(ROWS), MANY], ids=["small", "large"])
def test_a_file_is_read_if_it_is_small_and_else_kept_as_it_is(world, tmp_path, rows):
    path = tmp_path / "output.parquet"
    pq.write_table(pa.table({"id": range(rows)}), path)

    made = world.publish(path, f"file of {rows}")

    assert (made.materialization.artifact is None) == (rows == len(ROWS))
    assert made.materialization.row_count == rows


@pytest.mark.parametrize(
    "cell",
    [
        pa.scalar(9_999_888_777_666_555, pa.timestamp("s")),
        pa.scalar([9_999_888_777_666_555], pa.list_(pa.timestamp("s"))),
        pa.scalar((1, 2, 3), pa.month_day_nano_interval()),
        pa.scalar({}, pa.struct([])),
    ],
    ids=["instant", "nested instant", "interval", "empty struct"],
)
def test_what_parquet_cannot_hold_is_refused_without_a_value(world, cell):
    before = world.count_rows()
    table = pa.table({"v": pa.repeat(cell, MANY)})

    assert kinds_and_names(lambda: world.publish(table, "odd")) == [("unsupported_value", ())]
    assert world.count_rows() == before


def test_how_much_of_a_file_is_copied_is_told(world, tmp_path):
    path, told = tmp_path / "output.parquet", []
    pq.write_table(pa.table({"id": range(MANY)}), path)
    outlet = replace(world.application.outlet(), on_bytes=told.append)
    named = {"producer": "flow", "idempotency_key": "told", "datasource": world.datasource}

    outlet.publish(path, PublicationRequest(**named))

    assert told[-1] == path.stat().st_size


def test_a_file_of_another_kind_is_refused(world, tmp_path):
    path = tmp_path / "output.csv"
    path.write_text("id\n1\n")

    with pytest.raises(InvalidArgumentError):
        world.publish(path, "csv")


def test_the_public_function_publishes_in_the_environment(world, monkeypatch):
    settings = world.application.settings
    monkeypatch.setenv("GOVERNANCE_DATABASE_URL", settings.database_url)
    monkeypatch.setenv("GOVERNANCE_STATE", str(settings.state))

    made = datasource_governance.publish(
        pl.DataFrame({"id": ROWS}), producer="flow", idempotency_key="public", datasource="orders"
    )

    assert made.publication.state is PublicationState.PUBLISHED
