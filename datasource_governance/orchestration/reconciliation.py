"""The reconciler: Dagster's view is a projection of Postgres, and this keeps it one.

Every tick it looks at the newest stage and the current materialization of each datasource, at the
newest output of each governed asset and the newest retention plan, at the newest materializations
that Dagster shows, and at one page of everything older, going round. What Dagster lost is reported
again, once. What it shows without a governed row is named as unbacked, and what belongs on top is
put there again.

Source: SPEC section 15 ("a reconciler re-emits lost ones"); threats T-05, T-06 and T-08.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg

from datasource_governance.composition import Application
from datasource_governance.domain.datasource import Datasource
from datasource_governance.orchestration import metadata
from datasource_governance.orchestration.governed_asset import published_datasource
from datasource_governance.orchestration.pictures import Picture, picture_sensor
from datasource_governance.orchestration.projections import (
    DATA_VERSION,
    CurrentProjection,
    PlanProjection,
    Projection,
    PublishedProjection,
    StageProjection,
)

RECONCILIATION = "reconciliation"
UNBACKED = "unbacked_events"
INTERVAL_SECONDS = 30
GRACE = timedelta(minutes=2)
"""How long after its commit a run may take to report what it did."""
PAGE = 25
_NEWEST = 10
_AGAIN = "Reported again from the governance database: Dagster had lost it."


def reconciliation_sensor(
    declarations: Sequence[Datasource], producers: Sequence[dg.AssetsDefinition] = ()
) -> dg.SensorDefinition:
    """Return the sensor that keeps Dagster's view of these datasources and governed assets true."""
    return picture_sensor(
        RECONCILIATION,
        INTERVAL_SECONDS,
        "Reports again what Dagster lost, and names what nothing in Postgres backs.",
        Reconciler(declarations, producers).reconcile,
    )


class Reconciler:
    """Compares Dagster's events with governed rows. Where it is on its round is all it remembers.

    The round begins anew in a new process; it always ends, and nothing rests on when.
    """

    def __init__(
        self, declarations: Sequence[Datasource], producers: Sequence[dg.AssetsDefinition] = ()
    ) -> None:
        self._projections: list[Projection[Any]] = [
            projection
            for declaration in declarations
            for projection in _projections(declaration, producers)
        ]
        self._projections.append(PlanProjection())
        self._place = 0
        self._before: Any = None

    def reconcile(
        self, application: Application, instance: dg.DagsterInstance
    ) -> Iterator[Picture]:
        """Report what is lost; yield what is unbacked, asset by asset."""
        for projection in self._projections:
            yield _reconcile_newest(application, instance, projection)
        self._go_round(application, instance)

    def _go_round(self, application: Application, instance: dg.DagsterInstance) -> None:
        """Report what Dagster lost of one page of rows.

        As observations: a materialization would come to lie on top of newer ones. Only of the
        newest one of a partition it is known that there is none.
        """
        projection = self._projections[self._place]
        with application.work() as work:
            rows = projection.page(work, self._before, PAGE)
            settled = work.now() - GRACE
        for row in rows:
            is_due = projection.shows(row) and row.created_at <= settled
            if is_due and not _is_shown(instance, projection.key, row.id):
                _report_again(application, instance, projection, row)
        self._before = rows[-1] if len(rows) == PAGE else None
        if self._before is None:
            self._place = (self._place + 1) % len(self._projections)


def _projections(
    declaration: Datasource, producers: Sequence[dg.AssetsDefinition]
) -> Iterator[Projection[Any]]:
    yield StageProjection(declaration)
    yield CurrentProjection(declaration)
    for producer in producers:
        if published_datasource(producer) == declaration.id:
            yield PublishedProjection(declaration, producer)


def _report_again(
    application: Application,
    instance: dg.DagsterInstance,
    projection: Projection[Any],
    row: Any,  # noqa: ANN401 - what the projection is of
) -> None:
    with application.work() as work:
        is_newest = projection.is_newest(work, row)
    made = projection.materialization(row, application)
    if is_newest:
        _report(instance, projection, row, made)
        return
    instance.report_runless_asset_event(
        dg.AssetObservation(
            projection.key,
            description=_AGAIN,
            metadata=made.metadata,
            partition=made.partition,
            tags=made.tags,
        )
    )


def _report(
    instance: dg.DagsterInstance,
    projection: Projection[Any],
    row: Any,  # noqa: ANN401 - as above
    made: dg.AssetMaterialization,
) -> None:
    instance.report_runless_asset_event(made)
    for evaluation in projection.checks(row):
        instance.report_runless_asset_event(evaluation)


def _reconcile_newest(
    application: Application, instance: dg.DagsterInstance, projection: Projection[Any]
) -> Picture:
    records = instance.fetch_materializations(projection.key, limit=_NEWEST).records
    with application.work() as work:
        top = projection.top(work)
        known = projection.known(work, [version for one in records if (version := _version(one))])
        settled = work.now() - GRACE
    if top is not None and top.created_at <= settled:
        newest = records[0] if records else None
        is_genuine = newest is not None and _version(newest) in known
        is_shown = is_genuine and _is_shown(instance, projection.key, top.id)
        if not (is_shown and newest and _may_stay(application, projection, newest, top)):
            _report(instance, projection, top, projection.materialization(top, application))
    return _unbacked(projection.key, [one for one in records if _version(one) not in known])


def _may_stay(
    application: Application,
    projection: Projection[Any],
    newest: dg.EventLogRecord,
    top: Any,  # noqa: ANN401 - as above
) -> bool:
    shown = newest.asset_materialization
    return shown is not None and projection.is_top(shown, top, application)


def _is_shown(instance: dg.DagsterInstance, key: dg.AssetKey, row_id: str) -> bool:
    return bool(instance.get_event_tags_for_asset(key, filter_tags={DATA_VERSION: row_id}))


def _version(record: dg.EventLogRecord) -> str | None:
    materialization = record.asset_materialization
    return (materialization.tags or {}).get(DATA_VERSION) if materialization else None


def _unbacked(key: dg.AssetKey, records: Sequence[dg.EventLogRecord]) -> Picture:
    """Draw materializations without a row: where they are, and nothing that they claim."""
    found = [{"event": str(one.storage_id), "run": one.run_id or "none"} for one in records]
    events = metadata.counted(len(found), "materialization")
    return Picture(
        key=key,
        topic=UNBACKED,
        is_empty=not found,
        description=f"UNBACKED: {events} among the newest {_NEWEST} with no governed row; whoever "
        "reported them, nothing was staged or promoted by it."
        if found
        else f"All of the newest {_NEWEST} materializations have a governed row.",
        metadata={metadata.WAITING: metadata.listed(found, "event", "run")},
    )
