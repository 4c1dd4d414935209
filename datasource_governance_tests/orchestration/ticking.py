"""A Dagster instance on Postgres, and sensors that tick on it as the daemon makes them."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial

import dagster as dg

from datasource_governance.composition import Application
from datasource_governance.orchestration import metadata
from datasource_governance.orchestration.assets import GOVERNANCE
from datasource_governance.orchestration.registry import governed_definitions


@contextmanager
def instance_on(dagster_database: str) -> Iterator[dg.DagsterInstance]:
    """Yield an instance whose runs and events are in a database."""
    storage = {"storage": {"postgres": {"postgres_url": dagster_database}}}
    with dg.instance_for_test(overrides=storage) as made:
        yield made


class Daemon:
    """Evaluates sensors of one code location, which remembers what its sensors remember."""

    def __init__(self, application, declared, instance, producers=()):
        self.application = application
        self.instance = instance
        self.defs = governed_definitions([declared], application, producers)

    def tick(self, name: str):
        """Evaluate a sensor once."""
        resources = {GOVERNANCE: self.application}
        with dg.build_sensor_context(
            instance=self.instance, definitions=self.defs, resources=resources
        ) as context:
            return self.defs.resolve_sensor_def(name).evaluate_tick(context)

    @contextmanager
    def all_ticks(self) -> Iterator[dict[str, Callable[[], list[dg.RunRequest]]]]:
        """Yield what evaluates each sensor and schedule once and returns the runs it asks for.

        The context of each is made once, which costs more than most ticks do.
        """
        resources = {GOVERNANCE: self.application}
        of_sensor = {"definitions": self.defs, "resources": resources}
        evaluated = [
            *((self.defs.resolve_sensor_def(one.name), of_sensor) for one in self.defs.sensors),
            *((self.defs.resolve_schedule_def(one.name), {}) for one in self.defs.schedules),
        ]
        with ExitStack() as opened:
            ticks = {}
            for one, given in evaluated:
                build = dg.build_sensor_context if given else dg.build_schedule_context
                context = opened.enter_context(build(instance=self.instance, **given))
                ticks[one.name] = partial(_asked, one, context)
            yield ticks


def _asked(one, context) -> list[dg.RunRequest]:
    return one.evaluate_tick(context).run_requests or []


def tick_twice_at_once(world, daemon, declared, name: str) -> None:
    """Let two code locations evaluate a sensor at the same time."""
    start = threading.Barrier(2)

    def tick(_):
        application = Application(world.application.settings)
        own = Daemon(application, declared, daemon.instance)
        start.wait(timeout=30)
        own.tick(name)
        application.close()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(tick, range(2)))


def observations(instance, key, topic) -> list[dg.AssetObservation]:
    """Return what was observed about a topic, newest first."""
    found = [
        record.event_log_entry.asset_observation
        for record in instance.fetch_observations(key, limit=200).records
    ]
    return [
        one
        for one in found
        if metadata.TOPIC in one.metadata and one.metadata[metadata.TOPIC].value == topic
    ]


def listed(observation) -> list[dict]:
    """Return the records of an observation's table."""
    return [dict(one.data) for one in observation.metadata[metadata.WAITING].records]


def materializations(instance, key) -> list[dg.AssetMaterialization]:
    """Return the materializations of an asset, newest first."""
    records = instance.fetch_materializations(key, limit=200).records
    return [record.asset_materialization for record in records]


def versions(instance, key) -> list[str | None]:
    """Return the data versions of an asset's materializations, newest first."""
    found = materializations(instance, key)
    return [(one.tags or {}).get("dagster/data_version") for one in found]
