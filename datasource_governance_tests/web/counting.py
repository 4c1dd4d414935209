"""A datasource whose stage, checks, log lines and failures all tell counts, served to readers.

The counts are canaries: whoever may not see counts finds none of them in any answer.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import dagster as dg
from dagster._core.workspace.context import WorkspaceProcessContext

from datasource_governance.domain.actor import Role
from datasource_governance.orchestration.assets import current_key, stage_key
from datasource_governance.web.settings import WebSettings
from datasource_governance_tests.orchestration.governed import (
    ID_UNIQUE,
    declaration,
    deliver,
    promotion_run,
    stage_run,
    stages,
)
from datasource_governance_tests.web.serving import Serving, serving, with_accounts, workspace
from datasource_governance_tests.world import World

AFFECTED, ROWS, FIRST = 4711, 13007, 8297
"""So many of so many rows violate a rule, this one first."""
UNGOVERNED = 6007
"""What an asset that is not governed tells, which is for every reader."""
_ALONE = "(?<![0-9a-zA-Z.-]){}(?![0-9a-zA-Z-])"
_CANARY = re.compile("|".join(_ALONE.format(number) for number in (AFFECTED, ROWS, FIRST)))
POLICY = {
    "version": "v1",
    "rules": [
        ID_UNIQUE,
        {"id": "amount", "type": "range", "field": "amount", "minimum": 0, "severity": "warning"},
    ],
}
OTHER = "other"
FREELY_NAMED = "freely_named"
"""An asset of an author's own that publishes to `orders`."""
RESTRICTED = {
    "viewer": Role.VIEWER,
    "approver": Role.APPROVER,
    "operator": Role.OPERATOR,
    "elsewhere": Role.STEWARD,
}
"""Accounts that see no count of `orders`; `elsewhere` is a steward of another datasource."""
STEWARDS = ("steward", "everywhere")
"""Accounts that see them, by a grant over `orders` and by one over all."""
CODE = f"""
from pathlib import Path
from types import SimpleNamespace
import dagster as dg
from datasource_governance.composition import Application
from datasource_governance.orchestration.governed_asset import governed_asset
from datasource_governance.orchestration.registry import governed_definitions
from datasource_governance_tests.orchestration.governed import declaration
from datasource_governance_tests.orchestration.publishing import published
from datasource_governance_tests.world import settings

nowhere = SimpleNamespace(application_url="postgresql+psycopg://nobody@127.0.0.1:1/none")
application = Application(settings(nowhere, Path.cwd()))

@dg.asset
def free() -> None: ...

@governed_asset(datasource=published("orders", {POLICY!r}))
def freely_named(): ...

defs = dg.Definitions.merge(
    governed_definitions([declaration({POLICY!r})], application),
    dg.Definitions(assets=[free, freely_named]),
)
"""
"""The code location: it is loaded and never run, so its database is nowhere."""


@dataclass(frozen=True)
class Counted:
    """A served webserver and the runs that it tells about."""

    serving: Serving
    world: World
    runs: dict[str, str]


def counts_in(text: str) -> set[int]:
    """Return the canaries that stand in an answer; in a hash or an instant they are none."""
    return {int(number) for number in _CANARY.findall(text)}


@contextmanager
def counted(world: World, directory: Path) -> Iterator[Counted]:
    """Serve `orders` after a run that staged it, one that promoted it and one that failed."""
    world.declare(POLICY)
    replace(world, datasource=OTHER).declare()
    for name, role in RESTRICTED.items():
        world.admit(name)
        world.grant(name, role, OTHER if role is Role.STEWARD else None)
    world.admit("steward")
    world.grant("steward", Role.STEWARD, "orders")
    world.admit("everywhere", Role.STEWARD)
    settings = WebSettings(directory=directory / "webserver")
    settings.directory.mkdir()
    with_accounts(settings, *RESTRICTED, *STEWARDS)
    with (
        workspace(directory, CODE) as context,
        serving(context, settings, world.application) as running,
    ):
        yield Counted(running, world, _runs(world, context))


def _runs(world: World, context: WorkspaceProcessContext) -> dict[str, str]:
    instance, declared = context.instance, declaration(POLICY)
    amounts = [(number, 1 if number < FIRST else -1) for number in range(1, ROWS + 1)]
    delivery = deliver(world, [("id", "amount"), *amounts])
    staged = stage_run(world, delivery, instance, declared=declared)
    (stage,) = stages(world)
    world.promote(stage)
    promoted = promotion_run(world, stage.id, instance, declared=declared)
    failed, published = (
        telling(job, step).execute_in_process(instance=instance, raise_on_error=False)
        for job, step in (("stage_orders", "orders__stage"), ("nightly", FREELY_NAMED))
    )
    tell_beside(instance)
    return {
        "staged": staged.run_id,
        "promoted": promoted.run_id,
        "failed": failed.run_id,
        "published": published.run_id,
    }


def telling(job_name: str, step: str) -> dg.JobDefinition:
    """Return a job with one step whose every event tells a count."""
    told = f"{AFFECTED} rows"

    @dg.op(
        name=step,
        out={"one": dg.Out(dagster_type=_counting_type(told)), "two": dg.Out(is_required=False)},
    )
    def stage(context: dg.OpExecutionContext) -> Iterator[dg.Output]:
        context.log.info(told)
        yield dg.ExpectationResult(False, told, told, metadata={"rows": AFFECTED})
        yield dg.AssetObservation(stage_key("orders"), told, metadata={"rows": AFFECTED})
        yield dg.Output(1, "one", metadata={"rows": AFFECTED})
        raise dg.Failure(told, metadata={"rows": AFFECTED}, allow_retries=False) from ValueError(
            told
        )

    @dg.job(name=job_name)
    def job() -> None:
        stage()

    return job


def _counting_type(told: str) -> dg.DagsterType:
    return dg.DagsterType(
        lambda _context, _value: dg.TypeCheck(True, told, metadata={"rows": AFFECTED}), "Counting"
    )


def tell_beside(instance: dg.DagsterInstance) -> None:
    """Report what other code might: on governed assets, and on one that is not."""
    told = f"{AFFECTED} rows"
    metadata = {
        "violations": AFFECTED,
        "share": AFFECTED / 100_000,
        "listed": dg.MetadataValue.json({"rows": [FIRST]}),
        "plot": dg.MetadataValue.md(f"![{AFFECTED}](data:image/png;base64,AAAA)"),
        "datasource_governance/new_key": ROWS,
        "datasource_governance/rules": dg.MetadataValue.table(
            [dg.TableRecord({"rule": "r", "status": "failed", "new column": str(AFFECTED)})]
        ),
    }
    current = current_key("orders")
    instance.report_runless_asset_event(
        dg.AssetMaterialization(current, told, metadata=metadata, tags={"rows": str(AFFECTED)})
    )
    for key in (current, stage_key("orders"), dg.AssetKey(FREELY_NAMED)):
        instance.report_runless_asset_event(dg.AssetObservation(key, told, metadata=metadata))
    for key, name in ((current, "own"), (dg.AssetKey(FREELY_NAMED), "amount")):
        instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(key, name, False, metadata, description=told)
        )
    instance.report_runless_asset_event(
        dg.AssetMaterialization(FREELY_NAMED, told, metadata=metadata, tags={"rows": str(AFFECTED)})
    )
    free = {
        "rows": UNGOVERNED,
        "table": dg.MetadataValue.table([dg.TableRecord({"n": UNGOVERNED})]),
    }
    instance.report_runless_asset_event(
        dg.AssetMaterialization("free", f"{UNGOVERNED} rows", metadata=free)
    )
