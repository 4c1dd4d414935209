"""Statements that are the same each time but for their values, built once for all.

To build a statement from columns, and to recognise it as one that was compiled before, takes longer
than to run it. What every transition runs is kept here by its shape, so that both happen once.
"""

from functools import cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Insert,
    Select,
    Table,
    Update,
    and_,
    bindparam,
    insert,
    select,
    update,
)

from datasource_governance.persistence.tables import mutable_columns

Names = tuple[str, ...]
Shape = tuple[Table, Names]
"""A table, and those of its columns that are meant."""


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
    the columns that are written.
    """
    key = tuple(column.name for column in table.primary_key)
    written = {column.name: _of(table, column.name, "") for column in mutable_columns(table)}
    return update(table).where(_equal(table, (*key, *was), "is_")).values(written)


def _equal(table: Table, names: Names, prefix: str) -> ColumnElement[bool]:
    return and_(*(table.c[name] == _of(table, name, prefix) for name in names))


def _of(table: Table, name: str, prefix: str) -> BindParameter[Any]:
    return bindparam(f"{prefix}{name}", type_=table.c[name].type)
