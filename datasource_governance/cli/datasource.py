"""`datasource apply | list | show`.

Source: SPEC sections 15 and 16.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from datasource_governance.cli.output import ActorOption, JsonOption, console, instant, print_json
from datasource_governance.cli.session import application, signer
from datasource_governance.composition import Application
from datasource_governance.declarations import read_declarations
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.policy_version import PolicySource, PolicyVersion
from datasource_governance.domain.subjects import apply_subject
from datasource_governance.domain.target import Target
from datasource_governance.services.declaring import Applied, apply_datasource
from datasource_governance.signing import Signer

app = typer.Typer(help="Declared datasources and the policies in force.", no_args_is_help=True)

DirectoryArgument = Annotated[
    Path | None,
    typer.Argument(help="Directory of declarations; default GOVERNANCE_DATASOURCES."),
]


@app.command("apply")
def apply(
    directory: DirectoryArgument = None, actor: ActorOption = None, json: JsonOption = False
) -> int:
    """Record declarations as new policy versions. What is in force already changes nothing."""
    session = application()
    results = apply_declarations(session, signer(session, actor), directory)
    if json:
        print_json([{**_document(one.target), "changed": one.changed} for one in results])
    else:
        for one in results:
            what = "applied" if one.changed else "unchanged"
            console().print(f"{one.target.datasource}: {what}", markup=False)
    return 0


def apply_declarations(
    session: Application, author: Signer, directory: Path | None = None
) -> list[Applied]:
    """Apply every declaration of a directory, signed by an administrator."""
    version = session.platform.evaluator_version
    return [
        apply_datasource(
            session.work(),
            declaration,
            author.attest(Action.DATASOURCE_APPLY, apply_subject(declaration, version)),
            version,
        )
        for declaration in read_declarations(directory or session.settings.datasources)
    ]


@app.command("list")
def list_datasources(json: JsonOption = False) -> int:
    """List the datasources of the tenant."""
    with application().work() as work:
        targets = work.datasources.list()
    if json:
        print_json([_document(target) for target in targets])
        return 0
    table = Table("datasource", "kind", "revision", "current materialization")
    for target in targets:
        table.add_row(
            target.datasource, target.kind, str(target.revision), target.current or "none yet"
        )
    console().print(table)
    return 0


@app.command()
def show(datasource: str, json: JsonOption = False) -> int:
    """Show one datasource: what is in force and every policy version ever recorded."""
    with application().work() as work:
        target = work.datasources.get(datasource)
        versions = work.datasources.policies(datasource)
    if json:
        policies = [
            {
                "kind": str(version.kind),
                "version": version.version,
                "hash": version.hash,
                "source": str(version.source),
                "in_force": _is_in_force(version, target),
            }
            for version in versions
        ]
        print_json({**_document(target), "policies": policies})
        return 0
    table = Table("policy", "source", "version", "hash", "in force", "recorded (UTC)")
    for version in versions:
        table.add_row(
            version.kind,
            version.source,
            version.version or "",
            version.hash[:12],
            "yes" if _is_in_force(version, target) else "",
            instant(version.created_at),
        )
    current = f"revision {target.revision}, {target.current}" if target.current else "none yet"
    console().print(f"{datasource}: current materialization: {current}", markup=False)
    console().print(table)
    return 0


def _is_in_force(version: PolicyVersion, target: Target) -> bool:
    in_force = (
        target.quality_policy_hash,
        target.approval_policy_hash,
        target.retention_policy_hash,
    )
    return version.source is PolicySource.INHERITED and version.hash in in_force


def _document(target: Target) -> dict[str, object]:
    return {**asdict(target), "created_at": target.created_at.isoformat()}
