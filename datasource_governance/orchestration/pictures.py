"""Pictures: what a sensor keeps shown on an asset, as the newest observation of its topic.

A sensor draws what is so now and compares it with what is shown. Only where both differ it reports
an observation. So it needs no cursor, shows again what was wiped, corrects what was forged, and two
ticks say no more than one.

Source: SPEC section 15 ("visible state").
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import dagster as dg

from datasource_governance.composition import Application
from datasource_governance.errors import GovernanceError
from datasource_governance.orchestration import metadata
from datasource_governance.orchestration.assets import GOVERNANCE
from datasource_governance.orchestration.sensors import skipped

Draw = Callable[[Application, dg.DagsterInstance], Iterable["Picture"]]
"""Draws what is so now; it may do what has to be done about it."""
_LOOKED_THROUGH = 50
"""Newest observations of an asset; behind more of others, a picture counts as not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What is so now of one asset. `is_empty`: nothing is; then it is shown only to take back."""

    key: dg.AssetKey
    topic: str
    is_empty: bool
    description: str
    metadata: metadata.Metadata

    def observation(self) -> dg.AssetObservation:
        """Return the picture as Dagster keeps it."""
        return dg.AssetObservation(
            asset_key=self.key,
            description=self.description,
            metadata={metadata.TOPIC: self.topic, **self.metadata},
        )


def show(instance: dg.DagsterInstance, picture: Picture) -> bool:
    """Report a picture unless it is what is shown; tell whether it was reported."""
    shown, made = _shown(instance, picture), picture.observation()
    is_true = picture.is_empty if shown is None else _looks_like(shown, made)
    if is_true:
        return False
    instance.report_runless_asset_event(made)
    return True


def _shown(instance: dg.DagsterInstance, picture: Picture) -> dg.AssetObservation | None:
    """Return the newest observation of a picture's topic, whoever reported it."""
    for record in instance.fetch_observations(picture.key, limit=_LOOKED_THROUGH).records:
        observation = record.event_log_entry.asset_observation
        topic = observation.metadata.get(metadata.TOPIC) if observation else None
        if topic is not None and topic.value == picture.topic:
            return observation
    return None


def _looks_like(shown: dg.AssetObservation, made: dg.AssetObservation) -> bool:
    return (shown.description, shown.metadata) == (made.description, made.metadata)


def picture_sensor(topic: str, seconds: int, description: str, draw: Draw) -> dg.SensorDefinition:
    """Return the sensor that keeps the pictures of a topic shown; at most one tick at a time."""

    @dg.sensor(
        name=topic,
        minimum_interval_seconds=seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        required_resource_keys={GOVERNANCE},
        description=description,
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        application: Application = context.resources.governance
        try:
            with application.work() as turn:
                if not turn.take_turn(f"sensor/{topic}"):
                    return skipped("another tick is at it")
                reported = [
                    picture
                    for picture in draw(application, context.instance)
                    if show(context.instance, picture)
                ]
        except GovernanceError as error:
            return skipped(str(error))
        return skipped(f"{metadata.counted(len(reported), 'observation')} reported")

    return sensor
