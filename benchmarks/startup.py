"""What the command line takes before it does anything: how much of `validate` is importing."""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.datasets import Scenario, dataset
from benchmarks.register import POLICY
from benchmarks.results import StartUp
from datasource_governance.domain.canonical import canonical_bytes

_SMALL = Scenario(rows=1_000, variant="clean")
_COMMAND = ("-c", "from datasource_governance.cli import main; main()")
_SELF_MICROSECONDS = re.compile(r"^import time:\s+(\d+) \|", re.MULTILINE)


def measure_start_up(rounds: int) -> Iterator[StartUp]:
    """Yield one measurement of `validate` over 1,000 rows per round.

    The share of importing is what the interpreter counts itself (`-X importtime`), in a run of its
    own, because counting slows it down.
    """
    with tempfile.TemporaryDirectory() as folder:
        policy = Path(folder) / "policy.json"
        policy.write_bytes(canonical_bytes(POLICY))
        arguments = ["validate", str(dataset(_SMALL).path), "--policy", str(policy), "--json"]
        for _ in range(rounds):
            interpreter, _ = _ran(["-c", "pass"])
            command, _ = _ran([*_COMMAND, *arguments])
            counted, told = _ran(["-X", "importtime", *_COMMAND, *arguments])
            importing = sum(map(int, _SELF_MICROSECONDS.findall(told))) / 1e6
            yield StartUp(
                interpreter=interpreter, command=command, importing_share=importing / counted
            )


def _ran(arguments: Sequence[str]) -> tuple[float, str]:
    """Return the seconds that a Python process took, and what it told on standard error.

    Raises:
        subprocess.CalledProcessError: it failed, so its time would mean nothing.
    """
    start = time.perf_counter()
    ended = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, *arguments], capture_output=True, text=True, check=True
    )
    return time.perf_counter() - start, ended.stderr
