"""Statements that are the same each time but for their values, built once for all.

To build a statement from columns, and to recognise it as one that was compiled before, takes longer
than to run it. What every transition runs is kept here by its shape, so that both happen once, and
the driver takes it as it was compiled.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Insert,
    Select,
    Table,
    TextClause,
    Update,
    and_,
    bindparam,
    insert,
    select,
    update,
)
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from datasource_governance.persistence.tables import mutable_columns

Names = tuple[str, ...]
Kept = Select[Any] | Insert | Update | TextClause
Shape = tuple[Table, Names]
"""A table, and those of its columns that are meant."""
_DIALECT = PGDialect_psycopg()  # type: ignore[no-untyped-call]  # its constructor says no types
_PREPARED = 512


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement as the driver takes it; `constants` are values that it was built with."""

    text: bytes
    constants: Mapping[str, object] = field(default_factory=dict)

    def values(self, parameters: Mapping[str, object]) -> Mapping[str, object]:
        """Return what is sent with it."""
        return {**self.constants, **parameters} if self.constants else parameters


@lru_cache(maxsize=_PREPARED)
def prepared(statement: Kept) -> Prepared:
    """Compile a statement that is kept, once; another one of the same shape is another one."""
    compiled = statement.compile(dialect=_DIALECT)
    constants = {name: value for name, value in compiled.params.items() if value is not None}
    return Prepared(str(compiled).encode(), constants)


@cache
def lookup(table: Table, names: Names) -> Select[Any]:
    """Select rows whose named columns equal the parameters of the same names, none of them null."""
    return select(table).where(_equal(table, names, ""))


@cache
def locking_lookup(table: Table, names: Names) -> Select[Any]:
    """Select as `lookup` and lock what is found."""
    return lookup(table, names).with_for_update()


@cache
def insertion(*shapes: Shape) -> Insert:
    """Insert one row into each table; the parameters are those of `inserted`.

    Rows may refer to each other: references are looked at when the statement ends.
    """
    *others, last = (
        insert(table).values({name: _of(table, name, f"{number}_") for name in names})
        for number, (table, names) in enumerate(shapes)
    )
    for number, other in enumerate(others):
        last = last.add_cte(other.cte(f"row_{number}"))
    return last


def inserted(*rows: dict[str, object]) -> dict[str, object]:
    """Return the parameters of an `insertion` of rows."""
    return {
        f"{number}_{name}": value for number, row in enumerate(rows) for name, value in row.items()
    }


@cache
def change(table: Table, was: Names) -> Update:
    """Write the mutable columns of the row of a primary key.

    The parameters are `is_<column>` of the key and of `was`, what the row has to hold so far, and
    the columns that are written. A row comes back where one was changed.
    """
    key = tuple(column.name for column in table.primary_key)
    written = {column.name: _of(table, column.name, "") for column in mutable_columns(table)}
    changed = update(table).where(_equal(table, (*key, *was), "is_")).values(written)
    return changed.returning(table.c.tenant)


def _equal(table: Table, names: Names, prefix: str) -> ColumnElement[bool]:
    return and_(*(table.c[name] == _of(table, name, prefix) for name in names))


def _of(table: Table, name: str, prefix: str) -> BindParameter[Any]:
    return bindparam(f"{prefix}{name}", type_=table.c[name].type)
