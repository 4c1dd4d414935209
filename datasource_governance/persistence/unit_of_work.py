"""One transaction in Postgres, with the repositories that hang off it.

Source: ports.UnitOfWork; SPEC section 17 (roles, isolation).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Self

from sqlalchemy import Engine, text

from datasource_governance.errors import GovernanceError
from datasource_governance.persistence.authority import PostgresAuthority
from datasource_governance.persistence.chains import PostgresEvidence
from datasource_governance.persistence.connection import Connection
from datasource_governance.persistence.contracts import PostgresContracts
from datasource_governance.persistence.deliveries import PostgresDeliveries
from datasource_governance.persistence.holds import PostgresHolds
from datasource_governance.persistence.outbox import PostgresOutbox
from datasource_governance.persistence.publications import PostgresPublications
from datasource_governance.persistence.repositories import (
    PostgresDatasources,
    PostgresDecisions,
    PostgresMaterializations,
    PostgresStages,
)
from datasource_governance.persistence.retention import PostgresRetention
from datasource_governance.persistence.rows import Rows

_NOW = text("SELECT governance.now() AS now")


class PostgresUnitOfWork:
    """See ports.UnitOfWork. Can be entered again after it ended: each time a new transaction."""

    def __init__(self, engine: Engine, tenant: str, new_id: Callable[[], str]) -> None:
        self.tenant = tenant
        self._new_id = new_id
        self._connection = Connection(engine, tenant)
        self._rows = Rows(self._connection, tenant)
        self.datasources = PostgresDatasources(self._rows)
        self.stages = PostgresStages(self._rows)
        self.decisions = PostgresDecisions(self._rows)
        self.materializations = PostgresMaterializations(self._rows)
        self.publications = PostgresPublications(self._rows)
        self.retention = PostgresRetention(self._rows)
        self.holds = PostgresHolds(self._rows)
        self.contracts = PostgresContracts(self._rows)
        self.authority = PostgresAuthority(self._rows)
        self.outbox = PostgresOutbox(self._rows)
        self.deliveries = PostgresDeliveries(self._rows)
        self.evidence = PostgresEvidence(self._rows)

    def __enter__(self) -> Self:
        self._begin()
        return self

    def _begin(self, *, snapshot: bool = False) -> None:
        self._rows.begin()
        try:
            self._connection.begin(snapshot=snapshot)
        except BaseException:
            self._connection.close()
            raise

    def __exit__(self, *failure: object) -> None:
        self._connection.close()

    @contextmanager
    def snapshot(self) -> Iterator[Self]:
        self._begin(snapshot=True)
        try:
            yield self
        finally:
            self._connection.close()

    def commit(self) -> None:
        if self._rows.notes:
            tables = sorted({note.table for note in self._rows.notes})
            raise GovernanceError(f"rows of {', '.join(tables)} were written without evidence")
        self._connection.commit()

    def take_turn(self, name: str) -> bool:
        return self._rows.locks.take_turn(name)

    def now(self) -> datetime:
        (clock,) = self._connection.run(_NOW, {})
        instant: datetime = clock["now"]
        return instant

    def new_id(self) -> str:
        return self._new_id()
