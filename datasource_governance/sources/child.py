"""Decode files that nobody vouches for in a child process that may die of them.

The child gets the file and nothing else: no environment, no open files, no terminal; limits on its
memory, processor time, files and output; no core dump, which would hold cells. Its answer is an
Arrow IPC stream, which is read as distrustfully as any other file, or the problems it found. The
parent waits on a clock and outlives whatever becomes of the child.

Source: SPEC section 3, "Hostile files".
"""

import importlib
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import IO, TYPE_CHECKING, Any

from datasource_governance.domain.canonical import canonical_bytes, load_canonical
from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.errors import Problem, UnreadableSourceError
from datasource_governance.sources.arrow_ipc import read_arrow
from datasource_governance.sources.limits import DEFAULT_LIMITS, MEBIBYTE, Limits
from datasource_governance.sources.refusal import refused, shielded

if TYPE_CHECKING:
    import pyarrow as pa

DECODER = "datasource_governance.sources.files:read_content"
"""Where the child finds the function that decodes: module, colon, name."""

_PROGRAM = "import sys; from datasource_governance.sources.child import serve; serve(*sys.argv[1:])"
_DECODED, _REFUSED = 0, 3
"""The child's exit status when it answers with a table, and when with problems."""


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
    with tempfile.TemporaryFile() as request, tempfile.TemporaryFile() as answer:
        request.write(canonical_bytes(_header(content, child)) + b"\n")
        request.write(content.stored)
        request.seek(0)
        status = _run(decoder, request, answer, child.seconds)
        answer.seek(0)
        answered = answer.read() if status in {_DECODED, _REFUSED} else b""
    if status in {None, -signal.SIGXCPU}:
        message = "decoding took longer than is allowed and was stopped"
        raise refused(content.name, "too_slow", message)
    message = "the process that decodes the file died of it, or of its limit on memory"
    died = refused(content.name, "decoder_died", message)
    if status == _DECODED and (table := _table(answered, content.limits)) is not None:
        return table
    if status == _REFUSED:
        raise UnreadableSourceError(content.name, shielded(lambda: _problems(answered), died))
    raise died


def _header(content: Content, child: ChildLimits) -> dict[str, object]:
    csv = content.csv
    signs = {"delimiter": csv.delimiter, "decimal": csv.decimal, "encoding": csv.encoding}
    return {
        "name": content.name,
        "csv": {**signs, "types": csv.types},
        "limits": asdict(content.limits),
        # A fraction of a second is nothing to an alarm.
        "child": {**asdict(child), "seconds": math.ceil(child.seconds)},
    }


def _run(decoder: str, request: IO[bytes], answer: IO[bytes], seconds: float) -> int | None:
    """Return the exit status of the child, or None if it was still running after the seconds."""
    command = [sys.executable, "-P", "-S", "-c", _PROGRAM, decoder]
    with subprocess.Popen(  # noqa: S603 - our own interpreter with our own program
        command,
        stdin=request,
        stdout=answer,
        stderr=subprocess.DEVNULL,
        env=_environment(),
        start_new_session=True,
    ) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            process.kill()


def _environment() -> dict[str, str]:
    """Return what the child needs to find this package, and nothing of what the parent has."""
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        # The default pool reserves a gigabyte of addresses, which would count as memory.
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "MALLOC_ARENA_MAX": "2",
    }


def _table(answered: bytes, limits: Limits) -> "pa.Table | None":
    """Return the table, or None where the answer is none: the file took the child over."""
    most = _largest_answer(limits)
    wide = replace(limits, file_bytes=most, table_bytes=most, compression_ratio=most)
    try:
        return read_arrow(answered, wide)
    except UnreadableSourceError:
        return None


def _largest_answer(limits: Limits) -> int:
    # The typed form has wider offsets than a file, and every null counts as a byte.
    return 3 * limits.table_bytes + MEBIBYTE


def _problems(answered: bytes) -> list[Problem]:
    found: Any = load_canonical(answered)
    return [Problem(**{**problem, "names": tuple(problem["names"])}) for problem in found]


def serve(decoder: str) -> None:
    """Decode the request on stdin and answer on stdout; the child's whole life."""
    with sys.stdin.buffer as request:
        header: Any = load_canonical(request.readline())
        stored = request.read()
    limits = Limits(**header["limits"])
    _confine(ChildLimits(**header["child"]), limits)
    csv = CsvOptions(**header["csv"])
    content = Content(name=header["name"], stored=stored, csv=csv, limits=limits)
    module, _, name = decoder.partition(":")
    read: Callable[[Content], pa.Table] = getattr(importlib.import_module(module), name)
    try:
        table = read(content)
    except UnreadableSourceError as error:
        sys.stdout.buffer.write(canonical_bytes([asdict(problem) for problem in error.problems]))
        sys.exit(_REFUSED)
    _answer(table)


def _confine(child: ChildLimits, limits: Limits) -> None:
    seconds = child.processor_seconds
    # At the hard limit the kernel kills without saying why, so it is a second later.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    for limited, most in (
        (resource.RLIMIT_AS, child.memory_bytes),
        (resource.RLIMIT_NOFILE, child.open_files),
        (resource.RLIMIT_FSIZE, _largest_answer(limits)),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limited, (most, most))
    # For a parent that is gone before it could stop the child.
    signal.alarm(int(child.seconds) + 1)


def _answer(table: "pa.Table") -> None:
    import pyarrow as pa

    with pa.ipc.new_stream(sys.stdout.buffer, table.schema) as writer:
        writer.write_table(table)
