"""The checkpoint schedule: every quarter of an hour, all chain heads go where they are safe.

Source: SPEC section 15 ("Schedules: ... evidence checkpoint"); facts on checkpoints (6.4).
"""

import dagster as dg

from datasource_governance.composition import Application
from datasource_governance.orchestration.assets import GOVERNANCE
from datasource_governance.orchestration.refusals import business_refusals
from datasource_governance.services.checkpointing import write_checkpoint
from datasource_governance.signing import Signer

EVERY_QUARTER_OF_AN_HOUR = "*/15 * * * *"


@dg.op(
    name="write_checkpoint",
    required_resource_keys={GOVERNANCE},
    description="Signs the heads of all chains and keeps them at GOVERNANCE_CHECKPOINTS.",
)
def _write(context: dg.OpExecutionContext) -> None:
    application: Application = context.resources.governance
    settings = application.settings
    with business_refusals():
        signer = Signer(settings.keys, settings.checkpoint_actor, settings.tenant)
        checkpoint = write_checkpoint(application.work(), signer, application.checkpoint_files())
    context.log.info("checkpoint %s of %d chains is kept", checkpoint.name, len(checkpoint.heads))


@dg.job(
    name="evidence_checkpoint",
    executor_def=dg.in_process_executor,
    description="Writes one checkpoint of the tenant's evidence, out of the database's reach.",
)
def evidence_checkpoint() -> None:
    """Write one checkpoint."""
    _write()


def checkpoint_schedule(
    application: Application, *, cron: str = EVERY_QUARTER_OF_AN_HOUR
) -> dg.ScheduleDefinition:
    """Return the schedule that writes checkpoints; it runs where a place for them is configured.

    A tick that is missed or repeated does no harm: each checkpoint covers all earlier ones.
    """
    configured = application.settings.checkpoints is not None
    running, stopped = dg.DefaultScheduleStatus.RUNNING, dg.DefaultScheduleStatus.STOPPED
    return dg.ScheduleDefinition(
        name="evidence_checkpoint",
        job=evidence_checkpoint,
        cron_schedule=cron,
        default_status=running if configured else stopped,
        description="Keeps signed heads of all chains at GOVERNANCE_CHECKPOINTS.",
    )
