"""The sensors that keep shown what becomes of waiting stages: expiry, supersession, no promotion.

They decide nothing: an expired approval does not count and an outdated stage is refused whether a
sensor runs or not.

Source: SPEC sections 6, 7 and 15.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta

import dagster as dg

from datasource_governance.composition import Application
from datasource_governance.domain.stage import StageState
from datasource_governance.domain.standing import Standing
from datasource_governance.orchestration import metadata
from datasource_governance.orchestration.assets import stage_key
from datasource_governance.orchestration.pictures import Picture, picture_sensor
from datasource_governance.orchestration.sensors import STAGE_TAG, Watch
from datasource_governance.services.expiring import tell_of_expiring
from datasource_governance.services.waiting import Overview, supersede_stage

EXPIRY = "approval_expiry"
SUPERSESSION = "stage_supersession"
STUCK = "stuck_promotion"
INTERVAL_SECONDS = 30
STUCK_AFTER = timedelta(minutes=10)
_NEWEST = 25
"""Among so many newest stages of a datasource, superseded ones are shown."""
_TOLD_AT_ONCE = 200
"""So many stages are asked about in one tick; the next one asks about the others."""


def waiting_sensors(datasources: Collection[str], watch: Watch) -> list[dg.SensorDefinition]:
    """Return the sensors of expiry, supersession and stuck promotions of these datasources."""
    told = ExpiringTold()

    def expiry(application: Application, _: dg.DagsterInstance) -> Iterator[Picture]:
        overview = watch.overview(application)
        told.tell(application, overview)
        return (_expiry(name, overview.standings[name]) for name in _applied(datasources, overview))

    def supersession(application: Application, _: dg.DagsterInstance) -> Iterator[Picture]:
        overview = _superseded(application, watch)
        return (
            _supersession(application, name, overview.standings[name])
            for name in _applied(datasources, overview)
        )

    def stuck(application: Application, instance: dg.DagsterInstance) -> Iterator[Picture]:
        overview = watch.overview(application)
        return (
            _stuck(instance, name, overview.standings[name], overview.at)
            for name in _applied(datasources, overview)
        )

    return [
        picture_sensor(
            EXPIRY,
            INTERVAL_SECONDS,
            "Shows which approvals expired, or soon will, and what is missing.",
            expiry,
        ),
        picture_sensor(
            SUPERSESSION,
            INTERVAL_SECONDS,
            "Closes stages whose base is no longer current, and shows what is outdated.",
            supersession,
        ),
        picture_sensor(
            STUCK,
            INTERVAL_SECONDS,
            "Shows stages that need nobody any more and are not promoted all the same.",
            stuck,
        ),
    ]


class ExpiringTold:
    """Sees to it that people are told of each approval that expires soon, once.

    The database knows what was told. What this process made sure of is remembered while it stands
    out, so that a tick asks about what is new and not about everything that expires.
    """

    def __init__(self) -> None:
        self._seen: frozenset[tuple[str, tuple[str, ...], datetime | None]] = frozenset()

    def tell(self, application: Application, overview: Overview) -> None:
        """Tell of what was not told of before.

        Raises:
            GovernanceError: when Postgres cannot be used; the next call tells the rest.
        """
        present = frozenset(
            (one.stage, one.expiring, one.next_expiry)
            for found in overview.standings.values()
            for one in found
            if one.expiring and not one.changed
        )
        self._seen &= present
        news = sorted(present - self._seen, key=lambda one: one[0])
        for seen in news[:_TOLD_AT_ONCE]:
            tell_of_expiring(application.work(), seen[0])
            self._seen |= {seen}


def _applied(datasources: Collection[str], overview: Overview) -> list[str]:
    return [name for name in datasources if name in overview.standings]


def _expiry(datasource: str, standings: Sequence[Standing]) -> Picture:
    found = [one for one in standings if not one.changed and (one.lapsed or one.expiring)]
    records = [
        {
            "stage": one.stage,
            "approvals missing": str(one.missing),
            "expired": ", ".join(one.lapsed),
            "expiring soon": ", ".join(one.expiring),
            "next expiry": one.next_expiry.isoformat(" ", "seconds") if one.next_expiry else "",
        }
        for one in found
    ]
    columns = ("stage", "approvals missing", "expired", "expiring soon", "next expiry")
    stages = metadata.counted(len(found), "waiting stage")
    return Picture(
        key=stage_key(datasource),
        topic=EXPIRY,
        is_empty=not found,
        description=f"Approvals of {stages} expired or soon will; approvers may decide again."
        if found
        else "No approval of a waiting stage has expired or soon will.",
        metadata={metadata.WAITING: metadata.listed(records, *columns)},
    )


def _superseded(application: Application, watch: Watch) -> Overview:
    """Close every stage that lost its base; return what stands out afterwards."""
    overview = watch.overview(application)
    lost = [one for found in overview.standings.values() for one in found if one.lost_its_base]
    for one in lost:
        supersede_stage(application.work(), one.stage)
    return watch.overview(application) if lost else overview


def _supersession(
    application: Application, datasource: str, standings: Sequence[Standing]
) -> Picture:
    records = [
        {"stage": one.stage, "state": "outdated", "changed": ", ".join(one.changed)}
        for one in standings
        if one.changed
    ]
    outdated = len(records)
    with application.work() as work:
        newest = work.stages.page(datasource, before=None, limit=_NEWEST)
    records += [
        {"stage": one.id, "state": str(one.state), "changed": "base materialization"}
        for one in newest
        if one.state is StageState.SUPERSEDED
    ]
    stages = metadata.counted(outdated, "open stage")
    return Picture(
        key=stage_key(datasource),
        topic=SUPERSESSION,
        is_empty=not records,
        description=f"{stages} outdated: nothing can be decided about an outdated stage while what "
        "it is bound to differs; stage the delivery again. "
        f"{len(records) - outdated} of the newest {_NEWEST} superseded.",
        metadata={metadata.WAITING: metadata.listed(records, "stage", "state", "changed")},
    )


def _stuck(
    instance: dg.DagsterInstance, datasource: str, standings: Sequence[Standing], now: datetime
) -> Picture:
    found = [
        (one, one.complete_since)
        for one in standings
        if one.complete_since is not None and now - one.complete_since >= STUCK_AFTER
    ]
    runs = {one.stage: _newest_run(instance, one.stage) for one, _ in found[:_NEWEST]}
    records = [
        {
            "stage": one.stage,
            "complete since": since.isoformat(" ", "seconds"),
            "newest run": _told(runs.get(one.stage)),
        }
        for one, since in found
    ]
    columns = ("stage", "complete since", "newest run")
    run = next((one for one in runs.values() if one is not None), None)
    linked = {metadata.STUCK_RUN: dg.MetadataValue.dagster_run(run.run_id)} if run else {}
    stages = metadata.counted(len(found), "stage")
    minutes = STUCK_AFTER // timedelta(minutes=1)
    return Picture(
        key=stage_key(datasource),
        topic=STUCK,
        is_empty=not found,
        description=f"FAILED: {stages} with a quorum not promoted for {minutes} minutes. Look at "
        "the run; is the sensor approval_quorum on? An operator can run: promote."
        if found
        else "Every stage with a quorum was promoted in time.",
        metadata={metadata.WAITING: metadata.listed(records, *columns), **linked},
    )


def _newest_run(instance: dg.DagsterInstance, stage_id: str) -> dg.DagsterRun | None:
    runs = instance.get_runs(dg.RunsFilter(tags={STAGE_TAG: stage_id}), limit=1)
    return runs[0] if runs else None


def _told(run: dg.DagsterRun | None) -> str:
    return f"{run.run_id}: {run.status.value}" if run else "none"
