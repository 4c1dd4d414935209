"""Run a provider in a process of its own, which ends when its time is over.

Frameworks print, log, send telemetry, change what is global and leave files behind, and none can be
stopped. So each run has an interpreter, a working directory and an environment of its own, and
only numbers come back. A table in memory is handed over as an open file without a name.

Source: SPEC sections 5 and 14.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from datasource_governance.domain.canonical import Json, canonical_bytes, load_canonical
from datasource_governance.domain.quality_check import Evaluated
from datasource_governance.domain.quality_expectation import (
    QualityExpectation,
    expectation_document,
)
from datasource_governance.domain.validation import Reason, RuleOutcome, Status
from datasource_governance.errors import (
    GovernanceError,
    PluginExecutionError,
    Problem,
    UnreadableSourceError,
)
from datasource_governance.quality.connections import Connection, address_of
from datasource_governance.sources.refusal import shielded

if TYPE_CHECKING:
    import pyarrow as pa

_PROGRAM = "import os; from datasource_governance.quality.child import main; os._exit(main())"
"""It ends at once: nothing that a framework wants to do at the end is of use, or wanted."""
_ANSWER = "answer.json"
_MOST_ANSWER_BYTES = 16 * 1024 * 1024
"""Some hundred times what 500 rules with all row numbers take."""
ANSWERED, REFUSED = 0, 3
"""The child's exit status when it answers, and when the data was refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """What to run: the name of a provider for people, and its class as module, colon and name.

    `environment` are variables that its process gets, `options` those of the provider itself.
    """

    name: str
    path: str
    timeout_seconds: int
    options: Mapping[str, Json]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a child found: outcomes that follow from names and types, and what the provider says."""

    known: Mapping[str, RuleOutcome] = field(default_factory=dict)
    evaluated: Sequence[Evaluated] = ()


def run_in_child(
    provider: Provider, connection: Connection, asked: Sequence[QualityExpectation]
) -> Answer:
    """Return what a provider finds.

    Raises:
        PluginExecutionError: codes `provider_timeout`, naming the expectations that are pending,
            and `provider_failed`, whatever went wrong with it; its own words are thrown away.
        UnreadableSourceError: the database or the table was refused.
    """
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryFile() as frame:
        folder = Path(made)
        work = folder / "work"
        work.mkdir()
        request = _request(provider, connection, asked, folder)
        if connection.frame is not None:
            _write_frame(_concerned(connection.frame, asked), frame)
        status = _status(provider, request, frame, work)
        answered = _answered(folder)
    failed = _failed(provider, asked, status)
    if status == REFUSED:
        raise UnreadableSourceError(
            connection.dataset.name, shielded(lambda: _problems(answered), failed)
        )
    if status != ANSWERED:
        raise failed
    return shielded(lambda: _read_answer(load_canonical(answered), asked), failed)


def _request(
    provider: Provider,
    connection: Connection,
    asked: Sequence[QualityExpectation],
    folder: Path,
) -> bytes:
    document: dict[str, object] = {
        "plugin": provider.path,
        "timeout_seconds": provider.timeout_seconds,
        "options": dict(provider.options),
        "expectations": expectation_document(asked),
        "policy_hash": asked[0].policy_hash,
        "folder": str(folder),
        "sql": None if connection.sql is None else address_of(connection.sql),
    }
    return canonical_bytes(document)


def _concerned(table: "pa.Table", asked: Sequence[QualityExpectation]) -> "pa.Table":
    """Return the columns that expectations name; one where they name none, for the row count."""
    names = {name for one in asked for name in one.fields}
    named = [name for name in table.column_names if name in names]
    return table.select(named or table.column_names[:1])


def _write_frame(table: "pa.Table", file: IO[bytes]) -> None:
    import pyarrow as pa

    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    file.flush()


def _status(provider: Provider, request: bytes, frame: IO[bytes], work: Path) -> int | None:
    """Return the exit status of the child, None if it was killed because its time was over."""
    child = subprocess.Popen(  # noqa: S603 - our own interpreter and program
        [sys.executable, "-P", "-c", _PROGRAM, str(frame.fileno())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=work,
        env=_environment(provider, work),
        pass_fds=(frame.fileno(),),
        start_new_session=True,
    )
    try:
        # Its stdin stays open: its end is how the child learns that this process is no more.
        assert child.stdin is not None  # noqa: S101 - asked for above
        with suppress(BrokenPipeError):
            child.stdin.write(len(request).to_bytes(8, "big") + request)
            child.stdin.flush()
        return child.wait(provider.timeout_seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _end(child)
        _end_escaped(work)


def _end(child: "subprocess.Popen[bytes]") -> None:
    """Kill the child and whatever it started."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    if child.stdin is not None:
        with suppress(BrokenPipeError):
            child.stdin.close()


def _end_escaped(work: Path) -> None:
    """Kill what went into a session of its own, too, where a process tells its environment.

    Until none is found: one may start another meanwhile.
    """
    mark = f"HOME={work}".encode()
    found = True
    while found:
        found = False
        for process in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if mark in process.read_bytes().split(b"\0"):
                    os.kill(int(process.parent.name), signal.SIGKILL)
                    found = True


def _environment(provider: Provider, work: Path) -> dict[str, str]:
    """Return what the child needs to find programs and packages, and nothing else of ours."""
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
        "LANG": "C.UTF-8",
        **provider.environment,
        "HOME": str(work),
        "TMPDIR": str(work),
    }


def _answered(folder: Path) -> bytes:
    """Return what the child wrote; nothing where it did not come to that."""
    try:
        with (folder / _ANSWER).open("rb") as file:
            return file.read(_MOST_ANSWER_BYTES)
    except FileNotFoundError:
        return b""


def _failed(
    provider: Provider, asked: Sequence[QualityExpectation], status: int | None
) -> GovernanceError:
    pending = tuple(one.id for one in asked)
    seconds = provider.timeout_seconds
    if status is None:
        return PluginExecutionError(
            f"provider {provider.name!r} was stopped after {seconds} s; pending: "
            f"{', '.join(pending)}; raise timeout_seconds, or split the data",
            code="provider_timeout",
            provider=provider.name,
            pending=pending,
        )
    return PluginExecutionError(
        f"provider {provider.name!r} failed, and nothing was evaluated; what it said is not told "
        "here, because frameworks quote cells. Its installation, its options, and whether it can "
        "reach the data are worth a look",
        code="provider_failed",
        provider=provider.name,
        pending=pending,
    )


def _problems(answered: bytes) -> list[Problem]:
    found: Any = load_canonical(answered)
    return [Problem(**{**problem, "names": tuple(problem["names"])}) for problem in found]


def _read_answer(answered: Any, asked: Sequence[QualityExpectation]) -> Answer:  # noqa: ANN401 - JSON of the child
    """Take over what has a place here: numbers, and the words of this package."""
    rules = {one.id: one.rule for one in asked}
    known = {
        one["id"]: RuleOutcome(
            id=one["id"],
            type=rules[one["id"]].type,
            severity=rules[one["id"]].severity,
            status=Status.FAILED,
            fields=tuple(name for name in rules[one["id"]].fields if name in one["fields"]),
            reason=Reason(one["reason"]),
        )
        for one in answered["known"]
    }
    evaluated = [
        Evaluated(
            id=str(one["id"]),
            affected=_count(one["affected"]),
            rows=None if one["rows"] is None else tuple(map(int, one["rows"])),
        )
        for one in answered["evaluated"]
        if one["id"] in rules
    ]
    return Answer(known=known, evaluated=evaluated)


def _count(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
