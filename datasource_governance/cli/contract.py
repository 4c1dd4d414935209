"""`contract list | check | run | ingest | violations`, and what is done with documents.

Source: SPEC sections 14 and 16.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from datasource_governance.cli import contract_documents, contract_report
from datasource_governance.cli.contract_report import DatasourceOption
from datasource_governance.cli.output import JsonOption, console, instant, print_json
from datasource_governance.cli.render import coloured
from datasource_governance.cli.session import application
from datasource_governance.domain.canonical import Json
from datasource_governance.domain.contract import CheckKind
from datasource_governance.domain.contract_check import ContractCheck, Violation
from datasource_governance.errors import EXIT_NO
from datasource_governance.ports.contracts import Watch

app = typer.Typer(help="Contracts: what consumers are promised.", no_args_is_help=True)
app.command()(contract_report.report)
app.command()(contract_documents.lint)
app.command()(contract_documents.diff)
app.command("import")(contract_documents.import_)
app.command()(contract_documents.export)


@app.command("list")
def list_contracts(datasource: DatasourceOption = None, json: JsonOption = False) -> int:
    """List what is watched, when it is due, and how it stands."""
    with application().work() as work:
        found = work.contracts.watches(datasource)
    if json:
        print_json([_watch(one) for one in found])
        return 0
    columns = ("datasource", "contract", "check", "every", "next due", "last", "checks")
    table = Table(*columns, box=SIMPLE_HEAD)
    for one in found:
        table.add_row(
            one.datasource,
            one.contract,
            one.kind,
            f"{one.interval.total_seconds() / 60:g} min",
            instant(one.next_due) if one.next_due else "",
            _told(one),
            str(one.checks),
        )
    console().print(table)
    return 0


@app.command()
def check(
    datasource: str,
    contract: str,
    kind: Annotated[
        list[CheckKind] | None, typer.Option("--kind", help="Only these checks; repeat it.")
    ] = None,
    json: JsonOption = False,
) -> int:
    """Run the checks of a contract now, beside their rhythm. Exit 1: it is broken."""
    from datasource_governance.monitoring.monitor import Monitor

    monitor = Monitor(application=application())
    kinds = kind or monitor.contract(datasource, contract).kinds
    return _show([monitor.check(datasource, contract, one) for one in kinds], json=json)


@app.command()
def run(json: JsonOption = False) -> int:
    """Run every check that is due, as the sensor does. Exit 1: a contract is broken."""
    from datasource_governance.monitoring.monitor import Monitor

    return _show([*Monitor(application=application()).run_due()], json=json)


@app.command()
def ingest(
    datasource: str,
    contract: str,
    artifacts: Annotated[Path, typer.Argument(help="The directory `target` of a dbt run.")],
    model: Annotated[
        str | None, typer.Option(help="The model that the contract is about, of several.")
    ] = None,
    json: JsonOption = False,
) -> int:
    """Keep what dbt's tests found as a check of a contract's quality. Exit 1: it is broken."""
    from datasource_governance.monitoring.ingestion import ingest_dbt_results
    from datasource_governance.monitoring.monitor import Monitor

    monitor = Monitor(application=application())
    return _show([ingest_dbt_results(monitor, datasource, contract, artifacts, model)], json=json)


@app.command()
def violations(
    datasource: DatasourceOption = None,
    is_open: Annotated[bool, typer.Option("--open", help="Only those that are open.")] = False,
    json: JsonOption = False,
) -> int:
    """List violations, newest first."""
    with application().work() as work:
        listed = work.contracts.open_violations if is_open else work.contracts.violations
        found = listed(datasource)
    if json:
        print_json([_violation(one) for one in found])
        return 0
    columns = ("datasource", "contract", "check", "severity", "since", "resolved", "what")
    table = Table(*columns, box=SIMPLE_HEAD)
    for one in found:
        table.add_row(
            one.datasource,
            one.contract,
            one.kind,
            one.severity,
            instant(one.opened_at),
            instant(one.resolved_at) if one.resolved_at else "open",
            one.message,
        )
    console().print(table)
    return 0


def _show(checks: Sequence[ContractCheck], *, json: bool) -> int:
    if json:
        print_json([one.document() for one in checks])
    else:
        console().print(check_table(checks))
    return EXIT_NO if any(one.is_broken for one in checks) else 0


def check_table(checks: Sequence[ContractCheck]) -> Table:
    """Return checks with what they found, for people."""
    table = Table("contract", "check", "status", "severity", "what", box=SIMPLE_HEAD)
    for one in checks:
        severity = "" if one.severity is None else str(one.severity)
        table.add_row(one.contract, one.kind, coloured(str(one.status)), severity, one.message)
    return table


def _told(watch: Watch) -> str:
    if watch.last_status is None:
        return "never checked"
    severity = f", {watch.last_severity}" if watch.last_severity else ""
    return f"{coloured(str(watch.last_status))}{severity}"


def _watch(watch: Watch) -> dict[str, Json]:
    return {
        "datasource": watch.datasource,
        "contract": watch.contract,
        "contract_hash": watch.contract_hash,
        "kind": str(watch.kind),
        "interval_minutes": watch.interval.total_seconds() / 60,
        "timeout_seconds": watch.timeout_seconds,
        "next_due": watch.next_due.isoformat() if watch.next_due else None,
        "checks": watch.checks,
        "failures": watch.failures,
        "errors": watch.errors,
        "last_status": None if watch.last_status is None else str(watch.last_status),
        "last_severity": None if watch.last_severity is None else str(watch.last_severity),
        "last_at": watch.last_at.isoformat() if watch.last_at else None,
        "violation": watch.violation,
    }


def _violation(violation: Violation) -> dict[str, Json]:
    return {
        "id": violation.id,
        "datasource": violation.datasource,
        "contract": violation.contract,
        "kind": str(violation.kind),
        "severity": str(violation.severity),
        "enforcement": str(violation.enforcement),
        "message": violation.message,
        "opened_by": violation.opened_by,
        "opened_at": violation.opened_at.isoformat(),
        "resolved_by": violation.resolved_by,
        "resolved_at": violation.resolved_at.isoformat() if violation.resolved_at else None,
    }
