"""Take in what dbt's tests found of a contract's data, after dbt ran.

Nothing is run and dbt is not needed: its artifacts are read.

Source: SPEC section 14.
"""

from pathlib import Path

from datasource_governance.domain.contract import CheckKind
from datasource_governance.domain.contract_check import ContractCheck, Trigger
from datasource_governance.domain.lineage_dataset import current_dataset
from datasource_governance.monitoring.checks import scored
from datasource_governance.monitoring.monitor import Monitor
from datasource_governance.services.watching import Observation


def ingest_dbt_results(
    monitor: Monitor,
    datasource: str,
    contract_id: str,
    artifacts: Path,
    model: str | None = None,
) -> ContractCheck:
    """Keep what a run of dbt's tests found as a check of a contract's quality.

    Args:
        monitor: Keeps the check.
        datasource: Whose contract it is.
        contract_id: A contract in force that promises quality.
        artifacts: The directory with `run_results.json` and `manifest.json`, dbt's `target`.
        model: The model that the contract is about, where the project has several.

    Raises:
        NotFoundError: as `Monitor.check`.
        UnreadableSourceError: as `read_dbt_results`.
    """
    from datasource_governance.quality.dbt_results import read_dbt_results

    contract = monitor.contract(datasource, contract_id)
    found = read_dbt_results(artifacts / "run_results.json", artifacts / "manifest.json", model)
    platform = monitor.application.platform
    tenant = monitor.application.settings.tenant
    return monitor.keep(
        Observation(
            datasource=datasource,
            contract=contract,
            kind=CheckKind.QUALITY,
            trigger=Trigger.INGESTED,
            claim=None,
            dataset=current_dataset(tenant, datasource),
            materialization=None,
            run_id=monitor.run_id,
            finding=scored(found.checks, platform, None),
            seconds=0.0,
        )
    )
