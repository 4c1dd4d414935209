"""`demo`: the life of a real dataset, told with real records.

Source: issue "The main job, end to end, on a real register"; SPEC section 16.
"""

from pathlib import Path
from typing import Annotated

import typer

from datasource_governance.cli.dev import PortOption
from datasource_governance.cli.output import JsonOption, console, print_json
from datasource_governance.composition import read_settings

KeepOption = Annotated[bool, typer.Option("--keep", help="Leave the UI running until Ctrl-C.")]


def demo(keep: KeepOption = False, port: PortOption = 0, json: JsonOption = False) -> int:
    """Stage, check, approve, promote, publish and verify the public airport register.

    Exit 0 only if every step gave what it should.
    """
    from rich.console import Console

    from datasource_governance.cli.demo_accounts import tell_accounts
    from datasource_governance.cli.story import Story
    from datasource_governance.cli.supervisor import System, SystemOptions

    settings = read_settings()
    out = Console(quiet=True) if json else console()
    out.print("starting Postgres, Dagster and the code location …")
    options = SystemOptions(
        state=Path(settings.state), port=port, database_url=settings.administrative_url
    )
    with System(options) as system:
        told = Story(system.application, out).tell()
        if json:
            print_json(told)
        if keep:
            tell_accounts(out, system.url, system.accounts)
            out.print("Ctrl-C stops everything.")
            system.wait()
    return 0
