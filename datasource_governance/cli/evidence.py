"""`evidence verify`.

Source: SPEC sections 13 and 16.
"""

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from datasource_governance.cli.output import JsonOption, console, print_json
from datasource_governance.cli.session import application
from datasource_governance.errors import EXIT_NO

app = typer.Typer(help="The record of everything, and the proof that it holds.")


@app.callback()
def evidence() -> None:
    """Keep `verify` a command of its own."""


@app.command()
def verify(json: JsonOption = False) -> int:
    """Verify every chain and every governed row. Exit 1: something is broken."""
    session = application()
    columns = (SpinnerColumn(), TextColumn("{task.completed:.0f} entries"), TimeElapsedColumn())
    watched = Console(stderr=True)
    with Progress(
        *columns, console=watched, disable=not watched.is_terminal, transient=True
    ) as progress:
        task = progress.add_task("entries", total=None)
        verification = session.verify_evidence(lambda count: progress.update(task, completed=count))
    if json:
        print_json(verification.document())
        return 0 if verification.holds else EXIT_NO
    out = console()
    if verification.breaks:
        table = Table("break", "table", "key", "what")
        for one in verification.breaks:
            table.add_row(one.kind, one.table, "/".join(one.key), one.message)
        out.print(table)
    verdict = "holds" if verification.holds else f"is BROKEN in {len(verification.breaks)} places"
    out.print(
        f"evidence {verdict}: {verification.entries} entries in {verification.chains} chains, "
        f"{verification.rows} rows",
        markup=False,
    )
    return 0 if verification.holds else EXIT_NO
