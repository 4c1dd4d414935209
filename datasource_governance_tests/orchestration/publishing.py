"""Governed assets as Dagster runs them, over a real database."""

import dagster as dg
import pandas as pd

from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.datasource import Datasource, parse_datasource
from datasource_governance.orchestration.registry import governed_definitions
from datasource_governance_tests.orchestration.governed import AMOUNT, ID_UNIQUE, NOTE
from datasource_governance_tests.world import World

POLICY = {"version": "v1", "rules": [ID_UNIQUE, AMOUNT, NOTE]}
GOOD = pd.DataFrame({"id": [1, 2], "amount": [10, 20], "note": ["a", "b"]})
BETTER = pd.DataFrame({"id": [1, 2, 3], "amount": [10, 20, 30], "note": ["a", "b", "c"]})
WARNED = pd.DataFrame({"id": [1, 2], "amount": [10, 20], "note": ["a", None]})
BAD = pd.DataFrame({"id": [7, 7], "amount": [10, -1], "note": ["a", "b"]})


def published(name="orders", quality=POLICY, approval=None, kind="published", **settings):
    """Return the declaration of a datasource to which something is published."""
    governance = {"quality_policy": quality, "approval_policy": approval, **settings}
    governance = {key: value for key, value in governance.items() if value is not None}
    document = {"id": name, "kind": kind, "governance": governance}
    return parse_datasource(canonical_bytes(document), lambda _name: b"")


def declare(world: World, quality=POLICY, **declared) -> Datasource:
    """Declare the world's datasource, to which `system` may publish; return the declaration."""
    world.declare(quality, kind="published", **declared)
    for role in (Role.PRODUCER, Role.STEWARD):
        world.grant(SYSTEM, role, world.datasource)
    return published(world.datasource, quality, **declared)


def definitions(world: World, declared: Datasource, asset: dg.AssetsDefinition, *assets):
    """Return what a code location of this datasource and what publishes to it returns."""
    return dg.Definitions.merge(
        governed_definitions([declared], world.application, producers=[asset]),
        dg.Definitions(assets=assets),
    )


def run(world: World, asset: dg.AssetsDefinition, instance, declared: Datasource, **options):
    """Run a governed asset in this process; a failure is returned, not raised."""
    defs = definitions(world, declared, asset)
    job = defs.resolve_job_def(f"publish_{declared.id}")
    return job.execute_in_process(instance=instance, raise_on_error=False, **options)


_RE_EXECUTED: list[dg.JobDefinition] = []


def re_executed_job() -> dg.JobDefinition:
    """Return the job that is executed again; Dagster asks for it by this name."""
    return _RE_EXECUTED[-1]


def re_execute(world: World, asset: dg.AssetsDefinition, instance, declared: Datasource, parent):
    """Execute a run again, as the UI does, in this process."""
    defs = definitions(world, declared, asset)
    _RE_EXECUTED.append(defs.resolve_job_def(f"publish_{declared.id}"))
    return dg.execute_job(
        dg.reconstructable(re_executed_job),
        instance=instance,
        reexecution_options=dg.ReexecutionOptions(parent_run_id=parent.run_id),
    )


def materialized(result: dg.ExecuteInProcessResult, asset: dg.AssetsDefinition):
    """Return the metadata of a governed asset's one materialization, by the last part of a key."""
    (event,) = [
        one for one in result.get_asset_materialization_events() if one.asset_key == asset.key
    ]
    return {
        key.split("/")[-1]: value.value for key, value in event.materialization.metadata.items()
    } | {"data_version": event.materialization.tags["dagster/data_version"]}


def observed(result: dg.ExecuteInProcessResult):
    """Return the metadata of the one observation of a run, by the last part of a key."""
    (event,) = result.get_asset_observation_events()
    observation = event.event_specific_data.asset_observation
    return {key.split("/")[-1]: value.value for key, value in observation.metadata.items()}


def target(world: World, partition=""):
    with world.application.work() as work:
        return work.datasources.get(world.datasource, partition)
