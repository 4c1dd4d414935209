"""Downstream assets read what is in force, exactly, and only through the governed IO manager."""

from decimal import Decimal

import dagster as dg
import pyarrow as pa
import pytest

from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.orchestration.assets import IO_MANAGER, current_key
from datasource_governance_tests.orchestration.governed import (
    code_of,
    declaration,
    definitions,
    failure_of,
)
from datasource_governance_tests.world import ONE_ROW_AT_LEAST

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
BAIT = "zq-canary-7731"
LARGE = 2**63 - 1
TABLE = pa.table(
    {
        "id": pa.array([LARGE, None], pa.int64()),
        "price": pa.array([Decimal("0.10"), None], pa.decimal128(20, 2)),
        "note": [BAIT, None],
    }
)


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def promoted(world):
    """The world with one materialization in force and `system` allowed to read it."""
    world.declare()
    world.grant(SYSTEM, Role.STEWARD)
    world.promote(world.stage(table=TABLE))
    return world


def read(world, instance):
    """Run an asset that reads `orders/current`; return the run and the frames that it got."""
    frames = []

    @dg.asset(ins={"orders": dg.AssetIn(key=current_key("orders"))})
    def downstream(orders) -> None:
        frames.append(orders)

    defs = definitions(world, declaration(ONE_ROW_AT_LEAST), downstream)
    job = defs.resolve_implicit_global_asset_job_def()
    run = job.execute_in_process(
        instance=instance, raise_on_error=False, asset_selection=[dg.AssetKey("downstream")]
    )
    return run, frames


def test_a_downstream_asset_gets_a_frame_with_every_value_exact(promoted, instance):
    run, (frame,) = read(promoted, instance)

    assert run.success
    assert [str(dtype) for dtype in frame.dtypes][:1] == ["int64[pyarrow]"]
    assert frame["id"].to_list()[0] == LARGE
    assert frame["price"].to_list()[0] == Decimal("0.10")
    assert frame.isna().sum().to_list() == [1, 1, 1]


def test_a_run_records_which_materialization_it_read(promoted, instance):
    run, _ = read(promoted, instance)

    (loaded,) = [one for one in run.all_events if one.event_type_value == "LOADED_INPUT"]
    found = {key: value.value for key, value in loaded.event_specific_data.metadata.items()}
    with promoted.application.work() as work:
        current = work.datasources.get("orders").current
    assert found == {
        "datasource_governance/materialization_id": current,
        "datasource_governance/revision": 1,
    }
    assert BAIT not in repr(run.all_events)


def test_a_reader_without_a_grant_gets_nothing(world, instance):
    world.declare()
    world.promote(world.stage(table=TABLE))

    run, frames = read(world, instance)

    assert code_of(run) == "not_authorised"
    assert frames == []


def test_before_the_first_promotion_there_is_nothing_to_read(world, instance):
    world.declare()
    world.grant(SYSTEM, Role.STEWARD)

    run, frames = read(world, instance)

    assert code_of(run) == "not_found"
    assert frames == []


def test_an_altered_payload_is_not_given_out(promoted, instance):
    promoted.as_superuser(
        "ALTER TABLE governance.materialization_payload DISABLE TRIGGER USER;"
        "UPDATE governance.materialization_payload"
        " SET payload = set_byte(payload, 200, (get_byte(payload, 200) + 1) % 256)"
    )

    run, frames = read(promoted, instance)

    assert code_of(run) == "payload_altered"
    assert frames == []
    assert BAIT not in repr(run.all_events)


def test_nothing_can_be_stored_through_it(promoted, instance):
    @dg.asset(io_manager_key=IO_MANAGER)
    def smuggler() -> str:
        return BAIT

    job = definitions(
        promoted, declaration(ONE_ROW_AT_LEAST), smuggler
    ).resolve_implicit_global_asset_job_def()

    run = job.execute_in_process(
        instance=instance, raise_on_error=False, asset_selection=[dg.AssetKey("smuggler")]
    )

    refusal = failure_of(run).user_failure_data
    assert refusal.description == "smuggler is written by promotion only"
    assert BAIT not in repr(run.all_events)
