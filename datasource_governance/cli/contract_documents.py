"""`contract lint | diff | import | export`: what is done with documents, without any database.

Source: SPEC sections 14 and 16.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from datasource_governance.cli.output import JsonOption, console, print_json
from datasource_governance.cli.validate import read_document
from datasource_governance.contract_files import read_contract
from datasource_governance.domain.canonical import load_object
from datasource_governance.domain.contract import Contract
from datasource_governance.domain.contract_diff import check_version, contract_diff, needed_level
from datasource_governance.domain.contract_document import unchecked_promises
from datasource_governance.domain.contract_export import (
    ContractName,
    contract_of_policy,
    policy_of_contract,
)
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.errors import EXIT_NO, GuardError

ContractFile = Annotated[Path, typer.Argument(help="An ODCS document, YAML or JSON.")]


def lint(
    files: Annotated[list[Path], typer.Argument(help="ODCS documents, YAML or JSON.")],
    json: JsonOption = False,
) -> int:
    """Check contracts. Exit 2: one is refused, with everything that is wrong with it."""
    found = {path: _read(path) for path in files}
    told = {path: unchecked_promises(load_object(one.canonical)) for path, one in found.items()}
    if json:
        print_json(
            [
                {
                    "file": str(path),
                    "id": one.id,
                    "version": one.version,
                    "hash": one.hash,
                    "checks": [str(kind) for kind in one.kinds],
                    "unchecked": [problem.pointer for problem in told[path]],
                }
                for path, one in found.items()
            ]
        )
        return 0
    for path, one in found.items():
        checks = ", ".join(one.kinds) or "nothing"
        console().print(f"{path}: ok, {one.id} {one.version} watches {checks}", markup=False)
        for problem in told[path]:
            console().print(f"  not checked: {problem.line()}", markup=False)
    return 0


def diff(before: ContractFile, after: ContractFile, json: JsonOption = False) -> int:
    """Show what changed. Exit 1: the new version does not say how much it changes."""
    old, new = _read(before), _read(after)
    changes = contract_diff(old, new)
    refusal = None
    try:
        check_version(old, new)
    except GuardError as refused:
        refusal = str(refused)
    needed = needed_level(changes)
    if json:
        print_json(
            {
                "changes": [one.document() for one in changes],
                "needs": None if needed is None else str(needed),
                "fits": refusal is None,
            }
        )
    else:
        table = Table("where", "what", "needs", "promises", box=SIMPLE_HEAD)
        words = {"tightens": "more", "loosens": "less", "neither": "the same"}
        for one in changes:
            table.add_row(one.path, one.message, one.level, words[one.effect])
        console().print(table)
        console().print(refusal or f"{old.version} to {new.version} fits", markup=False)
    return 0 if refusal is None else EXIT_NO


def import_(file: ContractFile) -> int:
    """Print the quality policy that holds a delivery to a contract, JSON."""
    print_json(policy_of_contract(_read(file)))
    return 0


def export(
    policy: Annotated[Path, typer.Argument(help="A quality policy, JSON.")],
    contract_id: Annotated[str, typer.Option("--id", help="What the contract is called.")],
    version: Annotated[str, typer.Option(help="Its version.")] = "1.0.0",
    table: Annotated[str | None, typer.Option(help="The table that it is about.")] = None,
    json: JsonOption = False,
) -> int:
    """Print a quality policy as a draft of a contract, YAML."""
    name = ContractName(id=contract_id, version=version, table=table or contract_id)
    document = contract_of_policy(parse_quality_policy(read_document(policy)), name)
    if json:
        print_json(document)
        return 0
    import yaml

    typer.echo(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), nl=False)
    return 0


def _read(path: Path) -> Contract:
    return read_contract(read_document(path), str(path))
