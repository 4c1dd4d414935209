"""`datasource-governance`: nouns, then verbs.

Source: SPEC section 16.
"""

import sys

import typer

from datasource_governance.cli import (
    actor,
    artifact,
    contract,
    database,
    datasource,
    decision,
    demo,
    dev,
    evidence,
    hold,
    key,
    outbox,
    policy,
    publication,
    quality,
    retention,
    stage,
    webserver,
)
from datasource_governance.cli.approval import approve, promote, reject
from datasource_governance.cli.output import run
from datasource_governance.cli.publish import publish
from datasource_governance.cli.refresh import refresh, stage_refresh
from datasource_governance.cli.session import opened
from datasource_governance.cli.validate import validate

app = typer.Typer(
    help="Stage, check, approve, promote and prove governed datasets.",
    no_args_is_help=True,
    add_completion=False,
    # Typer's own tracebacks show local variables, which hold data.
    pretty_exceptions_enable=False,
)
app.command()(validate)
app.add_typer(policy.app, name="policy")
app.add_typer(quality.app, name="quality")
app.add_typer(contract.app, name="contract")
app.add_typer(datasource.app, name="datasource")
stage.app.command("refresh")(stage_refresh)
app.add_typer(stage.app, name="stage")
app.command()(refresh)
app.command()(approve)
app.command()(reject)
app.command()(promote)
app.add_typer(decision.app, name="decision")
app.command()(publish)
app.add_typer(publication.app, name="publication")
app.add_typer(artifact.app, name="artifact")
app.add_typer(retention.app, name="retention")
app.add_typer(hold.app, name="hold")
app.add_typer(evidence.app, name="evidence")
app.add_typer(outbox.app, name="outbox")
app.add_typer(key.app, name="key")
app.add_typer(actor.app, name="actor")
app.add_typer(database.app, name="db")
app.add_typer(webserver.app, name="webserver")
app.command()(dev.dev)
app.command()(demo.demo)


def main() -> None:
    """Run the command line and exit with its code."""
    with opened:
        code = run(lambda: app(standalone_mode=False))
    sys.exit(code)
