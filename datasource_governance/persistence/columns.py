"""What the tables of schema `governance` are made of.

Source: persistence.tables.
"""

from sqlalchemy import ARRAY, Column, DateTime, MetaData, Table, Text
from sqlalchemy.schema import SchemaItem

metadata = MetaData(schema="governance")
INSTANT = DateTime(timezone=True)


def table(name: str, *columns: SchemaItem) -> Table:
    """Return a table of the schema, whose rows are of a tenant each."""
    return Table(name, metadata, Column("tenant", Text, primary_key=True), *columns)


def mutable(name: str, kind: type | DateTime | ARRAY[int], *, nullable: bool = False) -> SchemaItem:
    """Return a column that the application may change, and evidence follows."""
    return Column(name, kind, nullable=nullable, info={"mutable": True})


def key(name: str, kind: type = Text) -> SchemaItem:
    """Return a column of the primary key."""
    return Column(name, kind, primary_key=True)


def required(name: str, kind: type | DateTime = Text) -> SchemaItem:
    """Return a column that is never null and never changes."""
    return Column(name, kind, nullable=False)


def optional(name: str, kind: type | DateTime = Text) -> SchemaItem:
    """Return a column that may be null and never changes."""
    return Column(name, kind, nullable=True)


def added(name: str, kind: type = Text) -> SchemaItem:
    """Return a column that a later revision added; null in it counts as no column."""
    return Column(name, kind, nullable=True, info={"added": True})
