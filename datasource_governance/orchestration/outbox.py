"""The sensor that delivers the outbox.

It goes by positions in the database and keeps no cursor. Toggled, reset or run twice it neither
loses nor repeats an event; the command `outbox deliver` does the same.

Source: SPEC sections 13 and 15 ("outbox delivery").
"""

import dagster as dg

from datasource_governance.composition import Application
from datasource_governance.errors import GovernanceError
from datasource_governance.orchestration.assets import GOVERNANCE
from datasource_governance.orchestration.sensors import skipped
from datasource_governance.services.delivering import backlogs, dead_letters, deliver

OUTBOX = "outbox_delivery"
INTERVAL_SECONDS = 10


def outbox_sensor() -> dg.SensorDefinition:
    """Return the sensor that hands over what waits, one bounded round each tick."""

    @dg.sensor(
        name=OUTBOX,
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        required_resource_keys={GOVERNANCE},
        description="Delivers events to the receivers of GOVERNANCE_RECEIVERS, at least once.",
    )
    def outbox_delivery(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        application: Application = context.resources.governance
        try:
            return skipped(_delivered(application))
        except GovernanceError as error:
            return skipped(str(error))

    return outbox_delivery


def _delivered(application: Application) -> str:
    receivers = application.receivers()
    if not receivers:
        return "nobody is told of events: GOVERNANCE_RECEIVERS is not set"
    rounds = deliver(application.work, receivers)
    waiting = sum(one.waiting for one in backlogs(application.work(), receivers))
    dead = len(dead_letters(application.work()))
    accepted = sum(one.accepted for one in rounds)
    problems = [one.problem for one in rounds if one.problem]
    return "; ".join([f"{accepted} delivered, {waiting} waiting, {dead} dead", *problems])
