"""Legal holds, their releases and frozen evidence in Postgres.

Source: ports.holds, which says what each method promises.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, and_, bindparam, select

from datasource_governance.domain.hold import Freeze, Hold, HoldRelease
from datasource_governance.persistence import mapping, tables
from datasource_governance.persistence.rows import Rows

_HOLD, _RELEASE = tables.legal_hold, tables.hold_release
_HOLDS: Select[Any] = (
    select(_HOLD, *(column.label(f"release_{column.name}") for column in _RELEASE.c))
    .outerjoin(_RELEASE, and_(_RELEASE.c.tenant == _HOLD.c.tenant, _RELEASE.c.hold == _HOLD.c.id))
    .where(_HOLD.c.tenant == bindparam("tenant"))
    .order_by(_HOLD.c.placed_at.desc(), _HOLD.c.id)
)
_BY_ID = _HOLDS.where(_HOLD.c.id == bindparam("id"))


class PostgresHolds:
    """See ports.holds.Holds."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def get(self, hold: str) -> Hold:
        """See ports.holds.Holds."""
        row = self._rows.first(_BY_ID, {"tenant": self._rows.tenant, "id": hold})
        return mapping.hold(self._rows.known(row, f"hold {hold!r}"))

    def list(self, datasource: str | None, *, active: bool) -> Sequence[Hold]:
        """See ports.holds.Holds."""
        query = _HOLDS.params(tenant=self._rows.tenant)
        if datasource is not None:
            query = query.where(_HOLD.c.datasource == datasource)
        if active:
            query = query.where(_RELEASE.c.hold.is_(None))
        return [mapping.hold(row) for row in self._rows.all(query)]

    def place(self, hold: Hold) -> None:
        """See ports.holds.Holds."""
        row = mapping.flat_row(hold)
        del row["released"]
        self._rows.insert(_HOLD, row)

    def release(self, release: HoldRelease) -> None:
        """See ports.holds.Holds."""
        self._rows.insert(_RELEASE, mapping.flat_row(release))

    def freeze(self, freeze: Freeze) -> None:
        """See ports.holds.Holds."""
        self._rows.insert(tables.frozen_evidence, mapping.flat_row(freeze))

    def frozen(self, materialization: str) -> Freeze | None:
        """See ports.holds.Holds."""
        row = self._rows.find(tables.frozen_evidence, materialization=materialization)
        return mapping.freeze(row) if row else None
