"""Definitions for a registry of datasources: what a code location returns.

Source: SPEC section 15.
"""

from collections.abc import Sequence

import dagster as dg

from datasource_governance.composition import Application, read_settings
from datasource_governance.domain.datasource import Datasource
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.orchestration.assets import (
    GOVERNANCE,
    IO_MANAGER,
    datasource_assets,
)
from datasource_governance.orchestration.contract_checks import contract_checks
from datasource_governance.orchestration.contract_monitor import (
    contract_monitor,
    contract_monitor_job,
)
from datasource_governance.orchestration.gates import enforce_gates
from datasource_governance.orchestration.governed_asset import published_datasource
from datasource_governance.orchestration.io_manager import GovernedIOManager
from datasource_governance.orchestration.jobs import (
    promotion_job,
    publication_job,
    refresh_job,
    stage_job,
)
from datasource_governance.orchestration.outbox import outbox_sensor
from datasource_governance.orchestration.reconciliation import reconciliation_sensor
from datasource_governance.orchestration.retention import retention_definitions
from datasource_governance.orchestration.schedules import (
    checkpoint_schedule,
    evidence_checkpoint,
)
from datasource_governance.orchestration.sensors import Promotions, Watch, approval_quorum_sensor
from datasource_governance.orchestration.waiting import waiting_sensors


def governed_definitions(
    declarations: Sequence[Datasource],
    application: Application | None = None,
    producers: Sequence[dg.AssetsDefinition] = (),
) -> dg.Definitions:
    """Return assets, checks, jobs, sensors, schedules and the IO manager of declared datasources.

    Merge them with your own: `dg.Definitions.merge(governed_definitions(...), ...)`. Nothing is
    connected or read; each run and tick opens what it needs. Without an `application` the one of
    this process's environment is used. `producers` are governed assets of these datasources: they
    are among what is returned, and lineage leads from them to what is current.

    Raises:
        InvalidArgumentError: when a producer publishes to none of these datasources.
    """
    application = application or Application(read_settings())
    _check_producers(declarations, producers)
    return dg.Definitions.merge(
        shared_definitions(declarations, application, producers),
        *(
            datasource_definitions(
                declaration,
                application,
                [one for one in producers if published_datasource(one) == declaration.id],
            )
            for declaration in declarations
        ),
    )


def _check_producers(
    declarations: Sequence[Datasource], producers: Sequence[dg.AssetsDefinition]
) -> None:
    known = {declaration.id for declaration in declarations}
    strange = [
        one.key.to_user_string() for one in producers if published_datasource(one) not in known
    ]
    if strange:
        raise InvalidArgumentError(
            f"producers {', '.join(strange)} publish to none of the datasources that are declared "
            "here; declare theirs, or leave them out"
        )


def datasource_definitions(
    declaration: Datasource,
    application: Application,
    producers: Sequence[dg.AssetsDefinition] = (),
) -> dg.Definitions:
    """Return what is one datasource's alone: its assets, their checks, its jobs and producers."""
    keys = [producer.key for producer in producers]
    assets = datasource_assets(declaration, application.settings.dagster_url, keys)
    return dg.Definitions(
        assets=[assets.stage, assets.current, *producers],
        asset_checks=[assets.evidence, *contract_checks(declaration)],
        jobs=[
            (stage_job if declaration.origin is None else refresh_job)(declaration.id),
            *([publication_job(declaration.id, producers)] if producers else []),
        ],
    )


def shared_definitions(
    declarations: Sequence[Datasource],
    application: Application,
    producers: Sequence[dg.AssetsDefinition] = (),
) -> dg.Definitions:
    """Return what all datasources of a code location share; it has this once.

    The jobs that promote are among it, because one sensor launches all of them. `producers` are
    the governed assets of any of them, of which the reconciler sees to it that they are shown.

    Raises:
        InvalidPolicyError: a quality gate of a strict platform manifest is not met.
    """
    enforce_gates(declarations, application)
    promotions = {one.id: promotion_job(one.id) for one in declarations}
    shared = dg.Definitions(
        jobs=[*promotions.values(), evidence_checkpoint],
        schedules=[checkpoint_schedule(application)],
        sensors=_sensors(declarations, promotions, producers) if promotions else [],
        resources={GOVERNANCE: application, IO_MANAGER: GovernedIOManager(application)},
        executor=dg.in_process_executor,
    )
    return dg.Definitions.merge(
        shared, retention_definitions(declarations), _contract_definitions(declarations)
    )


def _contract_definitions(declarations: Sequence[Datasource]) -> dg.Definitions:
    if not any(declaration.contracts for declaration in declarations):
        return dg.Definitions()
    return dg.Definitions(jobs=[contract_monitor_job], sensors=[contract_monitor])


def _sensors(
    declarations: Sequence[Datasource],
    promotions: Promotions,
    producers: Sequence[dg.AssetsDefinition],
) -> list[dg.SensorDefinition]:
    watch = Watch()
    return [
        approval_quorum_sensor(promotions, watch),
        *waiting_sensors(promotions, watch),
        outbox_sensor(),
        reconciliation_sensor(declarations, producers),
    ]
