"""Publications in Postgres.

Source: ports.lifecycle, which says what each method promises.
"""

from collections.abc import Collection, Sequence

from sqlalchemy import Text, bindparam

from datasource_governance.domain.materialization import Materialization
from datasource_governance.domain.publication import Publication, PublicationState
from datasource_governance.persistence import mapping, tables
from datasource_governance.persistence.rows import Rows
from datasource_governance.persistence.statements import lookup

_ATTESTED = lookup(tables.publication, ("tenant", "attestation_id", "datasource")).where(
    tables.publication.c.partition.is_not_distinct_from(bindparam("partition", type_=Text))
)


class PostgresPublications:
    """See ports.Publications."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def lock_key(self, producer: str, idempotency_key: str) -> None:
        """See ports.Publications."""
        self._rows.locks.publication_key(producer, idempotency_key)

    def find(self, producer: str, idempotency_key: str) -> Publication | None:
        """See ports.Publications."""
        named = {"producer": producer, "idempotency_key": idempotency_key}
        row = self._rows.find(tables.publication, **named)
        return mapping.publication(row) if row else None

    def get(self, publication: str) -> Publication:
        """See ports.Publications."""
        row = self._rows.find(tables.publication, id=publication)
        return mapping.publication(self._rows.known(row, f"publication {publication!r}"))

    def attested_by(
        self, attestation_id: str, datasource: str, partition: str
    ) -> Publication | None:
        """See ports.Publications."""
        named = {
            "tenant": self._rows.tenant,
            "attestation_id": attestation_id,
            "datasource": datasource,
            "partition": partition or None,
        }
        row = self._rows.first(_ATTESTED, named)
        return mapping.publication(row) if row else None

    def list(
        self, datasource: str | None, states: Collection[PublicationState], limit: int
    ) -> Sequence[Publication]:
        """See ports.Publications."""
        table = tables.publication
        query = self._rows.of(table).order_by(table.c.created_at.desc(), table.c.id).limit(limit)
        if datasource is not None:
            query = query.where(table.c.datasource == datasource)
        if states:
            query = query.where(table.c.state.in_(sorted(states)))
        return [mapping.publication(row) for row in self._rows.all(query)]

    def add(
        self, publication: Publication, materialization: Materialization, payload: bytes | None
    ) -> None:
        """See ports.Publications."""
        new = [
            (tables.publication, mapping.partitioned_row(publication)),
            (tables.materialization, mapping.partitioned_row(materialization)),
        ]
        if payload is not None:
            row: dict[str, object] = {
                "materialization": materialization.id,
                "payload": payload,
            }
            new.append((tables.materialization_payload, row))
        self._rows.insert_together(*new)
