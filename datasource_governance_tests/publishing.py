"""Datasets that a producer has published for others to read: inline, by partition, as artifacts."""

import pyarrow as pa

from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.services.publishing import Published
from datasource_governance_tests.postgres import unique_name
from datasource_governance_tests.world import World


def declare_published(world: World, approval=None) -> None:
    """Declare a datasource that producers publish to, and let `system` produce and read."""
    world.declare(kind="published", approval=approval, artifact_evaluation="here")
    for role in (Role.PRODUCER, Role.STEWARD):
        world.grant(SYSTEM, role, world.datasource)


def publish_rows(world: World, table: pa.Table, partition: str = "") -> Published:
    """Publish a small table, which is kept inline."""
    return world.publish(table, unique_name("key"), partition=partition)


def publish_stored(world: World, table: pa.Table, partition: str = "") -> Published:
    """Publish a table as a Parquet artifact, however small it is."""
    return world.publish(world.store_artifact(table), unique_name("key"), partition=partition)
