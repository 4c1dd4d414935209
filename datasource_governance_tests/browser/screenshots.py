"""Take the pictures of the documentation from a running system.

    python -m datasource_governance_tests.browser.screenshots docs/images

Needs nothing but this package with its extras and a Chromium: a system is started on a state of its
own, and the demo's story is told until one stage is promoted, one waits and one is blocked, and
what is in force was published from by a producer, and once more in vain.
"""

import csv
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from datasource_governance.cli.approval import decide
from datasource_governance.cli.founding import signer_of
from datasource_governance.cli.published_once import DATASOURCE as PUBLISHED
from datasource_governance.cli.published_once import publish_by_run
from datasource_governance.cli.stage import stage_file
from datasource_governance.cli.story import DATASOURCE, EXAMPLE_JOB
from datasource_governance.cli.supervisor import System
from datasource_governance.composition import Application
from datasource_governance.demo.deliveries import register_file, write_deliveries
from datasource_governance.domain.approval import Verdict
from datasource_governance.domain.stage import Stage
from datasource_governance.orchestration.client import DagsterClient
from datasource_governance.orchestration.launching import launch, launch_again, wait_for_run
from datasource_governance.orchestration.runs import StageRun, newest_run_about
from datasource_governance.services.watching import is_due
from datasource_governance_tests.browser.overdue import Overdue, plan_and_hold
from datasource_governance_tests.browser.pages import Pages, signed_in
from datasource_governance_tests.laptop import client_of, laptop_system, password_of

LOCATION = "datasource_governance.definitions"
STEWARD = "casey"
"""Whose pages the pictures show: who may read the data sees counts and row numbers, too."""
PRODUCER = "pat"
REASON = "zq-reason: the counts are as expected"
# A shorter cell could be a word of the UI, or part of a hash.
_SHORTEST_CELL = 9


@dataclass(frozen=True)
class Told:
    """How far the story went, and the system that it was told on."""

    system: System
    promoted: Stage
    waiting: Stage
    blocked: Stage
    promotion: StageRun
    overdue: Overdue


@contextmanager
def told_story(server: str | None = None) -> Iterator[Told]:
    """Run a system until a stage is promoted, a second waits and a third is blocked."""
    with laptop_system(server) as system:
        yield _tell(system)


def _tell(system: System) -> Told:
    application, client = system.application, client_of(system)
    deliveries = write_deliveries(application.settings.state / "register")
    steward = signer_of(application, STEWARD)

    def stage(file: Path) -> Stage:
        return stage_file(application, steward, DATASOURCE, file, in_process=False)

    promoted = stage(deliveries.first)
    _await_monitor(application)
    for name in ("alice", "bob"):
        approver = signer_of(application, name)
        decide(application, approver, Verdict.APPROVE, promoted.id, REASON)
    promotion = _await_promotion(client, promoted)
    _run_example(client)
    _publish_twice(DagsterClient(system.url, signer_of(application, PRODUCER)))
    waiting, blocked = stage(deliveries.corrected), stage(deliveries.faulty)
    return Told(
        system=system,
        promoted=promoted,
        promotion=promotion,
        waiting=waiting,
        blocked=blocked,
        overdue=plan_and_hold(system, blocked),
    )


def _await_monitor(application: Application) -> None:
    # A first run that is still at it could check what is promoted before Dagster shows it, and
    # Dagster takes such a check for one of what was there before.
    while is_due(application.work()):
        time.sleep(0.5)  # the time limit of the test ends this


def _await_promotion(client: DagsterClient, stage: Stage) -> StageRun:
    while (run := newest_run_about(client, stage.id)) is None:
        time.sleep(0.5)  # the time limit of the test ends this
    assert wait_for_run(client, run.id) == "SUCCESS"
    return run


def _run_example(client: DagsterClient) -> None:
    assert wait_for_run(client, launch(client, EXAMPLE_JOB, {})) == "SUCCESS"


def _publish_twice(client: DagsterClient) -> None:
    run_id, succeeded = publish_by_run(client)
    assert succeeded
    assert wait_for_run(client, launch_again(client, run_id)) == "SUCCESS"


@contextmanager
def stewards_browser(told: Told, unwanted: Collection[str]) -> Iterator[Pages]:
    """Open the system's UI as the steward of the story."""
    password = password_of(told.system, STEWARD)
    with signed_in(told.system.url, STEWARD, password, unwanted) as pages:
        yield pages


def unwanted() -> set[str]:
    """Return what no page may hold: the reason of the decisions and the cells of the register."""
    with register_file().open(encoding="utf-8", newline="") as file:
        cells = {cell for record in csv.DictReader(file) for cell in _cells(record)}
    return {REASON, *cells}


def _cells(record: dict[str, str]) -> list[str]:
    cells = (record[name] for name in ("name", "lat", "lon", "city"))
    return [cell for cell in cells if len(cell) >= _SHORTEST_CELL]


def take_lineage(pages: Pages, told: Told, directory: Path) -> None:
    pages.picture(
        f"/locations/{LOCATION}/asset-groups/{DATASOURCE}/lineage",
        shows=["stage", "current", "airport_countries", "7 / 15 Passed", "5 / 5 Passed"],
        at=directory / "lineage.png",
    )


def take_blocked_checks(pages: Pages, told: Told, directory: Path) -> None:
    pages.picture(
        f"/assets/{DATASOURCE}/stage?view=checks&checkDetail=icao_unique",
        shows=[
            "This is a blocking asset check.",
            "The rule does not hold",
            "1000, 1001, 2000, 2001, 3000, 3001",
            "Plots",
        ],
        at=directory / "blocked_checks.png",
        scroll_to="canvas",
    )


def take_launchpad(pages: Pages, told: Told, directory: Path) -> None:
    config = f"ops:\n  airports__stage:\n    config:\n      delivery: {told.waiting.delivery}\n"
    pages.picture(
        f"/locations/{LOCATION}/jobs/stage_{DATASOURCE}/playground/setup?config={quote(config)}",
        shows=["stage_airports", "airports__stage", "No errors", "Launch Run"],
        at=directory / "launchpad.png",
    )


def take_promotion_run(pages: Pages, told: Told, directory: Path) -> None:
    pages.picture(
        f"/runs/{told.promotion.id}",
        shows=["Success", "Launched by approval_quorum", "evidence on airports / current"],
        at=directory / "promotion_run.png",
    )


def take_current(pages: Pages, told: Told, directory: Path) -> None:
    pages.picture(
        f"/assets/{DATASOURCE}/current",
        shows=["Row count", "28,", "approved_by", "alice, bob", told.promoted.id],
        at=directory / "current.png",
        scroll_to="text=datasource_governance/provenance",
    )


def take_publication(pages: Pages, told: Told, directory: Path) -> None:
    pages.picture(
        f"/assets/{PUBLISHED}",
        shows=["datasource_governance/replayed", "published_by", PRODUCER, "Passed", "Row count"],
        at=directory / "publication.png",
        scroll_to="text=datasource_governance/published_by",
    )


def take_retention_plan(pages: Pages, told: Told, directory: Path) -> None:
    plan = told.overdue.plan
    pages.picture(
        "/assets/governance/retention_plan",
        shows=["datasource_governance/due", plan.hash, told.overdue.stage.id, "airports-keep-v1"],
        at=directory / "retention_plan.png",
        scroll_to="text=datasource_governance/targets",
    )


def take_stale_plan(pages: Pages, told: Told, directory: Path) -> None:
    pages.picture(
        f"/runs/{told.overdue.stale_run}",
        shows=["Failure", "is outdated", "nothing was destroyed"],
        at=directory / "stale_plan.png",
    )


def take_contract_check(pages: Pages, told: Told, directory: Path) -> None:
    pages.picture(
        f"/assets/{DATASOURCE}/current?view=checks&checkDetail=contract_airports_freshness",
        shows=["It is not older than promised.", "percent of the promised freshness", "Plots"],
        at=directory / "contract_check.png",
        scroll_to="canvas",
    )


def take_contracts(pages: Pages, told: Told, directory: Path) -> None:
    pages.picture(
        "/governance/contracts",
        shows=["Contracts", DATASOURCE, "freshness", "schema drift", "100.00 %", "holds"],
        at=directory / "contracts.png",
    )


PICTURES = (
    take_lineage,
    take_blocked_checks,
    take_launchpad,
    take_promotion_run,
    take_current,
    take_publication,
    take_retention_plan,
    take_stale_plan,
    take_contract_check,
    take_contracts,
)


def main(directory: Path) -> None:
    """Take every picture into a directory."""
    with told_story() as told, stewards_browser(told, unwanted()) as pages:
        for take in PICTURES:
            take(pages, told, directory)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
