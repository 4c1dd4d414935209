"""Live data, as checks read it: what is current of a datasource, or a table outside the product.

Source: SPEC section 14 ("Live data is read").
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from typing_extensions import override

from datasource_governance.composition import Application
from datasource_governance.domain.artifact import parse_artifact_reference
from datasource_governance.domain.contract import Contract, ContractTable, ServiceLevels
from datasource_governance.domain.contract_judgement import used_percent
from datasource_governance.domain.lineage_dataset import current_dataset
from datasource_governance.domain.materialization import Disposition, Materialization
from datasource_governance.domain.schema import Field, TableSchema
from datasource_governance.domain.schema_document import parse_schema
from datasource_governance.errors import (
    GovernanceError,
    GuardError,
    NotFoundError,
    ServiceUnavailableError,
)

if TYPE_CHECKING:
    from datasource_governance.sources.sql.live import LiveTable


class LiveData(ABC):
    """What a contract is about, as it is now. Every method may raise GovernanceError."""

    @property
    @abstractmethod
    def dataset(self) -> tuple[str, str]:
        """Namespace and name by which OpenLineage knows it."""

    @property
    def materialization(self) -> str | None:
        """The id of the materialization that is read, if it is one."""
        return None

    @abstractmethod
    def absence(self) -> str | None:
        """Return why the data is not there, as an error code; None where it can be read."""

    @abstractmethod
    def schema(self) -> TableSchema:
        """Return the fields; a field whose nulls nobody knows without reading is not nullable."""

    @abstractmethod
    def used(self, levels: ServiceLevels, allowed: timedelta) -> int:
        """Return how much of the promised freshness is used, in whole percent."""

    @abstractmethod
    def rows(self) -> object:
        """Return what the quality provider is connected to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentData(LiveData):
    """What is current of a datasource; of one in partitions, what became current last."""

    application: Application
    datasource: str
    found: Materialization

    @property
    @override
    def dataset(self) -> tuple[str, str]:
        return current_dataset(self.application.settings.tenant, self.datasource)

    @property
    @override
    def materialization(self) -> str | None:
        return self.found.id

    @override
    def absence(self) -> str | None:
        if self.found.disposition is not Disposition.RETAINED:
            return "payload_purged"
        try:
            self._touch()
        except GovernanceError as error:
            return error.code
        return None

    def _touch(self) -> None:
        if self.found.artifact is not None:
            reference = parse_artifact_reference(self.found.artifact)
            self.application.artifacts().version(self.datasource, reference)
            return
        with self.application.work() as work:
            work.materializations.payload_size(self.found.id)

    @override
    def schema(self) -> TableSchema:
        return parse_schema(self.found.schema)

    @override
    def used(self, levels: ServiceLevels, allowed: timedelta) -> int:
        with self.application.work() as work:
            return used_percent(work.now() - self.found.created_at, allowed)

    @override
    def rows(self) -> object:
        from datasource_governance.reading import Reader
        from datasource_governance.services.reading import Wanted

        wanted = Wanted(partition=self.found.partition, materialization=self.found.id)
        reader = Reader(application=self.application)
        return reader.load(self.datasource, wanted, "arrow").frame


@dataclass(frozen=True, slots=True, kw_only=True)
class TableData(LiveData):
    """A SQL table, whose URL is in `environment`. It has a password, and is not in the `repr`."""

    contract: str
    named: ContractTable
    environment: Mapping[str, str] = field(repr=False)
    timeout_seconds: int

    @property
    @override
    def dataset(self) -> tuple[str, str]:
        from datasource_governance.quality.connections import connection_to

        known = connection_to(self.rows()).dataset
        return known.namespace, known.name

    @override
    def absence(self) -> str | None:
        return None if self._table().is_readable() else "unreachable"

    @override
    def schema(self) -> TableSchema:
        from datasource_governance.evaluation.detect import logical_type

        columns = self._table().columns()
        return TableSchema.of(
            Field(name=one.name, type=logical_type(one), nullable=False) for one in columns
        )

    @override
    def used(self, levels: ServiceLevels, allowed: timedelta) -> int:
        if levels.freshness_field is None:
            raise GuardError(
                "the contract names no field that says how old the table is: give the property "
                "latency an element",
                code="freshness_unknown",
            )
        seconds = allowed.total_seconds()
        found = self._table().used_percent(levels.freshness_field, seconds)
        if found is None:
            raise NotFoundError("no row says how old the table is", code="nothing_current")
        return found

    @override
    def rows(self) -> object:
        from datasource_governance.sources.sql.read import SqlSource

        return SqlSource(self._url(), table=self.named.table, schema=self.named.schema)

    def _table(self) -> "LiveTable":
        from datasource_governance.sources.sql.live import LiveTable

        return LiveTable(
            url=self._url(),
            table=self.named.table,
            schema=self.named.schema,
            timeout_seconds=self.timeout_seconds,
        )

    def _url(self) -> str:
        url = self.environment.get(self.named.url_variable)
        if not url:
            raise ServiceUnavailableError(
                f"contract {self.contract!r} is about a table whose address is in "
                f"{self.named.url_variable}, which is not set; export it where checks run",
                code="table_url_missing",
            )
        return url


def live_data(
    application: Application,
    datasource: str,
    contract: Contract,
    timeout_seconds: int,
    environment: Mapping[str, str],
) -> LiveData | None:
    """Return what a contract is about; None where that is what is current, and nothing ever was.

    Raises:
        GovernanceError: the governance database cannot be used.
    """
    if contract.table is not None:
        return TableData(
            contract=contract.id,
            named=contract.table,
            environment=environment,
            timeout_seconds=timeout_seconds,
        )
    with application.work() as work:
        # The newest revision is what is current, or is in its partition.
        newest = work.materializations.page(datasource, before=None, limit=1)
    return next(
        (CurrentData(application=application, datasource=datasource, found=one) for one in newest),
        None,
    )
