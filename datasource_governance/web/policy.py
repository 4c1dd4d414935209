"""Which role a route, a GraphQL field and a mutation of Dagster need. Pure.

Both lists are lists of what is allowed: a route or mutation that a new release of Dagster adds is
refused until it is named here. Roles do not include each other, so every need lists those that do.

Source: SPEC sections 15-17; threats T-01, T-02, T-08, T-34 and T-35.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from typing_extensions import override

from datasource_governance.domain.actor import READERS, Grant, Role
from datasource_governance.domain.launch import (
    RETENTION_APPLY_JOB,
    promotion_job_name,
    publication_job_name,
    refresh_job_name,
    stage_job_name,
)
from datasource_governance.services.plan_review import PLAN_READERS

ASSET_JOB = "__ASSET_JOB"
"""How the name of Dagster's own job over any selection of assets begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One of `roles`, over one datasource, over all (`datasource` None), or `anywhere`."""

    roles: frozenset[Role]
    datasource: str | None = None
    anywhere: bool = False

    def is_met_by(self, grants: Iterable[Grant]) -> bool:
        """Tell whether one of an actor's grants gives what is needed."""
        return any(
            grant.role in self.roles
            and (self.anywhere or grant.covers(grant.role, self.datasource))
            for grant in grants
        )

    @override
    def __str__(self) -> str:
        roles = " or ".join(sorted(self.roles))
        if self.anywhere:
            return f"the role {roles}"
        where = f"datasource {self.datasource!r}" if self.datasource else "all datasources"
        return f"the role {roles} on {where}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What a mutation would run: a job, or the selected assets of Dagster's own job."""

    job: str
    assets: frozenset[tuple[str, ...]] = frozenset()


READ = Need(roles=READERS, anywhere=True)
READ_COUNTS = Need(roles=frozenset({Role.STEWARD}))
"""What seeing counts and row numbers of every datasource needs."""
READ_PLANS = Need(roles=PLAN_READERS)
"""What seeing a retention plan of every datasource needs, which counts rows and bytes."""
# Compute logs and debug files are of any job, and Dagster writes what checks found into both.
READ_LOGS = READ_COUNTS
OPERATE = Need(roles=frozenset({Role.OPERATOR}))
ADMINISTER = Need(roles=frozenset({Role.ADMINISTRATOR}))

LOG_FIELDS = frozenset({"capturedLogs", "capturedLogsMetadata"})
"""Fields, of whatever type, that read compute logs or link to where they are kept."""

LAUNCHES = frozenset(
    {
        "launchMultipleRuns",
        "launchPipelineExecution",
        "launchPipelineReexecution",
        "launchRun",
        "launchRunReexecution",
    }
)
"""Mutations that run jobs: what they need depends on which."""

MUTATIONS: Mapping[str, Need] = MappingProxyType(
    dict.fromkeys(("logTelemetry", "setNuxSeen"), READ)
    | dict.fromkeys(
        (
            "cancelPartitionBackfill",
            "freeConcurrencySlots",
            "freeConcurrencySlotsForRun",
            "reloadRepositoryLocation",
            "reloadWorkspace",
            "resetSchedule",
            "resetSensor",
            "scheduleDryRun",
            "sensorDryRun",
            "setAutoMaterializePaused",
            "startSchedule",
            "startSensor",
            "stopRunningSchedule",
            "stopSensor",
            "terminatePipelineExecution",
            "terminateRun",
            "terminateRuns",
        ),
        OPERATE,
    )
)
"""Mutations whose need does not depend on their arguments."""

BACKFILL = "launchPartitionBackfill"
"""Runs through the daemon, which needs an operator and whatever the selected assets need."""

ROUTES: Mapping[str, Need | None] = MappingProxyType(
    {
        "/graphql": READ,
        "/server_info": READ,
        "/dagit_info": READ,
        "/logs/": READ_LOGS,
        "/download_debug/": READ_LOGS,
        # What a notebook displays would run as a script of this origin.
        "/notebook": None,
        "/dagit/notebook": None,
        "/report_asset_": None,
        "/governance/metrics": Need(roles=READERS),
    }
)
"""Needs of Dagster's routes by the beginning of their paths. None: nobody; all others: readers."""


_REFRESH = re.compile(r"/datasources/([a-z][a-z0-9_]{0,62})/refresh/stage")
_JOBS = (
    (stage_job_name, Role.STEWARD),
    (refresh_job_name, Role.STEWARD),
    (promotion_job_name, Role.OPERATOR),
    (publication_job_name, Role.PRODUCER),
)


def need_of_route(path: str) -> Need | None:
    """Return what a path needs, mostly to be read; None when nobody may."""
    if (datasource := refreshed_datasource(path)) is not None:
        return Need(roles=frozenset({Role.STEWARD}), datasource=datasource)
    for beginning, need in ROUTES.items():
        if path.startswith(beginning):
            return need
    return READ


def refreshed_datasource(path: str) -> str | None:
    """Return the datasource whose origin is read into a stage by a post to a path."""
    found = _REFRESH.fullmatch(path)
    return found[1] if found else None


def needs_of_launch(launch: Launch) -> frozenset[Need]:
    """Return everything that is needed to run a job or a selection of assets.

    The jobs that stage and refresh a datasource and its stage asset need its steward, the promotion
    job and current asset its operator, the job that publishes to it its producer, applying a
    retention plan an administrator, anything else an operator over all datasources. Dagster's own
    job without a selection would run every asset.
    """
    assets = frozenset(map(_need_of_asset, launch.assets))
    if launch.job.startswith(ASSET_JOB):
        return assets or frozenset({OPERATE, Need(roles=frozenset({Role.STEWARD}))})
    return assets | {_need_of_job(launch.job)}


def held_against(needs: Iterable[Need], declared: Collection[str]) -> frozenset[Need]:
    """Return needs with an operator's over all in place of any over what is no datasource.

    Jobs and assets are known by their names, and authors name theirs as they like.
    """
    return frozenset(
        need if need.datasource is None or need.datasource in declared else OPERATE
        for need in needs
    )


def _need_of_job(job: str) -> Need:
    if job == RETENTION_APPLY_JOB:
        return ADMINISTER
    for name, role in _JOBS:
        beginning = name("")
        if job.startswith(beginning) and job != beginning:
            return Need(roles=frozenset({role}), datasource=job.removeprefix(beginning))
    return OPERATE


def _need_of_asset(path: Collection[str]) -> Need:
    match tuple(path):
        case (datasource, "stage"):
            return Need(roles=frozenset({Role.STEWARD}), datasource=datasource)
        case (datasource, "current"):
            return Need(roles=frozenset({Role.OPERATOR}), datasource=datasource)
        case _:
            return OPERATE
