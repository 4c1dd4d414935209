"""Declarations in a repository: `<directory>/<id>/datasource.json` with policies beside it.

Source: SPEC section 15 ("Loading reads only declarations in the repository").
"""

from collections.abc import Sequence
from pathlib import Path

from datasource_governance.contract_files import read_contract
from datasource_governance.domain.datasource import Datasource, parse_datasource
from datasource_governance.errors import InvalidPolicyError, Problem

FILE_NAME = "datasource.json"


def read_declarations(directory: Path) -> list[Datasource]:
    """Return every declaration below a directory, ordered by id.

    Raises:
        InvalidPolicyError: with the problems of all declarations, each naming its file; also when
            the directory holds none.
    """
    paths = sorted(directory.glob(f"*/{FILE_NAME}"))
    if not paths:
        message = f"no */{FILE_NAME} in it; GOVERNANCE_DATASOURCES names the directory"
        problem = Problem(kind="not_found", message=message)
        raise InvalidPolicyError(f"declarations in {directory}", [problem])
    found = read_declaration_files(paths, f"declarations in {directory}")
    return sorted(found.values(), key=lambda declaration: declaration.id)


def read_declaration_files(paths: Sequence[Path], what: str) -> dict[Path, Datasource]:
    """Return the declarations in files, by file; `what` names all of them together.

    Raises:
        InvalidPolicyError: with the problems of all files, each naming its file.
    """
    problems: list[Problem] = []
    found: dict[Path, Datasource] = {}
    for path in paths:
        try:
            declaration = read_declaration(path)
        except InvalidPolicyError as error:
            problems.extend(error.problems)
            continue
        if any(declaration.id == other.id for other in found.values()):
            problems.append(
                Problem(
                    kind="invalid_value",
                    names=(declaration.id,),
                    message=f"{path}: datasource {declaration.id!r} is declared twice",
                )
            )
        found[path] = declaration
    if problems:
        raise InvalidPolicyError(what, problems)
    return found


def read_declaration(path: Path) -> Datasource:
    """Return the declaration in one file.

    Raises:
        InvalidPolicyError: with every problem of it and of the policies that it names.
    """
    try:
        return parse_datasource(
            path.read_bytes(), lambda name: (path.parent / name).read_bytes(), read_contract
        )
    except OSError as error:
        problem = Problem(kind="not_found", message=f"cannot be read: {error.strerror}")
    except InvalidPolicyError as error:
        raise InvalidPolicyError(
            str(path),
            [
                Problem(
                    kind=one.kind,
                    pointer=one.pointer,
                    names=one.names,
                    message=f"{path.parent.name}/{FILE_NAME}: {one.message}",
                )
                for one in error.problems
            ],
        ) from None
    raise InvalidPolicyError(str(path), [problem])
