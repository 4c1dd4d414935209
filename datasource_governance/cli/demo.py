"""`demo`: the life of a real dataset, told with real records.

Source: issue "The main job, end to end, on a real register"; SPEC section 16.
"""

from pathlib import Path
from typing import Annotated

import typer

from datasource_governance.cli.dev import PortOption
from datasource_governance.cli.output import console
from datasource_governance.composition import read_settings

KeepOption = Annotated[bool, typer.Option("--keep", help="Leave the UI running until Ctrl-C.")]


def demo(keep: KeepOption = False, port: PortOption = 0) -> int:
    """Stage, check, approve, promote and verify the public airport register.

    Exit 0 only if every step gave what it should.
    """
    from datasource_governance.cli.demo_accounts import tell_accounts
    from datasource_governance.cli.story import Story
    from datasource_governance.cli.supervisor import System, SystemOptions

    settings = read_settings()
    out = console()
    out.print("starting Postgres, Dagster and the code location …")
    options = SystemOptions(
        state=Path(settings.state), port=port, database_url=settings.administrative_url
    )
    with System(options) as system:
        Story(system.application, out).tell()
        if keep:
            tell_accounts(out, system.url, system.accounts)
            out.print("Ctrl-C stops everything.")
            system.wait()
    return 0
