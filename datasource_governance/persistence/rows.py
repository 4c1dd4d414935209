"""Writing rows so that evidence learns of every one of them.

`insert` and `change` note what was written; the evidence entry that ends the transaction takes the
notes over, and a commit with notes left is refused. So no row can be written without evidence.

Source: SPEC section 13.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import ColumnElement, Select, Table, and_, select

from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.evidence import Cell, Key, RowCommitment, commit_columns
from datasource_governance.errors import GuardError, NotFoundError
from datasource_governance.persistence import statements
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
        self.insert_together((table, row))

    def insert_together(self, *new: tuple[Table, Mapping[str, object]]) -> None:
        """Insert rows of several tables in one statement, and note them in that order.

        They may refer to each other: references are looked at when the statement ends. They go
        with whatever is asked next, which tells what they are refused for.
        """
        rows = [{"tenant": self.tenant, **row} for _, row in new]
        tables = [table for table, _ in new]
        shapes = zip(tables, map(tuple, rows), strict=True)
        self.connection.later(statements.insertion(*shapes), statements.inserted(*rows))
        for table, row in zip(tables, rows, strict=True):
            self.note(table, row)

    def note(self, table: Table, row: Mapping[str, object]) -> None:
        """Note a row that was inserted by a statement of its own."""
        complete = {"tenant": self.tenant, **row}
        self.notes.append(
            RowCommitment(
                table=table.name,
                key=row_key(table, complete),
                immutable=immutable_commitment(table, complete),
                mutable=mutable_commitment(table, complete),
            )
        )

    def note_purge(self, table: Table, *key: str) -> None:
        """Note that a payload was deleted by a statement of its own, by its key in the tenant."""
        purged = (self.tenant, *key)
        self.notes.append(
            RowCommitment(table=table.name, key=purged, immutable=None, mutable=None, deleted=True)
        )

    def note_change(self, table: Table, row: Mapping[str, object]) -> None:
        """Note the mutable columns of a row that a statement of its own wrote."""
        complete = {"tenant": self.tenant, **row}
        self.notes.append(
            RowCommitment(
                table=table.name,
                key=row_key(table, complete),
                immutable=None,
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
        matches = {f"is_{name}": value for name, value in {**key, **was}.items()}

        def check(changed: list[dict[str, Any]]) -> None:
            if len(changed) != 1:
                raise GuardError(
                    f"the {table.name} was changed meanwhile; nothing was written, try again",
                    code="conflict",
                )

        self.connection.later(statements.change(table, tuple(was)), values | matches, check)
        self.note_change(table, row)

    def find(self, table: Table, **equal: object) -> Row | None:
        """Return this tenant's row in which the columns equal the values, of which none is None."""
        return self._found(statements.lookup, table, equal)

    def find_and_lock(self, table: Table, **equal: object) -> Row | None:
        """Return a row as `find`, and keep others from changing it."""
        return self._found(statements.locking_lookup, table, equal)

    def _found(
        self,
        statement: Callable[[Table, statements.Names], Select[Any]],
        table: Table,
        equal: Mapping[str, object],
    ) -> Row | None:
        named = {"tenant": self.tenant, **equal}
        return self.first(statement(table, tuple(named)), named)

    def first(
        self, query: Select[Any], parameters: Mapping[str, object] | None = None
    ) -> Row | None:
        """Return the first row of a query, or None."""
        return next(iter(self.all(query, parameters)), None)

    def all(
        self, query: Select[Any], parameters: Mapping[str, object] | None = None
    ) -> Sequence[Row]:
        """Return all rows of a query. One that takes parameters is kept by whoever asks it."""
        if parameters is not None:
            return self.connection.run(query, parameters)
        return cast("list[Row]", self.connection.execute(query).mappings().all())

    def one(self, query: Select[Any], what: str) -> Row:
        """Return the only row of a query.

        Raises:
            NotFoundError: naming `what`, also when it is another tenant's.
        """
        return self.known(self.first(query), what)

    def known(self, row: Row | None, what: str) -> Row:
        """Return a row that was looked for.

        Raises:
            NotFoundError: naming `what`, where none was found.
        """
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
    """Return the digest of the columns that never change; a payload counts by its own digest.

    A column that was added later counts where it has a value.
    """
    return commit_columns(
        table.name,
        {
            column.name: _cell(column.name, row)
            for column in immutable_columns(table)
            if row[column.name] is not None or not column.info.get("added")
        },
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
