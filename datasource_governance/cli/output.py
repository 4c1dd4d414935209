"""What every command shares: one place that prints, and one that turns errors into exit codes.

Source: SPEC section 16 (exit codes, `--json`), section 5 (refusals as JSON), section 19.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from typer.exceptions import TyperException

from datasource_governance import private_files
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.errors import (
    EXIT_REFUSED,
    EXIT_UNREADABLE,
    GovernanceError,
    InvalidArgumentError,
    Problem,
    ProblemsError,
)

_WIDTH = 140
REFUSAL_FORMAT = "datasource_governance/refusal/v1"
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
ActorOption = Annotated[
    str | None,
    typer.Option("--actor", envvar="GOVERNANCE_ACTOR", help="Whose key signs this."),
]


def console() -> Console:
    """Return the console that people read; where nobody looks it is wide enough for tables."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH)


def print_json(document: object) -> None:
    """Print one canonical JSON document on a line of its own."""
    sys.stdout.write(canonical_bytes(document).decode() + "\n")


def write_new(path: Path, content: bytes) -> None:
    """Write a file that only its owner reads.

    Raises:
        InvalidArgumentError: when there is one already.
    """
    if not private_files.create(path, content):
        raise InvalidArgumentError(f"{path} exists already; it is never overwritten")


@contextmanager
def counting(told: str) -> Iterator[Callable[[int], None]]:
    """Yield a function that tells people on a terminal how far a long command is.

    `told` is a Rich text with `{task.completed}` in it; scripts are told nothing.
    """
    stderr = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn(told), TimeElapsedColumn())
    with Progress(
        *columns, console=stderr, disable=not stderr.is_terminal, transient=True
    ) as progress:
        task = progress.add_task("", total=None)
        yield lambda count: progress.update(task, completed=count)


def run(command: Callable[[], object]) -> int:
    """Run the whole command line and return its exit code.

    Whatever this package refuses becomes one message on stderr, or a refusal document on stdout
    with `--json`. Anything unforeseen is named by its type only: its text could quote data.
    """
    try:
        result = command()
    except GovernanceError as error:
        return refuse(error)
    except typer.Exit as stop:
        return stop.exit_code
    except typer.Abort:
        return EXIT_REFUSED
    except Exception as error:  # noqa: BLE001 - the one boundary of the command line
        return _foreign(error)
    return result if isinstance(result, int) else 0


def _foreign(error: Exception) -> int:
    """Tell of an error that is not our own as far as it cannot quote data."""
    if isinstance(error, TyperException):
        message = error.format_message()
        if not message:  # a noun without a verb: its help was shown
            return EXIT_REFUSED
        return refuse(InvalidArgumentError(f"{message} See: {Path(sys.argv[0]).name} --help"))
    if isinstance(error, OSError) and isinstance(error.filename, str | Path):
        return refuse(InvalidArgumentError(f"{error.filename} cannot be used: {error.strerror}"))
    return _unforeseen(error)


def refuse(error: GovernanceError) -> int:
    """Print a refusal and return its exit code."""
    if "--json" in sys.argv:
        print_json(refusal_document(error))
    else:
        sys.stderr.write(f"{error}\n")
    return error.exit_code


def refusal_document(error: GovernanceError) -> dict[str, object]:
    """Return the JSON form of a refusal (SPEC section 5)."""
    problems = (
        error.problems
        if isinstance(error, ProblemsError)
        else (Problem(kind=error.code, message=str(error)),)
    )
    return {
        "format": REFUSAL_FORMAT,
        "kind": error.code,
        "problems": [
            {
                "kind": problem.kind,
                "pointer": problem.pointer,
                "names": list(problem.names),
                "message": problem.message,
            }
            for problem in problems
        ],
    }


def _unforeseen(error: Exception) -> int:
    name = type(error).__name__
    sys.stderr.write(
        f"unforeseen {name}; its text is withheld because it could quote data. Nothing was left "
        "half done. Please report the command and this line.\n"
    )
    return EXIT_UNREADABLE


def instant(moment: datetime) -> str:
    """Return an instant as people read it, in UTC to the second."""
    return moment.strftime("%Y-%m-%d %H:%M:%S")
