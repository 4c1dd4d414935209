"""Writing rows so that evidence learns of every one of them.

`insert` and `change` note what was written; the evidence entry that ends the transaction takes the
notes over, and a commit with notes left is refused. So no row can be written without evidence.

Source: SPEC section 13.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, cast

from sqlalchemy import ColumnElement, Select, Table, and_, insert, select, update

from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.evidence import Cell, Key, RowCommitment, commit_columns
from datasource_governance.errors import GuardError, NotFoundError
from datasource_governance.persistence.connection import Connection
from datasource_governance.persistence.locks import Locks
from datasource_governance.persistence.tables import DIGESTS, immutable_columns, mutable_columns

PAYLOAD = "payload"
Row = Mapping[str, Any]
"""A row as queries give it; the types are those of `tables.py`."""


class Rows:
    """The rows of one transaction and tenant."""

    def __init__(self, connection: Connection, tenant: str) -> None:
        self.connection = connection
        self.tenant = tenant
        self.locks = Locks(connection, tenant)
        self.notes: list[RowCommitment] = []

    def begin(self) -> None:
        """Owe no evidence and hold no lock: a new transaction begins."""
        self.locks.forget()
        self.notes.clear()

    def insert(self, table: Table, row: Mapping[str, object]) -> None:
        """Insert one row and note it."""
        complete = {"tenant": self.tenant, **row}
        self.connection.execute(insert(table), complete)
        self.notes.append(
            RowCommitment(
                table=table.name,
                key=row_key(table, complete),
                immutable=immutable_commitment(table, complete),
                mutable=mutable_commitment(table, complete),
            )
        )

    def change(self, table: Table, row: Mapping[str, object], **was: object) -> None:
        """Write the mutable columns of one row, given whole, and note them.

        Raises:
            GuardError: code `conflict` when the row is gone or no longer holds the values `was`.
        """
        complete = {"tenant": self.tenant, **row}
        values = {column.name: complete[column.name] for column in mutable_columns(table)}
        key = {column.name: complete[column.name] for column in table.primary_key}
        matches = [table.c[name] == value for name, value in {**key, **was}.items()]
        changed = self.connection.execute(update(table).where(*matches).values(**values))
        if changed.rowcount != 1:
            raise GuardError(
                f"the {table.name} was changed meanwhile; nothing was written, try again",
                code="conflict",
            )
        self.notes.append(
            RowCommitment(
                table=table.name,
                key=row_key(table, complete),
                immutable=None,
                mutable=mutable_commitment(table, complete),
            )
        )

    def first(self, query: Select[Any]) -> Row | None:
        """Return the first row of a query, or None."""
        found = self.connection.execute(query).mappings().first()
        return cast("Row | None", found)

    def all(self, query: Select[Any]) -> list[Row]:
        """Return all rows of a query."""
        return cast("list[Row]", self.connection.execute(query).mappings().all())

    def one(self, query: Select[Any], what: str) -> Row:
        """Return the only row of a query.

        Raises:
            NotFoundError: naming `what`, also when it is another tenant's.
        """
        row = self.first(query)
        if row is None:
            raise NotFoundError(f"there is no {what} in tenant {self.tenant!r}")
        return row

    def of(self, table: Table, **equal: object) -> Select[Any]:
        """Select this tenant's rows of a table in which the columns equal the values."""
        return select(table).where(self.mine(table, **equal))

    def comparable(self, table: Table, **equal: object) -> Select[Any]:
        """Select rows as commitments count them: a payload by the digest that Postgres computes.

        A role that may not read payloads can do this, too.
        """
        source = DIGESTS.get(table.name, table)
        columns = (
            column.label(PAYLOAD) if column.name == "sha256" else column for column in source.c
        )
        return select(*columns).where(self.mine(source, **equal))

    def mine(self, table: Table, **equal: object) -> ColumnElement[bool]:
        """Return the condition that a row is this tenant's and equals the values."""
        return and_(
            table.c.tenant == self.tenant,
            *(table.c[name] == value for name, value in equal.items()),
        )


def row_key(table: Table, row: Mapping[str, object]) -> Key:
    """Return the primary key as texts."""
    return tuple(str(row[column.name]) for column in table.primary_key)


def immutable_commitment(table: Table, row: Mapping[str, object]) -> Sha256:
    """Return the digest of the columns that never change; a payload counts by its own digest."""
    return commit_columns(
        table.name,
        {column.name: _cell(column.name, row) for column in immutable_columns(table)},
    )


def mutable_commitment(table: Table, row: Mapping[str, object]) -> Sha256 | None:
    """Return the digest of the columns that transitions change, None for a table without any."""
    columns = mutable_columns(table)
    if not columns:
        return None
    return commit_columns(table.name, {column.name: _cell(column.name, row) for column in columns})


def _cell(name: str, row: Mapping[str, object]) -> Cell:
    value = row[name]
    if name == PAYLOAD and isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    return value  # type: ignore[return-value]  # the tables hold nothing but cells
