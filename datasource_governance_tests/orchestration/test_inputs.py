"""What inputs ask for and get, and what is told of it afterwards, read from Dagster's instance."""

from dataclasses import replace

import dagster as dg
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from datasource_governance.domain.actor import SYSTEM, ActorId
from datasource_governance.orchestration.assets import IO_MANAGER, current_key
from datasource_governance.orchestration.governed_asset import governed_asset
from datasource_governance.orchestration.io_manager import GovernedIOManager
from datasource_governance.orchestration.metadata import DATASOURCE, INPUTS, MATERIALIZATION_ID
from datasource_governance.services.reading import Bounds
from datasource_governance_tests.orchestration.governed import code_of, failure_of
from datasource_governance_tests.orchestration.publishing import GOOD, declare, definitions
from datasource_governance_tests.postgres import unique_name
from datasource_governance_tests.publishing import (
    declare_published,
    publish_rows,
    publish_stored,
)

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

BAIT = "zq-canary-inputs"
TABLE = pa.table({"id": [1, 2], "note": [BAIT, None]})
DAYS = dg.StaticPartitionsDefinition(["monday", "tuesday", "wednesday"])
DOWNSTREAM = dg.AssetKey("downstream")


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def published(own_corner):
    """A datasource that is published to, and that `system` may read."""
    declare_published(own_corner)
    return own_corner


def upstream(world, partitions=None, key=None, **metadata):
    """Return the asset that inputs are of; who makes it does not matter here."""
    spec = dg.AssetSpec(
        key or current_key(world.datasource), partitions_def=partitions, metadata=metadata
    )
    return spec.with_io_manager_key(IO_MANAGER)


def downstream(asset, annotation=None, got=None, partitions=None, manager=None, **metadata):
    """Return an asset that keeps what it gets in `got`."""

    def compute(context: dg.AssetExecutionContext, rows) -> None:
        del context
        if got is not None:
            got.append(rows)

    if annotation is not None:
        compute.__annotations__["rows"] = annotation
    wanted = dg.AssetIn(asset.key, metadata=metadata, input_manager_key=manager)
    decorated = dg.asset(name="downstream", ins={"rows": wanted}, partitions_def=partitions)
    return decorated(compute)


def run(world, instance, *assets, bounds=None, partition=None):
    """Run the asset `downstream`; a failure is returned, not raised."""
    manager = GovernedIOManager(world.application, bounds=bounds or Bounds())
    defs = dg.Definitions(assets, resources={IO_MANAGER: manager})
    ended = defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=instance,
        raise_on_error=False,
        asset_selection=[DOWNSTREAM],
        partition_key=partition,
    )
    assert BAIT not in repr(ended.all_events)
    return ended


def load(world, instance, annotation=None, partitions=None, bounds=None, **metadata):
    """Return the run and what `downstream` got of an input."""
    asset, got = upstream(world, partitions), []
    reader = downstream(asset, annotation, got, **metadata)
    return run(world, instance, asset, reader, bounds=bounds), got


def inputs_of(instance, key=DOWNSTREAM):
    """Return what the newest materialization of an asset tells of what it read."""
    event = instance.get_latest_materialization_event(key)
    return [record.data for record in event.asset_materialization.metadata[INPUTS].records]


def seen(instance, asset):
    """Return partition and materialization of every observation of an asset, oldest first."""
    records = instance.fetch_observations(asset, limit=100, ascending=True).records
    told = [record.asset_observation for record in records]
    return [(one.partition, one.metadata[MATERIALIZATION_ID].value) for one in told]


def loaded(ended):
    """Return the metadata of the input that was loaded."""
    (event,) = [one for one in ended.all_events if one.event_type_value == "LOADED_INPUT"]
    return {name: value.value for name, value in event.event_specific_data.metadata.items()}


def record(world, made, partition=""):
    return {
        "asset": f"{world.datasource}/current",
        "partition": partition,
        "materialization": made.id,
        "revision": str(made.revision),
    }


def rows_of(frame):
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.DataFrame):
        return frame.to_dicts()
    return (frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame)).to_pylist()


ANNOTATIONS = [
    (None, {}, pd.DataFrame),
    (pd.DataFrame, {}, pd.DataFrame),
    (pl.DataFrame, {}, pl.DataFrame),
    (pl.LazyFrame, {}, pl.LazyFrame),
    (pa.Table, {}, pa.Table),
    (None, {"as": "lazy"}, pl.LazyFrame),
]


@pytest.mark.parametrize(("annotation", "metadata", "kind"), ANNOTATIONS)
def test_an_input_gets_what_it_is_annotated_as_and_it_is_told_which_it_was(
    published, instance, annotation, metadata, kind
):
    made = publish_rows(published, TABLE).materialization

    ended, (frame,) = load(published, instance, annotation, **metadata)

    assert ended.success
    assert isinstance(frame, kind)
    assert rows_of(frame) == TABLE.to_pylist()
    assert inputs_of(instance) == [record(published, made)]
    assert loaded(ended)[MATERIALIZATION_ID] == made.id
    assert seen(instance, current_key(published.datasource)) == [(None, made.id)]


def test_an_artifact_is_read_and_told_of_in_the_same_way(published, instance):
    made = publish_stored(published, TABLE).materialization

    ended, (frame,) = load(published, instance, pl.LazyFrame, columns=["note"])

    assert ended.success
    assert rows_of(frame) == [{"note": BAIT}, {"note": None}]
    assert inputs_of(instance) == [record(published, made)]


def test_an_input_says_which_columns_it_wants(published, instance):
    publish_rows(published, TABLE)

    _, (frame,) = load(published, instance, pa.Table, columns=["note", "id"])
    assert frame.column_names == ["note", "id"]

    ended, got = load(published, instance, columns=["gone", "id", "lost"])
    assert code_of(ended) == "invalid_argument"
    assert "'gone', 'lost'" in failure_of(ended).user_failure_data.description
    assert got == []


def test_a_pinned_input_is_told_to_be_of_what_was_pinned(published, instance):
    first = publish_rows(published, TABLE).materialization
    publish_rows(published, pa.table({"id": [3], "note": ["c"]}))

    ended, (frame,) = load(published, instance, materialization_id=first.id)

    assert ended.success
    assert rows_of(frame) == TABLE.to_pylist()
    assert inputs_of(instance) == [record(published, first)]
    assert loaded(ended)[MATERIALIZATION_ID] == first.id


def test_what_was_published_between_two_runs_is_told_apart(published, instance):
    told = []
    for number in (1, 2):
        made = publish_rows(published, pa.table({"id": [number]})).materialization
        load(published, instance)
        told.append((inputs_of(instance), [record(published, made)]))

    assert all(found == expected for found, expected in told)
    assert told[0] != told[1]


def test_each_asset_of_a_step_tells_of_its_own_inputs(published, instance):
    other = replace(published, datasource=unique_name("other"))
    declare_published(other)
    mine = record(published, publish_rows(published, TABLE).materialization)
    others = record(other, publish_rows(other, TABLE).materialization)
    left, right = upstream(published), upstream(other)

    @dg.multi_asset(
        specs=[dg.AssetSpec("joined", deps=[left, right]), dg.AssetSpec("single", deps=[left])],
        ins={"a": dg.AssetIn(left.key), "b": dg.AssetIn(right.key)},
    )
    def step(a, b):
        assert len(a) == len(b) == TABLE.num_rows
        yield dg.MaterializeResult("joined")
        yield dg.MaterializeResult("single")

    manager = GovernedIOManager(published.application)
    defs = dg.Definitions([left, right, step], resources={IO_MANAGER: manager})
    assert (
        defs.resolve_implicit_global_asset_job_def()
        .execute_in_process(instance=instance, asset_selection=[*step.keys])
        .success
    )

    assert inputs_of(instance, dg.AssetKey("joined")) == [mine, others]
    assert inputs_of(instance, dg.AssetKey("single")) == [mine]


def test_an_asset_of_another_name_says_whose_data_it_holds(published, instance):
    made = publish_rows(published, TABLE).materialization
    asset = upstream(published, key="totals", **{DATASOURCE: published.datasource})

    assert run(published, instance, asset, downstream(asset)).success

    assert inputs_of(instance) == [{**record(published, made), "asset": "totals"}]


def test_a_partitioned_input_gets_its_partition(published, instance):
    made = [
        publish_rows(published, pa.table({"id": [day]}), key).materialization
        for day, key in enumerate(["monday", "tuesday"])
    ]
    asset, got = upstream(published, DAYS), []
    reader = downstream(asset, pl.DataFrame, got, DAYS)

    assert run(published, instance, asset, reader, partition="tuesday").success

    assert rows_of(got[0]) == [{"id": 1}]
    assert inputs_of(instance) == [record(published, made[1], "tuesday")]
    assert seen(instance, asset.key) == [("tuesday", made[1].id)]


@pytest.mark.parametrize("annotation", [None, dict, dict[str, pd.DataFrame]], ids=str)
def test_several_partitions_are_a_dict_of_frames(published, instance, annotation):
    made = {
        key: publish_rows(published, pa.table({"id": [day]}), key).materialization
        for day, key in enumerate(DAYS.get_partition_keys())
    }

    ended, (frames,) = load(published, instance, annotation, DAYS)

    assert ended.success
    assert {key: rows_of(frame) for key, frame in frames.items()} == {
        key: [{"id": day}] for day, key in enumerate(made)
    }
    assert inputs_of(instance) == [record(published, one, key) for key, one in made.items()]
    asset = current_key(published.datasource)
    assert seen(instance, asset) == [(key, one.id) for key, one in made.items()]


def test_a_dict_is_of_the_form_that_it_is_annotated_with_even_for_one_partition(
    published, instance
):
    publish_rows(published, TABLE, "monday")
    asset, got = upstream(published, DAYS), []
    reader = downstream(asset, dict[str, pl.LazyFrame], got, DAYS)

    assert run(published, instance, asset, reader, partition="monday").success

    assert rows_of(got[0]["monday"]) == TABLE.to_pylist()


def test_one_partition_without_data_is_no_partition_for_the_input(published, instance):
    publish_rows(published, TABLE, "monday")

    ended, got = load(published, instance, None, DAYS)

    assert code_of(ended) == "not_found"
    assert "'tuesday'" in failure_of(ended).user_failure_data.description
    assert got == []


def test_the_limits_are_of_all_partitions_together(published, instance):
    for key in DAYS.get_partition_keys():
        publish_rows(published, TABLE, key)

    ended, _ = load(published, instance, None, DAYS, Bounds(rows=6))
    assert ended.success
    ended, got = load(published, instance, None, DAYS, Bounds(rows=5))
    assert code_of(ended) == "payload_too_large"
    assert got == []


def test_an_input_may_have_a_manager_of_its_own(published, instance):
    made = publish_rows(published, TABLE).materialization
    asset = upstream(published)
    narrow = GovernedIOManager(published.application, bounds=Bounds(rows=1))
    wide = GovernedIOManager(published.application, reader=ActorId("creator"))
    defs = dg.Definitions(
        [asset, downstream(asset, manager="wide")], resources={IO_MANAGER: narrow, "wide": wide}
    )
    job = defs.resolve_implicit_global_asset_job_def()
    assert job.execute_in_process(instance=instance, asset_selection=[DOWNSTREAM]).success

    assert inputs_of(instance) == [record(published, made)]


@pytest.mark.parametrize(
    ("annotation", "partitions", "metadata"),
    [
        (int, None, {}),
        (pl.DataFrame, None, {"as": "pandas"}),
        (None, None, {"as": "spark"}),
        (pl.DataFrame, DAYS, {}),
        (dict, DAYS, {"materialization_id": "one"}),
        (None, None, {"materialization_id": 1}),
        (None, None, {"columns": "id"}),
    ],
)
def test_an_input_that_nothing_can_be_loaded_for_is_refused(
    published, instance, annotation, partitions, metadata
):
    publish_rows(published, TABLE)

    ended, got = load(published, instance, annotation, partitions, **metadata)

    assert code_of(ended) == "invalid_argument"
    assert got == []


def test_outside_of_a_run_a_value_is_loaded_and_nothing_is_told(published, instance):
    publish_rows(published, TABLE)
    asset = upstream(published)
    manager = GovernedIOManager(published.application, reader=SYSTEM)
    defs = dg.Definitions([asset], resources={IO_MANAGER: manager})

    with defs.get_asset_value_loader(instance) as loader:
        found = loader.load_asset_value(
            asset.key, python_type=pa.Table, input_definition_metadata={"columns": ["id"]}
        )

    assert rows_of(found) == [{"id": 1}, {"id": 2}]
    assert seen(instance, asset.key) == []


def test_a_check_of_the_data_is_told_of_on_the_asset(published, instance):
    made = publish_rows(published, TABLE).materialization
    asset, got = upstream(published), []

    @dg.asset_check(asset=asset.key)
    def looks(rows):
        got.append(rows)
        return dg.AssetCheckResult(passed=True)

    job = dg.define_asset_job("looking", dg.AssetSelection.checks(looks))
    defs = dg.Definitions(
        [asset],
        asset_checks=[looks],
        jobs=[job],
        resources={IO_MANAGER: GovernedIOManager(published.application)},
    )
    assert defs.resolve_job_def("looking").execute_in_process(instance=instance).success

    assert len(got[0]) == TABLE.num_rows
    assert seen(instance, asset.key) == [(None, made.id)]


def test_a_governed_asset_and_its_reader_meet_in_one_run(own_corner, instance):
    declared, got = declare(own_corner), []

    @governed_asset(datasource=declared, key="totals")
    def totals():
        return GOOD

    reader = downstream(totals, pl.DataFrame, got)
    defs = definitions(own_corner, declared, totals, reader)
    job = defs.resolve_implicit_global_asset_job_def()
    assert job.execute_in_process(
        instance=instance, asset_selection=[totals.key, DOWNSTREAM]
    ).success

    assert rows_of(got[0]) == GOOD.to_dict("records")
    made = instance.get_latest_materialization_event(totals.key).asset_materialization
    (told,) = inputs_of(instance)
    assert (told["asset"], told["materialization"]) == (
        "totals",
        made.tags["dagster/data_version"],
    )
