"""Definitions for a registry of datasources: what a code location returns.

Source: SPEC section 15.
"""

from collections.abc import Sequence

import dagster as dg

from datasource_governance.composition import Application, read_settings
from datasource_governance.domain.datasource import Datasource
from datasource_governance.orchestration.assets import (
    GOVERNANCE,
    IO_MANAGER,
    datasource_assets,
)
from datasource_governance.orchestration.io_manager import GovernedIOManager
from datasource_governance.orchestration.jobs import promotion_job, stage_job
from datasource_governance.orchestration.outbox import outbox_sensor
from datasource_governance.orchestration.reconciliation import reconciliation_sensor
from datasource_governance.orchestration.schedules import (
    checkpoint_schedule,
    evidence_checkpoint,
)
from datasource_governance.orchestration.sensors import Promotions, Watch, approval_quorum_sensor
from datasource_governance.orchestration.waiting import waiting_sensors


def governed_definitions(
    declarations: Sequence[Datasource], application: Application | None = None
) -> dg.Definitions:
    """Return assets, checks, jobs, sensors, schedules and the IO manager of declared datasources.

    Merge them with your own: `dg.Definitions.merge(governed_definitions(...), ...)`. Nothing is
    connected or read; each run and tick opens what it needs. Without an `application` the one of
    this process's environment is used.
    """
    application = application or Application(read_settings())
    webserver = application.settings.dagster_url
    assets = [datasource_assets(declaration, webserver) for declaration in declarations]
    names = [declaration.id for declaration in declarations]
    promotions = {name: promotion_job(name) for name in names}
    return dg.Definitions(
        assets=[asset for both in assets for asset in (both.stage, both.current)],
        asset_checks=[both.evidence for both in assets],
        jobs=[*map(stage_job, names), *promotions.values(), evidence_checkpoint],
        schedules=[checkpoint_schedule(application)],
        sensors=_sensors(declarations, promotions) if promotions else [],
        resources={GOVERNANCE: application, IO_MANAGER: GovernedIOManager(application)},
        executor=dg.in_process_executor,
    )


def _sensors(
    declarations: Sequence[Datasource], promotions: Promotions
) -> list[dg.SensorDefinition]:
    watch = Watch()
    return [
        approval_quorum_sensor(promotions, watch),
        *waiting_sensors(promotions, watch),
        outbox_sensor(),
        reconciliation_sensor(declarations),
    ]
