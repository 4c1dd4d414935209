"""`dev`: the whole system on one machine, for a person.

Source: SPEC section 16.
"""

from pathlib import Path
from typing import Annotated

import typer

from datasource_governance.cli.output import console
from datasource_governance.composition import CODE_LOCATION, read_settings

PortOption = Annotated[int, typer.Option(help="Port of the Dagster UI on 127.0.0.1; 0: any.")]


ModuleOption = Annotated[
    str, typer.Option(help="Code location: a module importable from the current directory.")
]


def dev(port: PortOption = 3000, module: ModuleOption = CODE_LOCATION) -> int:
    """Run Postgres, the Dagster UI behind sign-in, its daemon and the code location.

    Ctrl-C stops all. With DATABASE_URL that server is used instead of an embedded one.
    """
    from datasource_governance.cli.demo_accounts import tell_accounts
    from datasource_governance.cli.founding import ADMINISTRATOR
    from datasource_governance.cli.supervisor import System, SystemOptions

    settings = read_settings()
    out = console()
    out.print("starting Postgres, Dagster and the code location …")
    options = SystemOptions(
        state=Path(settings.state),
        port=port,
        database_url=settings.administrative_url,
        module=module,
    )
    with System(options) as system:
        tell_accounts(out, system.url, system.accounts)
        out.print(f"state, keys and logs: {settings.state}", markup=False)
        out.print(
            f"administrator: {ADMINISTRATOR} (export GOVERNANCE_ACTOR={ADMINISTRATOR})",
            markup=False,
        )
        out.print("Ctrl-C stops everything.")
        system.wait()
    out.print("stopped cleanly")
    return 0
