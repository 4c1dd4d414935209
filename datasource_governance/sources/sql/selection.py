"""What is asked of a database, and the words for what its answer may be refused for.

Source: SPEC section 3.
"""

from collections.abc import Iterable
from typing import NamedTuple

from datasource_governance.errors import Problem

RESULT = "the result"
"""What messages about the columns of a table or query call it."""


class Selection(NamedTuple):
    """What is read: `statement` shows the columns as they are, `relation` follows a FROM."""

    statement: str
    relation: str
    order: tuple[str, ...]

    @property
    def ordered(self) -> str:
        """Every column, in order."""
        ordering = f" ORDER BY {_listed(self.order)}" if self.order else ""
        return f"SELECT * FROM {self.relation}{ordering}"  # noqa: S608 - quoted, or the caller's own query

    def of(self, names: Iterable[str]) -> str:
        """Return the statement for some of the columns, in no order."""
        return f"SELECT {_listed(names)} FROM {self.relation}"  # noqa: S608 - quoted, or the caller's own query


def quoted(name: str) -> str:
    """Return a name as SQL reads it, exactly and whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(quoted, names))


def unsupported_type(name: str, spelling: str) -> Problem:
    """Return the problem of a field whose type, as the database spells it, is not read."""
    message = f"field {name!r} has the type {spelling}, which is not read; cast it to text"
    return Problem(kind="unsupported_type", message=message, names=(name,))


def unsupported_values(name: str, count: int) -> Problem:
    """Return the problem of a field with values that its type in the typed form cannot hold."""
    message = (
        f"field {name!r} has {count} value(s) that cannot be kept: an infinite date, a time of "
        "24:00, a datetime beyond the year 294246, or an array in an array"
    )
    return Problem(kind="unsupported_value", message=message, names=(name,))
