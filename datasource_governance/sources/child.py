"""Decode files that nobody vouches for in a child process that may die of them.

The child gets the file and nothing else: no environment, no open files, no terminal; limits on its
memory, processor time, files and output; no core dump, which would hold cells. Its answer is an
Arrow IPC stream, which is read as distrustfully as any other file, or the problems it found. The
parent waits on a clock and outlives whatever becomes of the child. A file that is too large to be
handed over as bytes is handed over open, with the name of a function that looks at it.

Source: SPEC section 3, "Hostile files".
"""

import importlib
import math
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from datasource_governance.domain.canonical import canonical_bytes, load_canonical
from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.errors import Problem, UnreadableSourceError
from datasource_governance.sources.arrow_ipc import read_arrow
from datasource_governance.sources.forked import Errand, run_forked
from datasource_governance.sources.limits import DEFAULT_LIMITS, MEBIBYTE, Limits
from datasource_governance.sources.refusal import refused, shielded

if TYPE_CHECKING:
    import pyarrow as pa

DECODER = "datasource_governance.sources.files:read_content"
"""Where the child finds the function that decodes: module, colon, name."""

ARROW = ("pyarrow.compute", "pyarrow.pandas_compat", "pyarrow.parquet", "pandas")
"""What tasks with Arrow import: it looks for pandas at the first values that it is given."""

_DECODER_IMPORTS = (*ARROW, "pyarrow.csv", "datasource_governance.sources.files")
_FILE = 3
"""Where a child has the open file of its task."""
_ANSWERED, _REFUSED = 0, 3
"""The child's exit status when it answers, and when with problems."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildLimits:
    """What the child process may use."""

    memory_bytes: int = 6144 * MEBIBYTE
    """Address space, of which an idle child has some 300 MiB."""
    processor_seconds: int = 60
    """Time on all processors together."""
    seconds: float = 120
    """Time on the wall, from its start to its answer."""
    open_files: int = 64
    """Files and sockets open at once."""


DEFAULT_CHILD_LIMITS = ChildLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The bytes of a file, its name, whose suffix says the format, and how a CSV is written."""

    name: str
    stored: bytes = field(repr=False)
    csv: CsvOptions
    limits: Limits = DEFAULT_LIMITS


def decode_in_child(
    content: Content, child: ChildLimits = DEFAULT_CHILD_LIMITS, decoder: str = DECODER
) -> "pa.Table":
    """Return the typed table that a child process makes of a file.

    Raises:
        UnreadableSourceError: what the decoder refuses; `too_slow` when the child was stopped for
            the time it took; `decoder_died` when it ended in any other way, such as for want of
            memory. Nothing that the child prints is kept.
    """
    with tempfile.TemporaryFile() as request:
        request.write(canonical_bytes(_header(content, child)) + b"\n")
        request.write(content.stored)
        errand = Errand(life="serve", arguments=(decoder,), imports=_DECODER_IMPORTS)
        answered = _answered(content.name, errand, request, child.seconds)
    return answered_table(content.name, answered, content.limits.table_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a child is asked about an open file.

    `function` is found by module, colon and name, and called with the file, the arguments and a
    file for the answer. `arguments` are JSON. No file that the child writes, the answer among them,
    may be larger than `written_bytes`. `imports` are modules that the function needs and that start
    no thread: they are imported for all such tasks at once.
    """

    function: str
    file: BinaryIO
    arguments: Mapping[str, object]
    written_bytes: int
    imports: Sequence[str] = ()


def ask_child(name: str, task: Task, child: ChildLimits = DEFAULT_CHILD_LIMITS) -> bytes:
    """Return what a function answers in a child process that has one open file; `name` is its name.

    The answer is whatever a file has made of the child, and is read as distrustfully as the file.

    Raises:
        UnreadableSourceError: as `decode_in_child`.
    """
    descriptor = task.file.fileno()
    with tempfile.TemporaryFile() as request:
        header = {
            "arguments": task.arguments,
            "written_bytes": task.written_bytes,
            "child": _child_header(child),
        }
        request.write(canonical_bytes(header))
        errand = Errand(life="perform", arguments=(task.function,), imports=task.imports)
        return _answered(name, errand, request, child.seconds, (descriptor,))


def _answered(
    name: str, errand: Errand, request: IO[bytes], seconds: float, files: Sequence[int] = ()
) -> bytes:
    """Return the answer of a child, or raise what became of it."""
    with tempfile.TemporaryFile() as answer:
        request.seek(0)
        status = run_forked(errand, (request.fileno(), answer.fileno(), *files), seconds)
        answer.seek(0)
        answered = answer.read() if status in {_ANSWERED, _REFUSED} else b""
    if status in {None, -signal.SIGXCPU}:
        message = "decoding took longer than is allowed and was stopped"
        raise refused(name, "too_slow", message)
    if status == _REFUSED:
        raise UnreadableSourceError(name, shielded(lambda: _problems(answered), _died(name)))
    if status != _ANSWERED:
        raise _died(name)
    return answered


def _died(name: str) -> UnreadableSourceError:
    message = "the process that decodes the file died of it, or of its limit on memory"
    return refused(name, "decoder_died", message)


def _header(content: Content, child: ChildLimits) -> dict[str, object]:
    csv = content.csv
    signs = {"delimiter": csv.delimiter, "decimal": csv.decimal, "encoding": csv.encoding}
    return {
        "name": content.name,
        "csv": {**signs, "types": csv.types},
        "limits": asdict(content.limits),
        "child": _child_header(child),
    }


def _child_header(child: ChildLimits) -> dict[str, object]:
    # A fraction of a second is nothing to an alarm.
    return {**asdict(child), "seconds": math.ceil(child.seconds)}


def answered_table(name: str, answered: bytes, table_bytes: int) -> "pa.Table":
    """Return the table in an answer, which as a file may have taken so many bytes in memory.

    Raises:
        UnreadableSourceError: kind `decoder_died` where it is none: the file took the child over.
    """
    most = largest_answer(table_bytes)
    wide = replace(DEFAULT_LIMITS, file_bytes=most, table_bytes=most, compression_ratio=most)
    try:
        return read_arrow(answered, wide)
    except UnreadableSourceError:
        pass
    raise _died(name)


def largest_answer(table_bytes: int) -> int:
    """Return how many bytes the answer with a table may have that took so many in its file."""
    # The typed form has wider offsets than a file, and every null counts as a byte.
    return 3 * table_bytes + MEBIBYTE


def _problems(answered: bytes) -> list[Problem]:
    found: Any = load_canonical(answered)
    return [Problem(**{**problem, "names": tuple(problem["names"])}) for problem in found]


def serve(decoder: str) -> int:
    """Decode the request on stdin and answer on stdout; the child's whole life, and its status."""
    with sys.stdin.buffer as request:
        header: Any = load_canonical(request.readline())
        stored = request.read()
    limits = Limits(**header["limits"])
    _confine(ChildLimits(**header["child"]), largest_answer(limits.table_bytes))
    csv = CsvOptions(**header["csv"])
    content = Content(name=header["name"], stored=stored, csv=csv, limits=limits)
    read: Callable[[Content], pa.Table] = _named(decoder)
    return _status_of(lambda: write_table(read(content), sys.stdout.buffer))


def perform(function: str) -> int:
    """Call a function with the open file and answer on stdout, as `serve` does."""
    with sys.stdin.buffer as request:
        header: Any = load_canonical(request.read())
    _confine(ChildLimits(**header["child"]), header["written_bytes"])
    with os.fdopen(_FILE, "rb") as file:
        return _status_of(lambda: _named(function)(file, header["arguments"], sys.stdout.buffer))


def _named(function: str) -> Callable[..., Any]:
    module, _, name = function.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


def _status_of(answer: Callable[[], None]) -> int:
    try:
        answer()
    except UnreadableSourceError as error:
        sys.stdout.buffer.write(canonical_bytes([asdict(problem) for problem in error.problems]))
        return _REFUSED
    return _ANSWERED


def _confine(child: ChildLimits, written_bytes: int) -> None:
    seconds = child.processor_seconds
    # At the hard limit the kernel kills without saying why, so it is a second later.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    for limited, most in (
        (resource.RLIMIT_AS, child.memory_bytes),
        (resource.RLIMIT_NOFILE, child.open_files),
        (resource.RLIMIT_FSIZE, written_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limited, (most, most))
    # For a parent that is gone before it could stop the child.
    signal.alarm(int(child.seconds) + 1)


def write_table(table: "pa.Table", answer: BinaryIO) -> None:
    """Answer with a table, as an Arrow IPC stream."""
    import pyarrow as pa

    with pa.ipc.new_stream(answer, table.schema) as writer:
        writer.write_table(table)
