"""`artifact orphans`.

Source: SPEC sections 10 and 16.
"""

from datetime import timedelta
from typing import Annotated

import typer
from rich.table import Column, Table

from datasource_governance.cli.output import JsonOption, console, instant, print_json
from datasource_governance.cli.session import application
from datasource_governance.services.artifacts import orphaned_artifacts

_HOUR = timedelta(hours=1)

app = typer.Typer(help="Payloads that are too large for the database.", no_args_is_help=True)


@app.command()
def orphans(
    older_than: Annotated[
        int, typer.Option(min=0, help="Hours since anybody has written to it, at least.")
    ] = 24,
    json: JsonOption = False,
) -> int:
    """List artifacts and unfinished uploads that no record refers to. Nothing is deleted."""
    session = application()
    found = orphaned_artifacts(session.work(), session.artifacts(), older_than * _HOUR)
    if json:
        print_json(
            [
                {
                    "locator": one.locator,
                    "byte_count": one.byte_count,
                    "changed_at": one.changed_at.isoformat(),
                    "age_hours": (found.at - one.changed_at) // _HOUR,
                }
                for one in found.objects
            ]
        )
        return 0
    table = Table(Column("locator", no_wrap=True), "bytes", "changed (UTC)", "age")
    for one in found.objects:
        age = f"{(found.at - one.changed_at) // _HOUR} h"
        table.add_row(one.locator, f"{one.byte_count:,}", instant(one.changed_at), age)
    out = console()
    out.print(table)
    total = sum(one.byte_count for one in found.objects)
    out.print(f"{len(found.objects)} orphans of {total:,} bytes; nothing was deleted", markup=False)
    return 0
