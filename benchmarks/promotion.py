"""`python -m benchmarks.promotion`: how long after the last approval a stage is promoted.

On a whole system as `dev` runs it: embedded Postgres, webserver, daemon, code location. The time is
from the return of the approval that completes the quorum until the stage is promoted in Postgres,
so it holds the sensor's interval, the queue, the start of a run's process and the transaction.
"""

import hashlib
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Annotated, Final

import typer

from benchmarks.sensor_ticks import approve
from datasource_governance.cli.demo_accounts import PEOPLE
from datasource_governance.cli.founding import admit
from datasource_governance.cli.stage import stage_file
from datasource_governance.cli.supervisor import System, SystemOptions
from datasource_governance.composition import Application
from datasource_governance.demo.deliveries import write_deliveries
from datasource_governance.domain.stage import Stage, StageState
from datasource_governance.signing import Signer

_DATASOURCE: Final = "airports"
_POLL_SECONDS: Final = 0.05


def main(
    promotions: Annotated[int, typer.Option(min=1, help="How many are measured.")] = 10,
) -> None:
    """Print the median, the least and the greatest number of seconds."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)  # the server may run as another user
        os.environ["GOVERNANCE_STATE"] = folder
        with System(SystemOptions(state=Path(folder), port=0)) as system:
            found = _promotions(system.application, Path(folder), promotions)
    middle = statistics.median(found)
    typer.echo("| promotions | median s | least | greatest |")
    typer.echo("| ---: | ---: | ---: | ---: |")
    typer.echo(f"| {len(found)} | {middle:.1f} | {min(found):.1f} | {max(found):.1f} |")


def _promotions(application: Application, folder: Path, number: int) -> list[float]:
    casey, alice, bob = (admit(application, one, *PEOPLE[one]) for one in ("casey", "alice", "bob"))
    register = write_deliveries(folder / "register").first
    return [
        _promotion(application, casey, (alice, bob), _changed(register, folder, turn))
        for turn in range(number)
    ]


def _changed(register: Path, folder: Path, turn: int) -> Path:
    """Return the register without its last lines, so that every delivery is another one."""
    lines = register.read_bytes().splitlines(keepends=True)
    content = b"".join(lines[: len(lines) - turn])
    changed = folder / f"{hashlib.sha256(content).hexdigest()[:16]}{register.suffix}"
    changed.write_bytes(content)
    return changed


def _promotion(
    application: Application, creator: Signer, approvers: tuple[Signer, ...], delivery: Path
) -> float:
    stage = stage_file(application, creator, _DATASOURCE, delivery, in_process=True)
    for approver in approvers:
        approve(application, approver, stage)
    began = time.perf_counter()
    while _state(application, stage) is not StageState.PROMOTED:
        time.sleep(_POLL_SECONDS)
    return time.perf_counter() - began


def _state(application: Application, stage: Stage) -> StageState:
    with application.work() as work:
        return work.stages.get(stage.id).state


if __name__ == "__main__":
    typer.run(main)
