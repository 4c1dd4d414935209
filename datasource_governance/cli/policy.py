"""`policy lint | hash`: policies as files, without any server.

Source: SPEC sections 2 and 16.
"""

from pathlib import Path
from typing import Annotated

import typer

from datasource_governance.cli.output import JsonOption, console, print_json
from datasource_governance.cli.validate import read_document
from datasource_governance.domain.approval_policy import ApprovalPolicy, parse_approval_policy
from datasource_governance.domain.policy_version import PolicyKind
from datasource_governance.domain.quality_policy import QualityPolicy, parse_quality_policy
from datasource_governance.domain.retention_policy import (
    RetentionPolicy,
    parse_retention_policy,
)

app = typer.Typer(help="Read and hash policy files.", no_args_is_help=True)

FileArgument = Annotated[Path, typer.Argument(help="A policy, one JSON file.")]
KindOption = Annotated[PolicyKind, typer.Option("--kind", help="Which policy it is.")]
Policy = QualityPolicy | ApprovalPolicy | RetentionPolicy


@app.command()
def lint(
    file: FileArgument, kind: KindOption = PolicyKind.QUALITY, json: JsonOption = False
) -> int:
    """Check a policy; list every problem with its JSON pointer."""
    policy = _parse(kind, read_document(file))
    if json:
        print_json(
            {"valid": True, "kind": str(kind), "version": policy.version, "hash": policy.hash}
        )
    else:
        console().print(f"{kind} policy {policy.version} is valid", markup=False)
    return 0


@app.command("hash")
def show_hash(
    file: FileArgument, kind: KindOption = PolicyKind.QUALITY, json: JsonOption = False
) -> int:
    """Print the policy's hash; spelling and key order do not count."""
    policy = _parse(kind, read_document(file))
    if json:
        print_json({"kind": str(kind), "version": policy.version, "hash": policy.hash})
    else:
        console().print(policy.hash, markup=False)
    return 0


def _parse(kind: PolicyKind, document: bytes) -> Policy:
    if kind is PolicyKind.QUALITY:
        return parse_quality_policy(document)
    if kind is PolicyKind.APPROVAL:
        return parse_approval_policy(document)
    return parse_retention_policy(document)
