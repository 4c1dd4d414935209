"""Rows of a database in the typed form: in batches, as often as it takes, or all at once.

The types of some columns depend on their values: a `numeric` without precision becomes the
narrowest type that holds them all. So those columns are surveyed before any batch is finished; one
reading of everything surveys what it keeps, batches are preceded by a reading of those columns.

Source: SPEC sections 3 and 18, "streaming, out of core".
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar
from weakref import WeakSet

from datasource_governance.errors import GovernanceError, UnreadableSourceError
from datasource_governance.sources.batches import DEFAULT_BATCH_BYTES
from datasource_governance.sources.limits import Limits, check, size_problems
from datasource_governance.sources.refusal import refused
from datasource_governance.sources.sql.selection import RESULT, unsupported_values
from datasource_governance.sources.typed import Column, table_of

if TYPE_CHECKING:
    import pyarrow as pa

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Extent:
    """How far the values of a column go, as far as its type depends on that.

    `unsupported` counts the values that no type holds. The bounds are those of integers, zero
    included; the digits those of decimals, both zero where there is none.
    """

    unsupported: int = 0
    lowest: int = 0
    highest: int = 0
    whole_digits: int = 0
    fraction_digits: int = 0

    def __or__(self, other: "Extent") -> "Extent":
        """Return the extent of the values of both."""
        return Extent(
            unsupported=self.unsupported + other.unsupported,
            lowest=min(self.lowest, other.lowest),
            highest=max(self.highest, other.highest),
            whole_digits=max(self.whole_digits, other.whole_digits),
            fraction_digits=max(self.fraction_digits, other.fraction_digits),
        )


class Fetched(NamedTuple):
    """Some rows as a database's driver gives them, and the extents of their surveyed columns."""

    rows: "pa.Table"
    extents: Mapping[str, Extent]


class Result(Protocol):
    """What a selection gives, on an open connection. Its names and types are checked."""

    @property
    def empty(self) -> "pa.Table":
        """Every column, as fetched, and no row."""
        ...

    @property
    def surveyed(self) -> Sequence[str]:
        """The columns whose type depends on their values, or may not hold them all."""
        ...

    def fetched(self, names: Sequence[str] | None, batch_bytes: int) -> Iterator[Fetched]:
        """Run the statement: every column in order, or the named ones in none.

        Each of what is yielded takes a fraction of a batch, unless rows are large.
        """
        ...

    def finished(self, rows: "pa.Table", extents: Mapping[str, Extent]) -> list[Column]:
        """Return the columns in the types that the extents decide."""
        ...


def answered(name: str, ask: Callable[[], Answer]) -> Answer:
    """Return what a database answers; replace whatever it or its driver raises.

    Raises:
        GovernanceError: raised by `ask` itself, unchanged.
        UnreadableSourceError: kind `unreadable`; the SQLSTATE, or the name of the error, is all
            that is left of it.
    """
    try:
        return ask()
    except GovernanceError:
        raise
    except Exception as error:  # noqa: BLE001 - every message of a driver may quote a cell
        failure = _failed(name, error)
    raise failure


def _failed(name: str, error: Exception) -> UnreadableSourceError:
    cause = getattr(error, "orig", None) or error
    state = getattr(cause, "sqlstate", None) or type(cause).__name__
    return refused(name, "unreadable", f"the database could not answer ({state})", state)


def whole(result: Result, limits: Limits) -> "pa.Table":
    """Return all rows in the typed form, from one run of the statement.

    Raises:
        UnreadableSourceError: as `read_sql`.
    """
    import pyarrow as pa

    fetched = _bounded(result.fetched(None, DEFAULT_BATCH_BYTES), limits)
    groups = list(_grouped(fetched, DEFAULT_BATCH_BYTES))
    extents = _decided(groups)
    tables = [_typed(result, group.rows, extents) for group in groups]
    return pa.concat_tables(tables or [_typed(result, result.empty, extents)])


def typed_empty(result: Result) -> "pa.Table":
    """Return the columns in the typed form, and no row."""
    return _typed(result, result.empty, {})


class SqlBatches:
    """Implements `Batches` over a result, until it is closed.

    Every pass runs the statement again, so a query must answer the same in one snapshot: one that
    is found not to, by its number of rows or by values that a type decided before cannot hold, is
    refused.
    """

    def __init__(
        self, name: str, result: Result, limits: Limits, *, rows_numbered: bool, batch_bytes: int
    ) -> None:
        self.rows_numbered = rows_numbered
        self._name = name
        self._result = result
        self._limits = limits
        self._batch_bytes = batch_bytes
        surveyed = result.surveyed
        self._extents = _decided(result.fetched(surveyed, batch_bytes) if surveyed else ())
        self.schema = _typed(result, result.empty, self._extents).schema
        self._rows: int | None = None
        self._passes: WeakSet[Generator[pa.Table, None, None]] = WeakSet()
        self._is_closed = False

    def __iter__(self) -> Iterator["pa.Table"]:
        """Yield the rows.

        Raises:
            UnreadableSourceError: kinds `unreadable`, see `answered`; `too_large`, for a batch.
        """
        with closing(self._read()) as tables:
            self._passes.add(tables)
            yield from iter(partial(answered, self._name, partial(self._next, tables)), None)

    def close(self) -> None:
        """Give up every pass that was not finished; there is no other from now on."""
        self._is_closed = True
        for tables in list(self._passes):
            tables.close()

    def _next(self, tables: Iterator["pa.Table"]) -> "pa.Table | None":
        if self._is_closed:
            raise refused(self._name, "unreadable", "its connection was given back")
        return next(tables, None)

    def _read(self) -> Generator["pa.Table", None, None]:
        count = 0
        fetched = self._result.fetched(None, self._batch_bytes)
        for rows, extents in _grouped(fetched, self._batch_bytes):
            check(RESULT, size_problems(rows.nbytes, self._limits))
            if _merged([self._extents, extents]) != self._extents:
                raise self._changed()
            count += rows.num_rows
            yield _typed(self._result, rows, self._extents)
        if self._rows not in {None, count}:
            raise self._changed()
        self._rows = count

    def _changed(self) -> UnreadableSourceError:
        return refused(self._name, "unreadable", "it does not answer the same when asked again")


def _bounded(fetched: Iterable[Fetched], limits: Limits) -> Iterator[Fetched]:
    size = 0
    for one in fetched:
        size += one.rows.nbytes
        check(RESULT, size_problems(size, limits))
        yield one


def _grouped(fetched: Iterable[Fetched], batch_bytes: int) -> Iterator[Fetched]:
    group: list[Fetched] = []
    size = 0
    for one in fetched:
        group.append(one)
        size += one.rows.nbytes
        if size >= batch_bytes:
            yield _together(group)
            group, size = [], 0
    if group:
        yield _together(group)


def _together(group: Sequence[Fetched]) -> Fetched:
    import pyarrow as pa

    return Fetched(
        pa.concat_tables([one.rows for one in group]), _merged(one.extents for one in group)
    )


def _merged(parts: Iterable[Mapping[str, Extent]]) -> dict[str, Extent]:
    merged: dict[str, Extent] = {}
    for extents in parts:
        for name, extent in extents.items():
            merged[name] = merged.get(name, Extent()) | extent
    return merged


def _decided(fetched: Iterable[Fetched]) -> dict[str, Extent]:
    """Merge the extents of a whole result, which is refused for values that no type holds."""
    extents = _merged(one.extents for one in fetched)
    found = ((name, extent.unsupported) for name, extent in extents.items())
    check(RESULT, [unsupported_values(name, count) for name, count in found if count])
    return extents


def _typed(result: Result, rows: "pa.Table", extents: Mapping[str, Extent]) -> "pa.Table":
    return table_of(rows.column_names, result.finished(rows, extents))
