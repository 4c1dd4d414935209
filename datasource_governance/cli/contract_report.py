"""`contract report`: how far each promise was kept, as a table, JSON or a page.

Source: SPEC sections 14 and 16.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from datasource_governance.cli.output import JsonOption, console, print_json, write_new
from datasource_governance.cli.render import coloured
from datasource_governance.cli.session import application
from datasource_governance.services.reporting import DEFAULT_DAYS, Report, report_contracts

DatasourceOption = Annotated[
    str | None, typer.Option("--datasource", help="Only those of one datasource.")
]
_MOST_DAYS = 3650


def report(
    datasource: DatasourceOption = None,
    days: Annotated[int, typer.Option(min=1, max=_MOST_DAYS, help="How far back.")] = DEFAULT_DAYS,
    html: Annotated[Path | None, typer.Option(help="A new file for the report as a page.")] = None,
    json: JsonOption = False,
) -> int:
    """Report on contracts: compliance and trend of each promise, the broken ones first."""
    only = None if datasource is None else {datasource}
    found = report_contracts(application().work(), days=days, datasources=only)
    if html is not None:
        from datasource_governance.web.contracts import report_page

        write_new(html, bytes(report_page(found).body))
    if json:
        print_json(found.document())
    else:
        console().print(_table(found))
    return 0


def _table(found: Report) -> Table:
    columns = ("datasource", "contract", "check", "now", "kept", "checks", "trend")
    table = Table(*columns, box=SIMPLE_HEAD)
    for one in found.promises:
        watch, percent = one.watch, one.compliance.percent
        now = f"{coloured('failed')}, {one.violation.severity}" if one.violation else "holds"
        table.add_row(
            watch.datasource,
            watch.contract,
            watch.kind,
            "never checked" if watch.last_status is None else now,
            "" if percent is None else f"{percent:.2f} %",
            str(one.compliance.checks),
            one.compliance.trend,
        )
    return table
