"""`policy lint | hash | diff | schema`: policies as files, without any server.

Source: SPEC sections 2 and 16.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from datasource_governance.cli.output import JsonOption, console, print_json
from datasource_governance.cli.validate import read_document
from datasource_governance.domain.approval_policy import parse_approval_policy
from datasource_governance.domain.canonical import Json, canonical_bytes
from datasource_governance.domain.json_schema import policy_schema
from datasource_governance.domain.policy_diff import Policy, PolicyDiff, compare_policies
from datasource_governance.domain.policy_version import POLICIES, PolicyKind
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.retention_policy import parse_retention_policy
from datasource_governance.errors import EXIT_NO

app = typer.Typer(help="Read, hash and compare policy files.", no_args_is_help=True)

FileArgument = Annotated[Path, typer.Argument(help="A policy, one JSON file.")]
_KINDS = "|".join(POLICIES)


def _kind(text: str) -> PolicyKind:
    if text not in POLICIES:
        raise typer.BadParameter(
            f"{text!r} is not one of {', '.join(map(repr, map(str, POLICIES)))}"
        )
    return PolicyKind(text)


KindOption = Annotated[
    PolicyKind,
    typer.Option("--kind", parser=_kind, metavar=_KINDS, help="Which policy it is."),
]
_WIDEST_VALUE = 60


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


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(help="The policy that was, one JSON file.")],
    new: Annotated[Path, typer.Argument(help="The policy that shall be, one JSON file.")],
    kind: KindOption = PolicyKind.QUALITY,
    json: JsonOption = False,
) -> int:
    """Show what changed and which way. Exit 0: the same policy, 1: another one."""
    found = compare_policies(_parse(kind, read_document(old)), _parse(kind, read_document(new)))
    if json:
        print_json({"kind": str(kind), **found.document()})
    else:
        _show_diff(found)
    return EXIT_NO if found.changes_hash else 0


@app.command("schema")
def show_schema(kind: KindOption = PolicyKind.QUALITY, json: JsonOption = False) -> int:
    """Print the JSON Schema of a policy kind, for editors that complete and check."""
    schema = policy_schema(kind)
    if json:
        print_json(schema)
    else:
        console().print_json(data=schema)
    return 0


def _show_diff(found: PolicyDiff) -> None:
    if not found.changes_hash:
        console().print(f"no change, the hash stays {found.before}", markup=False)
        return
    table = Table("what", "before", "after", "effect")
    for change in found.changes:
        table.add_row(
            escape(" / ".join(change.path)),
            _shown(change.before),
            _shown(change.after),
            str(change.effect or "not decided"),
        )
    console().print(table)
    console().print(f"the hash changes: {found.before} -> {found.after}", markup=False)


def _shown(value: Json) -> str:
    text = "" if value is None else canonical_bytes(value).decode()
    return escape(text if len(text) <= _WIDEST_VALUE else f"{text[:_WIDEST_VALUE]}…")


def _parse(kind: PolicyKind, document: bytes) -> Policy:
    if kind is PolicyKind.QUALITY:
        return parse_quality_policy(document)
    if kind is PolicyKind.APPROVAL:
        return parse_approval_policy(document)
    return parse_retention_policy(document)
