"""A chapter of the demo's story: a contract goes stale and recovers, and a catalogue is told.

Source: SPEC section 14; issue "Contracts watched at run time, with lineage".
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from datasource_governance.cli.publish import attest_output
from datasource_governance.composition import Application
from datasource_governance.contract_files import read_contract
from datasource_governance.declarations import read_declarations
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.canonical import load_object
from datasource_governance.domain.contract import CheckKind
from datasource_governance.domain.contract_check import ContractCheck
from datasource_governance.domain.subjects import apply_subject
from datasource_governance.lineage.events import DEFAULT_NAMESPACE, LINEAGE_TYPES
from datasource_governance.monitoring.monitor import Monitor
from datasource_governance.reading import Reader
from datasource_governance.receivers.openlineage import OpenLineage
from datasource_governance.receivers.subscription import Subscription
from datasource_governance.services.declaring import apply_datasource
from datasource_governance.services.delivering import deliver
from datasource_governance.services.publishing import PublicationRequest
from datasource_governance.signing import Signer

DATASOURCE = "airport_zones"
_CONTRACT = Path(__file__).parent.parent / "demo" / "airport_zones.odcs.yaml"
_PATIENCE_SECONDS = 60.0
_MAXIMUM_EVENTS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageTold:
    """One OpenLineage event of a check of the contract, as a catalogue has it."""

    state: str
    job: str
    severity: str


def promise(application: Application, administrator: Signer) -> None:
    """Bring a contract into force that promises the datasource to be 20 seconds old at most."""
    declared = next(
        one for one in read_declarations(application.settings.datasources) if one.id == DATASOURCE
    )
    promised = replace(declared, contracts=(read_contract(_CONTRACT.read_bytes()),))
    version = application.platform.evaluator_version
    attestation = administrator.attest(Action.DATASOURCE_APPLY, apply_subject(promised, version))
    apply_datasource(application.work(), promised, attestation, version)


def gone_stale(application: Application) -> ContractCheck:
    """Check how old it is, again and again until it is too old; the last check is returned."""
    monitor, deadline = Monitor(application=application), time.monotonic() + _PATIENCE_SECONDS
    while True:
        check = monitor.check(DATASOURCE, DATASOURCE, CheckKind.FRESHNESS)
        if check.is_broken or time.monotonic() > deadline:
            return check
        time.sleep(1)


def recovered(application: Application, producer: Signer) -> ContractCheck:
    """Publish the same content anew, signed by its producer, and check how old it is."""
    loaded = Reader(application=application).load(DATASOURCE)
    with application.work() as work:
        key = f"demo/{work.new_id()}"
    outlet = replace(
        application.outlet(), sign=partial(attest_output, producer), signer=producer.actor
    )
    request = PublicationRequest(producer="demo", idempotency_key=key, datasource=DATASOURCE)
    outlet.publish(loaded.frame, request)
    return Monitor(application=application).check(DATASOURCE, DATASOURCE, CheckKind.FRESHNESS)


def told_as_lineage(application: Application) -> list[LineageTold]:
    """Deliver the outbox to a catalogue that is a file; return what it has of these checks."""
    path = application.settings.state / "lineage.jsonl"
    transport = {"type": "file", "log_file_path": str(path), "append": True}
    catalogue = Subscription(
        name="demo_lineage",
        transport=OpenLineage(
            namespace=DEFAULT_NAMESPACE, transport=transport, work=application.work
        ),
        events=frozenset(LINEAGE_TYPES),
    )
    deliver(application.work, [catalogue], maximum_events=_MAXIMUM_EVENTS)
    events = map(load_object, path.read_bytes().splitlines())
    job = f"contract_check.{DATASOURCE}.{CheckKind.FRESHNESS}"
    return [told for event in events if (told := _told(event)).job == job]


def _told(event: Mapping[str, object]) -> LineageTold:
    job, run = event["job"], event["run"]
    facets = run.get("facets") if isinstance(run, dict) else None
    violation = facets.get("contractViolation") if isinstance(facets, dict) else None
    severity = violation.get("severity") if isinstance(violation, dict) else ""
    name = job.get("name") if isinstance(job, dict) else ""
    return LineageTold(state=str(event["eventType"]), job=str(name), severity=str(severity))


def lineage_table(told: Sequence[LineageTold]) -> Table:
    """Return events as a table."""
    table = Table("event", "job", "violation", box=SIMPLE_HEAD)
    for one in told:
        table.add_row(one.state, one.job, one.severity)
    return table
