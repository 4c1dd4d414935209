"""The outbox in Postgres.

Source: ports.outbox, which says what each method promises.
"""

from typing import Any

from sqlalchemy import bindparam, func, select

from datasource_governance.domain.event import Event
from datasource_governance.persistence import mapping, tables
from datasource_governance.persistence.rows import Rows
from datasource_governance.persistence.statements import inserted, insertion

_EVENT = tuple(column.name for column in tables.outbox.columns if column.name != "number")
_NEXT_EVENT = (
    insertion((tables.outbox, _EVENT))
    .values(
        number=select(func.coalesce(func.max(tables.outbox.c.number), 0) + 1)
        .where(tables.outbox.c.tenant == bindparam("0_tenant"))
        .where(tables.outbox.c.datasource == bindparam("0_datasource"))
        .scalar_subquery()
    )
    .returning(tables.outbox.c.number)
)
"""A number is taken under the datasource's lock, or else the unique key makes one writer wait."""


class PostgresOutbox:
    """See ports.outbox.Outbox."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def add(self, event: Event) -> None:
        """See ports.outbox.Outbox."""
        row = mapping.flat_row(event)
        written = inserted({"tenant": self._rows.tenant, **row})

        def note(numbered: list[dict[str, Any]]) -> None:
            self._rows.note(tables.outbox, row | numbered[0])

        self._rows.connection.later(_NEXT_EVENT, written, note)

    def at(self, datasource: str, number: int) -> Event | None:
        """See ports.outbox.Outbox."""
        row = self._rows.find(tables.outbox, datasource=datasource, number=number)
        return mapping.event(row) if row else None
