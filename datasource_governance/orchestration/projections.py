"""Assets as views of governed rows: how a row looks in Dagster.

Source: SPEC section 15 ("Dagster events are a projection").
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Generic, TypeVar

import dagster as dg
from typing_extensions import override

from datasource_governance.composition import Application
from datasource_governance.domain.canonical import Json
from datasource_governance.domain.datasource import Datasource
from datasource_governance.domain.materialization import Materialization, provenance_of
from datasource_governance.domain.plan_admission import unknown_plan
from datasource_governance.domain.retention_plan import PlanReference
from datasource_governance.domain.stage import Stage
from datasource_governance.orchestration.assets import current_key, stage_key
from datasource_governance.orchestration.checks import (
    check_results,
    evaluation_of,
    validation_results,
)
from datasource_governance.orchestration.metadata import (
    PRODUCER,
    Metadata,
    materialization_metadata,
    stage_metadata,
)
from datasource_governance.orchestration.plan_metadata import plan_metadata
from datasource_governance.orchestration.publication_metadata import (
    declared_hash,
    output_metadata,
)
from datasource_governance.orchestration.retention import RETENTION_PLAN
from datasource_governance.ports import UnitOfWork

DATA_VERSION = "dagster/data_version"
"""The one tag of asset events that Dagster indexes; it holds the id of the row."""
Row = TypeVar("Row", Stage, Materialization, PlanReference)
_NEWEST = 25
"""Among so many newest revisions, the newest one of a producer is looked for."""


class Projection(ABC, Generic[Row]):
    """One asset whose materializations are a view of rows, newest first."""

    def __init__(self, key: dg.AssetKey) -> None:
        self.key = key

    @abstractmethod
    def page(self, work: UnitOfWork, before: Row | None, limit: int) -> Sequence[Row]:
        """Return the next older rows than `before`, or the newest."""

    @abstractmethod
    def known(self, work: UnitOfWork, ids: Collection[str]) -> Collection[str]:
        """Return which ids have a row."""

    @abstractmethod
    def top(self, work: UnitOfWork) -> Row | None:
        """Return the row that the newest materialization has to be about."""

    @abstractmethod
    def metadata(self, row: Row, application: Application) -> Metadata:
        """Return what is shown of a row."""

    def is_top(self, shown: dg.AssetMaterialization, row: Row, application: Application) -> bool:
        """Tell whether a genuine newest materialization may stay on top.

        It may although `row` should be: two runs at once may report in another order than they
        stored.
        """
        del shown, row, application
        return True

    def checks(self, row: Row) -> list[dg.AssetCheckEvaluation]:
        """Return the check evaluations that belong to a row's materialization."""
        del row
        return []

    def shows(self, row: Row) -> bool:
        """Tell whether a row of the page is one of this asset's."""
        del row
        return True

    def partition(self, row: Row) -> str | None:
        """Return the partition of the asset that a row is about."""
        del row
        return None

    def is_newest(self, work: UnitOfWork, row: Row) -> bool:
        """Tell whether a row that was lost may be materialized again, as its partition's newest."""
        del work, row
        return False

    def materialization(self, row: Row, application: Application) -> dg.AssetMaterialization:
        """Return the materialization of a row as its run reports it."""
        return dg.AssetMaterialization(
            self.key,
            metadata=self.metadata(row, application),
            partition=self.partition(row),
            tags={DATA_VERSION: row.id},
        )


class StageProjection(Projection[Stage]):
    """`<datasource>/stage`: its materializations are the stages."""

    def __init__(self, declaration: Datasource) -> None:
        super().__init__(stage_key(declaration.id))
        self._declaration = declaration

    @override
    def page(self, work: UnitOfWork, before: Stage | None, limit: int) -> Sequence[Stage]:
        return work.stages.page(self._declaration.id, before=before, limit=limit)

    @override
    def known(self, work: UnitOfWork, ids: Collection[str]) -> Collection[str]:
        return work.stages.known(self._declaration.id, ids)

    @override
    def top(self, work: UnitOfWork) -> Stage | None:
        newest = self.page(work, None, 1)
        return newest[0] if newest else None

    @override
    def metadata(self, row: Stage, application: Application) -> Metadata:
        settings, declared = application.settings, self._declaration.quality_policy
        return stage_metadata(row, settings.tenant, declared, settings.dagster_url)

    @override
    def checks(self, row: Stage) -> list[dg.AssetCheckEvaluation]:
        return [
            evaluation_of(result, self.key)
            for result in check_results(row, self.key, self._declaration.quality_policy)
        ]


class RevisionProjection(Projection[Materialization]):
    """An asset whose materializations are revisions of a datasource."""

    def __init__(self, declaration: Datasource, key: dg.AssetKey) -> None:
        super().__init__(key)
        self._declaration = declaration

    @override
    def page(
        self, work: UnitOfWork, before: Materialization | None, limit: int
    ) -> Sequence[Materialization]:
        return work.materializations.page(self._declaration.id, before=before, limit=limit)

    @override
    def known(self, work: UnitOfWork, ids: Collection[str]) -> Collection[str]:
        return work.materializations.known(self._declaration.id, ids)


class CurrentProjection(RevisionProjection):
    """`<datasource>/current`: its materializations are the revisions, the current one on top.

    Revisions of a partition are shown by the asset that publishes them.
    """

    def __init__(self, declaration: Datasource) -> None:
        super().__init__(declaration, current_key(declaration.id))

    @override
    def shows(self, row: Materialization) -> bool:
        return not row.partition

    @override
    def top(self, work: UnitOfWork) -> Materialization | None:
        if not self.page(work, None, 1):
            return None  # also of a datasource that was not applied yet
        target = work.datasources.get(self._declaration.id)
        return work.materializations.get(target.current) if target.current else None

    @override
    def metadata(self, row: Materialization, application: Application) -> Metadata:
        return materialization_metadata(row, provenance_of(row))

    @override
    def is_top(
        self, shown: dg.AssetMaterialization, row: Materialization, application: Application
    ) -> bool:
        same_version = (shown.tags or {}).get(DATA_VERSION) == row.id
        told = self.materialization(row, application).metadata.items()
        return same_version and all(shown.metadata.get(name) == value for name, value in told)


class PublishedProjection(RevisionProjection):
    """A governed asset: its materializations are what its producer published, by partition."""

    def __init__(self, declaration: Datasource, producer: dg.AssetsDefinition) -> None:
        super().__init__(declaration, producer.key)
        told = producer.metadata_by_key[producer.key]
        self._producer = str(told[PRODUCER])
        self._is_partitioned = producer.partitions_def is not None
        self._policy_hash = declared_hash(told)
        declared = declaration.quality_policy
        is_supplied = declared is None or declared.hash != self._policy_hash
        self._declared = None if is_supplied else declared

    @override
    def shows(self, row: Materialization) -> bool:
        published = provenance_of(row).get("publication")
        return isinstance(published, dict) and published["producer"] == self._producer

    @override
    def partition(self, row: Materialization) -> str | None:
        return row.partition or None

    @override
    def top(self, work: UnitOfWork) -> Materialization | None:
        # Partitions are many; what was lost of one is found by going round.
        newest = [] if self._is_partitioned else self.page(work, None, _NEWEST)
        return next((row for row in newest if self.shows(row)), None)

    @override
    def is_newest(self, work: UnitOfWork, row: Materialization) -> bool:
        if not row.partition:
            return False  # what belongs on top of all is looked after by itself
        return work.datasources.get(row.datasource, row.partition).current == row.id

    @override
    def metadata(self, row: Materialization, application: Application) -> Metadata:
        return output_metadata(row, _validation(row), self._policy_hash)

    @override
    def checks(self, row: Materialization) -> list[dg.AssetCheckEvaluation]:
        return [
            evaluation_of(result, self.key, partition=self.partition(row))
            for result in validation_results(_validation(row), self.key, self._declared)
        ]


class PlanProjection(Projection[PlanReference]):
    """`governance/retention_plan`: its materializations are the plans, whoever made them.

    A plan is as long as what is due, so it is read only where it was lost.
    """

    def __init__(self) -> None:
        super().__init__(RETENTION_PLAN)

    @override
    def page(
        self, work: UnitOfWork, before: PlanReference | None, limit: int
    ) -> Sequence[PlanReference]:
        return work.retention.page(before, limit)

    @override
    def known(self, work: UnitOfWork, ids: Collection[str]) -> Collection[str]:
        return work.retention.known(ids)

    @override
    def top(self, work: UnitOfWork) -> PlanReference | None:
        newest = self.page(work, None, 1)
        return newest[0] if newest else None

    @override
    def metadata(self, row: PlanReference, application: Application) -> Metadata:
        with application.work() as work:
            stored = work.retention.plan(row.id)
        if stored is None:
            raise unknown_plan(row.id)
        return plan_metadata(stored.plan)


def _validation(row: Materialization) -> Mapping[str, Json]:
    validation = provenance_of(row)["publication_validation"]
    if not isinstance(validation, dict):
        raise TypeError("a stored validation is a JSON object")
    return validation
